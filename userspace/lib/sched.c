// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler's tasks: from a decision to a sleep, to an attempt, to its report. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tasks.h"

#define PER_REPORT	(KRETRY_OP_HINT | KRETRY_OP_NO_RETRY)

/* -------- lists -------- */

void sched_add_work(struct kretry_task *task)
{
	struct kretry_sched *s = task->sched;

	if (task->has_work)
		return;
	task->has_work = true;
	task->work_next = NULL;
	if (s->work_first)
		s->work_last->work_next = task;
	else
		s->work_first = task;
	s->work_last = task;
	s->work++;
}

static struct kretry_task *take_work(struct kretry_sched *s)
{
	struct kretry_task *task = s->work_first;

	s->work_first = task->work_next;
	task->has_work = false;
	s->work--;
	return task;
}

/* First in, first out: a slot rests as long as possible, so its timer is most likely gone. */
static void free_slot(struct kretry_task *task)
{
	struct kretry_sched *s = task->sched;

	task->state = TASK_FREE;
	task->free_next = NULL;
	if (s->free_first)
		s->free_last->free_next = task;
	else
		s->free_first = task;
	s->free_last = task;
}

/* -------- decisions -------- */

/* The slot is free before done is called, so that done can start the next operation. */
void sched_finish(struct kretry_task *task)
{
	const struct kretry_task_ops *ops = task->ops;
	struct kretry_op op = task->op;

	task->sched->pending--;
	free_slot(task);
	ops->done(task, &op, task->arg);
}

void sched_attempt(struct kretry_task *task)
{
	task->state = TASK_RUNNING;
	task->ops->attempt(task, task->arg);
}

/* To an attempt, or to another BEGIN. */
bool sched_goes_on(const struct kretry_op *op)
{
	return op->verdict == KRETRY_GO || op->verdict == KRETRY_RETRY;
}

/* There is no decision: the operation ends as a malformed op of a batch does. */
void sched_failed(struct kretry_task *task, int error)
{
	task->op.verdict = KRETRY_ERROR;
	task->op.flags = (u16)((task->op.flags & KRETRY_OP_IN_MASK) | (u16)(error << 8));
	task->state = TASK_OVER;
}

/* Ask for a decision. There is none any more when the policy has been closed, say. */
void sched_decide(struct kretry_task *task)
{
	int ret = step_op(task->sched->k, &task->op);

	if (ret < 0)
		sched_failed(task, -ret);
	else
		task->state = sched_goes_on(&task->op) ? TASK_WAITING : TASK_OVER;
}

/* After a decision. */
void sched_settle(struct kretry_task *task)
{
	if (task->state == TASK_OVER)
		sched_finish(task);
	else if (task->state != TASK_QUEUED)
		sched_add_work(task);
}

static bool is_due(const struct kretry_task *task)
{
	return kretry_now(task->clockid) >= task->op.deadline_ns;
}

u64 sched_new_id(struct kretry_task *task)
{
	struct kretry_sched *s = task->sched;

	task->id = s->next_id++ << ID_SLOT_BITS | (u64)(task - s->tasks);
	return task->id;
}

/*
 * The deadline has come. The answer to a BEGIN may be another deadline, of the attempt or, where
 * the breaker is still open, of another BEGIN: then there is work.
 */
static void begin_attempt(struct kretry_task *task)
{
	if (task->op.verdict == KRETRY_RETRY && task->op.flags & KRETRY_OP_READMIT) {
		task->op.event = KRETRY_EVENT_BEGIN;
		sched_decide(task);
		if (task->state == TASK_OVER) {
			sched_finish(task);
			return;
		}
		if (task->op.verdict == KRETRY_RETRY || !is_due(task)) {
			sched_add_work(task);
			return;
		}
	}
	sched_attempt(task);
}

/* The timer of a waiting task is gone: it is due, unless that was the timer of another one. */
void sched_expire(struct kretry_task *task)
{
	if (is_due(task))
		begin_attempt(task);
	else
		sched_add_work(task);
}

/* -------- work -------- */

/*
 * Returns false if there was no room on the ring for what is to be done. An attempt that must not
 * start now stays on the list.
 */
static bool serve(struct kretry_task *task, bool may_start)
{
	if (task->timer == TIMER_UNWANTED && !timer_remove(task))
		return false;
	if (task->state == TASK_OVER) {
		sched_finish(task);
	} else if (task->state == TASK_ASKING) {
		return task->timer != TIMER_IDLE || asking_ask(task);
	} else if (task->state == TASK_WAITING) {
		if (!is_due(task))
			return task->timer != TIMER_IDLE || timer_arm(task);
		if (may_start)
			begin_attempt(task);
		else
			sched_add_work(task);
	}
	return true;
}

