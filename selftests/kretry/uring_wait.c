// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* WAIT: it sleeps to the deadline of one op, which is written when it is issued and never again. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

FIXTURE(uring_wait) {
	struct kt_party me;
	struct kretry_policy policy;
	int id;			/* 100 ms */
	struct io_uring ring;
};

FIXTURE_SETUP(uring_wait)
{
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	kt_policy(&self->policy);
	self->id = kt_create(self->me.fd, &self->policy);
	ASSERT_LT(0, self->id);
	ASSERT_EQ(0, kt_ring(&self->ring, 1024, 0));
}

FIXTURE_TEARDOWN(uring_wait)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

static unsigned int queued(FIXTURE_DATA(uring_wait) *self)
{
	return kt_stat(&self->me, self->id).queued;
}

/* -------- in time -------- */

static int check_wait(FIXTURE_DATA(uring_wait) *self, clockid_t clock, uint64_t delay)
{
	struct kretry_policy policy;
	uint64_t before, after;
	struct kretry_op op;

	kt_policy(&policy);
	policy.clockid = clock;
	policy.backoff.cap_ns = KRETRY_NS_MAX;
	policy.backoff.base_ns = delay;
	op = kt_failed(kt_create(self->me.fd, &policy), 3, 4);
	before = kt_now(clock);
	CHECK_EQ(0, kt_wait_for(&self->ring, self->me.fd, &op));
	after = kt_now(clock);
	CHECK(op.start_ns >= before && op.start_ns < before + MSEC);
	CHECK_EQ(op.start_ns + delay, op.deadline_ns);
	CHECK(after >= op.deadline_ns && after < op.deadline_ns + MSEC);
	return 0;
}

TEST_F(uring_wait, completes_at_the_deadline_exactly)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	static const uint64_t delays[] = {
		1, USEC, 50 * USEC, MSEC, 100 * MSEC, 10 * SEC, 100 * SEC,
	};
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(clocks); i++)
		for (j = 0; j < ARRAY_LEN(delays); j++)
			EXPECT_EQ(0, check_wait(self, clocks[i], delays[j]))
				TH_LOG("clock %d delay %llu", clocks[i],
				       (unsigned long long)delays[j]);
}

TEST_F(uring_wait, op_is_written_as_by_a_step)
{
	struct kretry_op op = kt_failed(self->id, 3, 4);

	op.flags = KRETRY_OP_IDEMPOTENT;
	op.attempt = 6;
	ASSERT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &op));
	EXPECT_EQ(self->id, op.policy);
	EXPECT_EQ(KRETRY_EVENT_NONE, op.event);
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(KRETRY_OP_IDEMPOTENT, op.flags);
	EXPECT_EQ(3, op.key);
	EXPECT_EQ(4, op.user_data);
	EXPECT_EQ(7, op.attempt);
	EXPECT_EQ(100 * MSEC, op.delay_ns);
	op.event = KRETRY_EVENT_OK;
	EXPECT_EQ(0, kt_step(self->me.fd, &op));
	EXPECT_EQ(KRETRY_DONE, op.verdict);
}

TEST_F(uring_wait, attempt_that_starts_now_completes_at_once)
{
	struct kretry_op op = kt_op(self->id, KRETRY_EVENT_BEGIN);
	uint64_t before = kt_now(CLOCK_MONOTONIC);

	EXPECT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &op));
	EXPECT_EQ(KRETRY_GO, op.verdict);
	EXPECT_EQ(0, queued(self));
	EXPECT_GT(before + MSEC, kt_now(CLOCK_MONOTONIC));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).go);
}

/* Issued with the longest first, they complete with the shortest first. */
TEST_F(uring_wait, thousand_complete_in_order_each_in_time)
{
	static struct kretry_op ops[1000];
	struct kretry_policy policy;
	uint64_t user_data, now;
	int i, id;

	kt_policy(&policy);
	policy.backoff.strategy = KRETRY_LINEAR;
	policy.backoff.base_ns = 10 * MSEC;
	id = kt_create(self->me.fd, &policy);
	for (i = 0; i < 1000; i++) {
		ops[i] = kt_failed(id, 1, i);
		ops[i].attempt = 999 - i;
		kt_put_wait(&self->ring, self->me.fd, &ops[i]);
	}
	for (i = 999; i >= 0; i--) {
		ASSERT_EQ(0, kt_next(&self->ring, &user_data));
		now = kt_now(CLOCK_MONOTONIC);
		ASSERT_EQ(i, user_data);
		ASSERT_LE(ops[i].deadline_ns, now);
		ASSERT_GT(ops[i].deadline_ns + 9 * MSEC, now);
	}
}

