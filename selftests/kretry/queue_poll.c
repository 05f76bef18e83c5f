// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* poll(), select() and epoll of a queue: told when an op is due, and again for the next. */
#include "harness.h"
#include "queued.h"
#include "shared.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#define KEY	7

FIXTURE(queue_poll) {
	struct kt_party me;
	int fd, epoll;
	struct kretry_policy policy;
	uint32_t id;	/* 100 ms */
};

FIXTURE_SETUP(queue_poll)
{
	ASSERT_EQ(0, kt_here(&self->me));
	self->fd = self->me.fd;
	kt_nonblock(self->fd, true);
	kt_policy(&self->policy);
	self->id = kt_create(self->fd, &self->policy);
	self->epoll = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->epoll);
}

FIXTURE_TEARDOWN(queue_poll)
{
	close(self->epoll);
	kt_leave(&self->me);
}

static int watch(FIXTURE_DATA(queue_poll) *self, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(self->epoll, EPOLL_CTL_ADD, self->fd, &event);
}

/* What epoll says within @timeout_ms. */
static uint32_t events(FIXTURE_DATA(queue_poll) *self, int timeout_ms)
{
	struct epoll_event event = { 0 };

	return epoll_wait(self->epoll, &event, 1, timeout_ms) == 1 ? event.events : 0;
}

/* Read all there is: how many. */
static int drain(FIXTURE_DATA(queue_poll) *self)
{
	struct kretry_op op;
	int count = 0;

	while (read(self->fd, &op, sizeof(op)) == sizeof(op))
		count++;
	return errno == EAGAIN ? count : -1;
}

static bool read_one(FIXTURE_DATA(queue_poll) *self, uint64_t user_data)
{
	struct kretry_op op;

	return read(self->fd, &op, sizeof(op)) == sizeof(op) && op.user_data == user_data;
}

/* A policy with that delay, and an op queued under it. */
static int queue_after(FIXTURE_DATA(queue_poll) *self, uint64_t delay_ns, uint64_t user_data)
{
	kt_policy(&self->policy);
	self->policy.backoff.base_ns = delay_ns;
	return kt_queue(self->fd, kt_create(self->fd, &self->policy), user_data);
}

TEST_F(queue_poll, poll_readable_from_the_deadline_until_read)
{
	struct kretry_op op = kt_queue_op(self->id, 1);
	uint64_t now;

	EXPECT_EQ(0, kt_poll(self->fd, 0));
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(0, kt_poll(self->fd, 0));
	EXPECT_EQ(POLLIN, kt_poll(self->fd, 10000));
	now = kt_now(CLOCK_MONOTONIC);
	EXPECT_LE(op.deadline_ns, now);
	EXPECT_GT(op.deadline_ns + 50 * MSEC, now);
	EXPECT_EQ(POLLIN, kt_poll(self->fd, 0));
	EXPECT_EQ(POLLIN, kt_poll(self->fd, 0));
	EXPECT_TRUE(read_one(self, 1));
	EXPECT_EQ(0, kt_poll(self->fd, 0));
	EXPECT_EQ(0, kt_poll(self->fd, 300));
}

TEST_F(queue_poll, select_readable_at_the_deadline)
{
	struct timeval timeout = { .tv_sec = 10 };
	fd_set readable, other;

	ASSERT_EQ(0, kt_queue(self->fd, self->id, 1));
	FD_ZERO(&readable);
	FD_ZERO(&other);
	FD_SET(self->fd, &readable);
	FD_SET(self->fd, &other);
	EXPECT_EQ(1, select(self->fd + 1, &readable, NULL, &other, &timeout));
	EXPECT_TRUE(FD_ISSET(self->fd, &readable));
	EXPECT_FALSE(FD_ISSET(self->fd, &other));
	EXPECT_EQ(9, timeout.tv_sec);
	EXPECT_TRUE(read_one(self, 1));
}

