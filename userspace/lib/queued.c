// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Tasks that sleep in the queue of the handle, all of them behind one poll on the ring. */

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "tasks.h"

/* Read at a time. */
#define AT_ONCE	16

static void enter(struct kretry_task *task)
{
	task->state = TASK_QUEUED;
	task->sched->queued++;
}

static void leave(struct kretry_task *task)
{
	task->state = TASK_WAITING;
	task->sched->queued--;
}

/* The queue has no place for it: it sleeps on a timer of its own. */
static bool is_full(int ret)
{
	return ret == -ENOBUFS || ret == -EEXIST || ret == -ENOMEM;
}

int queued_step(struct kretry_task *task, struct kretry_op *op)
{
	struct kretry_op asked = *op;
	u16 queued;
	int ret;

	if (task->sched->method != KRETRY_METHOD_QUEUE)
		return step_op(task->sched->k, op);
	asked.flags |= KRETRY_OP_QUEUE;
	asked.user_data = sched_new_id(task);
	ret = step_op(task->sched->k, &asked);
	if (is_full(ret))
		return step_op(task->sched->k, op);
	if (ret < 0)
		return ret;
	queued = asked.flags & KRETRY_OP_QUEUED;
	asked.flags &= (u16)~(KRETRY_OP_QUEUE | KRETRY_OP_QUEUED);
	asked.user_data = op->user_data;
	*op = asked;
	if (queued)
		enter(task);
	return 0;
}

void queued_decide(struct kretry_task *task)
{
	int ret;

	task->state = TASK_WAITING;
	ret = queued_step(task, &task->op);
	if (ret < 0)
		sched_failed(task, -ret);
	else if (task->state != TASK_QUEUED && !sched_goes_on(&task->op))
		task->state = TASK_OVER;
}

void queued_cancel(struct kretry_task *task)
{
	struct kretry_op op;

	queue_cancel(task->sched->k, task->id, &op);
	leave(task);
}

/* -------- delivery -------- */

static void deliver(struct kretry_sched *s, const struct kretry_op *op)
{
	u32 slot = (u32)(op->user_data & (SLOT_MAX - 1));
	struct kretry_task *task = &s->tasks[slot];
	u64 user_data;

	if (slot >= s->max_tasks || task->state != TASK_QUEUED || task->id != op->user_data)
		return;
	leave(task);
	user_data = task->op.user_data;
	task->op = *op;
	task->op.user_data = user_data;
	task->op.flags &= (u16)~(KRETRY_OP_QUEUE | KRETRY_OP_QUEUED);
	if (op->verdict == KRETRY_GO)
		sched_attempt(task);
	else
		sched_finish(task);
}

/* What is due now, but not what that brings about without end. */
void queued_read(struct kretry_sched *s)
{
	unsigned int rounds = s->queued / AT_ONCE + 1;
	struct kretry_op ops[AT_ONCE];
	int count = AT_ONCE, i;

	while (s->queued && rounds-- && count == AT_ONCE) {
		count = queue_read(s->k, ops, AT_ONCE);
		for (i = 0; i < count; i++)
			deliver(s, &ops[i]);
	}
}

/* -------- the poll -------- */

void queued_watch(struct kretry_sched *s)
{
	struct io_uring_sqe *sqe;

	if (!s->ring || !s->queued || s->watching)
		return;
	sqe = kretry_sched_get_sqe(s);
	if (!sqe)
		return;
	s->watch = (s->watch + 1) & SLOT_MASK;
	io_uring_prep_poll_add(sqe, queue_fd(s->k), POLLIN);
	sqe->user_data = sched_user_data(s->watch, SLOT_WATCH);
	s->watching = true;
	s->others++;
}

bool queued_unwatch(struct kretry_sched *s)
{
	struct io_uring_sqe *sqe;

	if (!s->watching)
		return true;
	sqe = kretry_sched_get_sqe(s);
	if (!sqe)
		return false;
	io_uring_prep_poll_remove(sqe, sched_user_data(s->watch, SLOT_WATCH));
	sqe->user_data = sched_user_data(0, SLOT_REMOVAL);
	s->watching = false;
	s->others++;
	return true;
}

/* Its completion may have been dropped. If not, it means nothing from now on. */
void queued_watch_lost(struct kretry_sched *s)
{
	if (!s->watching)
		return;
	queued_unwatch(s);
	s->watching = false;
	s->watch = (s->watch + 1) & SLOT_MASK;
	queued_read(s);
}
