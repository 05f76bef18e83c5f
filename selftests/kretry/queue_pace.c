// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Slots are taken at delivery, first due first served; keys stay while somebody waits. */
#include "harness.h"
#include "queued.h"
#include "shared.h"

#define KEY	7
#define MAX	2	/* keys */

FIXTURE(queue_pace) {
	struct kt_party me, other;
	int fd;
	struct kretry_policy policy;	/* "pace": 100 ms, hundred tokens, a slot a second */
	uint32_t id, others;
};

/* Loaded anew with room for two keys. */
FIXTURE_SETUP(queue_pace)
{
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, kt_load("max_keys=2"));
	ASSERT_EQ(0, kt_here(&self->me));
	ASSERT_EQ(0, kt_there(&self->other, 0));
	self->fd = self->me.fd;
	kt_nonblock(self->fd, true);
	kt_policy(&self->policy);
	kt_name(&self->policy, "pace");
	kt_budget(&self->policy, 100);
	self->policy.pacing.pace_ns = SEC;
	self->policy.pacing.horizon_ns = 100 * SEC;
}

static struct kretry_stat all(FIXTURE_DATA(queue_pace) *self)
{
	return kt_stat(&self->me, self->id);
}

static uint64_t balance(FIXTURE_DATA(queue_pace) *self, uint64_t key)
{
	return kt_stat_key(&self->me, self->id, key).balance_utok;
}

FIXTURE_TEARDOWN(queue_pace)
{
	kt_leave(&self->other);
	kt_leave(&self->me);
	EXPECT_EQ(0, kt_unload());
	EXPECT_EQ(0, kt_load(""));
}

static int create(FIXTURE_DATA(queue_pace) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	CHECK((int)self->id > 0);
	self->others = kt_party_named(&self->other, "pace", 0);
	CHECK((int)self->others > 0);
	return 0;
}

/* Queue one failure of @key: the op, whose verdict is an ERROR if it is not queued. */
static struct kretry_op queue_one(FIXTURE_DATA(queue_pace) *self, uint64_t key, uint64_t user_data)
{
	struct kretry_op op = kt_queue_op(self->id, user_data);

	op.key = key;
	if (kt_step(self->fd, &op) || !(op.flags & KRETRY_OP_QUEUED))
		op.verdict = KRETRY_ERROR;
	return op;
}

/* Whether a new key has no place any more. */
static bool is_full(FIXTURE_DATA(queue_pace) *self, uint64_t key)
{
	struct kretry_op op = kt_op(self->id, KRETRY_EVENT_CANCELLED);

	op.key = key;
	return kt_step(self->fd, &op) || op.flags & KRETRY_OP_SHARED_KEY;
}

/* -------- slots -------- */

TEST_F(queue_pace, many_due_at_once_delivered_one_a_slot_first_due_first)
{
	struct kretry_op got;
	uint64_t last = 0;
	int i;

	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	ASSERT_EQ(0, create(self));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(KRETRY_RETRY, queue_one(self, KEY, i).verdict);
	kt_sleep(SEC);
	kt_nonblock(self->fd, false);
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, kt_take_one(self->fd, &got));
		EXPECT_EQ(KRETRY_GO, got.verdict);
		EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
		EXPECT_LE(got.deadline_ns, kt_now(CLOCK_MONOTONIC));
		EXPECT_GT(got.deadline_ns + 5 * MSEC, kt_now(CLOCK_MONOTONIC));
		if (i)
			EXPECT_EQ(last + SEC, got.deadline_ns);
		last = got.deadline_ns;
	}
	EXPECT_EQ(20, all(self).events[KRETRY_EVENT_BEGIN]);
	EXPECT_EQ(20, all(self).go);
	EXPECT_EQ(80 * KRETRY_UTOK, balance(self, KEY));
}

/* In the order of their deadlines, not in that of their names or of arrival. */
TEST_F(queue_pace, slots_in_the_order_of_deadlines)
{
	static const uint64_t hints[] = { 500, 300, 400, 200 }, order[] = { 3, 1, 2, 0 };
	struct kretry_op op, got;
	int i;

	ASSERT_EQ(0, create(self));
	for (i = 0; i < 4; i++) {
		op = kt_queue_op(self->id, i);
		op.key = KEY;
		op.flags |= KRETRY_OP_HINT;
		op.hint_ns = hints[i] * MSEC;
		ASSERT_EQ(0, kt_step(self->fd, &op));
	}
	kt_sleep(SEC);
	kt_nonblock(self->fd, false);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, kt_take_one(self->fd, &got));
		EXPECT_EQ(order[i], got.user_data);
	}
}

