// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The one place where it waits: for signals, timers and pipes. */

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "run.h"

void watch(struct run *r, enum event event, int fd, short events)
{
	r->polls[event].fd = fd;
	r->polls[event].events = events;
	r->polls[event].revents = 0;
}

void unwatch(struct run *r, enum event event)
{
	watch(r, event, -1, 0);
}

bool is_ready(const struct run *r, enum event event)
{
	return r->polls[event].fd >= 0 && r->polls[event].revents;
}

bool loop_wait(struct run *r)
{
	unsigned int i;

	if (poll(r->polls, EVENTS, -1) >= 0)
		return true;
	if (errno != EINTR && errno != EAGAIN) {
		complain(r, "poll: %m");
		return false;
	}
	for (i = 0; i < EVENTS; i++)
		r->polls[i].revents = 0;
	return true;
}

/* It is made when it is first needed, and kept. */
static bool timer_set(struct run *r, enum event event, clockid_t clock, int flags, uint64_t ns)
{
	struct itimerspec at = {
		.it_value = { .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) },
	};
	int fd = r->polls[event].fd;

	if (fd < 0) {
		fd = timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);
		if (fd < 0) {
			complain(r, "timerfd: %m");
			return false;
		}
		watch(r, event, fd, POLLIN);
	}
	if (timerfd_settime(fd, flags, &at, NULL) == 0)
		return true;
	complain(r, "timerfd: %m");
	return false;
}

/* In @ns from now; 0 is never. */
bool alarm_set(struct run *r, uint64_t ns)
{
	if (!ns && r->polls[ON_ALARM].fd < 0)
		return true;
	return timer_set(r, ON_ALARM, CLOCK_MONOTONIC, 0, ns);
}

bool deadline_set(struct run *r, uint64_t deadline_ns)
{
	return timer_set(r, ON_DEADLINE, (clockid_t)r->policy.clockid, TFD_TIMER_ABSTIME,
			 deadline_ns);
}

void timer_clear(struct run *r, enum event event)
{
	uint64_t count;
	ssize_t ret = read(r->polls[event].fd, &count, sizeof(count));

	(void)ret;
}
