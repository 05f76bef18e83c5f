// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The queue by way of io_uring: read and poll of the file complete when an op is due. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>

FIXTURE(uring_read) {
	struct kt_party me;
	int id;		/* 100 ms */
	struct io_uring ring;
};

FIXTURE_SETUP(uring_read)
{
	struct kretry_policy policy;

	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&policy);
	self->id = kt_create(self->me.fd, &policy);
	ASSERT_LT(0, self->id);
	ASSERT_EQ(0, kt_ring(&self->ring, 16, 0));
}

FIXTURE_TEARDOWN(uring_read)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

/* Queue an op of that name; its deadline. */
static uint64_t queue(FIXTURE_DATA(uring_read) *self, uint64_t user_data)
{
	struct kretry_op op = kt_failed(self->id, 1, user_data);

	op.flags = KRETRY_OP_QUEUE;
	return kt_step(self->me.fd, &op) ? 0 : op.deadline_ns;
}

static struct io_uring_sqe *put_read(FIXTURE_DATA(uring_read) *self, void *memory, size_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);

	io_uring_prep_read(sqe, self->me.fd, memory, (unsigned int)len, 0);
	sqe->user_data = 1;
	return sqe;
}

static struct io_uring_sqe *put_poll(FIXTURE_DATA(uring_read) *self, uint64_t user_data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);

	io_uring_prep_poll_add(sqe, self->me.fd, POLLIN);
	sqe->user_data = user_data;
	return sqe;
}

static int check_delivered(const struct kretry_op *op, uint64_t user_data, uint64_t deadline)
{
	uint64_t now = kt_now(CLOCK_MONOTONIC);

	CHECK_EQ(KRETRY_GO, op->verdict);
	CHECK_EQ(user_data, op->user_data);
	CHECK(op->deadline_ns >= deadline && op->deadline_ns < deadline + MSEC);
	CHECK(now >= deadline && now < deadline + MSEC);
	return 0;
}

TEST_F(uring_read, read_before_the_deadline_completes_at_it)
{
	uint64_t deadline = queue(self, 9);
	struct kretry_op op;

	ASSERT_NE(0, deadline);
	put_read(self, &op, sizeof(op));
	EXPECT_EQ(sizeof(op), kt_result(&self->ring, 1));
	EXPECT_EQ(0, check_delivered(&op, 9, deadline));
	EXPECT_EQ(0, kt_stat(&self->me, self->id).queued);
}

TEST_F(uring_read, read_on_an_empty_queue_completes_at_a_later_ones_deadline)
{
	struct kretry_op op;
	uint64_t deadline;

	put_read(self, &op, sizeof(op));
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	kt_sleep(SEC);
	deadline = queue(self, 9);
	EXPECT_EQ(sizeof(op), kt_result(&self->ring, 1));
	EXPECT_EQ(0, check_delivered(&op, 9, deadline));
}

TEST_F(uring_read, read_of_due_ops_returns_all_that_fit)
{
	struct kretry_op ops[5];
	int i;

	for (i = 0; i < 8; i++)
		ASSERT_NE(0, queue(self, i));
	kt_sleep(SEC);
	memset(ops, POISON, sizeof(ops));
	put_read(self, ops, sizeof(ops) - 1);
	EXPECT_EQ(4 * sizeof(*ops), kt_result(&self->ring, 1));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(i, ops[i].user_data);
	EXPECT_TRUE(kt_all(&ops[4], sizeof(ops[4]), POISON));
	EXPECT_EQ(4, kt_stat(&self->me, self->id).queued);
}

TEST_F(uring_read, read_of_less_than_an_op_einval)
{
	struct kretry_op op;

	ASSERT_NE(0, queue(self, 9));
	kt_sleep(SEC);
	put_read(self, &op, sizeof(op) - 1);
	EXPECT_EQ(-EINVAL, kt_result(&self->ring, 1));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).queued);
}

TEST_F(uring_read, read_into_bad_memory_efault_op_stays)
{
	struct kretry_op op;
	uint64_t deadline = queue(self, 9);

	kt_sleep(SEC);
	put_read(self, (void *)8, sizeof(op));
	EXPECT_EQ(-EFAULT, kt_result(&self->ring, 1));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).queued);
	put_read(self, &op, sizeof(op));
	EXPECT_EQ(sizeof(op), kt_result(&self->ring, 1));
	EXPECT_LE(deadline, op.deadline_ns);
}

/* A ring that waits blocks nobody, so that O_NONBLOCK makes no difference; RWF_NOWAIT does. */
TEST_F(uring_read, read_that_must_not_wait_eagain_at_once)
{
	struct kretry_op op;
	uint64_t deadline;

	ASSERT_EQ(0, fcntl(self->me.fd, F_SETFL, O_NONBLOCK));
	deadline = queue(self, 9);
	memset(&op, POISON, sizeof(op));
	put_read(self, &op, sizeof(op))->rw_flags = RWF_NOWAIT;
	EXPECT_EQ(-EAGAIN, kt_result(&self->ring, 1));
	EXPECT_TRUE(kt_all(&op, sizeof(op), POISON));
	put_read(self, &op, sizeof(op));
	EXPECT_EQ(sizeof(op), kt_result(&self->ring, 1));
	EXPECT_EQ(0, check_delivered(&op, 9, deadline));
}