TEST_F(queue_poll, epoll_level_told_until_read)
{
	ASSERT_EQ(0, watch(self, EPOLLIN));
	EXPECT_EQ(0, events(self, 0));
	ASSERT_EQ(2, kt_queue_many(self->fd, self->id, 0, 2));
	EXPECT_EQ(EPOLLIN, events(self, 10000));
	EXPECT_EQ(EPOLLIN, events(self, 0));
	EXPECT_TRUE(read_one(self, 0));
	EXPECT_EQ(EPOLLIN, events(self, 0));
	EXPECT_TRUE(read_one(self, 1));
	EXPECT_EQ(0, events(self, 300));
}

/* One edge for all that is due at once; who has read up to EAGAIN gets the next. */
TEST_F(queue_poll, epoll_edge_drained_gets_a_new_edge)
{
	int i;

	ASSERT_EQ(0, watch(self, EPOLLIN | EPOLLET));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(20, kt_queue_many(self->fd, self->id, i * 20, 20));
		EXPECT_EQ(EPOLLIN, events(self, 10000));
		EXPECT_EQ(0, events(self, 0));
		EXPECT_EQ(20, drain(self));
		EXPECT_EQ(0, events(self, 0));
	}
}

/* The op that comes due while the last is being read has an edge of its own. */
TEST_F(queue_poll, epoll_edge_op_due_after_the_drain_told)
{
	int i;

	ASSERT_EQ(0, watch(self, EPOLLIN | EPOLLET));
	for (i = 1; i <= 50; i++)
		ASSERT_EQ(0, queue_after(self, i * MSEC, i));
	for (i = 0; i < 50; i += drain(self))
		ASSERT_EQ(EPOLLIN, events(self, 1000))
			TH_LOG("after %d", i);
	EXPECT_EQ(50, i);
	EXPECT_EQ(0, events(self, 100));
}

/* Due at once, and so without a timer to wait for: told all the same. */
TEST_F(queue_poll, epoll_edge_op_without_delay_told)
{
	int i;

	ASSERT_EQ(0, watch(self, EPOLLIN | EPOLLET));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, queue_after(self, 0, i));
		EXPECT_EQ(EPOLLIN, events(self, 1000));
		EXPECT_TRUE(read_one(self, i));
		EXPECT_EQ(0, drain(self));
	}
}

/* -------- no wake-up lost -------- */

/* With one left after a read of one, a second reader that waits must not sleep on it. */
TEST_F(queue_poll, read_of_one_of_two_still_readable)
{
	ASSERT_EQ(2, kt_queue_many(self->fd, self->id, 0, 2));
	EXPECT_EQ(POLLIN, kt_poll(self->fd, 10000));
	EXPECT_TRUE(read_one(self, 0));
	EXPECT_EQ(POLLIN, kt_poll(self->fd, 0));
	kt_nonblock(self->fd, false);
	EXPECT_TRUE(read_one(self, 1));
}

TEST_F(queue_poll, cancel_of_the_first_next_one_told_in_time)
{
	struct kretry_op op;
	uint64_t start = kt_now(CLOCK_MONOTONIC);
	int due;

	for (due = 0; due < 2; due++) {
		ASSERT_EQ(0, queue_after(self, 100 * MSEC, 1));
		ASSERT_EQ(0, queue_after(self, 300 * MSEC, 2));
		start = kt_now(CLOCK_MONOTONIC);
		/* Before it is due, and when readers have been told already. */
		if (due)
			EXPECT_EQ(POLLIN, kt_poll(self->fd, 10000));
		ASSERT_EQ(0, kt_cancel(self->fd, 1, &op));
		EXPECT_EQ(0, kt_poll(self->fd, 0));
		EXPECT_EQ(POLLIN, kt_poll(self->fd, 10000));
		EXPECT_LE(290 * MSEC, kt_now(CLOCK_MONOTONIC) - start);
		EXPECT_GT(350 * MSEC, kt_now(CLOCK_MONOTONIC) - start);
		EXPECT_TRUE(read_one(self, 2));
	}
}

