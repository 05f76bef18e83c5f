// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler's loop where io_uring is not to be had: it sleeps in poll(2). */

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "tasks.h"

/* Tasks with a timer of their own: how long until the first, and those that are due have work. */
u64 ringless_look(struct kretry_sched *s)
{
	struct kretry_task *task;
	u64 first = KRETRY_NS_MAX, left;

	if (s->pending == s->queued)
		return first;
	for (task = s->tasks; task < s->tasks + s->max_tasks; task++) {
		if (task->state != TASK_WAITING)
			continue;
		left = kretry_sat_sub(task->op.deadline_ns, kretry_now(task->clockid));
		if (!left)
			sched_add_work(task);
		first = min(first, left);
	}
	return first;
}

/* Nothing will ever happen, unless somebody sets the caller's stop. */
static int sleep_until_due(struct kretry_sched *s, bool stoppable)
{
	struct pollfd queue = { .fd = -1, .events = POLLIN };
	u64 left = ringless_look(s);
	struct timespec ts;

	if (s->work)
		return 0;
	if (s->queued)
		queue.fd = queue_fd(s->k);
	if (stoppable)
		left = min(left, (u64)STOP_NOTICED_NS);
	else if (!s->queued && left == KRETRY_NS_MAX)
		return -EDEADLK;
	ts.tv_sec = (time_t)(left / 1000000000ULL);
	ts.tv_nsec = (long)(left % 1000000000ULL);
	if (ppoll(&queue, 1, &ts, NULL) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

int ringless_run(struct kretry_sched *s, const volatile int *stop)
{
	int ret = 0;

	while (!ret && s->pending && !(stop && *stop)) {
		queued_read(s);
		ringless_look(s);
		sched_serve(s);
		if (!s->pending || s->work || (stop && *stop))
			continue;
		ret = sleep_until_due(s, stop);
	}
	return ret;
}
