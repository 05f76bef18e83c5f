// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The same retries on three event loops: epoll and read(), a read on io_uring, and Python's
 * asyncio, to which the device is a file descriptor and nothing else. All give the same.
 */
#include "harness.h"
#include "queued.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT	48
#define STEP_NS	(20 * MSEC)
#define HOME	"/tests/python"
/* An interpreter takes its time before it looks at the clock. */
#define LATE_NS	(15 * MSEC)

struct arrival {
	int number;
	int verdict;
	int attempt;
	long long late_ns;
};

FIXTURE(loops) {
	int fd;
	uint32_t policy;
	struct kretry_op ops[COUNT];
	struct arrival arrivals[COUNT];
	unsigned int arrived;
};

FIXTURE_SETUP(loops)
{
	struct kretry_policy policy;
	int i;

	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_nonblock(self->fd, true);
	kt_policy(&policy);
	policy.max_retries = KRETRY_NO_LIMIT;
	policy.backoff = (struct kretry_backoff) {
		.strategy = KRETRY_TABLE,
		.table_len = COUNT,
		.cap_ns = KRETRY_NS_MAX,
	};
	for (i = 0; i < COUNT; i++)
		policy.backoff.table_ns[i] = (i + 1) * STEP_NS;
	self->policy = kt_create(self->fd, &policy);
	ASSERT_LT(0, (int)self->policy);
	memset(self->arrivals, 0xff, sizeof(self->arrivals));
}

FIXTURE_TEARDOWN(loops)
{
	close(self->fd);
}

/* In an order that has nothing to do with that of the deadlines. */
static int queue_all(FIXTURE_DATA(loops) *self)
{
	unsigned int i, number, queued = 0;

	for (i = 0; i < COUNT; i++) {
		number = i * 29 % COUNT;
		self->ops[number] = kt_queue_op(self->policy, number);
		self->ops[number].attempt = number;
		if (!kt_step(self->fd, &self->ops[number]) &&
		    self->ops[number].flags & KRETRY_OP_QUEUED)
			queued++;
	}
	return queued;
}

static void note(FIXTURE_DATA(loops) *self, const struct kretry_op *due, int count)
{
	struct arrival *arrival;
	int i;

	for (i = 0; i < count && self->arrived < COUNT; i++) {
		arrival = &self->arrivals[self->arrived++];
		arrival->number = due[i].user_data;
		arrival->verdict = due[i].verdict;
		arrival->attempt = due[i].attempt;
		arrival->late_ns = kt_now(CLOCK_MONOTONIC) -
				   self->ops[due[i].user_data % COUNT].deadline_ns;
	}
}

/* All of them, in order, as attempts granted, none early. */
static void check(struct __test_metadata *_metadata, FIXTURE_DATA(loops) *self)
{
	unsigned int i;

	ASSERT_EQ(COUNT, self->arrived);
	for (i = 0; i < COUNT; i++) {
		EXPECT_EQ(i, self->arrivals[i].number);
		EXPECT_EQ(KRETRY_GO, self->arrivals[i].verdict);
		EXPECT_EQ(i + 1, self->arrivals[i].attempt);
		EXPECT_LE(0, self->arrivals[i].late_ns);
		EXPECT_GT(LATE_NS, self->arrivals[i].late_ns);
	}
}

TEST_F(loops, epoll_all_in_order)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct kretry_op due[COUNT];
	int epoll = epoll_create1(0);

	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->fd, &event));
	ASSERT_EQ(COUNT, queue_all(self));
	while (self->arrived < COUNT) {
		ASSERT_EQ(1, epoll_wait(epoll, &event, 1, 10000));
		note(self, due, kt_take(self->fd, due, COUNT));
	}
	check(_metadata, self);
	close(epoll);
}

TEST_F(loops, io_uring_read_all_in_order)
{
	struct kretry_op due[COUNT];
	struct io_uring ring;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;

	kt_nonblock(self->fd, false);
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
	ASSERT_EQ(COUNT, queue_all(self));
	while (self->arrived < COUNT) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_read(sqe, self->fd, due, sizeof(due), 0);
		ASSERT_EQ(1, io_uring_submit_and_wait(&ring, 1));
		ASSERT_EQ(0, io_uring_peek_cqe(&ring, &cqe));
		ASSERT_LT(0, cqe->res);
		ASSERT_EQ(0, cqe->res % (int)sizeof(*due));
		note(self, due, cqe->res / (int)sizeof(*due));
		io_uring_cqe_seen(&ring, cqe);
	}
	check(_metadata, self);
	io_uring_queue_exit(&ring);
}

static void exec_python(int to)
{
	char step[32];

	snprintf(step, sizeof(step), "%lld", (long long)STEP_NS);
	dup2(to, STDOUT_FILENO);
	setenv("PYTHONHOME", HOME, 1);
	execl(HOME "/loader", "loader", "--library-path", HOME, HOME "/python", "-s", "-S",
	      HOME "/loops.py", "48", step, "7", NULL);
	_exit(127);
}

TEST_F(loops, asyncio_all_in_order)
{
	struct arrival *arrival;
	FILE *said;
	int ends[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(ends));
	pid = fork();
	if (!pid)
		exec_python(ends[1]);
	close(ends[1]);
	said = fdopen(ends[0], "r");
	for (self->arrived = 0; self->arrived < COUNT; self->arrived++) {
		arrival = &self->arrivals[self->arrived];
		if (fscanf(said, "%d %d %d %lld", &arrival->number, &arrival->verdict,
			   &arrival->attempt, &arrival->late_ns) != 4)
			break;
	}
	fclose(said);
	EXPECT_EQ(0, kt_wait(pid));
	check(_metadata, self);
}

TEST_HARNESS_MAIN
