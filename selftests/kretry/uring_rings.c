// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The commands on every kind of ring and in every way to submit them. */
#include "harness.h"
#include "rings.h"

#include <errno.h>

FIXTURE(uring_rings) {
	int fd;		/* or its place in the ring's table of files */
	int device;	/* the file descriptor, or -1 after it has been closed */
	int policy;	/* 100 ms */
	bool waits;
	struct io_uring ring;
};

FIXTURE_VARIANT(uring_rings) {
	unsigned int flags;
	unsigned int sqe_flags;
	bool closed;
};

#define DEFERRED	(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

FIXTURE_VARIANT_ADD(uring_rings, plain) { .flags = 0 };
FIXTURE_VARIANT_ADD(uring_rings, coop) { .flags = IORING_SETUP_COOP_TASKRUN };
FIXTURE_VARIANT_ADD(uring_rings, deferred) { .flags = DEFERRED };
FIXTURE_VARIANT_ADD(uring_rings, sqe128) { .flags = IORING_SETUP_SQE128 };
FIXTURE_VARIANT_ADD(uring_rings, cqe32) { .flags = IORING_SETUP_CQE32 };
FIXTURE_VARIANT_ADD(uring_rings, large) {
	.flags = DEFERRED | IORING_SETUP_SQE128 | IORING_SETUP_CQE32,
};

FIXTURE_VARIANT_ADD(uring_rings, async) { .sqe_flags = IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(uring_rings, async_deferred) {
	.flags = DEFERRED, .sqe_flags = IOSQE_ASYNC,
};

FIXTURE_VARIANT_ADD(uring_rings, fixed_file) { .sqe_flags = IOSQE_FIXED_FILE };
FIXTURE_VARIANT_ADD(uring_rings, fixed_file_closed) {
	.sqe_flags = IOSQE_FIXED_FILE, .closed = true,
};

FIXTURE_VARIANT_ADD(uring_rings, sqpoll) { .flags = IORING_SETUP_SQPOLL };
FIXTURE_VARIANT_ADD(uring_rings, sqpoll_closed) {
	.flags = IORING_SETUP_SQPOLL, .sqe_flags = IOSQE_FIXED_FILE, .closed = true,
};

FIXTURE_VARIANT_ADD(uring_rings, sqpoll_async) {
	.flags = IORING_SETUP_SQPOLL, .sqe_flags = IOSQE_ASYNC,
};

FIXTURE_SETUP(uring_rings)
{
	struct kretry_policy policy;

	self->device = kt_open();
	self->fd = self->device;
	ASSERT_LE(0, self->fd);
	self->waits = kt_ring_waits(self->fd);
	kt_policy(&policy);
	self->policy = kt_create(self->fd, &policy);
	ASSERT_LT(0, self->policy);
	ASSERT_EQ(0, kt_ring(&self->ring, 16, variant->flags));
	if (variant->sqe_flags & IOSQE_FIXED_FILE) {
		ASSERT_EQ(0, io_uring_register_files(&self->ring, &self->device, 1));
		self->fd = 0;
	}
	if (variant->closed) {
		close(self->device);
		self->device = -1;
	}
}

FIXTURE_TEARDOWN(uring_rings)
{
	io_uring_queue_exit(&self->ring);
	if (self->device >= 0)
		close(self->device);
}

static int run(FIXTURE_DATA(uring_rings) *self, struct io_uring_sqe *sqe, unsigned int flags,
	       uint64_t user_data)
{
	sqe->flags = flags;
	sqe->user_data = user_data;
	return kt_result(&self->ring, user_data);
}

TEST_F(uring_rings, step_answered)
{
	struct kretry_op ops[100];
	unsigned int i, count;

	for (count = 1; count <= ARRAY_LEN(ops); count += 33) {
		for (i = 0; i < count; i++)
			ops[i] = kt_failed(self->policy, 1, i);
		EXPECT_EQ((int)count, run(self, kt_put_step(&self->ring, self->fd, ops, count),
					  variant->sqe_flags, ~count));
		for (i = 0; i < count; i++)
			ASSERT_EQ(KRETRY_RETRY, ops[i].verdict);
	}
}

TEST_F(uring_rings, step_refused)
{
	EXPECT_EQ(-EFAULT, run(self, kt_put_step(&self->ring, self->fd, NULL, 1),
			       variant->sqe_flags, 7));
	EXPECT_EQ(-EMSGSIZE, run(self, kt_put_step(&self->ring, self->fd, NULL, 65537),
				 variant->sqe_flags, 7));
}

/* Each after the one before, whoever runs them. */
TEST_F(uring_rings, chain_of_steps_in_order)
{
	struct kretry_op op = kt_failed(self->policy, 1, 0), ops[8];
	struct kretry_uring last = { .ops = (uintptr_t)&op, .count = 1, .op_size = sizeof(op) };
	int i;

	for (i = 0; i < 8; i++) {
		ops[i] = kt_failed(self->policy, 1, i);
		kt_put_step(&self->ring, self->fd, &ops[i], 1)->flags =
			variant->sqe_flags | IOSQE_IO_LINK;
	}
	/* Refused: what comes after it in the chain is not done. */
	last.flags = 1;
	kt_put(&self->ring, self->fd, KRETRY_IOC_STEP, &last)->flags =
		variant->sqe_flags | IOSQE_IO_LINK;
	kt_put_step(&self->ring, self->fd, &op, 1)->flags = variant->sqe_flags;
	for (i = 0; i < 8; i++)
		EXPECT_EQ(1, kt_next(&self->ring, NULL));
	EXPECT_EQ(-EINVAL, kt_next(&self->ring, NULL));
	EXPECT_EQ(-ECANCELED, kt_next(&self->ring, NULL));
	EXPECT_EQ(KRETRY_EVENT_TRANSIENT, op.event);
	for (i = 1; i < 8; i++)
		EXPECT_LE(ops[i - 1].start_ns, ops[i].start_ns);
}

TEST_F(uring_rings, queued_op_cancelled_once)
{
	struct kretry_op op = kt_failed(self->policy, 1, 99);
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 99 };

	op.flags = KRETRY_OP_QUEUE;
	ASSERT_EQ(1, run(self, kt_put_step(&self->ring, self->fd, &op, 1),
			 variant->sqe_flags, 1));
	EXPECT_EQ(0, run(self, kt_put_cancel(&self->ring, self->fd, &cancel),
			 variant->sqe_flags, 2));
	EXPECT_EQ(99, cancel.op.user_data);
	EXPECT_EQ(0, cancel.op.attempt);
	EXPECT_EQ(-ENOENT, run(self, kt_put_cancel(&self->ring, self->fd, &cancel),
			       variant->sqe_flags, 3));
}

