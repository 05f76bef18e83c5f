// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler's beginning, and its loop. */

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "tasks.h"

#define OWN_RING_MAX		256U

/* -------- beginning -------- */

/* Not a failure of ours: there is no io_uring in this kernel, or not for this process. */
static bool is_forbidden(int ret)
{
	return ret == -EPERM || ret == -EACCES || ret == -ENOSYS;
}

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
		if (is_forbidden(ret)) {
			method_no_ring(s, -ret);
			return 0;
		}
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
	if (getrandom(&s->next_id, sizeof(s->next_id), GRND_NONBLOCK) < 0)
		s->next_id = kretry_now(CLOCK_MONOTONIC) ^ (u64)s->pid << 32;
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
	s->pid = getpid();
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
	method_choose(s);
	*sp = s;
	return 0;
}

/* -------- the loop -------- */

bool run_is_passing(int ret)
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

	if (sched_is_busy(s) || s->error)
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

	if (!s->ring)
		return ringless_run(s, stop);
	while (!ret && s->pending && !(stop && *stop)) {
		sched_serve(s);
		if (!s->pending || (stop && *stop))
			break;
		ret = submit_and_wait(s, stop);
		if (!run_is_passing(ret))
			return ret;
		reap(s, cqe, arg);
		ret = s->error;
		s->error = 0;
	}
	return ret;
}
