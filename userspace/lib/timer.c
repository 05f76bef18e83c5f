// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler's timeouts on the ring, and what their completions mean. */

#include <errno.h>

#include "tasks.h"

struct io_uring_sqe *kretry_sched_get_sqe(struct kretry_sched *s)
{
	struct io_uring_sqe *sqe = s->ring ? io_uring_get_sqe(s->ring) : NULL;

	if (sqe || !s->ring)
		return sqe;
	io_uring_submit(s->ring);
	/* With SQPOLL there is room when the kernel's thread has taken something. */
	io_uring_sqring_wait(s->ring);
	return io_uring_get_sqe(s->ring);
}

static u64 timer_user_data(const struct kretry_task *task)
{
	return sched_user_data(task->generation, (u32)(task - task->sched->tasks));
}

/* The timer is what @sqe, prepared for it, will do. */
void timer_start(struct kretry_task *task, struct io_uring_sqe *sqe, bool is_wait)
{
	task->generation = (task->generation + 1) & SLOT_MASK;
	sqe->user_data = timer_user_data(task);
	task->timer = TIMER_ARMED;
	task->is_wait = is_wait;
	task->sched->timers++;
}

bool timer_arm(struct kretry_task *task)
{
	struct io_uring_sqe *sqe;

	/* Where there is no ring, whoever sleeps looks for the first deadline. */
	if (!task->sched->ring)
		return true;
	sqe = kretry_sched_get_sqe(task->sched);
	if (!sqe)
		return false;
	kretry_prep_sleep(sqe, &task->ts, task->clockid, task->op.deadline_ns);
	timer_start(task, sqe, false);
	return true;
}

bool timer_remove(struct kretry_task *task)
{
	struct io_uring_sqe *sqe;

	if (task->is_wait)
		return asking_cancel(task);
	sqe = kretry_sched_get_sqe(task->sched);
	if (!sqe)
		return false;
	io_uring_prep_timeout_remove(sqe, timer_user_data(task), 0);
	sqe->user_data = sched_user_data(0, SLOT_REMOVAL);
	task->timer = TIMER_REMOVING;
	task->sched->others++;
	return true;
}

/* The task that slept on it has gone. */
void timer_disown(struct kretry_task *task)
{
	if (task->timer != TIMER_ARMED)
		return;
	task->timer = TIMER_UNWANTED;
	sched_add_work(task);
}

/* Have a completion come at once, so that a wait on the ring does not sleep over work to do. */
bool timer_wake(struct kretry_sched *s)
{
	struct io_uring_sqe *sqe;

	if (s->waking)
		return true;
	sqe = kretry_sched_get_sqe(s);
	if (!sqe)
		return false;
	io_uring_prep_nop(sqe);
	sqe->user_data = sched_user_data(0, SLOT_WAKE);
	s->waking = true;
	s->others++;
	return true;
}

static void timer_idle(struct kretry_task *task)
{
	task->timer = TIMER_IDLE;
	task->sched->timers--;
}

/* An armed timer whose deadline lies ahead cannot be among those dropped. */
static bool is_lost(struct kretry_task *task)
{
	if (task->is_wait)
		return asking_is_lost(task);
	return task->timer != TIMER_ARMED || kretry_now(task->clockid) >= task->op.deadline_ns;
}

/*
 * The kernel counts the completions it had no memory for, but does not say which. All that can be
 * among them are taken for gone: their generation is given up, so that a completion that comes
 * after all means nothing, and nor does a timeout still to be submitted with a timespec written
 * anew.
 */
void timer_find_dropped(struct kretry_sched *s)
{
	struct kretry_task *task;
	unsigned int dropped;

	if (!s->ring)
		return;
	dropped = __atomic_load_n(s->ring->cq.koverflow, __ATOMIC_RELAXED);
	if (dropped == s->dropped)
		return;
	s->dropped = dropped;
	s->waking = false;
	s->others = 0;
	for (task = s->tasks; task < s->tasks + s->max_tasks; task++) {
		if (task->timer == TIMER_IDLE || !is_lost(task))
			continue;
		task->generation = (task->generation + 1) & SLOT_MASK;
		timer_idle(task);
		if (task->state != TASK_FREE)
			sched_add_work(task);
	}
	queued_watch_lost(s);
}

static void other_completed(struct kretry_sched *s, u32 slot, u32 generation)
{
	if (slot == SLOT_WATCH && generation != s->watch)
		return;
	if (s->others)
		s->others--;
	if (slot == SLOT_WAKE)
		s->waking = false;
	if (slot == SLOT_WATCH) {
		s->watching = false;
		queued_read(s);
	}
}

/* Cancelled by others or short of memory: armed again. Refused: told to the caller. */
static void slept(struct kretry_task *task, int res)
{
	if (res != -ETIME && res != -ECANCELED && res != -ENOMEM)
		task->sched->error = res;
	if (task->state == TASK_WAITING)
		sched_expire(task);
	else if (task->state == TASK_ASKING)
		sched_add_work(task);
}

int kretry_sched_cqe(struct kretry_sched *s, const struct io_uring_cqe *cqe)
{
	u32 generation = (u32)(cqe->user_data >> SLOT_BITS) & SLOT_MASK;
	u32 slot = (u32)cqe->user_data & SLOT_MASK;
	struct kretry_task *task;
	bool wanted;

	if (!sched_owns(cqe))
		return 0;
	if (slot >= s->max_tasks) {
		other_completed(s, slot, generation);
		return 1;
	}
	task = &s->tasks[slot];
	if (task->timer == TIMER_IDLE || task->generation != generation)
		return 1;
	wanted = task->timer == TIMER_ARMED;
	timer_idle(task);
	if (task->is_wait)
		asking_completed(task, cqe->res, wanted);
	else
		slept(task, cqe->res);
	return 1;
}
