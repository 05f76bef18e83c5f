// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Tasks whose failures are reported by a wait in the kernel, and what that completes with. */

#include <errno.h>

#include "tasks.h"

bool asking_ask(struct kretry_task *task)
{
	struct kretry_sched *s = task->sched;
	struct io_uring_sqe *sqe;

	/* Chosen by the report; but meanwhile a ring may have refused. */
	if (s->method != KRETRY_METHOD_WAIT) {
		sched_decide(task);
		sched_settle(task);
		return true;
	}
	sqe = kretry_sched_get_sqe(s);
	if (!sqe)
		return false;
	task->wait = task->op;
	task->wait.user_data = sched_new_id(task);
	task->wait.verdict = KRETRY_VERDICT_NONE;
	command_prep(sqe, s->k, KRETRY_IOC_WAIT, &task->wait, 1, sizeof(task->wait));
	timer_start(task, sqe, true);
	return true;
}

/* The kernel has written the op, and will not do so again. */
static bool is_issued(struct kretry_task *task)
{
	return __atomic_load_n(&task->wait.event, __ATOMIC_ACQUIRE) == KRETRY_EVENT_NONE;
}

static int take_back(struct kretry_task *task)
{
	struct kretry_cancel cancel = {
		.size = sizeof(cancel),
		.user_data = task->wait.user_data,
	};

	return device_ioctl(task->sched->k, KRETRY_IOC_CANCEL, &cancel);
}

/*
 * Not by a request on the ring: it would have to keep memory for the answer. False while the kernel
 * has not taken the wait yet, or failed it without a word.
 */
bool asking_cancel(struct kretry_task *task)
{
	if (!is_issued(task)) {
		io_uring_submit(task->sched->ring);
		if (!is_issued(task))
			return false;
	}
	take_back(task);
	task->timer = TIMER_REMOVING;
	return true;
}

/* An attempt that nobody will make: if it is a probe, others can have it. */
static void give_probe_back(struct kretry_task *task)
{
	struct kretry_op op = task->wait;

	op.event = KRETRY_EVENT_CANCELLED;
	op.flags &= KRETRY_OP_IDEMPOTENT;
	op.hint_ns = 0;
	step_op(task->sched->k, &op);
}

/* A paced one, or one that waited for a breaker, starts later than was written at its grant. */
static void start(struct kretry_task *task)
{
	if (task->readmits)
		task->op.deadline_ns = kretry_now(task->clockid);
	task->op.verdict = KRETRY_GO;
	sched_attempt(task);
}

/* @task has the op as it was written, and @attempt is what it was before. */
static void stop(struct kretry_task *task, int res, u32 attempt)
{
	u8 verdict = wait_verdict(res);

	if (!verdict) {
		task->op.attempt = attempt;
		sched_failed(task, -res);
	} else if (task->op.verdict != verdict) {
		task->op.attempt = attempt;
		task->op.verdict = verdict;
		task->op.flags &= KRETRY_OP_IN_MASK;
		task->op.deadline_ns = 0;
	}
	sched_finish(task);
}

static void take_op(struct kretry_task *task)
{
	u64 user_data = task->op.user_data;

	task->op = task->wait;
	task->op.user_data = user_data;
}

/* Nothing has been decided: ask again, or otherwise. */
static void undecided(struct kretry_task *task, int res)
{
	if (res == -ECANCELED) {
		sched_add_work(task);
		return;
	}
	if (command_refused(task->sched->k, res))
		method_fall_back(task->sched);
	sched_decide(task);
	sched_settle(task);
}

void asking_completed(struct kretry_task *task, int res, bool wanted)
{
	u32 attempt = task->op.attempt;
	bool issued = is_issued(task);

	if (!wanted) {
		if (!res)
			give_probe_back(task);
		if (task->state != TASK_FREE)
			sched_add_work(task);
		return;
	}
	if (task->state != TASK_ASKING)
		return;
	if (!issued) {
		undecided(task, res);
		return;
	}
	take_op(task);
	if (!res)
		start(task);
	else
		stop(task, res, attempt);
}

/* The kernel has taken the wait and has not decided on it: it said why, and that was dropped. */
static bool is_unheard(const struct kretry_sched *s)
{
	return !(s->ring->flags & IORING_SETUP_SQPOLL) && !io_uring_sq_ready(s->ring);
}

static bool is_asleep(struct kretry_task *task)
{
	return task->timer == TIMER_ARMED && sched_goes_on(&task->wait) &&
	       kretry_now(task->clockid) < task->wait.deadline_ns;
}

/*
 * Whether the completion may have been dropped. Then it is known to be a STOP, or what came of the
 * wait is asked anew by BEGIN, now that its deadline has passed.
 */
bool asking_is_lost(struct kretry_task *task)
{
	bool wanted = task->timer == TIMER_ARMED && task->state == TASK_ASKING;

	if (!is_issued(task))
		return is_unheard(task->sched);
	if (is_asleep(task))
		return false;
	if (sched_goes_on(&task->wait) && take_back(task) < 0)
		give_probe_back(task);
	if (!wanted)
		return true;
	take_op(task);
	if (sched_goes_on(&task->op)) {
		task->op.verdict = KRETRY_RETRY;
		task->op.flags |= KRETRY_OP_READMIT;
	}
	task->state = sched_goes_on(&task->op) ? TASK_WAITING : TASK_OVER;
	return true;
}
