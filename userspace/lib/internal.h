/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared between the files of the library. Everything here stays out of the shared object's
 * symbols: the library is compiled with hidden visibility, and only what the public header
 * declares is made visible again.
 */
#ifndef KRETRY_INTERNAL_H
#define KRETRY_INTERNAL_H

#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(default)
#include "kretry.h"
#pragma GCC visibility pop

#include "decide.h"
#include "grant.h"

/* Limits of the process as a backend; the policies are as many as the module allows one user. */
#define PROCESS_MAX_POLICIES	4096
#define PROCESS_MAX_BATCH	65536
#define PROCESS_MAX_KEYS	4096
#define PROCESS_MAX_QUEUED	65536
#define PROCESS_MAX_LINGER_NS	3600000000000ULL
#define PROCESS_FEATURES                                                                           \
	(KRETRY_FEATURE_NAMED | KRETRY_FEATURE_BUDGET | KRETRY_FEATURE_BREAKER |                   \
	 KRETRY_FEATURE_PACING | KRETRY_FEATURE_COOLING | KRETRY_FEATURE_STAT |                    \
	 KRETRY_FEATURE_QUEUE)

#define POLICY_BUCKETS		256
#define KEY_BUCKETS		1024

/*
 * A probe that has not been reported. @generation is the op's, and its alone; @period is that of
 * the key when it was given.
 */
struct lease {
	struct lease		*next;
	const struct kretry	*owner;
	u64			expires_ns;
	u32			generation;
	u32			period;
};

struct key_state {
	struct key_state	*next;
	struct lease		*leases;
	u64			key;
	struct kretry_shared	shared;
	u32			waiters;	/* ops queued on it */
	bool			used;		/* since the scan for room last came by */
};

/*
 * What a policy is to all who hold it. One with a name may have many holders, on many handles of
 * the process; one without has its entry in a handle. With the module as the backend there is one
 * for each entry, for the case that the module fails a STEP for a reason of its own.
 */
struct policy_state {
	struct kretry_policy	params;
	struct policy_state	*next_named;
	struct key_state	**buckets;	/* from the first key on */
	struct key_state	*overflow;
	struct kretry_stat	count;		/* and the mode of all keys */
	u64			left_ns;	/* when the last holder went */
	u32			holders;
	u32			generation;	/* the last one given; never 0 when given */
	u32			hand;		/* where the scan for room goes on */
	bool			named;		/* its name finds it */
};

struct policy_entry {
	struct policy_entry	*next;
	struct policy_state	*state;
	u32			id;
	u32			open_flags;
	u32			queued;		/* ops in the queue of the process */
};

/* Whose the queue of a handle is: the caller's and a scheduler's ops must not mix. */
enum queue_user {
	QUEUE_UNUSED,
	QUEUE_CALLERS,
	QUEUE_SCHEDULERS
};

struct queue;

/* All but fd, features, pid, reason and the atomic ones is under the lock of the library. */
struct kretry {
	int			fd;		/* -1: the process decides */
	pid_t			pid;		/* who opened it */
	u64			features;
	atomic_int		queue_user;	/* enum queue_user */
	atomic_int		uring_error;	/* what io_uring said to a command of ours */
	struct queue		*queue;		/* of the process */
	struct policy_entry	*buckets[POLICY_BUCKETS];
	u32			policies;
	u32			last_id;	/* ids are cyclic: not soon reused */
	char			reason[256];
	char			uring_reason[384];
};

/*
 * handle.c: one lock for the whole library, held across fork(), so that the child finds everything
 * in order. With the module as the backend a STEP does not take it.
 */
void lock_library(void);
void unlock_library(void);

/* An ioctl on the device: 0 or more, or -errno. */
int device_ioctl(const struct kretry *k, unsigned long cmd, void *arg);

/* step.c: without a look at whose the queue is; of the process, and how to undo its grant */
int step_op(struct kretry *k, struct kretry_op *op);
int step_granted(struct kretry *k, struct kretry_op *op, struct kretry_grant *grant);
void step_undo(struct kretry *k, struct kretry_op *op, struct kretry_grant *grant);

/*
 * queue.c: the queue of a handle, in the kernel or in the process. A scheduler that has claimed it
 * is alone with it until it releases it.
 */
