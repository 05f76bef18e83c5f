// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* CANCEL: the op is back as before its grant, its charge goes back once, and it is gone. */
#include "harness.h"
#include "queued.h"
#include "shared.h"

#include <stdlib.h>

#define KEY	7

FIXTURE(queue_cancel) {
	struct kt_party me;
	int fd;
	struct kretry_policy policy;	/* "cancel": 100 ms, ten tokens */
	uint32_t id;
};

FIXTURE_SETUP(queue_cancel)
{
	ASSERT_EQ(0, kt_here(&self->me));
	self->fd = self->me.fd;
	kt_nonblock(self->fd, true);
	kt_policy(&self->policy);
	kt_name(&self->policy, "cancel");
	kt_budget(&self->policy, 10);
	self->policy.budget.cost_throttled_utok = 3 * KRETRY_UTOK;
	self->policy.budget.cost_unknown_utok = 5 * KRETRY_UTOK;
	self->policy.budget.flags = KRETRY_BUDGET_REFUND_LAST;
}

FIXTURE_TEARDOWN(queue_cancel)
{
	/* No token is ever lost, nor made. */
	if (self->id) {
		struct kretry_stat all = kt_stat(&self->me, self->id);
		struct kretry_stat key = kt_stat_key(&self->me, self->id, KEY);

		EXPECT_EQ(10 * KRETRY_UTOK,
			  key.balance_utok + all.charged_utok - all.refunded_utok);
	}
	kt_leave(&self->me);
}

static int create(FIXTURE_DATA(queue_cancel) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	return (int)self->id;
}

static struct kretry_op op_of(FIXTURE_DATA(queue_cancel) *self, uint64_t user_data)
{
	struct kretry_op op = kt_queue_op(self->id, user_data);

	op.key = KEY;
	return op;
}

static uint64_t balance(FIXTURE_DATA(queue_cancel) *self)
{
	return kt_stat_key(&self->me, self->id, KEY).balance_utok;
}

/* Each class has its cost, and its flags, and both come back. */
TEST_F(queue_cancel, op_back_as_it_was_before_its_grant)
{
	static const struct {
		unsigned int event;
		uint32_t attempt;
		uint16_t flags;
		uint64_t cost;
	} rows[] = {
		{ KRETRY_EVENT_TRANSIENT, 0, 0, 1 },
		{ KRETRY_EVENT_TRANSIENT, 41, KRETRY_OP_IDEMPOTENT | KRETRY_OP_AFTER_UNKNOWN, 1 },
		{ KRETRY_EVENT_THROTTLED, 1, KRETRY_OP_HINT, 3 },
		{ KRETRY_EVENT_UNKNOWN, 7, KRETRY_OP_IDEMPOTENT, 5 },
		{ KRETRY_EVENT_THROTTLED, 0xfffffffe, KRETRY_OP_AFTER_THROTTLED, 3 },
		{ KRETRY_EVENT_THROTTLED, 0xffffffff, 0, 3 },
	};
	struct kretry_op op, got, want;
	size_t i;

	ASSERT_LT(0, create(self));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		op = op_of(self, ~(uint64_t)i);
		op.event = rows[i].event;
		op.attempt = rows[i].attempt;
		op.flags |= rows[i].flags;
		op.hint_ns = rows[i].flags & KRETRY_OP_HINT ? 5 * SEC : 0;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		ASSERT_TRUE(op.flags & KRETRY_OP_QUEUED);
		EXPECT_EQ((10 - rows[i].cost) * KRETRY_UTOK, balance(self));
		ASSERT_EQ(0, kt_cancel(self->fd, ~(uint64_t)i, &got));
		want = op;
		want.verdict = KRETRY_VERDICT_NONE;
		want.flags = KRETRY_OP_QUEUE | (rows[i].flags & ~KRETRY_OP_HINT);
		want.attempt = rows[i].attempt;
		want.deadline_ns = 0;
		EXPECT_EQ(0, memcmp(&want, &got, sizeof(got)))
			TH_LOG("row %zu: flags %#x, attempt %u", i, got.flags, got.attempt);
		EXPECT_EQ(10 * KRETRY_UTOK, balance(self));
		EXPECT_EQ(0, kt_waiting(self->fd, self->id));
	}
	EXPECT_EQ(16 * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
	EXPECT_EQ(16 * KRETRY_UTOK, kt_stat(&self->me, self->id).refunded_utok);
}

/* It can be given up, or go on with its next event as if it had not been granted. */
TEST_F(queue_cancel, cancelled_op_reported_again_same_grant)
{
	struct kretry_op op, got;
	int i;

	self->policy.max_retries = 1;
	ASSERT_LT(0, create(self));
	op = op_of(self, 1);
	for (i = 0; i < 30; i++) {
		op.event = KRETRY_EVENT_TRANSIENT;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		EXPECT_EQ(KRETRY_RETRY, op.verdict);
		ASSERT_EQ(0, kt_cancel(self->fd, 1, &got));
		op = got;
	}
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_CANCELLED));
	EXPECT_EQ(10 * KRETRY_UTOK, balance(self));
}