TEST_F(uring_read, fixed_file_and_buffer_complete_at_the_deadline)
{
	static struct kretry_op ops[4];
	struct iovec iov = { .iov_base = ops, .iov_len = sizeof(ops) };
	struct io_uring_sqe *sqe;
	uint64_t deadline;

	ASSERT_EQ(0, io_uring_register_files(&self->ring, &self->me.fd, 1));
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &iov, 1));
	deadline = queue(self, 9);
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_read_fixed(sqe, 0, ops, sizeof(ops), 0, 0);
	sqe->flags = IOSQE_FIXED_FILE;
	sqe->user_data = 1;
	EXPECT_EQ(sizeof(*ops), kt_result(&self->ring, 1));
	EXPECT_EQ(0, check_delivered(ops, 9, deadline));
}

/* Queue, sleep and go on in one submission, on every kernel. */
TEST_F(uring_read, chain_of_step_read_and_step_goes_on_at_the_deadline)
{
	struct kretry_op op = kt_failed(self->id, 1, 9), due, after;

	op.flags = KRETRY_OP_QUEUE;
	after = kt_op(self->id, KRETRY_EVENT_BEGIN);
	kt_put_step(&self->ring, self->me.fd, &op, 1)->flags = IOSQE_IO_LINK;
	put_read(self, &due, sizeof(due))->flags = IOSQE_IO_LINK;
	kt_put_step(&self->ring, self->me.fd, &after, 1)->user_data = 2;
	EXPECT_EQ(1, kt_result(&self->ring, 0));
	EXPECT_EQ(sizeof(due), kt_result(&self->ring, 1));
	EXPECT_EQ(1, kt_result(&self->ring, 2));
	EXPECT_EQ(9, due.user_data);
	EXPECT_LE(op.deadline_ns, after.start_ns);
	EXPECT_GT(op.deadline_ns + MSEC, after.start_ns);
}

/* -------- poll -------- */

TEST_F(uring_read, poll_completes_at_the_deadline)
{
	uint64_t deadline = queue(self, 9);

	put_poll(self, 1);
	EXPECT_TRUE(kt_result(&self->ring, 1) & POLLIN);
	EXPECT_LE(deadline, kt_now(CLOCK_MONOTONIC));
	EXPECT_GT(deadline + MSEC, kt_now(CLOCK_MONOTONIC));
	/* It is level: with the op still there it is readable. */
	put_poll(self, 2);
	EXPECT_TRUE(kt_result(&self->ring, 2) & POLLIN);
}

TEST_F(uring_read, poll_multishot_tells_of_each_deadline)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
	struct kretry_op op;
	uint64_t deadline;
	int i;

	io_uring_prep_poll_multishot(sqe, self->me.fd, POLLIN);
	sqe->user_data = 1;
	for (i = 0; i < 20; i++) {
		deadline = queue(self, i);
		EXPECT_TRUE(kt_result(&self->ring, 1) & POLLIN);
		EXPECT_LE(deadline, kt_now(CLOCK_MONOTONIC));
		EXPECT_GT(deadline + MSEC, kt_now(CLOCK_MONOTONIC));
		ASSERT_EQ(sizeof(op), read(self->me.fd, &op, sizeof(op)));
		EXPECT_EQ(i, op.user_data);
		kt_sleep(50 * MSEC);
		EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	}
}

TEST_F(uring_read, poll_removed_op_stays)
{
	struct io_uring_sqe *sqe;
	uint64_t user_data;
	int i, ret;

	ASSERT_NE(0, queue(self, 9));
	put_poll(self, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_poll_remove(sqe, 1);
	sqe->user_data = 2;
	for (i = 0; i < 2; i++) {
		ret = kt_next(&self->ring, &user_data);
		EXPECT_EQ(user_data == 1 ? -ECANCELED : 0, ret);
	}
	kt_sleep(SEC);
	EXPECT_EQ(1, kt_stat(&self->me, self->id).queued);
}

/* Two reads wait for one op: one gets it, the other waits on. */
TEST_F(uring_read, two_reads_of_one_op_one_gets_it)
{
	struct kretry_op ops[2];
	uint64_t user_data;

	memset(ops, POISON, sizeof(ops));
	put_read(self, &ops[0], sizeof(ops[0]));
	put_read(self, &ops[1], sizeof(ops[1]))->user_data = 2;
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	ASSERT_NE(0, queue(self, 9));
	EXPECT_EQ(sizeof(*ops), kt_next(&self->ring, &user_data));
	kt_sleep(SEC);
	EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	EXPECT_TRUE(kt_all(&ops[2 - user_data], sizeof(*ops), POISON));
	ASSERT_NE(0, queue(self, 10));
	EXPECT_EQ(sizeof(*ops), kt_next(&self->ring, NULL));
	EXPECT_EQ(10, ops[2 - user_data].user_data);
}

TEST_HARNESS_MAIN
