/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside of the scheduler. sched.c has the tasks and their decisions, timer.c the timeouts on the
 * ring, run.c the loop and the end.
 *
 * A slot holds a task and a timer, and these have lives of their own: when a task is cancelled,
 * its slot may be given to the next one at once, but the timer stays what it is until the kernel
 * says that it is gone. Only then is the slot's timespec written again.
 */
#ifndef KRETRY_TASKS_H
#define KRETRY_TASKS_H

#include "internal.h"

enum task_state {
	TASK_FREE,
	TASK_WAITING,		/* for op.deadline_ns, which may have passed */
	TASK_RUNNING,		/* its attempt is under way */
	TASK_OVER		/* not admitted at its start: done is to be called */
};

enum timer_state {
	TIMER_IDLE,
	TIMER_ARMED,		/* its completion will come */
	TIMER_UNWANTED,		/* the same, but the task has gone: to be removed */
	TIMER_REMOVING		/* the removal is on the ring */
};

struct kretry_task {
	struct kretry_sched		*sched;
	const struct kretry_task_ops	*ops;
	void				*arg;
	struct kretry_task		*free_next;
	struct kretry_task		*work_next;
	struct kretry_op		op;
	struct __kernel_timespec	ts;
	clockid_t			clockid;
	u32				generation;	/* of the timer, 24 bits */
	u8				state;		/* enum task_state */
	u8				timer;		/* enum timer_state */
	bool				has_work;	/* it is on the list of work */
};

struct kretry_sched {
	struct kretry		*k;
	struct io_uring		*ring;
	struct io_uring		own_ring;
	struct kretry_task	*tasks;
	struct kretry_task	*free_first, *free_last;
	struct kretry_task	*work_first, *work_last;
	unsigned int		max_tasks;
	unsigned int		pending;	/* tasks not done */
	unsigned int		work;		/* slots on the list of work */
	unsigned int		timers;		/* that are not idle */
	unsigned int		others;		/* completions to come of removals and wake-ups */
	unsigned int		dropped;	/* completions the kernel has dropped so far */
	int			error;		/* of a timeout that cannot be armed */
	bool			serving;
	bool			waking;		/* a wake-up is on the ring */
};

/* user_data: tag (16 bits), generation of the timer (24), slot (24). There are up to 2^20 slots. */
#define SLOT_BITS	24
#define SLOT_MASK	0xffffffU
#define SLOT_MAX	0x100000U
#define SLOT_REMOVAL	0xffffffU
#define SLOT_WAKE	0xfffffeU

static inline u64 sched_user_data(u32 generation, u32 slot)
{
	return KRETRY_SCHED_TAG << KRETRY_SCHED_TAG_SHIFT | (u64)generation << SLOT_BITS |
	       slot;
}

static inline bool sched_owns(const struct io_uring_cqe *cqe)
{
	return cqe->user_data >> KRETRY_SCHED_TAG_SHIFT == KRETRY_SCHED_TAG;
}

/* sched.c */
void sched_add_work(struct kretry_task *task);
void sched_serve(struct kretry_sched *s);
void sched_expire(struct kretry_task *task);
void sched_forget(struct kretry_task *task);

/* timer.c: arm and remove return false when there is no room on the ring */
bool timer_arm(struct kretry_task *task);
bool timer_remove(struct kretry_task *task);
void timer_disown(struct kretry_task *task);
void timer_find_dropped(struct kretry_sched *s);
bool timer_wake(struct kretry_sched *s);

#endif /* KRETRY_TASKS_H */
