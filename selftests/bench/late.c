// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How late a program is woken, in real time: each way in turn, so that what disturbs the machine
 * disturbs them alike. Each line of the result is one way, with the nanoseconds after the deadline.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "pending.h"

#define ROUNDS		500
#define DELAY_FROM_NS	500000ULL
#define DELAY_TO_NS	3000000ULL

static int queue_fd, timer_fd, queue_epoll, timer_epoll;
static unsigned int policy;
static struct kretry_op op;

static __u64 monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int epoll_of(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	must(epoll >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll");
	return epoll;
}

static void sleep_on(int epoll)
{
	struct epoll_event event;

	must(epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
}

static struct io_uring_cqe *sleep_on_ring(void)
{
	struct io_uring_cqe *cqe;

	errno = -io_uring_submit_and_wait(&pending_ring, 1);
	must(errno <= 0, "io_uring_submit_and_wait");
	must(!io_uring_peek_cqe(&pending_ring, &cqe), "an answer of io_uring");
	return cqe;
}

static void prepare_failure(__u16 flags)
{
	op = (struct kretry_op) {
		.policy = policy, .event = KRETRY_EVENT_TRANSIENT, .flags = flags, .key = 1,
	};
}

static __u64 wait_in_queue(void)
{
	__u64 deadline;

	prepare_failure(KRETRY_OP_QUEUE);
	must(!ioctl(queue_fd, KRETRY_IOC_STEP, &op), "STEP");
	deadline = op.deadline_ns;
	sleep_on(queue_epoll);
	must(read(queue_fd, &op, sizeof(op)) == sizeof(op), "read of what is due");
	return deadline;
}

static __u64 wait_as_command(void)
{
	struct io_uring_cqe *cqe;

	prepare_failure(0);
	prepare_command(queue_fd, KRETRY_IOC_WAIT, &op, sizeof(op));
	cqe = sleep_on_ring();
	if (cqe->res)
		errx(1, "a WAIT completed with %d", cqe->res);
	io_uring_cqe_seen(&pending_ring, cqe);
	return op.deadline_ns;
}

static __u64 wait_for_timeout(void)
{
	__u64 deadline = deadline_in(DELAY_FROM_NS, DELAY_TO_NS);
	struct __kernel_timespec ts = { deadline / 1000000000, deadline % 1000000000 };
	struct io_uring_cqe *cqe;

	io_uring_prep_timeout(io_uring_get_sqe(&pending_ring), &ts, 0, IORING_TIMEOUT_ABS);
	cqe = sleep_on_ring();
	if (cqe->res != -ETIME)
		errx(1, "a timeout completed with %d", cqe->res);
	io_uring_cqe_seen(&pending_ring, cqe);
	return deadline;
}

static __u64 wait_for_timerfd(void)
{
	__u64 deadline = deadline_in(DELAY_FROM_NS, DELAY_TO_NS), times;
	struct itimerspec spec = { .it_value = { deadline / 1000000000, deadline % 1000000000 } };

	must(!timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &spec, NULL), "timerfd_settime");
	sleep_on(timer_epoll);
	must(read(timer_fd, &times, sizeof(times)) == sizeof(times), "read of a timerfd");
	return deadline;
}

static const struct {
	const char *name;
	__u64 (*wait)(void);
} ways[] = {
	{ "late.timerfd", wait_for_timerfd },
	{ "late.queue", wait_in_queue },
	{ "late.wait", wait_as_command },
	{ "late.timeout", wait_for_timeout },
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void open_all(void)
{
	static const struct kretry_backoff backoff = {
		.strategy = KRETRY_FIXED, .jitter = KRETRY_JITTER_FULL, .base_ns = DELAY_TO_NS,
		.floor_ns = DELAY_FROM_NS, .cap_ns = DELAY_TO_NS,
	};

	must(!io_uring_queue_init(8, &pending_ring, 0), "io_uring");
	queue_fd = open("/dev/kretry", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	must(queue_fd >= 0, "/dev/kretry");
	policy = create_policy(&backoff, NULL, NULL, queue_fd);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	must(timer_fd >= 0, "timerfd_create");
	queue_epoll = epoll_of(queue_fd);
	timer_epoll = epoll_of(timer_fd);
}

static __u64 lateness(unsigned int way)
{
	__u64 deadline = ways[way].wait(), now = monotonic_ns();

	if (now < deadline)
		errx(1, "%s: woken %llu ns early", ways[way].name, deadline - now);
	return now - deadline;
}

void run_late(FILE *out)
{
	static __u64 late[WAYS][ROUNDS];
	unsigned int round, way;

	open_all();
	for (round = 0; round < ROUNDS; round++)
		for (way = 0; way < WAYS; way++)
			late[way][round] = lateness(way);
	for (way = 0; way < WAYS; way++) {
		fprintf(out, "%s", ways[way].name);
		for (round = 0; round < ROUNDS; round++)
			fprintf(out, " %llu", late[way][round]);
		fprintf(out, "\n");
	}
}
