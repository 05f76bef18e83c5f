// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler's end: nothing of its own is left on a ring that it shared, or in the kernel. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tasks.h"

#define DRAIN_TRIES		1000

/* Completions of 16 and of 32 bytes on one ring: in newer headers. They cannot be moved singly. */
#ifndef IORING_SETUP_CQE_MIXED
#define IORING_SETUP_CQE_MIXED	0x40000U
#endif

/*
 * Take the scheduler's completions out of a shared ring and leave the others, in their order: what
 * lies between the ring's head and tail belongs to user space, so the others are moved up to the
 * tail over those taken. Returns how many others there are.
 */
static unsigned int take_own(struct kretry_sched *s)
{
	struct io_uring_cq *cq = &s->ring->cq;
	unsigned int shift = s->ring->flags & IORING_SETUP_CQE32 ? 1 : 0;
	unsigned int head = *cq->khead;
	unsigned int tail = io_uring_smp_load_acquire(cq->ktail);
	unsigned int left = tail;
	struct io_uring_cqe *from, *to;
	unsigned int i;

	if (s->ring->flags & IORING_SETUP_CQE_MIXED)
		return cq->ring_entries;
	for (i = tail; i != head; i--) {
		from = &cq->cqes[((i - 1) & cq->ring_mask) << shift];
		if (sched_owns(from)) {
			kretry_sched_cqe(s, from);
			continue;
		}
		left--;
		to = &cq->cqes[(left & cq->ring_mask) << shift];
		if (to != from)
			memcpy(to, from, sizeof(*from) << shift);
	}
	io_uring_smp_store_release(cq->khead, left);
	return tail - left;
}

static bool is_to_remove(const struct kretry_task *task)
{
	return task->timer == TIMER_ARMED || task->timer == TIMER_UNWANTED;
}

/* Returns false if the ring is so full of others' completions that nothing can be submitted. */
static bool remove_timers(struct kretry_sched *s)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	struct kretry_task *task;
	int tries = DRAIN_TRIES;

	for (task = s->tasks; task < s->tasks + s->max_tasks; task++) {
		while (is_to_remove(task) || (task == s->tasks && s->watching)) {
			if (task == s->tasks && !queued_unwatch(s))
				tries--;
			if (is_to_remove(task) && timer_remove(task))
				continue;
			io_uring_get_events(s->ring);
			if (take_own(s) >= s->ring->cq.ring_entries || !tries--)
				return false;
			/* A kernel thread that polls the ring takes its time. */
			if (task->is_wait && is_to_remove(task))
				nanosleep(&pause, NULL);
		}
	}
	return true;
}

/* Wait for the last completions. Dropped ones, and those that find no room, do not come. */
static void await_timers(struct kretry_sched *s)
{
	unsigned int others;

	for (;;) {
		timer_find_dropped(s);
		others = take_own(s);
		if (!s->timers && !s->others)
			return;
		if (others >= s->ring->cq.ring_entries)
			return;
		if (!run_is_passing(io_uring_submit_and_wait(s->ring, others + 1)))
			return;
	}
}

/* Whether the kernel has taken all that was queued: from then on it does not read the slots. */
static bool drain_submissions(struct kretry_sched *s)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	int tries = DRAIN_TRIES;

	while (io_uring_sq_ready(s->ring) && tries--) {
		if (io_uring_submit(s->ring) < 0)
			io_uring_get_events(s->ring);
		/* A kernel thread that polls the ring takes its time. */
		if (io_uring_sq_ready(s->ring))
			nanosleep(&pause, NULL);
	}
	return !io_uring_sq_ready(s->ring);
}

/* Neither a probe that is under way nor what the queue was charged shall be lost to others. */
static void forget(struct kretry_task *task)
{
	struct kretry_sched *s = task->sched;

	if (task->state == TASK_QUEUED)
		queued_cancel(task);
	if (task->state != TASK_FREE && task->op.flags & KRETRY_OP_PROBE) {
		task->op.event = KRETRY_EVENT_CANCELLED;
		step_op(s->k, &task->op);
	}
	task->state = TASK_FREE;
	if (s->ring == &s->own_ring && task->is_wait && is_to_remove(task))
		asking_cancel(task);
}

/* Returns whether the kernel reads the slots no more. */
static bool leave_ring(struct kretry_sched *s)
{
	if (!s->ring)
		return true;
	if (s->ring == &s->own_ring) {
		io_uring_queue_exit(&s->own_ring);
		return true;
	}
	if (remove_timers(s))
		await_timers(s);
	return drain_submissions(s);
}

void kretry_sched_exit(struct kretry_sched *s)
{
	struct kretry_task *task;

	if (!s)
		return;
	/* A child of fork() has a copy: what is on the ring and in the kernel is its parent's. */
	if (s->pid != getpid()) {
		if (s->ring == &s->own_ring)
			io_uring_queue_exit(&s->own_ring);
		free(s->tasks);
		free(s);
		return;
	}
	/* First of all, so that no completion finds a task to call. */
	for (task = s->tasks; task < s->tasks + s->max_tasks; task++)
		forget(task);
	if (s->method == KRETRY_METHOD_QUEUE)
		queue_release(s->k);
	/* Rather lose the memory than let the kernel read what has taken its place. */
	if (leave_ring(s))
		free(s->tasks);
	free(s);
}