TEST_F(uring_wait, slack_of_the_policy_is_the_most_it_is_late)
{
	struct kretry_policy policy;
	struct kretry_op op;
	uint64_t now;

	kt_policy(&policy);
	policy.slack_ns = 50 * MSEC;
	op = kt_failed(kt_create(self->me.fd, &policy), 1, 1);
	ASSERT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &op));
	now = kt_now(CLOCK_MONOTONIC);
	EXPECT_LE(op.deadline_ns, now);
	EXPECT_GT(op.deadline_ns + 51 * MSEC, now);
}

/* -------- what comes after it in a chain -------- */

static struct io_uring_sqe *put_write(struct io_uring *ring, int fd, uint64_t user_data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_write(sqe, fd, "x", 1, 0);
	sqe->user_data = user_data;
	return sqe;
}

TEST_F(uring_wait, linked_write_goes_out_at_the_deadline)
{
	struct kretry_op op = kt_failed(self->id, 1, 1);
	struct pollfd readable = { .events = POLLIN };
	int pair[2];
	uint64_t now;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	readable.fd = pair[1];
	kt_put_wait(&self->ring, self->me.fd, &op)->flags = IOSQE_IO_LINK;
	put_write(&self->ring, pair[0], 2);
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns - MSEC);
	EXPECT_EQ(0, poll(&readable, 1, 0));
	EXPECT_EQ(1, poll(&readable, 1, 1000));
	now = kt_now(CLOCK_MONOTONIC);
	EXPECT_LE(op.deadline_ns, now);
	EXPECT_GT(op.deadline_ns + MSEC, now);
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_EQ(1, kt_result(&self->ring, 2));
}

TEST_F(uring_wait, linked_write_after_a_stop_never_goes_out)
{
	struct kretry_op op = kt_failed(self->id, 1, 1);
	struct pollfd readable = { .events = POLLIN };
	int pair[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	readable.fd = pair[1];
	op.event = KRETRY_EVENT_PERMANENT;
	kt_put_wait(&self->ring, self->me.fd, &op)->flags = IOSQE_IO_LINK;
	put_write(&self->ring, pair[0], 2);
	EXPECT_EQ(-KRETRY_ERRNO_STOP_PERMANENT, kt_result(&self->ring, 1));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 2));
	EXPECT_EQ(0, poll(&readable, 1, 200));
}

/* -------- the caller's memory -------- */

TEST_F(uring_wait, memory_gone_after_issue_still_completes)
{
	struct kretry_op *op = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t deadline;

	ASSERT_NE(MAP_FAILED, op);
	*op = kt_failed(self->id, 1, 1);
	kt_put_wait(&self->ring, self->me.fd, op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	deadline = op->deadline_ns;
	ASSERT_EQ(0, munmap(op, 4096));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_LE(deadline, kt_now(CLOCK_MONOTONIC));
	EXPECT_GT(deadline + MSEC, kt_now(CLOCK_MONOTONIC));
}

TEST_F(uring_wait, memory_reused_after_issue_neither_read_nor_written)
{
	struct kretry_op op = kt_failed(self->id, 1, 1);
	uint64_t deadline;

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	deadline = op.deadline_ns;
	memset(&op, POISON, sizeof(op));
	/* The place of the submission is used anew too. */
	memset(self->ring.sq.sqes, 0xff, sizeof(struct io_uring_sqe));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_LE(deadline, kt_now(CLOCK_MONOTONIC));
	EXPECT_TRUE(kt_all(&op, sizeof(op), POISON));
}

TEST_F(uring_wait, memory_reused_and_cancelled_not_written)
{
	struct kretry_op op = kt_failed(self->id, 1, 1);
	struct kretry_cancel cancel;

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	memset(&op, POISON, sizeof(op));
	EXPECT_EQ(0, kt_cancel(self->me.fd, 1, &cancel));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 1));
	EXPECT_TRUE(kt_all(&op, sizeof(op), POISON));
}

/* -------- the policy and the file meanwhile -------- */

TEST_F(uring_wait, policy_with_a_wait_cannot_be_closed)
{
	struct kretry_op op = kt_failed(self->id, 1, 1);

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(1, queued(self));
	EXPECT_EQ(-EBUSY, kt_close(self->me.fd, self->id));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_EQ(0, queued(self));
	EXPECT_EQ(0, kt_close(self->me.fd, self->id));
}

TEST_F(uring_wait, shutdown_completes_it_ecanceled_at_once)
{
	struct kretry_op op = kt_failed(self->id, 1, 1);

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(0, kt_shutdown(self->me.fd));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 1));
	EXPECT_GT(op.deadline_ns, kt_now(CLOCK_MONOTONIC));
	EXPECT_EQ(0, kt_policies(self->me.fd));
}

/* Waits are not read: they have a way of their own to their caller. */
TEST_F(uring_wait, due_wait_does_not_make_the_file_readable)
{
	struct kretry_op op = kt_failed(self->id, 1, 1);
	struct pollfd readable = { .fd = self->me.fd, .events = POLLIN };

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(0, poll(&readable, 1, 500));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
}

TEST_HARNESS_MAIN
