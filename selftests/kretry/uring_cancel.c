// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A WAIT taken back: by ioctl, as an io_uring command, and what cannot do it. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>

#define KEY	7

FIXTURE(uring_cancel) {
	struct kt_party me;
	struct kretry_policy policy;	/* 100 ms, 10 tokens */
	int id;
	struct io_uring ring;
};

FIXTURE_SETUP(uring_cancel)
{
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	kt_policy(&self->policy);
	kt_budget(&self->policy, 10);
	self->id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, self->id);
	ASSERT_EQ(0, kt_ring(&self->ring, 16, 0));
}

FIXTURE_TEARDOWN(uring_cancel)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

/* What CANCEL returns of a wait that was @asked and @told. */
static int check_returned(const struct kretry_op *asked, const struct kretry_op *told,
			  const struct kretry_op *got)
{
	struct kretry_op want = *told;

	want.verdict = KRETRY_VERDICT_NONE;
	want.deadline_ns = 0;
	want.attempt = asked->attempt;
	want.flags = asked->flags;
	CHECK_EQ(0, memcmp(&want, got, sizeof(want)));
	return 0;
}

static int check_all_back(FIXTURE_DATA(uring_cancel) *self)
{
	CHECK_EQ(10 * KRETRY_UTOK, kt_stat_key(&self->me, self->id, KEY).balance_utok);
	CHECK_EQ(KRETRY_UTOK, kt_stat(&self->me, self->id).refunded_utok);
	CHECK_EQ(0, kt_stat(&self->me, self->id).queued);
	return 0;
}

TEST_F(uring_cancel, by_ioctl_completes_ecanceled_op_returned)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1), asked;
	struct kretry_cancel cancel;

	op.flags = KRETRY_OP_IDEMPOTENT;
	op.attempt = 4;
	asked = op;
	kt_put_wait(&self->ring, self->me.fd, &op)->flags = IOSQE_IO_LINK;
	kt_put_nop(&self->ring, 2);
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	EXPECT_EQ(9 * KRETRY_UTOK, kt_stat_key(&self->me, self->id, KEY).balance_utok);
	EXPECT_EQ(0, kt_cancel(self->me.fd, 1, &cancel));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 1));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 2));
	EXPECT_GT(op.deadline_ns, kt_now(CLOCK_MONOTONIC));
	EXPECT_EQ(sizeof(cancel), cancel.size);
	EXPECT_EQ(0, check_returned(&asked, &op, &cancel.op));
	EXPECT_EQ(0, check_all_back(self));
	EXPECT_EQ(-ENOENT, kt_cancel(self->me.fd, 1, &cancel));
	EXPECT_TRUE(kt_all(&cancel.op, sizeof(cancel.op), POISON));
}

TEST_F(uring_cancel, by_command_completes_ecanceled_op_returned)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1), asked = op;
	struct kretry_cancel cancel;
	uint64_t user_data;
	int i, ret;

	memset(&cancel, POISON, sizeof(cancel));
	cancel.size = sizeof(cancel);
	cancel.flags = 0;
	cancel.user_data = 1;
	kt_put_wait(&self->ring, self->me.fd, &op);
	kt_put_cancel(&self->ring, self->me.fd, &cancel)->user_data = 2;
	for (i = 0; i < 2; i++) {
		ret = kt_next(&self->ring, &user_data);
		EXPECT_EQ(user_data == 1 ? -ECANCELED : 0, ret);
	}
	EXPECT_EQ(0, check_returned(&asked, &op, &cancel.op));
	EXPECT_EQ(0, check_all_back(self));
}

/* The op can be begun anew from what came back. */
TEST_F(uring_cancel, returned_op_waits_again)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	struct kretry_cancel cancel;

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(0, kt_cancel(self->me.fd, 1, &cancel));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 1));
	op = cancel.op;
	op.event = KRETRY_EVENT_TRANSIENT;
	EXPECT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &op));
	EXPECT_EQ(1, op.attempt);
	EXPECT_EQ(9 * KRETRY_UTOK, kt_stat_key(&self->me, self->id, KEY).balance_utok);
}

