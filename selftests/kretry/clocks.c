// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Deadlines on both clocks: on time, never early, right in a time namespace, and unmoved by what
 * happens to the time of day.
 */
#include "harness.h"

#include <signal.h>

#define DAY	86400LL
#define HOUR	3600LL

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

FIXTURE(clocks) {
	int fd;
	int policy[2];	/* 100 ms on each of the clocks */
};

FIXTURE_SETUP(clocks)
{
	struct kretry_policy policy;
	int i;

	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 2; i++) {
		kt_policy(&policy);
		policy.clockid = clocks[i];
		self->policy[i] = kt_create(self->fd, &policy);
		ASSERT_LT(0, self->policy[i]);
	}
}

FIXTURE_TEARDOWN(clocks)
{
	close(self->fd);
}

/* A retry's deadline is the clock's now and the delay, and waiting for it takes the delay. */
static int check_deadline(int fd, int policy, clockid_t clock, uint64_t delay)
{
	struct kretry_op op = kt_op(policy, KRETRY_EVENT_TRANSIENT);
	uint64_t before = kt_now(clock), after, slept;

	CHECK_EQ(0, kt_step(fd, &op));
	after = kt_now(clock);
	CHECK_EQ(KRETRY_RETRY, op.verdict);
	CHECK(op.start_ns >= before && op.start_ns <= after);
	CHECK(op.deadline_ns >= before + delay && op.deadline_ns <= after + delay);
	slept = kt_now(CLOCK_MONOTONIC);
	kt_sleep_until(clock, op.deadline_ns);
	slept = kt_now(CLOCK_MONOTONIC) - slept;
	CHECK(kt_now(clock) >= op.deadline_ns);
	CHECK(slept + 5 * MSEC >= delay && slept <= delay + 50 * MSEC);
	return 0;
}

TEST_F(clocks, deadline_on_the_clock_of_the_policy)
{
	int i;

	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, check_deadline(self->fd, self->policy[i], clocks[i], 100 * MSEC));
}

TEST_F(clocks, ten_thousand_waits_never_early)
{
	uint64_t now, latest = 0, limit = 100 * MSEC;
	struct kretry_policy policy;
	struct kretry_op op;
	int i;

	kt_policy(&policy);
	policy.backoff.jitter = KRETRY_JITTER_FULL;
	policy.backoff.floor_ns = MSEC;
	policy.backoff.base_ns = 20 * MSEC;
	op = kt_op(kt_create(self->fd, &policy), 0);
	for (i = 0; i < 10000; i++) {
		op.event = KRETRY_EVENT_TRANSIENT;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
		now = kt_now(CLOCK_MONOTONIC);
		ASSERT_LE(op.deadline_ns, now);
		latest = now - op.deadline_ns > latest ? now - op.deadline_ns : latest;
	}
	TH_LOG("at most %llu us late", (unsigned long long)(latest / USEC));
	EXPECT_GT(limit, latest);
}

/* -------- the time of day -------- */

TEST_F(clocks, time_of_day_jumps_during_a_wait_fires_on_time)
{
	struct kretry_policy policy;
	struct kretry_op op;
	uint64_t late;
	pid_t pid;
	int i;

	for (i = 0; i < 2; i++) {
		kt_policy(&policy);
		policy.clockid = clocks[i];
		policy.backoff.base_ns = 10 * SEC;
		op = kt_op(kt_create(self->fd, &policy), KRETRY_EVENT_TRANSIENT);
		ASSERT_EQ(0, kt_step(self->fd, &op));
		pid = fork();
		if (!pid)
			_exit(kt_jump_time_of_day());
		kt_sleep_until(clocks[i], op.deadline_ns);
		late = kt_now(clocks[i]) - op.deadline_ns;
		EXPECT_GT(50 * MSEC, late);
		EXPECT_EQ(0, kt_wait(pid));
		EXPECT_EQ(0, check_deadline(self->fd, self->policy[i], clocks[i], 100 * MSEC));
	}
}

/* -------- time namespaces -------- */

static int both_ways(FIXTURE_DATA(clocks) *self, int (*fn)(void *arg))
{
	/* A clock cannot be set back to before it started. */
	while (kt_now(CLOCK_MONOTONIC) < (HOUR + 60) * SEC)
		kt_sleep_until(CLOCK_MONOTONIC, (HOUR + 61) * SEC);
	CHECK_EQ(0, kt_in_time_namespace(DAY, fn, self));
	CHECK_EQ(0, kt_in_time_namespace(-HOUR, fn, self));
	return 0;
}

static int ns_deadline(void *arg)
{
	FIXTURE_DATA(clocks) *self = arg;
	int i;

	for (i = 0; i < 2; i++)
		CHECK_EQ(0, check_deadline(self->fd, self->policy[i], clocks[i],
					   100 * MSEC));
	return 0;
}