bool queue_is_callers(struct kretry *k);
bool queue_claim(struct kretry *k);
void queue_release(struct kretry *k);
int queue_fd(struct kretry *k);
int queue_read(struct kretry *k, struct kretry_op *ops, unsigned int max);
int queue_cancel(struct kretry *k, u64 user_data, struct kretry_op *op);

/* command.c */
void command_prep(struct io_uring_sqe *sqe, const struct kretry *k, unsigned long cmd, void *arg,
		  unsigned int count, unsigned int size);
void command_prep_failing(struct io_uring_sqe *sqe);
bool command_offers(struct kretry *k, u64 feature);
bool command_refused(struct kretry *k, int res);

/* sleep.c: with IORING_TIMEOUT_… flags that change nothing about when */
void prep_sleep(struct io_uring_sqe *sqe, struct __kernel_timespec *ts, clockid_t clockid,
		u64 deadline_ns, unsigned int flags);

/* wait.c: the verdict of a WAIT by its result; 0 for another result */
u8 wait_verdict(int res);

/* In all that follows callers hold the lock. */

/* waiting.c: the queue of the process */
struct key_state *waiting_key(const struct policy_state *state, const struct kretry_op *op);
int waiting_step(struct kretry *k, struct policy_entry *entry, struct kretry_op *op,
		 struct kretry_call *call);
int waiting_fd(struct kretry *k);
int waiting_read(struct kretry *k, struct kretry_op *ops, unsigned int max);
int waiting_cancel(struct kretry *k, u64 user_data, struct kretry_op *op);
void waiting_drop(struct kretry *k);
void waiting_free(struct kretry *k);

/* heap.c: what waits, by deadline */
struct waiting {
	struct waiting		*next;		/* of its bucket */
	struct policy_entry	*entry;
	struct key_state	*key;		/* NULL where nothing is shared */
	struct kretry_op	op;
	struct kretry_grant	grant;
	u32			place;		/* in its heap */
	bool			admitted;	/* waits for its slot only */
};

struct heap {
	struct waiting		**items;
	u32			count, room;
};

int heap_make_room(struct heap *heap);
void heap_add(struct heap *heap, struct waiting *w);
void heap_remove(struct heap *heap, struct waiting *w);

/* policy.c */
struct policy_entry *policy_find(const struct kretry *k, u32 id);
void policy_drop_all(struct kretry *k);

/* named.c: names are those of the process. What is got holds the state until it is put. */
struct policy_state *state_new(const struct kretry_policy *params);
int named_create(const struct kretry_policy *params, struct policy_state **state);
int named_open(const char *name, u32 open_flags, struct policy_state **state);
int named_unlink(const char *name, u32 open_flags);
unsigned int named_list(struct kretry_policy_entry *entries, unsigned int count);
void state_put(struct policy_state *state);

/* shared.c */
int shared_step(const struct kretry *k, struct policy_state *state, struct kretry_op *op,
		struct kretry_call *call);
void shared_undo(struct policy_state *state, struct key_state *key, struct kretry_op *op,
		 struct kretry_grant *grant);
void shared_take_back(struct policy_state *state, struct key_state *key,
		      const struct kretry_op *op);
bool shared_has_leases(const struct kretry *k, const struct policy_state *state);
void shared_return_leases(const struct kretry *k, struct policy_state *state);

/* keys.c: the key's state as it is at @now; NULL is for want of memory */
struct key_state *key_get(struct policy_state *state, u64 key, u64 now, bool *overflow);
struct key_state *key_find(const struct policy_state *state, u64 key);
void key_advance(struct policy_state *state, struct key_state *key, u64 now);
void keys_each(struct policy_state *state,
	       void (*each)(struct policy_state *state, struct key_state *key, void *arg),
	       void *arg);
void keys_free(struct policy_state *state);
void key_note_change(struct policy_state *state, u8 was, u8 is);
u32 key_generation(struct policy_state *state);

/* step.c: fresh random numbers */
int draw_random(u64 *rnd, unsigned int count);

/*
 * The clock of policy @id, or a negative errno; and whether its retries are admitted anew at their
 * deadlines. Takes the lock.
 */
int policy_clock(struct kretry *k, u32 id, bool *readmits);

#endif /* KRETRY_INTERNAL_H */