static void serve_list(struct kretry_sched *s, bool may_start)
{
	struct kretry_task *task;
	unsigned int count;

	for (count = s->work; count && s->work; count--) {
		task = take_work(s);
		if (!serve(task, may_start)) {
			sched_add_work(task);
			return;
		}
	}
}

/*
 * Serve what is on the list, and then what that has added, but start no more attempts: one that
 * fails at once and is retried without a delay shall not keep the completions waiting.
 */
void sched_serve(struct kretry_sched *s)
{
	if (s->serving)
		return;
	s->serving = true;
	timer_find_dropped(s);
	serve_list(s, true);
	serve_list(s, false);
	queued_watch(s);
	s->serving = false;
}

void kretry_sched_poll(struct kretry_sched *s)
{
	if (!s->ring) {
		queued_read(s);
		ringless_look(s);
	}
	sched_serve(s);
	if (s->ring && sched_is_busy(s))
		timer_wake(s);
}

/* -------- what tasks and their owners call -------- */

int kretry_sched_start(struct kretry_sched *s, const struct kretry_op *op,
		       const struct kretry_task_ops *ops, void *arg, struct kretry_task **tp)
{
	struct kretry_op first = {
		.policy = op->policy,
		.event = KRETRY_EVENT_BEGIN,
		.flags = op->flags & KRETRY_OP_IN_MASK,
		.key = op->key,
		.user_data = op->user_data,
	};
	struct kretry_task *task = s->free_first;
	int clockid, ret;
	bool readmits;

	if (first.flags & ~KRETRY_OP_IDEMPOTENT || !ops->attempt || !ops->done)
		return -EINVAL;
	if (!task)
		return -EBUSY;
	clockid = policy_clock(s->k, op->policy, &readmits);
	if (clockid < 0)
		return clockid;
	task->state = TASK_WAITING;
	ret = queued_step(task, &first);
	if (ret < 0) {
		task->state = TASK_FREE;
		return ret;
	}
	s->free_first = task->free_next;
	s->pending++;
	task->ops = ops;
	task->arg = arg;
	task->op = first;
	task->clockid = clockid;
	task->readmits = readmits;
	if (task->state != TASK_QUEUED) {
		task->state = sched_goes_on(&first) ? TASK_WAITING : TASK_OVER;
		sched_add_work(task);
	}
	if (tp)
		*tp = task;
	return 0;
}

/*
 * With WAIT a failure is reported by the wait for the next attempt; but what is the end in any case
 * needs none.
 */
static void report(struct kretry_task *task, bool failure)
{
	enum kretry_method method = task->sched->method;

	if (failure && method == KRETRY_METHOD_WAIT && task->op.event != KRETRY_EVENT_PERMANENT)
		task->state = TASK_ASKING;
	else if (failure && method == KRETRY_METHOD_QUEUE)
		queued_decide(task);
	else
		sched_decide(task);
	sched_settle(task);
}

int kretry_task_report(struct kretry_task *task, enum kretry_event event, unsigned int flags,
		       uint64_t hint_ns)
{
	bool failure = kretry_event_is_failure((u8)event);

	if (event != KRETRY_EVENT_OK && event != KRETRY_EVENT_CANCELLED && !failure)
		return -EINVAL;
	if (flags & ~PER_REPORT || (flags && !failure))
		return -EINVAL;
	if (hint_ns && !(flags & KRETRY_OP_HINT))
		return -EINVAL;
	if (task->state != TASK_RUNNING)
		return -EALREADY;
	task->op.event = (u8)event;
	task->op.flags |= (u16)flags;
	task->op.hint_ns = hint_ns;
	report(task, failure);
	return 0;
}

int kretry_task_cancel(struct kretry_task *task)
{
	if (task->state == TASK_FREE)
		return -EALREADY;
	if (task->state == TASK_QUEUED)
		queued_cancel(task);
	task->op.event = KRETRY_EVENT_CANCELLED;
	task->op.flags &= (u16)~PER_REPORT;
	task->op.hint_ns = 0;
	if (step_op(task->sched->k, &task->op) < 0)
		task->op.verdict = KRETRY_DONE;
	timer_disown(task);
	sched_finish(task);
	return 0;
}

const struct kretry_op *kretry_task_op(const struct kretry_task *task)
{
	return &task->op;
}

struct io_uring *kretry_sched_ring(struct kretry_sched *s)
{
	return s->ring;
}

unsigned int kretry_sched_pending(const struct kretry_sched *s)
{
	return s->pending;
}
