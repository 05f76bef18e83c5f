/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* One op's way through the decision code: its policy, its key and its leases. */
#ifndef KRETRY_ANSWER_H
#define KRETRY_ANSWER_H

#include "caller.h"
#include "queue.h"

/*
 * Decide @op. With @queued, which is IDLE, and an event that may have to wait, an op that is to
 * wait is RESERVED in it. Otherwise it stays IDLE, but may have a handle, to be put outside RCU. On
 * an error nothing has changed.
 */
int kretry_answer(struct kretry_caller *caller, struct kretry_op *op, struct kretry_queued *queued);

/*
 * The same for a chunk. @places has something IDLE, an error, or NULL for each op, or is NULL. An
 * op that cannot be decided says so itself.
 */
void kretry_answer_all(struct kretry_caller *caller, struct kretry_op *ops, u32 count,
		       struct kretry_queued **places);

/*
 * The time of @queued has come: admit it as BEGIN would, into @op, in host time; *@now is when it
 * was decided. ENOMEM, or ENOENT when its policy is being closed; it is unchanged then. Under the
 * queue's lock.
 */
int kretry_answer_due(struct kretry_caller *caller, struct kretry_queued *queued,
		      struct kretry_op *op, u64 *now);

/* Undo the grant of @queued, and what admitting it took, once. @op is what it makes. */
void kretry_answer_undo(struct kretry_queued *queued, struct kretry_op *op);

/* The same for what is RESERVED and will not wait after all; it leaves the queue. */
void kretry_answer_withdraw(struct kretry_queued *queued);

/*
 * Give @queued a deadline between @from and its own delay after it. False: that is over the
 * policy's limit, so its grant is undone and it is STOP_ELAPSED, as is @op. Under the queue's lock.
 */
bool kretry_answer_put_off(struct kretry_queued *queued, struct kretry_op *op, u64 from, u64 rnd);

/* @queued as an op, in host time. */
void kretry_queued_show(const struct kretry_queued *queued, struct kretry_op *op);

/* What @op has become. */
void kretry_queued_note(struct kretry_queued *queued, const struct kretry_op *op);

#endif /* KRETRY_ANSWER_H */
