// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A timer descriptor for each retry. */
#include <err.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "pending.h"

/* What one process may hold, where nobody has raised it. */
#define FDS_MAX		(1U << 20)

static int fds[FDS_MAX], soon[BATCH];

static int create(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	must(fd >= 0, "timerfd_create");
	return fd;
}

static void set(int fd, __u64 deadline_ns)
{
	struct itimerspec spec = {
		.it_value = { deadline_ns / 1000000000, deadline_ns % 1000000000 },
	};

	must(!timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL), "timerfd_settime");
}

static void open_timerfds(void)
{
	struct rlimit limit = { FDS_MAX, FDS_MAX };
	unsigned int i;

	must(!setrlimit(RLIMIT_NOFILE, &limit), "RLIMIT_NOFILE");
	for (i = 0; i < BATCH; i++)
		soon[i] = create();
}

/* They end with their process: a million calls of close would only take long. */
static void leave_timerfds(void)
{
}

static __u64 arm_later(__u64 id)
{
	__u64 deadlines[BATCH], start;
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		deadlines[i] = deadline_in(LATER_FROM_NS, LATER_TO_NS);
	start = now_ns();
	for (i = 0; i < BATCH; i++) {
		fds[(id + i) % FDS_MAX] = create();
		set(fds[(id + i) % FDS_MAX], deadlines[i]);
	}
	return now_ns() - start;
}

static __u64 close_each(__u64 id)
{
	__u64 start = now_ns();
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		close(fds[(id + i) % FDS_MAX]);
	return now_ns() - start;
}

static __u64 arm_soon(void)
{
	__u64 start = now_ns();
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		set(soon[i], deadline_in(SOON_FROM_NS, SOON_TO_NS));
	return now_ns() - start;
}

static void read_one(int fd)
{
	__u64 times;

	if (read(fd, &times, sizeof(times)) != sizeof(times) || times != 1)
		err(1, "a timerfd is not due");
}

static __u64 read_each(void)
{
	__u64 start = now_ns();
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		read_one(soon[i]);
	return now_ns() - start;
}

const struct pending timerfds = {
	.name = "timerfd", .open = open_timerfds, .close = leave_timerfds, .arm = arm_later,
	.cancel = close_each, .arm_soon = arm_soon, .read = read_each,
};
