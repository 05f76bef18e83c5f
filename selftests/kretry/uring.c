// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which io_uring commands the device has, and what it refuses before anything is decided. */
#include "harness.h"
#include "rings.h"

#include <errno.h>

FIXTURE(uring) {
	int fd;
	int policy;
	struct io_uring ring;
};

FIXTURE_SETUP(uring)
{
	struct kretry_policy policy;

	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&policy);
	self->policy = kt_create(self->fd, &policy);
	ASSERT_LT(0, self->policy);
	ASSERT_EQ(0, kt_ring(&self->ring, 4, 0));
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

static int run(FIXTURE_DATA(uring) *self, unsigned long command, const void *ops,
	       unsigned int count, unsigned int op_size, unsigned int flags)
{
	struct kretry_uring payload = {
		.ops = (uintptr_t)ops, .count = count, .op_size = (__u16)op_size,
		.flags = (__u16)flags,
	};

	kt_put(&self->ring, self->fd, command, &payload);
	return kt_next(&self->ring, NULL);
}

/* -------- commands -------- */

static bool has_command(unsigned int nr)
{
	return nr == _IOC_NR(KRETRY_IOC_STEP) || nr == _IOC_NR(KRETRY_IOC_WAIT) ||
	       nr == _IOC_NR(KRETRY_IOC_CANCEL);
}

TEST_F(uring, other_command_eopnotsupp_unknown_enotty)
{
	struct kretry_op op = kt_failed(self->policy, 0, 0), before = op;
	unsigned int nr;
	int want;

	for (nr = 0; nr <= 0xff; nr++) {
		if (has_command(nr))
			continue;
		want = nr <= _IOC_NR(KRETRY_IOC_SHUTDOWN) ? -EOPNOTSUPP : -ENOTTY;
		EXPECT_EQ(want, run(self, _IO(KRETRY_IOC_MAGIC, nr), &op, 1, sizeof(op), 0))
			TH_LOG("number %#x", nr);
	}
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	EXPECT_EQ(1, kt_policies(self->fd));
}

TEST_F(uring, foreign_command_enotty)
{
	struct kretry_op op = kt_failed(self->policy, 0, 0), before = op;
	unsigned int nr = _IOC_NR(KRETRY_IOC_STEP);

	EXPECT_EQ(-ENOTTY, run(self, nr, &op, 1, sizeof(op), 0));
	EXPECT_EQ(-ENOTTY, run(self, _IO(KRETRY_IOC_MAGIC - 1, nr), &op, 1, sizeof(op), 0));
	EXPECT_EQ(-ENOTTY, run(self, _IO(KRETRY_IOC_MAGIC + 1, nr), &op, 1, sizeof(op), 0));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

/* As with ioctl, only the number tells the command. */
TEST_F(uring, command_with_a_size_and_direction_is_the_same)
{
	struct kretry_op op = kt_failed(self->policy, 0, 0);
	unsigned int nr = _IOC_NR(KRETRY_IOC_STEP);

	EXPECT_EQ(1, run(self, _IOWR(KRETRY_IOC_MAGIC, nr, op), &op, 1, sizeof(op), 0));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
}

TEST_F(uring, wait_is_there_exactly_where_info_says_so)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_BEGIN), before = op;
	int ret = run(self, KRETRY_IOC_WAIT, &op, 1, sizeof(op), 0);

	if (kt_ring_waits(self->fd)) {
		EXPECT_EQ(0, ret);
		EXPECT_EQ(KRETRY_GO, op.verdict);
	} else {
		EXPECT_EQ(-EOPNOTSUPP, ret);
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	}
}

/* A ring that polls for completions is refused; since 7.x it may have commands that do not poll. */
TEST_F(uring, ring_of_iopoll_eopnotsupp_or_the_same)
{
	struct kretry_op op = kt_failed(self->policy, 0, 1), before = op, second = op;
	int ret;

	io_uring_queue_exit(&self->ring);
	ASSERT_EQ(0, kt_ring(&self->ring, 4, IORING_SETUP_IOPOLL));
	ret = run(self, KRETRY_IOC_STEP, &op, 1, sizeof(op), 0);
	if (ret == -EOPNOTSUPP) {
		EXPECT_EQ(-EOPNOTSUPP, run(self, KRETRY_IOC_WAIT, &op, 1, sizeof(op), 0));
		EXPECT_EQ(-EOPNOTSUPP, run(self, KRETRY_IOC_CANCEL, &op, 1, sizeof(op), 0));
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
		return;
	}
	EXPECT_EQ(1, ret);
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(0, run(self, KRETRY_IOC_WAIT, &second, 1, sizeof(second), 0));
	EXPECT_LE(second.deadline_ns, kt_now(CLOCK_MONOTONIC));
}