TEST_F(queue_cancel, op_not_there_enoent_nothing_changed)
{
	struct kretry_op op, got;
	int other = kt_open();

	ASSERT_LT(0, create(self));
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 1, &got));
	op = op_of(self, 1);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 0, &got));
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 2, &got));
	EXPECT_EQ(-ENOENT, kt_cancel(other, 1, &got));
	EXPECT_EQ(9 * KRETRY_UTOK, balance(self));
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &got));
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 1, &got));
	EXPECT_EQ(10 * KRETRY_UTOK, balance(self));
	/* Delivered is spent. */
	op = op_of(self, 1);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	kt_sleep(200 * MSEC);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 1, &got));
	EXPECT_EQ(9 * KRETRY_UTOK, balance(self));
	close(other);
}

TEST_F(queue_cancel, op_that_is_due_but_not_read_comes_back)
{
	struct kretry_op op, got;

	ASSERT_LT(0, create(self));
	op = op_of(self, 1);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	kt_sleep(SEC);
	EXPECT_LT(0, kt_poll(self->fd, 0));
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &got));
	EXPECT_EQ(0, got.attempt);
	EXPECT_EQ(0, kt_poll(self->fd, 0));
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
	EXPECT_EQ(10 * KRETRY_UTOK, balance(self));
}

/* Another holder of the file may do it; what it comes to is the same for all. */
TEST_F(queue_cancel, by_another_process_with_the_file_works)
{
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 1 };
	struct kretry_op op;
	struct kt_party other;

	ASSERT_LT(0, create(self));
	op = op_of(self, 1);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	ASSERT_EQ(0, kt_there_with(&other, self->fd));
	EXPECT_EQ(0, kt_call(&other, KRETRY_IOC_CANCEL, &cancel, sizeof(cancel)));
	EXPECT_EQ(1, cancel.op.user_data);
	kt_leave(&other);
	EXPECT_EQ(10 * KRETRY_UTOK, balance(self));
}

/* Where the bucket has filled up again there is no room for what comes back. */
TEST_F(queue_cancel, charge_goes_back_up_to_the_capacity)
{
	struct kretry_op op, got;

	self->policy.budget.refill_utok_per_s = 100 * KRETRY_UTOK;
	self->policy.budget.reserve_cap_utok = 10 * KRETRY_UTOK;
	ASSERT_LT(0, create(self));
	op = op_of(self, 1);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	kt_sleep(50 * MSEC);
	EXPECT_EQ(10 * KRETRY_UTOK, balance(self));
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &got));
	EXPECT_EQ(10 * KRETRY_UTOK, balance(self));
	EXPECT_EQ(KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
	EXPECT_EQ(0, kt_stat(&self->me, self->id).refunded_utok);
	/* The sum is not exact where a refill has its part in it. */
	self->id = 0;
}

/* The slot of a paced attempt is not given back, nor does it hold anyone else up longer. */
TEST_F(queue_cancel, paced_first_attempt_costs_nothing)
{
	struct kretry_op op, got;
	int i;

	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	self->policy.pacing.pace_ns = SEC;
	self->policy.pacing.horizon_ns = 10 * SEC;
	ASSERT_LT(0, create(self));
	for (i = 0; i < 2; i++) {
		op = op_of(self, i);
		op.event = KRETRY_EVENT_BEGIN;
		ASSERT_EQ(0, kt_step(self->fd, &op));
	}
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &got));
	EXPECT_EQ(0, got.attempt);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(10 * KRETRY_UTOK, balance(self));
	EXPECT_EQ(0, kt_stat(&self->me, self->id).refunded_utok);
	kt_sleep(5 * SEC);
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
}

/* Any of many, in any order: what is left is delivered, in its order. */
TEST_F(queue_cancel, some_of_many_the_others_delivered)
{
	static struct kretry_op ops[5000], got[5000];
	unsigned int i, cancelled = 0, left;
	struct kretry_op op;
	uint64_t last = 0;

	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = SEC;
	kt_budget(&self->policy, 5000);
	ASSERT_LT(0, create(self));
	for (i = 0; i < 5000; i++)
		ops[i] = op_of(self, i);
	ASSERT_EQ(5000, kt_batch(self->fd, ops, 5000));
	srand(1);
	for (i = 0; i < 5000; i++) {
		if (rand() % 3 == 0)
			continue;
		ASSERT_EQ(0, kt_cancel(self->fd, i * 2741 % 5000, &op));
		ASSERT_EQ(i * 2741 % 5000, op.user_data);
		ops[op.user_data].policy = 0;
		cancelled++;
	}
	left = 5000 - cancelled;
	ASSERT_EQ((int)left, kt_waiting(self->fd, self->id));
	kt_sleep(2 * SEC);
	ASSERT_EQ((int)left, kt_take(self->fd, got, 5000));
	for (i = 0; i < left; i++) {
		ASSERT_EQ(self->id, ops[got[i].user_data].policy);
		ASSERT_LE(last, ops[got[i].user_data].deadline_ns);
		last = ops[got[i].user_data].deadline_ns;
		ops[got[i].user_data].policy = 0;
	}
	EXPECT_EQ(cancelled * KRETRY_UTOK, balance(self));
	EXPECT_EQ(cancelled * KRETRY_UTOK, kt_stat(&self->me, self->id).refunded_utok);
	EXPECT_EQ(5000 * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
	self->id = 0;
}

TEST_HARNESS_MAIN
