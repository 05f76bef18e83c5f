/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Grants that wait before they reach their caller, and may never reach it. Pure: see pure.h. */
#ifndef KRETRY_GRANT_H
#define KRETRY_GRANT_H

#include "decide.h"

/**
 * struct kretry_grant - how to undo a grant
 * @flags:		the caller's flags before it
 * @event:		the failure class that was charged for; 0 when nothing was
 * @from_reserve:	some of the charge came from the reserve
 * @moved:		it counted one attempt
 */
struct kretry_grant {
	u8 flags;
	u8 event;
	u8 from_reserve : 1;
	u8 moved : 1;
};

/* Whether the answer to @event may be an attempt that is to start later. */
static inline bool kretry_event_may_wait(u8 event)
{
	return event == KRETRY_EVENT_BEGIN || kretry_event_is_failure(event);
}

/* Whether the attempt that @op was given is not to start at @now. */
static inline bool kretry_waits(const struct kretry_op *op, u64 now)
{
	return op->verdict == KRETRY_RETRY ||
	       (op->verdict == KRETRY_GO && op->deadline_ns > now);
}

/* Remember how to undo what @call did to @op, which was @asked before. */
static inline void kretry_grant_keep(struct kretry_grant *grant, const struct kretry_op *asked,
				     const struct kretry_op *op, const struct kretry_call *call)
{
	grant->flags = asked->flags & KRETRY_OP_IN_MASK & ~KRETRY_OP_PER_REPORT;
	grant->event = call->charged ? asked->event : KRETRY_EVENT_NONE;
	grant->from_reserve = call->from_reserve;
	grant->moved = op->attempt != asked->attempt;
}

/*
 * Undo it, once: @op has its former attempt and flags again, and the charge is back in @s, which is
 * brought up to @now; NULL where the policy shares nothing. Returns the micro-tokens given back.
 */
u64 kretry_grant_undo(struct kretry_grant *grant, const struct kretry_policy *p,
		      struct kretry_shared *s, struct kretry_op *op, u64 now);

/*
 * Move the deadline of @op to @from and up to its own delay later, so that those who are due
 * together part. False if it is over the policy's limit then.
 */
bool kretry_put_off(const struct kretry_policy *p, struct kretry_op *op, u64 from, u64 rnd);

#endif /* KRETRY_GRANT_H */