TEST_F(queue_poll, epoll_edge_cancel_of_a_due_one_next_one_told)
{
	struct kretry_op op;

	ASSERT_EQ(0, watch(self, EPOLLIN | EPOLLET));
	ASSERT_EQ(0, queue_after(self, 100 * MSEC, 1));
	ASSERT_EQ(0, queue_after(self, 300 * MSEC, 2));
	EXPECT_EQ(EPOLLIN, events(self, 10000));
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &op));
	EXPECT_EQ(EPOLLIN, events(self, 10000));
	EXPECT_TRUE(read_one(self, 2));
}

/* The reader finds nothing, since the op waits for its slot: it is told again by then. */
TEST_F(queue_poll, op_that_waits_on_told_again_at_its_slot)
{
	struct kretry_op op;
	uint64_t slot;
	int i;

	self->policy.pacing.pace_ns = SEC;
	self->policy.pacing.horizon_ns = 100 * SEC;
	self->policy.backoff.base_ns = 100 * MSEC;
	self->id = kt_create(self->fd, &self->policy);
	ASSERT_EQ(0, watch(self, EPOLLIN | EPOLLET));
	ASSERT_EQ(3, kt_queue_many(self->fd, self->id, 0, 3));
	EXPECT_EQ(EPOLLIN, events(self, 10000));
	ASSERT_EQ(sizeof(op), read(self->fd, &op, sizeof(op)));
	slot = op.deadline_ns;
	for (i = 1; i < 3; i++) {
		EXPECT_EQ(0, drain(self));
		EXPECT_EQ(EPOLLIN, events(self, 10000));
		slot += SEC;
		EXPECT_LE(slot, kt_now(CLOCK_MONOTONIC));
		EXPECT_GT(slot + 50 * MSEC, kt_now(CLOCK_MONOTONIC));
		EXPECT_TRUE(read_one(self, i));
	}
}

/* Both clocks have a timer: the first of one does not stand for the other's. */
TEST_F(queue_poll, both_clocks_each_told)
{
	struct kretry_policy policy;
	int i;

	kt_policy(&policy);
	policy.clockid = CLOCK_BOOTTIME;
	ASSERT_EQ(0, watch(self, EPOLLIN | EPOLLET));
	for (i = 0; i < 2; i++) {
		policy.backoff.base_ns = i ? 50 * MSEC : 150 * MSEC;
		ASSERT_EQ(0, kt_queue(self->fd, kt_create(self->fd, &policy), 10));
		ASSERT_EQ(0, kt_queue(self->fd, self->id, 11));
		EXPECT_EQ(EPOLLIN, events(self, 10000));
		EXPECT_TRUE(read_one(self, i ? 10 : 11));
		EXPECT_EQ(0, drain(self));
		EXPECT_EQ(EPOLLIN, events(self, 10000));
		EXPECT_TRUE(read_one(self, i ? 11 : 10));
		EXPECT_EQ(0, drain(self));
	}
}

/* -------- POLLPRI beside it -------- */

TEST_F(queue_poll, due_op_and_a_change_of_a_breaker_both_told)
{
	kt_breaker(&self->policy, 1, 3600 * SEC, 1);
	self->policy.open_flags = KRETRY_OPEN_NOTIFY;
	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	self->id = kt_create(self->fd, &self->policy);
	ASSERT_EQ(0, queue_after(self, 100 * MSEC, 1));
	EXPECT_EQ(0, kt_poll(self->fd, 0));
	kt_event(&self->me, self->id, KEY, KRETRY_EVENT_TRANSIENT);
	EXPECT_EQ(POLLPRI, kt_poll(self->fd, 0));
	kt_sleep(200 * MSEC);
	EXPECT_EQ(POLLIN | POLLPRI, kt_poll(self->fd, 0));
	EXPECT_TRUE(read_one(self, 1));
	EXPECT_EQ(POLLPRI, kt_poll(self->fd, 0));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).transitions);
	EXPECT_EQ(0, kt_poll(self->fd, 0));
}

TEST_HARNESS_MAIN