TEST_F(clocks, namespace_deadline_on_its_clock)
{
	EXPECT_EQ(0, both_ways(self, ns_deadline));
}

static int ns_batch(void *arg)
{
	FIXTURE_DATA(clocks) *self = arg;
	uint64_t before[2] = { kt_now(clocks[0]), kt_now(clocks[1]) };
	struct kretry_op ops[100];
	int i;

	for (i = 0; i < 100; i++)
		ops[i] = kt_op(self->policy[i % 2], KRETRY_EVENT_TRANSIENT);
	CHECK_EQ(100, kt_batch(self->fd, ops, 100));
	for (i = 0; i < 100; i++)
		CHECK(ops[i].deadline_ns - before[i % 2] >= 100 * MSEC &&
		      ops[i].deadline_ns - before[i % 2] < 110 * MSEC);
	return 0;
}

TEST_F(clocks, namespace_batch_deadlines_on_their_clocks)
{
	EXPECT_EQ(0, both_ways(self, ns_batch));
}

/* start_ns comes back as it went in, and max_elapsed is measured from it. */
static int ns_elapsed(void *arg)
{
	FIXTURE_DATA(clocks) *self = arg;
	struct kretry_policy policy;
	struct kretry_op op;
	uint64_t start;

	kt_policy(&policy);
	policy.max_elapsed_ns = 250 * MSEC;
	op = kt_op(kt_create(self->fd, &policy), KRETRY_EVENT_BEGIN);
	CHECK_EQ(0, kt_step(self->fd, &op));
	start = op.start_ns;
	op.event = KRETRY_EVENT_TRANSIENT;
	CHECK_EQ(0, kt_step(self->fd, &op));
	CHECK_EQ(KRETRY_RETRY, op.verdict);
	CHECK_EQ(start, op.start_ns);
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	op.event = KRETRY_EVENT_TRANSIENT;
	CHECK_EQ(0, kt_step(self->fd, &op));
	CHECK_EQ(KRETRY_RETRY, op.verdict);
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	op.event = KRETRY_EVENT_TRANSIENT;
	CHECK_EQ(0, kt_step(self->fd, &op));
	CHECK_EQ(KRETRY_STOP_ELAPSED, op.verdict);
	CHECK_EQ(start, op.start_ns);
	return 0;
}

TEST_F(clocks, namespace_start_round_trips_and_limits_hold)
{
	EXPECT_EQ(0, both_ways(self, ns_elapsed));
}

/* An OK too soon after the attempt's start is judged on the caller's clock too. */
static int ns_reset(void *arg)
{
	FIXTURE_DATA(clocks) *self = arg;
	struct kretry_policy policy;
	struct kretry_op op;

	kt_policy(&policy);
	policy.reset_after_ns = 50 * MSEC;
	op = kt_op(kt_create(self->fd, &policy), KRETRY_EVENT_TRANSIENT);
	CHECK_EQ(0, kt_step(self->fd, &op));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns + 20 * MSEC);
	op.event = KRETRY_EVENT_OK;
	CHECK_EQ(0, kt_step(self->fd, &op));
	CHECK_EQ(1, op.attempt);
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns + 50 * MSEC);
	op.event = KRETRY_EVENT_OK;
	CHECK_EQ(0, kt_step(self->fd, &op));
	CHECK_EQ(0, op.attempt);
	return 0;
}

TEST_F(clocks, namespace_reset_after_holds)
{
	EXPECT_EQ(0, both_ways(self, ns_reset));
}

static int ns_extremes(void *arg)
{
	FIXTURE_DATA(clocks) *self = arg;
	static const uint64_t starts[] = { 1, 2, SEC, KRETRY_NS_MAX - 1, KRETRY_NS_MAX, ~0ULL };
	struct kretry_policy policy;
	struct kretry_op op;
	uint64_t now;
	size_t i;

	kt_policy(&policy);
	policy.backoff.base_ns = KRETRY_NS_MAX;
	policy.backoff.cap_ns = KRETRY_NS_MAX;
	policy.id = kt_create(self->fd, &policy);
	for (i = 0; i < ARRAY_LEN(starts); i++) {
		op = kt_op(policy.id, KRETRY_EVENT_TRANSIENT);
		op.start_ns = starts[i];
		op.deadline_ns = starts[i];
		CHECK_EQ(0, kt_step(self->fd, &op));
		now = kt_now(CLOCK_MONOTONIC);
		CHECK(op.start_ns && op.start_ns <= now);
		CHECK(op.deadline_ns > now && op.deadline_ns <= KRETRY_NS_MAX);
	}
	return 0;
}

TEST_F(clocks, namespace_extreme_times_saturate)
{
	EXPECT_EQ(0, both_ways(self, ns_extremes));
}

TEST_HARNESS_MAIN
