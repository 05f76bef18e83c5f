// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler's beginning, its loop, and its end. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "tasks.h"

#define OWN_RING_MAX		256U
#define DRAIN_TRIES		1000

/* A signal that sets the caller's stop just before the wait is noticed after this long. */
#define STOP_NOTICED_NS		100000000LL

/* Completions of 16 and of 32 bytes on one ring: in newer headers. They cannot be moved singly. */
#ifndef IORING_SETUP_CQE_MIXED
#define IORING_SETUP_CQE_MIXED	0x40000U
#endif

/* -------- beginning -------- */

static int use_ring(struct kretry_sched *s, struct io_uring *ring)
{
	unsigned int entries = 8;
	int ret;

	/* A polled ring has no timeouts. */
	if (ring && ring->flags & IORING_SETUP_IOPOLL)
		return -EINVAL;
	s->ring = ring;
	if (!ring) {
		while (entries < s->max_tasks && entries < OWN_RING_MAX)
			entries *= 2;
		ret = io_uring_queue_init(entries, &s->own_ring, 0);
		if (ret < 0)
			return ret;
		s->ring = &s->own_ring;
	}
	s->dropped = __atomic_load_n(s->ring->cq.koverflow, __ATOMIC_RELAXED);
	return 0;
}

/*
 * Generations start anywhere: should a completion of an earlier scheduler still come on this ring,
 * it must not be taken for one of these.
 */
static void set_up_slots(struct kretry_sched *s)
{
	u32 generation = 0;
	unsigned int i;

	if (getrandom(&generation, sizeof(generation), GRND_NONBLOCK) < 0)
		generation = (u32)kretry_now(CLOCK_MONOTONIC);
	for (i = 0; i < s->max_tasks; i++) {
		s->tasks[i].sched = s;
		s->tasks[i].generation = generation & SLOT_MASK;
		s->tasks[i].free_next = i + 1 < s->max_tasks ? &s->tasks[i + 1] : NULL;
	}
	s->free_first = s->tasks;
	s->free_last = &s->tasks[s->max_tasks - 1];
}

int kretry_sched_init(struct kretry_sched **sp, struct kretry *k, struct io_uring *ring,
		      unsigned int max_tasks)
{
	struct kretry_sched *s;
	int ret = -ENOMEM;

	if (!max_tasks || max_tasks > SLOT_MAX)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->k = k;
	s->max_tasks = max_tasks;
	s->tasks = calloc(max_tasks, sizeof(*s->tasks));
	if (s->tasks)
		ret = use_ring(s, ring);
	if (ret < 0) {
		free(s->tasks);
		free(s);
		return ret;
	}
	set_up_slots(s);
	*sp = s;
	return 0;
}

/* -------- the loop -------- */

/* What passes when completions are taken, or is no failure at all. */
static bool is_passing(int ret)
{
	switch (ret) {
	case -EINTR:
	case -EAGAIN:
	case -EBUSY:	/* an older kernel, with completions waiting for room */
	case -EBADR:	/* completions were dropped */
	case -ETIME:
		return true;
	}
	return ret >= 0;
}

static int submit_and_wait(struct kretry_sched *s, bool stoppable)
{
	struct __kernel_timespec ts = { .tv_nsec = STOP_NOTICED_NS };
	struct io_uring_cqe *cqe;

	if (s->work || s->error)
		return io_uring_submit_and_get_events(s->ring);
	if (stoppable)
		return io_uring_submit_and_wait_timeout(s->ring, &cqe, 1, &ts, NULL);
	return io_uring_submit_and_wait(s->ring, 1);
}

/* Take what is there, but not what that brings about without end. */
static void reap(struct kretry_sched *s, void (*foreign)(const struct io_uring_cqe *, void *),
		 void *arg)
{
	unsigned int count = s->ring->cq.ring_entries;
	struct io_uring_cqe *cqe;

	while (count-- && io_uring_peek_cqe(s->ring, &cqe) == 0) {
		if (!kretry_sched_cqe(s, cqe) && foreign)
			foreign(cqe, arg);
		io_uring_cqe_seen(s->ring, cqe);
	}
}

int kretry_sched_run(struct kretry_sched *s, void (*cqe)(const struct io_uring_cqe *cqe, void *arg),
		     void *arg, const volatile int *stop)
{
	int ret = 0;

	while (!ret && s->pending && !(stop && *stop)) {
		sched_serve(s);
		if (!s->pending || (stop && *stop))
			break;
		ret = submit_and_wait(s, stop);
		if (!is_passing(ret))
			return ret;
		reap(s, cqe, arg);
		ret = s->error;
		s->error = 0;
	}
	return ret;
}

/* -------- the end -------- */

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

/* Returns false if the ring is so full of others' completions that nothing can be submitted. */
static bool remove_timers(struct kretry_sched *s)
{
	struct kretry_task *task;
	int tries = DRAIN_TRIES;

	for (task = s->tasks; task < s->tasks + s->max_tasks; task++) {
		while (task->timer == TIMER_ARMED || task->timer == TIMER_UNWANTED) {
			if (timer_remove(task))
				break;
			io_uring_get_events(s->ring);
			if (take_own(s) >= s->ring->cq.ring_entries || !tries--)
				return false;
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
		if (!is_passing(io_uring_submit_and_wait(s->ring, others + 1)))
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

void kretry_sched_exit(struct kretry_sched *s)
{
	struct kretry_task *task;
	bool unused = true;

	if (!s)
		return;
	/* First of all, so that no completion finds a task to call. */
	for (task = s->tasks; task < s->tasks + s->max_tasks; task++)
		sched_forget(task);
	if (s->ring == &s->own_ring) {
		io_uring_queue_exit(&s->own_ring);
	} else {
		if (remove_timers(s))
			await_timers(s);
		unused = drain_submissions(s);
	}
	/* Rather lose the memory than let the kernel read what has taken its place. */
	if (unused)
		free(s->tasks);
	free(s);
}
