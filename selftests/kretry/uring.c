// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the device itself answers on io_uring, where this build has no commands for it. */
#include "harness.h"

#include <liburing.h>

FIXTURE(uring) {
	int fd;
	struct io_uring ring;
};

FIXTURE_SETUP(uring)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, io_uring_queue_init(4, &self->ring, 0));
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

static int submit(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_submit_and_wait(ring, 1);

	if (ret < 0)
		return ret;
	ret = io_uring_peek_cqe(ring, &cqe);
	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

/* Every number: none is known as a command of io_uring. */
TEST_F(uring, command_not_in_this_build_eopnotsupp)
{
	struct kretry_op op = { 0 }, before;
	struct kretry_uring payload = { .ops = (uintptr_t)&op, .count = 1, .op_size = sizeof(op) };
	struct kretry_policy policy;
	struct io_uring_sqe *sqe;
	unsigned int nr;

	kt_policy(&policy);
	op = kt_op(kt_create(self->fd, &policy), KRETRY_EVENT_TRANSIENT);
	before = op;
	for (nr = 0; nr <= 0x10; nr++) {
		sqe = io_uring_get_sqe(&self->ring);
		io_uring_prep_nop(sqe);
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->fd = self->fd;
		/* cmd_op and cmd[] of newer headers. */
		sqe->off = _IO(KRETRY_IOC_MAGIC, nr);
		memcpy((char *)sqe + 48, &payload, sizeof(payload));
		EXPECT_EQ(-EOPNOTSUPP, submit(&self->ring))
			TH_LOG("number %#x", nr);
	}
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

/* The file can be polled, so io_uring waits for it to be readable, which it never is. */
TEST_F(uring, read_without_a_queue_waits_until_cancelled)
{
	unsigned char memory[sizeof(struct kretry_op)];
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	int i;

	memset(memory, POISON, sizeof(memory));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_read(sqe, self->fd, memory, sizeof(memory), 0);
	sqe->user_data = 1;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 2;
	ASSERT_EQ(1, io_uring_submit_and_wait(&self->ring, 2));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, io_uring_peek_cqe(&self->ring, &cqe));
		EXPECT_EQ(cqe->user_data == 1 ? -ECANCELED : 0, cqe->res);
		io_uring_cqe_seen(&self->ring, cqe);
	}
	EXPECT_TRUE(kt_all(memory, sizeof(memory), POISON));
}

TEST_HARNESS_MAIN
