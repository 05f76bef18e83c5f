// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* STEP as an io_uring command: what STEP_BATCH does, and its result in a chain. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>

#define MOST	65536

FIXTURE(uring_step) {
	struct kt_party me;
	int policy;	/* exponential, 3 retries */
	int twin;	/* the same */
	struct io_uring ring;
};

FIXTURE_VARIANT(uring_step) {
	unsigned int count;
	unsigned int sqe_flags;
};

FIXTURE_VARIANT_ADD(uring_step, one) { .count = 1 };
FIXTURE_VARIANT_ADD(uring_step, two) { .count = 2 };
FIXTURE_VARIANT_ADD(uring_step, sixty_four) { .count = 64 };
FIXTURE_VARIANT_ADD(uring_step, sixty_five) { .count = 65 };
FIXTURE_VARIANT_ADD(uring_step, thousand) { .count = 1000 };
FIXTURE_VARIANT_ADD(uring_step, most) { .count = MOST };
FIXTURE_VARIANT_ADD(uring_step, one_async) { .count = 1, .sqe_flags = IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(uring_step, thousand_async) { .count = 1000, .sqe_flags = IOSQE_ASYNC };

static struct kretry_op ops[MOST + 1], twins[MOST], before[MOST];

FIXTURE_SETUP(uring_step)
{
	struct kretry_policy policy;
	struct kretry_info info;

	ASSERT_EQ(0, kt_here(&self->me));
	kt_exponential(&policy, 100 * MSEC, 10 * SEC);
	policy.max_retries = 3;
	self->policy = kt_create(self->me.fd, &policy);
	self->twin = kt_create(self->me.fd, &policy);
	ASSERT_LT(0, self->policy);
	ASSERT_LT(0, self->twin);
	ASSERT_EQ(0, kt_info(self->me.fd, &info));
	ASSERT_EQ(MOST, info.max_batch);
	ASSERT_EQ(0, kt_ring(&self->ring, 8, 0));
}

FIXTURE_TEARDOWN(uring_step)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

static int step(FIXTURE_DATA(uring_step) *self, const FIXTURE_VARIANT(uring_step) *variant)
{
	kt_put_step(&self->ring, self->me.fd, ops, variant->count)->flags = variant->sqe_flags;
	return kt_next(&self->ring, NULL);
}

/* All kinds of events and verdicts, and a bad op now and then. */
static void fill(struct kretry_op *into, unsigned int count, int policy)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		into[i] = kt_op(i % 13 == 12 ? 9999 : policy, i % 9);
		into[i].user_data = i;
		into[i].key = i / 3;
		into[i].attempt = i % 5;
	}
}

/* The times of two calls differ. */
static void make_relative(struct kretry_op *op)
{
	if (op->deadline_ns)
		op->deadline_ns -= op->start_ns;
	op->start_ns = !!op->start_ns;
}

TEST_F(uring_step, answers_what_the_ioctl_answers)
{
	unsigned int i, count = variant->count, wrong = 0, retries = 0;

	fill(ops, count, self->policy);
	fill(twins, count, self->twin);
	memset(&ops[count], POISON, sizeof(ops[count]));
	ASSERT_EQ((int)count, kt_batch(self->me.fd, twins, count));
	ASSERT_EQ((int)count, step(self, variant));
	for (i = 0; i < count; i++) {
		retries += ops[i].verdict == KRETRY_RETRY;
		make_relative(&ops[i]);
		make_relative(&twins[i]);
		if (twins[i].policy == (uint32_t)self->twin)
			twins[i].policy = self->policy;
		wrong += memcmp(&ops[i], &twins[i], sizeof(ops[i])) != 0;
	}
	EXPECT_EQ(0, wrong);
	EXPECT_LE(count / 9, retries);
	EXPECT_TRUE(kt_all(&ops[count], sizeof(ops[count]), POISON));
	EXPECT_EQ(kt_stat(&self->me, self->twin).retry, kt_stat(&self->me, self->policy).retry);
	EXPECT_EQ(retries, kt_stat(&self->me, self->policy).retry);
}

TEST_F(uring_step, one_bad_op_says_so_others_done)
{
	unsigned int i, count = variant->count, bad = count / 2, wrong = 0;

	for (i = 0; i < count; i++)
		ops[i] = kt_failed(self->policy, 1, i);
	ops[bad].event = KRETRY_EVENT_NONE;
	ops[bad].flags = KRETRY_OP_IDEMPOTENT;
	memcpy(before, ops, count * sizeof(*ops));
	ASSERT_EQ((int)count, step(self, variant));
	EXPECT_EQ(KRETRY_ERROR, ops[bad].verdict);
	EXPECT_EQ(EINVAL, KRETRY_OP_ERRNO(ops[bad].flags));
	before[bad].verdict = KRETRY_ERROR;
	before[bad].flags |= EINVAL << 8;
	EXPECT_EQ(0, memcmp(&before[bad], &ops[bad], sizeof(ops[bad])));
	for (i = 0; i < count; i++)
		wrong += i != bad && (ops[i].verdict != KRETRY_RETRY || ops[i].attempt != 1);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(count - 1, kt_stat(&self->me, self->policy).retry);
}