/* No slot is taken before the deadline: until then it is anybody's. */
TEST_F(queue_pace, slot_taken_at_delivery_not_before)
{
	struct kretry_op op, got;

	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	self->policy.backoff.base_ns = 5 * SEC;
	ASSERT_EQ(0, create(self));
	ASSERT_EQ(KRETRY_RETRY, queue_one(self, KEY, 1).verdict);
	EXPECT_EQ(0, kt_stat_key(&self->me, self->id, KEY).pace_next_ns);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &op));
	EXPECT_GE(kt_now(CLOCK_MONOTONIC), op.deadline_ns);
	kt_sleep(6 * SEC);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(got.deadline_ns + SEC, kt_stat_key(&self->me, self->id, KEY).pace_next_ns);
}

TEST_F(queue_pace, slot_beyond_the_horizon_stop_that_costs_nothing)
{
	struct kretry_op got[10];
	int i, count;

	self->policy.pacing.horizon_ns = 2 * SEC;
	ASSERT_EQ(0, create(self));
	for (i = 0; i < 6; i++)
		ASSERT_EQ(KRETRY_RETRY, queue_one(self, KEY, i).verdict);
	kt_sleep(SEC);
	/* One goes, two have a slot ahead, three have none. */
	count = kt_take(self->fd, got, 10);
	ASSERT_EQ(4, count);
	EXPECT_EQ(KRETRY_GO, got[0].verdict);
	EXPECT_EQ(0, got[0].user_data);
	for (i = 1; i < 4; i++) {
		EXPECT_EQ(KRETRY_STOP_PACED, got[i].verdict);
		EXPECT_EQ(2 + i, got[i].user_data);
		EXPECT_EQ(0, got[i].attempt);
		EXPECT_EQ(got[0].deadline_ns + 3 * SEC, got[i].deadline_ns);
	}
	EXPECT_EQ(97 * KRETRY_UTOK, balance(self, KEY));
	EXPECT_EQ(3 * KRETRY_UTOK, all(self).refunded_utok);
	kt_sleep(3 * SEC);
	EXPECT_EQ(2, kt_take(self->fd, got, 10));
}

/* The charge of one that has its slot already goes back all the same; the slot is gone. */
TEST_F(queue_pace, op_with_a_slot_ahead_cancelled)
{
	struct kretry_op got;

	ASSERT_EQ(0, create(self));
	queue_one(self, KEY, 1);
	queue_one(self, KEY, 2);
	kt_sleep(SEC);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(1, got.user_data);
	ASSERT_EQ(0, kt_cancel(self->fd, 2, &got));
	EXPECT_EQ(0, got.attempt);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(99 * KRETRY_UTOK, balance(self, KEY));
	EXPECT_EQ(0, all(self).queued);
}

/* A probe that waits for its slot is lost with the op, and the breaker has it back. */
TEST_F(queue_pace, probe_with_a_slot_ahead_cancelled_or_dropped_comes_back)
{
	struct kretry_op op, got;
	int i;

	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	kt_breaker(&self->policy, 1, SEC, 1);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, create(self));
		kt_event(&self->other, self->others, KEY, KRETRY_EVENT_TRANSIENT);
		kt_sleep_open(&self->other, self->others, KEY);
		/* Somebody else's probe has the slot that is free now. */
		ASSERT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &got));
		ASSERT_EQ(KRETRY_DONE, kt_report(&self->other, &got, KRETRY_EVENT_CANCELLED));
		op = kt_queue_op(self->id, 1);
		op.key = KEY;
		op.event = KRETRY_EVENT_BEGIN;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		EXPECT_EQ(KRETRY_OP_QUEUE | KRETRY_OP_QUEUED | KRETRY_OP_PROBE, op.flags);
		EXPECT_EQ(1, kt_stat(&self->other, self->others).leases);
		ASSERT_EQ(0, i ? kt_shutdown(self->fd) : kt_cancel(self->fd, 1, &got));
		EXPECT_EQ(0, kt_stat(&self->other, self->others).leases);
		EXPECT_EQ(0, kt_stat(&self->other, self->others).queued);
		ASSERT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &got));
		EXPECT_TRUE(got.flags & KRETRY_OP_PROBE);
		EXPECT_EQ(KRETRY_DONE, kt_report(&self->other, &got, KRETRY_EVENT_OK));
	}
}