/* -------- payload -------- */

TEST_F(uring, payload_flags_einval)
{
	static const unsigned long commands[] = { KRETRY_IOC_STEP, KRETRY_IOC_CANCEL };
	struct kretry_op op = kt_failed(self->policy, 0, 0), before = op;
	size_t i;
	int bit;

	for (i = 0; i < ARRAY_LEN(commands); i++)
		for (bit = 0; bit < 16; bit++)
			EXPECT_EQ(-EINVAL, run(self, commands[i], &op, 1, sizeof(op), 1U << bit));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(uring, step_op_size_other_einval)
{
	static const unsigned int sizes[] = { 0, 1, 63, 65, 128, 0xffff };
	struct kretry_op op = kt_failed(self->policy, 0, 0), before = op;
	size_t i;

	for (i = 0; i < ARRAY_LEN(sizes); i++)
		EXPECT_EQ(-EINVAL, run(self, KRETRY_IOC_STEP, &op, 1, sizes[i], 0));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(uring, step_of_no_ops_does_nothing)
{
	struct kretry_op op = kt_failed(self->policy, 0, 0), before = op;

	EXPECT_EQ(0, run(self, KRETRY_IOC_STEP, &op, 0, sizeof(op), 0));
	EXPECT_EQ(0, run(self, KRETRY_IOC_STEP, NULL, 0, sizeof(op), 0));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(uring, step_of_more_than_max_batch_emsgsize)
{
	struct kretry_op op = kt_failed(self->policy, 0, 0), before = op;
	struct kretry_info info;

	ASSERT_EQ(0, kt_info(self->fd, &info));
	EXPECT_EQ(-EMSGSIZE, run(self, KRETRY_IOC_STEP, &op, info.max_batch + 1, sizeof(op), 0));
	EXPECT_EQ(-EMSGSIZE, run(self, KRETRY_IOC_STEP, &op, ~0U, sizeof(op), 0));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(uring, step_bad_pointer_efault)
{
	struct kretry_op op = kt_failed(self->policy, 0, 0), *constant;
	char *end = kt_page_end(sizeof(op));

	constant = kt_read_only(&op, sizeof(op));
	EXPECT_EQ(-EFAULT, run(self, KRETRY_IOC_STEP, NULL, 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, run(self, KRETRY_IOC_STEP, end + 1, 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, run(self, KRETRY_IOC_STEP, (void *)-64, 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, run(self, KRETRY_IOC_STEP, (void *)(1ULL << 63), 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, run(self, KRETRY_IOC_STEP, constant, 1, sizeof(op), 0));
	EXPECT_EQ(0, memcmp(&op, constant, sizeof(op)));
	EXPECT_TRUE(kt_all(end, sizeof(op), POISON));
}

TEST_F(uring, cancel_count_other_than_one_einval)
{
	struct kretry_cancel cancel = { .size = sizeof(cancel) };

	EXPECT_EQ(-EINVAL, run(self, KRETRY_IOC_CANCEL, &cancel, 0, sizeof(cancel), 0));
	EXPECT_EQ(-EINVAL, run(self, KRETRY_IOC_CANCEL, &cancel, 2, sizeof(cancel), 0));
	EXPECT_EQ(-ENOENT, run(self, KRETRY_IOC_CANCEL, &cancel, 1, sizeof(cancel), 0));
}

/* The file can be polled, so io_uring waits for it to be readable. */
TEST_F(uring, read_with_nothing_queued_waits_until_cancelled)
{
	unsigned char memory[sizeof(struct kretry_op)];
	struct io_uring_sqe *sqe;
	uint64_t user_data;
	int i, res;

	memset(memory, POISON, sizeof(memory));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_read(sqe, self->fd, memory, sizeof(memory), 0);
	sqe->user_data = 1;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 2;
	for (i = 0; i < 2; i++) {
		res = kt_next(&self->ring, &user_data);
		EXPECT_EQ(user_data == 1 ? -ECANCELED : 0, res);
	}
	EXPECT_TRUE(kt_all(memory, sizeof(memory), POISON));
}

TEST_HARNESS_MAIN
