// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* WAITs that fail before anything is decided: the op and the budget are as they were. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>

FIXTURE(uring_refused) {
	struct kt_party me;
	struct kretry_policy policy;	/* 100 ms, 1000 tokens */
	int id;
	struct io_uring ring;
};

FIXTURE_SETUP(uring_refused)
{
	ASSERT_EQ(0, kt_ensure_loaded());
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	kt_policy(&self->policy);
	kt_budget(&self->policy, 1000);
	self->id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, self->id);
	ASSERT_EQ(0, kt_ring(&self->ring, 16, 0));
}

FIXTURE_TEARDOWN(uring_refused)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

static int wait_with(FIXTURE_DATA(uring_refused) *self, const void *op, unsigned int count,
		     unsigned int op_size, unsigned int flags)
{
	struct kretry_uring payload = {
		.ops = (uintptr_t)op, .count = count, .op_size = (__u16)op_size,
		.flags = (__u16)flags,
	};

	kt_put(&self->ring, self->me.fd, KRETRY_IOC_WAIT, &payload);
	return kt_next(&self->ring, NULL);
}

/* Nothing has been decided, charged or queued. */
static int check_untouched(FIXTURE_DATA(uring_refused) *self)
{
	struct kretry_stat stat = kt_stat(&self->me, self->id);
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(stat.events); i++)
		CHECK_EQ(0, stat.events[i]);
	CHECK_EQ(0, stat.charged_utok);
	CHECK_EQ(0, stat.queued);
	return 0;
}

TEST_F(uring_refused, payload_wrong_einval)
{
	static const unsigned int counts[] = { 0, 2, 64, 65, ~0U };
	static const unsigned int sizes[] = { 0, 16, 63, 65, 128, 0xffff };
	struct kretry_op op = kt_failed(self->id, 1, 1), before = op;
	size_t i;

	for (i = 0; i < ARRAY_LEN(counts); i++)
		EXPECT_EQ(-EINVAL, wait_with(self, &op, counts[i], sizeof(op), 0));
	for (i = 0; i < ARRAY_LEN(sizes); i++)
		EXPECT_EQ(-EINVAL, wait_with(self, &op, 1, sizes[i], 0));
	for (i = 0; i < 16; i++)
		EXPECT_EQ(-EINVAL, wait_with(self, &op, 1, sizeof(op), 1U << i));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	EXPECT_EQ(0, check_untouched(self));
}

TEST_F(uring_refused, event_that_cannot_wait_einval)
{
	static const unsigned int events[] = {
		KRETRY_EVENT_NONE, KRETRY_EVENT_OK, KRETRY_EVENT_CANCELLED,
		KRETRY_EVENT_PERMANENT + 1, 0xff,
	};
	struct kretry_op op = kt_failed(self->id, 1, 1), before;
	size_t i;

	for (i = 0; i < ARRAY_LEN(events); i++) {
		op.event = (__u8)events[i];
		before = op;
		EXPECT_EQ(-EINVAL, kt_wait_for(&self->ring, self->me.fd, &op));
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	}
	EXPECT_EQ(0, check_untouched(self));
}

TEST_F(uring_refused, flags_of_the_op_einval)
{
	static const unsigned int flags[] = { KRETRY_OP_QUEUE, 0x40, 0x80 };
	struct kretry_op op = kt_failed(self->id, 1, 1), before;
	size_t i;

	for (i = 0; i < ARRAY_LEN(flags); i++) {
		op.flags = (__u16)flags[i];
		before = op;
		EXPECT_EQ(-EINVAL, kt_wait_for(&self->ring, self->me.fd, &op));
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	}
	op.flags = KRETRY_OP_HINT;
	op.event = KRETRY_EVENT_BEGIN;
	EXPECT_EQ(-EINVAL, kt_wait_for(&self->ring, self->me.fd, &op));
	EXPECT_EQ(0, check_untouched(self));
}

