/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside of the scheduler. sched.c has the tasks and their decisions, timer.c the timeouts on the
 * ring, asking.c the kernel's waits and queued.c its queue, run.c the loop, exit.c the end,
 * method.c the choice between the three ways to sleep, ringless.c what is done without a ring.
 *
 * A slot holds a task and a timer, and these have lives of their own: when a task is cancelled,
 * its slot may be given to the next one at once, but the timer stays what it is until the kernel
 * says that it is gone. Only then are the slot's timespec and the op of its wait written again.
 */
#ifndef KRETRY_TASKS_H
#define KRETRY_TASKS_H

#include "internal.h"

enum task_state {
	TASK_FREE,
	TASK_WAITING,		/* for op.deadline_ns, which may have passed */
	TASK_ASKING,		/* a failure is to be reported, or has been, by a wait */
	TASK_QUEUED,		/* its op is in the queue of the handle */
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
	struct kretry_op		wait;		/* of the timer: the kernel writes it */
	struct __kernel_timespec	ts;
	u64				id;		/* user_data of what it has queued */
	clockid_t			clockid;
	u32				generation;	/* of the timer, 24 bits */
	u8				state;		/* enum task_state */
	u8				timer;		/* enum timer_state */
	bool				readmits;	/* by policy, retries are admitted anew */
	bool				is_wait;	/* the timer is a wait in the kernel */
	bool				has_work;	/* it is on the list of work */
};

struct kretry_sched {
	struct kretry		*k;
	struct io_uring		*ring;		/* NULL: there is none to be had */
	struct io_uring		own_ring;
	struct kretry_task	*tasks;
	struct kretry_task	*free_first, *free_last;
	struct kretry_task	*work_first, *work_last;
	unsigned int		max_tasks;
	unsigned int		pending;	/* tasks not done */
	unsigned int		work;		/* slots on the list of work */
	unsigned int		timers;		/* that are not idle */
	unsigned int		queued;		/* tasks in the queue of the handle */
	unsigned int		others;		/* completions to come of removals and wake-ups */
	unsigned int		dropped;	/* completions the kernel has dropped so far */
	int			error;		/* of a timeout that cannot be armed */
	u64			next_id;
	u32			watch;		/* generation of the poll */
	pid_t			pid;
	enum kretry_method	method;
	bool			serving;
	bool			waking;		/* a wake-up is on the ring */
	bool			watching;	/* the queue is polled on the ring */
	char			reason[512];
};

/* user_data: tag (16 bits), generation of the timer (24), slot (24). There are up to 2^20 slots. */
#define SLOT_BITS	24
#define SLOT_MASK	0xffffffU
#define SLOT_MAX	0x100000U
#define SLOT_REMOVAL	0xffffffU
#define SLOT_WAKE	0xfffffeU
#define SLOT_WATCH	0xfffffdU

/* What the queue or a wait knows a task by: a count (44 bits), slot (20). */
#define ID_SLOT_BITS	20

static inline u64 sched_user_data(u32 generation, u32 slot)
{
	return KRETRY_SCHED_TAG << KRETRY_SCHED_TAG_SHIFT | (u64)generation << SLOT_BITS |
	       slot;
}

static inline bool sched_owns(const struct io_uring_cqe *cqe)
{
	return cqe->user_data >> KRETRY_SCHED_TAG_SHIFT == KRETRY_SCHED_TAG;
}

/* There is something to do that no completion will tell of. */
static inline bool sched_is_busy(const struct kretry_sched *s)
{
	return s->work || (s->ring && s->queued && !s->watching);
}

/* sched.c */
void sched_add_work(struct kretry_task *task);
void sched_serve(struct kretry_sched *s);
void sched_expire(struct kretry_task *task);
void sched_decide(struct kretry_task *task);
void sched_failed(struct kretry_task *task, int error);
void sched_settle(struct kretry_task *task);
void sched_attempt(struct kretry_task *task);
void sched_finish(struct kretry_task *task);
bool sched_goes_on(const struct kretry_op *op);
u64 sched_new_id(struct kretry_task *task);

/* timer.c: arm and remove return false when there is no room on the ring */
bool timer_arm(struct kretry_task *task);
bool timer_remove(struct kretry_task *task);
void timer_start(struct kretry_task *task, struct io_uring_sqe *sqe, bool is_wait);
void timer_disown(struct kretry_task *task);
void timer_find_dropped(struct kretry_sched *s);
bool timer_wake(struct kretry_sched *s);

/* asking.c */
bool asking_ask(struct kretry_task *task);
bool asking_cancel(struct kretry_task *task);
void asking_completed(struct kretry_task *task, int res, bool wanted);
bool asking_is_lost(struct kretry_task *task);

/* queued.c */
int queued_step(struct kretry_task *task, struct kretry_op *op);
void queued_decide(struct kretry_task *task);
void queued_cancel(struct kretry_task *task);
void queued_read(struct kretry_sched *s);
void queued_watch(struct kretry_sched *s);
void queued_watch_lost(struct kretry_sched *s);
bool queued_unwatch(struct kretry_sched *s);

/* A signal that sets the caller's stop just before the wait is noticed after this long. */
#define STOP_NOTICED_NS		100000000LL

/* run.c: what passes when completions are taken, or is no failure at all */
bool run_is_passing(int ret);

/* method.c */
void method_choose(struct kretry_sched *s);
void method_fall_back(struct kretry_sched *s);
void method_no_ring(struct kretry_sched *s, int error);

/* ringless.c */
u64 ringless_look(struct kretry_sched *s);
int ringless_run(struct kretry_sched *s, const volatile int *stop);

#endif /* KRETRY_TASKS_H */