/* Nothing of the device is left open but what the ring holds. */
TEST_F(uring_rings, module_in_use_until_the_ring_is_gone)
{
	EXPECT_EQ(-EWOULDBLOCK, kt_unload());
}

/* -------- WAIT -------- */

TEST_F(uring_rings, wait_completes_at_the_deadline)
{
	struct kretry_op op = kt_failed(self->policy, 1, 5), after;

	if (!self->waits)
		SKIP(return, "no WAIT on this kernel");
	after = kt_op(self->policy, KRETRY_EVENT_BEGIN);
	kt_put_wait(&self->ring, self->fd, &op)->flags = variant->sqe_flags | IOSQE_IO_LINK;
	kt_put_step(&self->ring, self->fd, &after, 1)->flags = variant->sqe_flags;
	EXPECT_EQ(0, kt_result(&self->ring, 5));
	EXPECT_EQ(1, kt_result(&self->ring, 0));
	EXPECT_LE(op.deadline_ns, after.start_ns);
	EXPECT_GT(op.deadline_ns + MSEC, after.start_ns);
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(op.start_ns + 100 * MSEC, op.deadline_ns);
}

TEST_F(uring_rings, wait_of_an_attempt_that_starts_now_completes_at_once)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_BEGIN);

	if (!self->waits)
		SKIP(return, "no WAIT on this kernel");
	EXPECT_EQ(0, run(self, kt_put_wait(&self->ring, self->fd, &op), variant->sqe_flags,
			 1));
	EXPECT_EQ(KRETRY_GO, op.verdict);
	EXPECT_EQ(op.start_ns, op.deadline_ns);
}

TEST_F(uring_rings, wait_cancelled_completes_ecanceled)
{
	struct kretry_op op = kt_failed(self->policy, 1, 5);
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 5 };
	struct io_uring_sqe *sqe;
	uint64_t user_data;
	int i, res;

	if (!self->waits)
		SKIP(return, "no WAIT on this kernel");
	kt_put_wait(&self->ring, self->fd, &op)->flags = variant->sqe_flags;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	/* Wherever it is issued, it has been by then. */
	kt_sleep(20 * MSEC);
	sqe = kt_put_cancel(&self->ring, self->fd, &cancel);
	sqe->flags = variant->sqe_flags;
	sqe->user_data = 6;
	for (i = 0; i < 2; i++) {
		res = kt_next(&self->ring, &user_data);
		EXPECT_EQ(user_data == 5 ? -ECANCELED : 0, res);
	}
	EXPECT_GT(op.deadline_ns, kt_now(CLOCK_MONOTONIC));
	EXPECT_EQ(0, cancel.op.attempt);
	EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
}

TEST_F(uring_rings, wait_after_wait_sleeps_twice)
{
	struct kretry_op ops[2] = { kt_failed(self->policy, 1, 5), kt_failed(self->policy, 1, 6) };

	if (!self->waits)
		SKIP(return, "no WAIT on this kernel");
	kt_put_wait(&self->ring, self->fd, &ops[0])->flags = variant->sqe_flags | IOSQE_IO_LINK;
	kt_put_wait(&self->ring, self->fd, &ops[1])->flags = variant->sqe_flags;
	EXPECT_EQ(0, kt_result(&self->ring, 5));
	EXPECT_EQ(0, kt_result(&self->ring, 6));
	EXPECT_LE(ops[0].deadline_ns, ops[1].start_ns);
	EXPECT_GT(ops[0].deadline_ns + MSEC, ops[1].start_ns);
	EXPECT_LE(ops[1].deadline_ns, kt_now(CLOCK_MONOTONIC));
}

TEST_HARNESS_MAIN