/* Number of ops is what the CQE says; a link sees a success in it. */
TEST_F(uring_step, positive_result_goes_on_with_the_link)
{
	unsigned int i, count = variant->count;
	struct io_uring_sqe *sqe;
	struct kretry_op next = kt_failed(self->policy, 1, 0);

	for (i = 0; i < count; i++)
		ops[i] = kt_failed(self->policy, 1, i);
	sqe = kt_put_step(&self->ring, self->me.fd, ops, count);
	sqe->flags = IOSQE_IO_LINK | variant->sqe_flags;
	sqe->user_data = 1;
	sqe = kt_put_step(&self->ring, self->me.fd, &next, 1);
	sqe->flags = IOSQE_IO_LINK;
	sqe->user_data = 2;
	kt_put_nop(&self->ring, 3);
	EXPECT_EQ((int)count, kt_result(&self->ring, 1));
	EXPECT_EQ(1, kt_result(&self->ring, 2));
	EXPECT_EQ(0, kt_result(&self->ring, 3));
	EXPECT_EQ(KRETRY_RETRY, next.verdict);
}

TEST_F(uring_step, negative_result_breaks_the_link)
{
	struct kretry_op next = kt_failed(self->policy, 1, 0), same = next;
	struct io_uring_sqe *sqe;

	sqe = kt_put_step(&self->ring, self->me.fd, NULL, variant->count);
	sqe->flags = IOSQE_IO_LINK | variant->sqe_flags;
	sqe->user_data = 1;
	sqe = kt_put_step(&self->ring, self->me.fd, &next, 1);
	sqe->user_data = 2;
	EXPECT_EQ(-EFAULT, kt_result(&self->ring, 1));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 2));
	EXPECT_EQ(0, memcmp(&same, &next, sizeof(next)));
}

/* As many as lie in memory that can be written. */
TEST_F(uring_step, memory_ends_counted_right)
{
	unsigned int i, count = variant->count;
	struct kretry_op *end;

	if (count == MOST)
		count--;
	end = kt_page_end(count * sizeof(*end));
	for (i = 0; i < count; i++)
		end[i] = kt_failed(self->policy, 1, i);
	kt_put_step(&self->ring, self->me.fd, end, count + 1)->flags = variant->sqe_flags;
	EXPECT_EQ((int)count, kt_next(&self->ring, NULL));
	EXPECT_EQ(KRETRY_RETRY, end[count - 1].verdict);
	EXPECT_EQ(count, kt_stat(&self->me, self->policy).retry);
}

/* What the host shares is shared with io_uring: of all these the budget pays for half. */
TEST_F(uring_step, budget_pays_as_with_the_ioctl)
{
	unsigned int i, count = variant->count, granted = 0, refused = 0;
	struct kretry_policy policy;
	int id;

	kt_policy(&policy);
	kt_budget(&policy, count / 2 + 1);
	id = kt_create(self->me.fd, &policy);
	for (i = 0; i < count; i++)
		ops[i] = kt_failed(id, 1, i);
	ASSERT_EQ((int)count, step(self, variant));
	for (i = 0; i < count; i++) {
		granted += ops[i].verdict == KRETRY_RETRY;
		refused += ops[i].verdict == KRETRY_STOP_BUDGET;
	}
	EXPECT_EQ(count / 2 + 1, granted);
	EXPECT_EQ(count - granted, refused);
	EXPECT_EQ((count / 2 + 1) * KRETRY_UTOK, kt_stat(&self->me, id).charged_utok);
}

TEST_F(uring_step, with_queue_read_returns_them)
{
	unsigned int i, count = variant->count, got = 0;
	ssize_t len;

	for (i = 0; i < count; i++) {
		ops[i] = kt_failed(self->policy, 1, i);
		ops[i].flags = KRETRY_OP_QUEUE;
	}
	ASSERT_EQ((int)count, step(self, variant));
	EXPECT_EQ(count, kt_stat(&self->me, self->policy).queued);
	EXPECT_TRUE(ops[count - 1].flags & KRETRY_OP_QUEUED);
	while (got < count) {
		len = read(self->me.fd, twins, sizeof(twins));
		ASSERT_LT(0, len);
		for (i = 0; i < len / sizeof(*twins); i++, got++)
			ASSERT_EQ(KRETRY_GO, twins[i].verdict);
	}
	EXPECT_EQ(0, kt_stat(&self->me, self->policy).queued);
}

TEST_HARNESS_MAIN