/* Of many only the one that was named. */
TEST_F(uring_cancel, one_of_many_others_go_on)
{
	static const uint64_t names[] = { 0, 1, 5, 6, ~0ULL, 1ULL << 63 };
	struct kretry_op ops[ARRAY_LEN(names)];
	struct kretry_cancel cancel;
	uint64_t user_data;
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		ops[i] = kt_failed(self->id, KEY, names[i]);
		kt_put_wait(&self->ring, self->me.fd, &ops[i]);
	}
	ASSERT_EQ((int)ARRAY_LEN(names), io_uring_submit(&self->ring));
	EXPECT_EQ(-ENOENT, kt_cancel(self->me.fd, 2, &cancel));
	EXPECT_EQ(0, kt_cancel(self->me.fd, 5, &cancel));
	for (i = 0; i < ARRAY_LEN(names); i++) {
		ret = kt_next(&self->ring, &user_data);
		EXPECT_EQ(user_data == 5 ? -ECANCELED : 0, ret);
	}
	EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
}

TEST_F(uring_cancel, not_there_enoent)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	struct kretry_cancel cancel;
	int other = kt_open();

	EXPECT_EQ(-ENOENT, kt_cancel(self->me.fd, 1, &cancel));
	EXPECT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &op));
	EXPECT_EQ(-ENOENT, kt_cancel(self->me.fd, 1, &cancel));
	op = kt_failed(self->id, KEY, 1);
	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(-ENOENT, kt_cancel(other, 1, &cancel));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	close(other);
}

TEST_F(uring_cancel, argument_wrong_wait_goes_on)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 1 };
	struct kretry_uring payload = {
		.ops = (uintptr_t)&cancel, .count = 1, .op_size = sizeof(cancel) - 1,
	};

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	kt_put(&self->ring, self->me.fd, KRETRY_IOC_CANCEL, &payload);
	EXPECT_EQ(-EINVAL, kt_result(&self->ring, 0));
	payload.op_size = sizeof(cancel);
	payload.ops = (uintptr_t)kt_read_only(&cancel, sizeof(cancel));
	kt_put(&self->ring, self->me.fd, KRETRY_IOC_CANCEL, &payload);
	EXPECT_EQ(-EFAULT, kt_result(&self->ring, 0));
	payload.ops = 0;
	kt_put(&self->ring, self->me.fd, KRETRY_IOC_CANCEL, &payload);
	EXPECT_EQ(-EFAULT, kt_result(&self->ring, 0));
	cancel.flags = 1;
	EXPECT_EQ(-EINVAL, kt_ioctl(self->me.fd, KRETRY_IOC_CANCEL, &cancel));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_EQ(0, kt_stat(&self->me, self->id).refunded_utok);
}

/* -------- what does not reach it -------- */

TEST_F(uring_cancel, async_cancel_of_the_ring_enoent_wait_goes_on)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	struct io_uring_sqe *sqe;

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 2;
	EXPECT_EQ(-ENOENT, kt_result(&self->ring, 2));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_LE(op.deadline_ns, kt_now(CLOCK_MONOTONIC));
}

TEST_F(uring_cancel, link_timeout_does_not_reach_it)
{
	struct __kernel_timespec soon = { .tv_nsec = MSEC };
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	struct io_uring_sqe *sqe;
	uint64_t user_data;
	int i, ret;

	kt_put_wait(&self->ring, self->me.fd, &op)->flags = IOSQE_IO_LINK;
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_link_timeout(sqe, &soon, 0);
	sqe->user_data = 2;
	for (i = 0; i < 2; i++) {
		ret = kt_next(&self->ring, &user_data);
		if (user_data == 1)
			EXPECT_EQ(0, ret);
	}
	EXPECT_LE(op.deadline_ns, kt_now(CLOCK_MONOTONIC));
}

/* -------- the last one to leave -------- */

TEST_F(uring_cancel, ring_closed_waits_are_gone_tokens_back)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	struct kretry_cancel cancel;

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	io_uring_queue_exit(&self->ring);
	kt_sleep(10 * MSEC);
	EXPECT_EQ(-ENOENT, kt_cancel(self->me.fd, 1, &cancel));
	EXPECT_EQ(0, check_all_back(self));
	ASSERT_EQ(0, kt_ring(&self->ring, 16, 0));
}

TEST_HARNESS_MAIN
