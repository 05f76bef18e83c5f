/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The ops and waits of an open file that sleep in the kernel: by deadline and by user_data. */
#ifndef KRETRY_QUEUE_H
#define KRETRY_QUEUE_H

#include <linux/hrtimer.h>
#include <linux/kretry.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>

#include "grant.h"

/* The index is this many trees: each is shallow. */
#define KRETRY_INDEX_BITS	8

struct kretry_file;
struct kretry_handle;

/**
 * enum kretry_phase - where something queued is; protected by the queue's lock
 * @KRETRY_IDLE:	not in the queue
 * @KRETRY_RESERVED:	has its place, but is still being decided on
 * @KRETRY_ARMED:	waits for its deadline
 * @KRETRY_TAKEN:	on its way to its caller
 * @KRETRY_CANCELLED:	a wait that is out of the queue, whose command is being completed
 */
enum kretry_phase {
	KRETRY_IDLE,
	KRETRY_RESERVED,
	KRETRY_ARMED,
	KRETRY_TAKEN,
	KRETRY_CANCELLED,
};

/**
 * struct kretry_queued - an op that waits, all times the host's
 * @due:	in the queue, by deadline, while ARMED
 * @node:	in the queue's index, by user_data, while RESERVED, ARMED or TAKEN
 * @handle:	of the op's policy: a reference, from being RESERVED on
 * @deadline_ns: see struct kretry_op, like the next ones
 * @user_data:	as above
 * @key:	as above
 * @start_ns:	as above
 * @delay_ns:	as above
 * @attempt:	as above
 * @generation:	as above
 * @flags:	as above
 * @grant:	how to undo its grant
 * @verdict:	what it will be delivered as; NONE: that is decided at the deadline
 * @phase:	enum kretry_phase
 * @is_wait:	it is part of a struct kretry_wait
 * @counted:	its key counts it as a waiter
 * @overflow:	it was granted on the overflow key
 *
 * Small, since there may be a million: with what the slab and the memory cgroup need for it, at
 * most 128 bytes.
 */
struct kretry_queued {
	struct rb_node due;
	struct rb_node node;
	struct kretry_handle *handle;
	u64 deadline_ns;
	u64 user_data;
	u64 key;
	u64 start_ns;
	u64 delay_ns;
	u32 attempt;
	u32 generation;
	u16 flags;
	struct kretry_grant grant;
	u8 verdict;
	u8 phase : 3;
	u8 is_wait : 1;
	u8 counted : 1;
	u8 overflow : 1;
};

/**
 * struct kretry_side - what waits on one clock; protected by the queue's lock
 * @ops:	queued ops, by deadline
 * @waits:	waits of io_uring commands, by deadline
 * @timer:	armed by what comes first; wakes readers, sends due waits on their way
 * @kf:		the file
 * @expires_ns:	when the timer fires at the latest, U64_MAX when it is not armed
 * @slack_ns:	how late it may be: the least of all that came since the side was empty; U64_MAX
 *		while it is
 * @told:	readers have been woken for the first of @ops, which is due
 */
struct kretry_side {
	struct rb_root_cached ops;
	struct rb_root_cached waits;
	struct hrtimer timer;
	struct kretry_file *kf;
	u64 expires_ns;
	u64 slack_ns;
	bool told;
};

/**
 * struct kretry_queue - all that waits on one file
 * @lock:	protects all of it. Keys' locks are taken under it
 * @index:	2^KRETRY_INDEX_BITS trees by user_data, which of them by its hash; made on first use
 * @count:	how many are in @index
 * @sides:	CLOCK_MONOTONIC and CLOCK_BOOTTIME
 */
struct kretry_queue {
	spinlock_t lock;
	struct rb_root *index;
	u32 count;
	struct kretry_side sides[2];
};

/**
 * struct kretry_cursor - where a walk over all that waits has come to; zeroed at its start
 * @tree:	which tree of the index
 * @user_data:	from where on in it
 */
struct kretry_cursor {
	u32 tree;
	u64 user_data;
};

int kretry_queue_cache_init(void);
void kretry_queue_cache_exit(void);

void kretry_queue_init(struct kretry_file *kf);

/* Nothing is left in it, and nothing comes any more. */
void kretry_queue_exit(struct kretry_file *kf);

/* Have the queue ready for use. False: no memory. */
bool kretry_queue_prepare(struct kretry_queue *queue);

/* Room for @count queued ops, all or none of them; charged to the caller. */
bool kretry_queued_alloc(struct kretry_queue *queue, struct kretry_queued **queued, u32 count);
void kretry_queued_free(struct kretry_queued **queued, u32 count);

static inline void kretry_queued_init(struct kretry_queued *queued, bool is_wait)
{
	queued->handle = NULL;
	queued->flags = 0;
	queued->phase = KRETRY_IDLE;
	queued->is_wait = is_wait;
	queued->counted = false;
	queued->overflow = false;
}

/*
 * Take the place of @user_data, under RCU. ENOENT if @handle is being closed, EEXIST, ENOBUFS. With
 * it goes a reference to @handle, which kretry_handle_put() gives back.
 */
int kretry_queue_reserve(struct kretry_queued *queued, struct kretry_handle *handle, u64 user_data);

/* Take what is not ARMED out of the index. */
void kretry_queue_forget(struct kretry_queued *queued);

/*
 * Have those of @queued that are RESERVED wait for their deadlines: they are NULL then. What is
 * not, the file has let go of. NULL and errors are passed over.
 */
void kretry_queue_arm(struct kretry_queue *queue, struct kretry_queued **queued, u32 count);

/* -------- under the queue's lock -------- */

/* Have it wait for its deadline, whatever its phase. */
void kretry_queue_insert(struct kretry_queue *queue, struct kretry_queued *queued);

/* What is ARMED does so no more, and is TAKEN. */
void kretry_queue_remove(struct kretry_queue *queue, struct kretry_queued *queued);

/* Out of the index, whatever its phase. */
void kretry_queue_unlist(struct kretry_queue *queue, struct kretry_queued *queued);

/* What has that user_data, or NULL. */
struct kretry_queued *kretry_queue_find(struct kretry_queue *queue, u64 user_data);

/* The next one of a walk over all there is, or NULL. Others may come and go meanwhile. */
struct kretry_queued *kretry_queue_walk(struct kretry_queue *queue, struct kretry_cursor *cursor);

/*
 * Of the queued ops the one that has been due for longest, or NULL. @now is the time on both
 * clocks, read here where it is 0. To be called after any were removed: it has the timer look
 * after the rest.
 */
struct kretry_queued *kretry_queue_first_due(struct kretry_queue *queue, u64 now[2]);

/* -------- otherwise -------- */

/* Whether a queued op is due. */
bool kretry_queue_is_due(struct kretry_queue *queue);

#endif /* KRETRY_QUEUE_H */
