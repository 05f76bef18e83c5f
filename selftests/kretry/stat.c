// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Every counter and every piece of state that STAT shows, and what it refuses. */
#include "harness.h"
#include "shared.h"

#define KEY	7
#define DAY	86400LL

FIXTURE(stat) {
	struct kt_party me;
	struct kretry_policy policy;
	int id;
};

FIXTURE_SETUP(stat)
{
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_name(&self->policy, "stat");
}

FIXTURE_TEARDOWN(stat)
{
	kt_leave(&self->me);
}

static int create(FIXTURE_DATA(stat) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	return self->id;
}

static struct kretry_stat all(FIXTURE_DATA(stat) *self)
{
	return kt_stat(&self->me, self->id);
}

static struct kretry_stat key(FIXTURE_DATA(stat) *self)
{
	return kt_stat_key(&self->me, self->id, KEY);
}

static int event(FIXTURE_DATA(stat) *self, unsigned int event)
{
	return kt_event(&self->me, self->id, KEY, event);
}

/* Each verdict once or more, and all the ways to get a STOP that there are without a queue. */
TEST_F(stat, counts_each_event_and_each_verdict)
{
	struct kretry_stat stat;
	struct kretry_op op;
	uint64_t events = 0, verdicts;
	int i;

	self->policy.max_retries = 1;
	self->policy.max_elapsed_ns = 50 * SEC;
	self->policy.flags = KRETRY_POLICY_HINT_SHARED | KRETRY_POLICY_PACE_ALL;
	self->policy.pacing.pace_ns = 10 * SEC;
	self->policy.pacing.horizon_ns = 5 * SEC;
	kt_budget(&self->policy, 2);
	kt_breaker(&self->policy, 100, 3600 * SEC, 1);
	ASSERT_LT(0, create(self));
	EXPECT_EQ(KRETRY_GO, event(self, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(KRETRY_STOP_PACED, event(self, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(KRETRY_DONE, event(self, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_DONE, event(self, KRETRY_EVENT_CANCELLED));
	EXPECT_EQ(KRETRY_STOP_PERMANENT, event(self, KRETRY_EVENT_PERMANENT));
	EXPECT_EQ(KRETRY_STOP_UNSAFE, event(self, KRETRY_EVENT_UNKNOWN));
	op = kt_op(self->id, 0);
	op.key = KEY;
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_STOP_LIMIT, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	op = kt_op(self->id, 0);
	op.key = KEY;
	op.flags = KRETRY_OP_NO_RETRY;
	EXPECT_EQ(KRETRY_STOP_HINT, kt_report(&self->me, &op, KRETRY_EVENT_THROTTLED));
	EXPECT_EQ(KRETRY_RETRY, event(self, KRETRY_EVENT_THROTTLED));
	EXPECT_EQ(KRETRY_STOP_BUDGET, event(self, KRETRY_EVENT_TRANSIENT));
	op = kt_op(self->id, 0);
	op.key = KEY;
	op.flags = KRETRY_OP_HINT;
	op.hint_ns = 60 * SEC;
	EXPECT_EQ(KRETRY_STOP_ELAPSED, kt_report(&self->me, &op, KRETRY_EVENT_THROTTLED));
	EXPECT_EQ(KRETRY_STOP_COOLING, event(self, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(0, kt_force(&self->me, self->id, KRETRY_MODE_FORCED_OPEN));
	EXPECT_EQ(KRETRY_STOP_OPEN, event(self, KRETRY_EVENT_TRANSIENT));

	stat = all(self);
	EXPECT_EQ(3, stat.events[KRETRY_EVENT_BEGIN]);
	EXPECT_EQ(1, stat.events[KRETRY_EVENT_OK]);
	EXPECT_EQ(1, stat.events[KRETRY_EVENT_CANCELLED]);
	EXPECT_EQ(4, stat.events[KRETRY_EVENT_TRANSIENT]);
	EXPECT_EQ(3, stat.events[KRETRY_EVENT_THROTTLED]);
	EXPECT_EQ(1, stat.events[KRETRY_EVENT_UNKNOWN]);
	EXPECT_EQ(1, stat.events[KRETRY_EVENT_PERMANENT]);
	EXPECT_EQ(0, stat.events[KRETRY_EVENT_NONE]);
	EXPECT_EQ(1, stat.go);
	EXPECT_EQ(2, stat.retry);
	EXPECT_EQ(2, stat.done);
	verdicts = stat.go + stat.retry + stat.done;
	for (i = 0; i < 16; i++) {
		EXPECT_EQ(KRETRY_STOP_PERMANENT + i <= KRETRY_STOP_PACED, stat.stops[i])
			TH_LOG("stop %d", KRETRY_STOP_PERMANENT + i);
		verdicts += stat.stops[i];
	}
	for (i = 0; i < 8; i++)
		events += stat.events[i];
	EXPECT_EQ(events, verdicts);
}

TEST_F(stat, malformed_op_counted_nowhere)
{
	struct kretry_op ops[3];
	struct kretry_stat stat;

	kt_budget(&self->policy, 2);
	ASSERT_LT(0, create(self));
	ops[0] = kt_op(self->id, KRETRY_EVENT_NONE);
	ops[1] = kt_op(self->id, KRETRY_EVENT_BEGIN);
	ops[2] = kt_op(self->id, 200);
	ASSERT_EQ(3, kt_batch(self->me.fd, ops, 3));
	stat = all(self);
	EXPECT_EQ(1, stat.events[KRETRY_EVENT_BEGIN]);
	EXPECT_EQ(0, stat.events[KRETRY_EVENT_NONE]);
	EXPECT_EQ(1, stat.go);
	EXPECT_EQ(1, stat.keys);
}

TEST_F(stat, tokens_charged_refunded_and_left)
{
	struct kretry_op op;

	self->policy.budget.flags = KRETRY_BUDGET_REFUND_LAST;
	kt_budget(&self->policy, 10);
	ASSERT_LT(0, create(self));
	op = kt_op(self->id, 0);
	op.key = KEY;
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_RETRY, kt_event(&self->me, self->id, KEY + 1, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(3 * KRETRY_UTOK, all(self).charged_utok);
	EXPECT_EQ(KRETRY_UTOK, all(self).refunded_utok);
	EXPECT_EQ(9 * KRETRY_UTOK, key(self).balance_utok);
	EXPECT_EQ(2, all(self).keys);
}

TEST_F(stat, breaker_state_transitions_and_window)
{
	struct kretry_stat stat;
	struct kretry_op op;

	kt_breaker(&self->policy, 3, 10 * SEC, 1);
	self->policy.breaker.ratio_ppm = KRETRY_PPM;
	self->policy.breaker.min_calls = 100;
	self->policy.breaker.window_ns = 100 * SEC;
	ASSERT_LT(0, create(self));
	kt_fail(&self->me, self->id, KEY, 1);
	event(self, KRETRY_EVENT_OK);
	kt_fail(&self->me, self->id, KEY, 2);
	stat = key(self);
	EXPECT_EQ(KRETRY_CLOSED, stat.state);
	EXPECT_EQ(2, stat.streak);
	EXPECT_EQ(4, stat.window_calls);
	EXPECT_EQ(3, stat.window_failures);
	EXPECT_EQ(0, stat.half_open_ns);
	EXPECT_EQ(0, all(self).transitions);
	kt_fail(&self->me, self->id, KEY, 1);
	stat = key(self);
	EXPECT_EQ(KRETRY_OPEN, stat.state);
	EXPECT_EQ(0, stat.streak);
	EXPECT_EQ(0, stat.window_calls);
	EXPECT_LT(kt_now(CLOCK_MONOTONIC), stat.half_open_ns);
	EXPECT_EQ(1, all(self).opened);
	EXPECT_EQ(1, all(self).transitions);
	kt_sleep_open(&self->me, self->id, KEY);
	EXPECT_EQ(KRETRY_HALF_OPEN, key(self).state);
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(1, key(self).leases);
	EXPECT_EQ(1, all(self).leases);
	EXPECT_EQ(2, all(self).transitions);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, key(self).state);
	EXPECT_EQ(0, key(self).leases);
	EXPECT_EQ(0, all(self).leases);
	EXPECT_EQ(3, all(self).transitions);
	EXPECT_EQ(1, all(self).opened);
	EXPECT_EQ(0, all(self).queued);
	EXPECT_EQ(0, all(self).probes_lost);
}

TEST_F(stat, of_a_policy_that_shares_nothing_counts_its_ops)
{
	struct kretry_stat stat;

	ASSERT_LT(0, create(self));
	EXPECT_EQ(KRETRY_RETRY, event(self, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_GO, event(self, KRETRY_EVENT_BEGIN));
	stat = all(self);
	EXPECT_EQ(1, stat.retry);
	EXPECT_EQ(1, stat.go);
	EXPECT_EQ(0, stat.keys);
	EXPECT_EQ(0, stat.charged_utok);
}

/* What one process counts, another sees. */
TEST_F(stat, counters_are_those_of_all_processes)
{
	struct kt_party other;
	int id;

	kt_budget(&self->policy, 100);
	ASSERT_LT(0, create(self));
	ASSERT_EQ(0, kt_there(&other, 0));
	id = kt_party_named(&other, "stat", 0);
	EXPECT_EQ(30, kt_fail(&self->me, self->id, KEY, 30));
	EXPECT_EQ(20, kt_fail(&other, id, KEY, 20));
	EXPECT_EQ(50, all(self).retry);
	EXPECT_EQ(50, kt_stat(&other, id).retry);
	EXPECT_EQ(50 * KRETRY_UTOK, all(self).charged_utok);
	kt_kill(&other);
	EXPECT_EQ(50, all(self).retry);
}

/* -------- what is refused -------- */

TEST_F(stat, reserved_bits_and_unknown_ids_refused_nothing_written)
{
	struct kretry_stat stat, before;
	int i;

	kt_budget(&self->policy, 10);
	ASSERT_LT(0, create(self));
	for (i = 0; i < 34; i++) {
		stat = (struct kretry_stat){ .size = sizeof(stat), .policy = self->id };
		stat.flags = i && i < 32 ? 1U << i : 0;
		stat.key = i == 0;
		stat.reserved = i == 32;
		stat.policy += i == 33;
		before = stat;
		EXPECT_EQ(i == 33 ? -ENOENT : -EINVAL,
			  kt_ioctl(self->me.fd, KRETRY_IOC_STAT, &stat))
			TH_LOG("row %d", i);
		EXPECT_EQ(0, memcmp(&before, &stat, sizeof(stat)));
	}
}

TEST_F(stat, force_refuses_unknown_bits_modes_ids_and_policies_without_a_breaker)
{
	struct kretry_force force;
	int i;

	kt_breaker(&self->policy, 1, SEC, 1);
	ASSERT_LT(0, create(self));
	for (i = 0; i < 36; i++) {
		force = (struct kretry_force){ .size = sizeof(force), .policy = self->id };
		force.flags = i && i < 32 ? 1U << i : 0;
		force.key = i == 0;
		force.mode = i == 32 ? KRETRY_MODE_METRICS_ONLY + 1 : i == 33 ? 0xffffffff : 0;
		force.policy += i == 34;
		force.size -= i == 35;
		EXPECT_EQ(i == 34 ? -ENOENT : -EINVAL,
			  kt_ioctl(self->me.fd, KRETRY_IOC_FORCE, &force))
			TH_LOG("row %d", i);
	}
	EXPECT_EQ(KRETRY_MODE_AUTOMATIC, all(self).mode);
	kt_policy(&self->policy);
	ASSERT_LT(0, create(self));
	EXPECT_EQ(-EINVAL, kt_force(&self->me, self->id, KRETRY_MODE_FORCED_OPEN));
}

/* -------- time namespaces -------- */

/* A day ahead: times it is told are on its own clock, and so are those that it tells. */
static int look_from_a_day_ahead(void *arg)
{
	struct kretry_stat stat;
	struct kretry_op op;
	struct kt_party me;
	uint64_t now;
	int id;

	(void)arg;
	now = kt_now(CLOCK_MONOTONIC);
	CHECK(now > DAY * SEC);
	CHECK_EQ(0, kt_here(&me));
	id = kt_party_named(&me, "stat", 0);
	CHECK(id > 0);
	stat = kt_stat_key(&me, id, KEY);
	CHECK(stat.half_open_ns > now && stat.half_open_ns < now + 100 * SEC);
	CHECK_EQ(KRETRY_STOP_OPEN, kt_begin(&me, id, KEY, &op));
	CHECK_EQ(stat.half_open_ns + 100 * MSEC, op.deadline_ns);
	stat = kt_stat_key(&me, id, KEY + 1);
	CHECK(stat.cooling_ns > now && stat.cooling_ns < now + 100 * SEC);
	CHECK(stat.pace_next_ns > now && stat.pace_next_ns < now + 100 * SEC);
	kt_sleep_open(&me, id, KEY);
	CHECK_EQ(KRETRY_GO, kt_begin(&me, id, KEY, &op));
	CHECK(op.deadline_ns > now && op.deadline_ns <= kt_now(CLOCK_MONOTONIC));
	CHECK_EQ(KRETRY_DONE, kt_report(&me, &op, KRETRY_EVENT_OK));
	CHECK_EQ(KRETRY_CLOSED, kt_stat_key(&me, id, KEY).state);
	return 0;
}

TEST_F(stat, times_are_on_the_clock_of_the_callers_namespace)
{
	struct kretry_op op;

	kt_breaker(&self->policy, 1, 100 * SEC, 1);
	self->policy.flags = KRETRY_POLICY_HINT_SHARED | KRETRY_POLICY_PACE_ALL;
	self->policy.pacing.pace_ns = 100 * SEC;
	self->policy.pacing.horizon_ns = 0;
	ASSERT_LT(0, create(self));
	event(self, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY + 1, &op));
	op.flags = KRETRY_OP_HINT;
	op.hint_ns = 100 * SEC;
	kt_report(&self->me, &op, KRETRY_EVENT_THROTTLED);
	EXPECT_EQ(0, kt_in_time_namespace(DAY, look_from_a_day_ahead, NULL));
}

TEST_HARNESS_MAIN