/* -------- keys -------- */

/* Full, with nothing else to be remembered by: it is the waiter that keeps it. */
static void expect_kept_until(struct __test_metadata *_metadata, FIXTURE_DATA(queue_pace) *self,
			      void (*end)(FIXTURE_DATA(queue_pace) *self))
{
	uint64_t key;

	self->policy.budget = (struct kretry_budget){ 0 };
	self->policy.backoff.base_ns = 100 * SEC;
	self->policy.backoff.cap_ns = 100 * SEC;
	ASSERT_EQ(0, create(self));
	ASSERT_EQ(KRETRY_RETRY, queue_one(self, 1, 1).verdict);
	ASSERT_EQ(KRETRY_RETRY, queue_one(self, 2, 2).verdict);
	for (key = 10; key < 50; key++)
		EXPECT_TRUE(is_full(self, key));
	EXPECT_EQ(0, all(self).evicted);
	end(self);
	EXPECT_EQ(0, all(self).queued);
	/* A slot taken is something to be remembered by, for a second. */
	kt_sleep(5 * SEC);
	for (key = 50; key < 90; key++)
		EXPECT_FALSE(is_full(self, key));
	EXPECT_EQ(MAX, all(self).keys);
	EXPECT_EQ(40, all(self).evicted);
}

static void cancel_both(FIXTURE_DATA(queue_pace) *self)
{
	struct kretry_op op;

	kt_cancel(self->fd, 1, &op);
	kt_cancel(self->fd, 2, &op);
}

static void read_both(FIXTURE_DATA(queue_pace) *self)
{
	struct kretry_op ops[3];

	kt_sleep(101 * SEC);
	kt_take(self->fd, ops, 3);
}

/* Their deadline is the slot that is free only then. */
static void read_both_paced(FIXTURE_DATA(queue_pace) *self)
{
	struct kretry_op op;
	uint64_t key;

	kt_sleep(101 * SEC);
	for (key = 1; key <= 2; key++)
		kt_begin(&self->other, self->others, key, &op);
	kt_nonblock(self->fd, false);
	kt_take_one(self->fd, &op);
	kt_take_one(self->fd, &op);
	kt_nonblock(self->fd, true);
}

TEST_F(queue_pace, key_with_a_waiter_kept_until_it_is_cancelled)
{
	expect_kept_until(_metadata, self, cancel_both);
}

TEST_F(queue_pace, key_with_a_waiter_kept_until_it_is_delivered)
{
	expect_kept_until(_metadata, self, read_both);
}

TEST_F(queue_pace, key_with_a_waiter_kept_until_it_is_delivered_at_its_slot)
{
	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	expect_kept_until(_metadata, self, read_both_paced);
}

/* What the overflow was charged goes back to it, also where the op's key has a place by then. */
TEST_F(queue_pace, overflow_key_gets_its_charge_back)
{
	struct kretry_op op, got;
	uint64_t key;

	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	ASSERT_EQ(0, create(self));
	for (key = 1; key <= 4; key++) {
		op = queue_one(self, key, key);
		EXPECT_EQ(KRETRY_OP_QUEUE | KRETRY_OP_QUEUED |
			  (key > MAX ? KRETRY_OP_SHARED_KEY : 0), op.flags);
	}
	/* The first two keys are as new again, and their places are taken by the others'. */
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &got));
	ASSERT_EQ(0, kt_cancel(self->fd, 2, &got));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, 4, &op));
	EXPECT_EQ(0, op.flags & KRETRY_OP_SHARED_KEY);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(3, got.user_data);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	/* This one waits for a slot of its own key, and its charge is the overflow's. */
	EXPECT_EQ(1, all(self).queued);
	ASSERT_EQ(0, kt_cancel(self->fd, 4, &got));
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(100 * KRETRY_UTOK, balance(self, 4));
	EXPECT_EQ(3 * KRETRY_UTOK, all(self).refunded_utok);
	EXPECT_EQ(4 * KRETRY_UTOK, all(self).charged_utok);
	/* Nobody waits any more: all places are free again, and the overflow is one token short. */
	kt_sleep(5 * SEC);
	for (key = 50; key < 90; key++)
		EXPECT_FALSE(is_full(self, key));
	queue_one(self, 98, 98);
	queue_one(self, 99, 99);
	EXPECT_TRUE(is_full(self, 1000));
	EXPECT_EQ(99, kt_spend(&self->me, self->id, 1000));
}

TEST_HARNESS_MAIN