TEST_F(uring_refused, bad_pointer_efault)
{
	struct kretry_op op = kt_failed(self->id, 1, 1), *constant;
	char *end = kt_page_end(sizeof(op));

	constant = kt_read_only(&op, sizeof(op));
	EXPECT_EQ(-EFAULT, wait_with(self, NULL, 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, wait_with(self, end + 1, 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, wait_with(self, end + 63, 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, wait_with(self, (void *)-64, 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, wait_with(self, (void *)(1ULL << 63), 1, sizeof(op), 0));
	EXPECT_EQ(-EFAULT, wait_with(self, constant, 1, sizeof(op), 0));
	EXPECT_EQ(0, memcmp(&op, constant, sizeof(op)));
	EXPECT_TRUE(kt_all(end, sizeof(op), POISON));
	EXPECT_EQ(0, check_untouched(self));
}

TEST_F(uring_refused, no_such_policy_enoent)
{
	static const unsigned int policies[] = { 0, 9999, ~0U };
	struct kretry_op op = kt_failed(0, 1, 1), before;
	size_t i;

	for (i = 0; i < ARRAY_LEN(policies); i++) {
		op.policy = policies[i];
		before = op;
		EXPECT_EQ(-ENOENT, kt_wait_for(&self->ring, self->me.fd, &op));
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	}
}

/* -------- the user_data in use -------- */

TEST_F(uring_refused, user_data_of_a_wait_eexist_until_it_is_over)
{
	struct kretry_op op = kt_failed(self->id, 1, 5), second = op, before = op;

	kt_put_wait(&self->ring, self->me.fd, &op)->user_data = 1;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	kt_put_wait(&self->ring, self->me.fd, &second)->user_data = 2;
	EXPECT_EQ(-EEXIST, kt_result(&self->ring, 2));
	EXPECT_EQ(0, memcmp(&before, &second, sizeof(second)));
	second.flags = KRETRY_OP_QUEUE;
	EXPECT_EQ(-EEXIST, kt_step(self->me.fd, &second));
	EXPECT_EQ(KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	second.flags = 0;
	EXPECT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &second));
	EXPECT_EQ(2 * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
}

TEST_F(uring_refused, user_data_of_a_queued_op_eexist)
{
	struct kretry_op op = kt_failed(self->id, 1, 5), second = op, before = op;

	op.flags = KRETRY_OP_QUEUE;
	ASSERT_EQ(0, kt_step(self->me.fd, &op));
	EXPECT_EQ(-EEXIST, kt_wait_for(&self->ring, self->me.fd, &second));
	EXPECT_EQ(0, memcmp(&before, &second, sizeof(second)));
	EXPECT_EQ(KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
}

/* It is that of the op: of no other file's, and the submission's may be any. */
TEST_F(uring_refused, user_data_is_the_files_own)
{
	struct kretry_op op = kt_failed(self->id, 1, 5), second;
	struct kt_party other;
	int id;

	ASSERT_EQ(0, kt_here(&other));
	id = kt_party_create(&other, &self->policy);
	second = kt_failed(id, 1, 5);
	kt_put_wait(&self->ring, self->me.fd, &op);
	kt_put_wait(&self->ring, other.fd, &second);
	EXPECT_EQ(0, kt_next(&self->ring, NULL));
	EXPECT_EQ(0, kt_next(&self->ring, NULL));
	op = kt_failed(self->id, 1, 6);
	second = kt_failed(self->id, 1, 7);
	kt_put_wait(&self->ring, self->me.fd, &op)->user_data = 1;
	kt_put_wait(&self->ring, self->me.fd, &second)->user_data = 1;
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	kt_leave(&other);
}

/* -------- no room -------- */

TEST_F(uring_refused, file_full_enobufs_until_one_is_over)
{
	struct kretry_op ops[4], before;
	int i;

	kt_leave(&self->me);
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, kt_load("max_queued=3"));
	ASSERT_EQ(0, kt_here(&self->me));
	self->id = kt_party_create(&self->me, &self->policy);
	for (i = 0; i < 4; i++)
		ops[i] = kt_failed(self->id, 1, i);
	before = ops[3];
	for (i = 0; i < 4; i++)
		kt_put_wait(&self->ring, self->me.fd, &ops[i]);
	EXPECT_EQ(-ENOBUFS, kt_result(&self->ring, 3));
	EXPECT_EQ(0, memcmp(&before, &ops[3], sizeof(before)));
	EXPECT_EQ(3 * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
	EXPECT_EQ(0, kt_result(&self->ring, 0));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_EQ(0, kt_result(&self->ring, 2));
	EXPECT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &ops[3]));
	kt_leave(&self->me);
	EXPECT_EQ(0, kt_unload());
	EXPECT_EQ(0, kt_load(""));
	ASSERT_EQ(0, kt_here(&self->me));
}

TEST_HARNESS_MAIN
