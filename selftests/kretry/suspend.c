// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What becomes of ops and waits whose time comes before, during and after a suspend. */
#include "harness.h"

#include "asleep.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

FIXTURE(suspend) {
	struct bed bed;
};

FIXTURE_SETUP(suspend)
{
	ASSERT_EQ(0, bed_make(&self->bed));
}

FIXTURE_TEARDOWN(suspend)
{
	bed_leave(&self->bed);
}

/* -------- queued ops -------- */

/* The first, while the clocks agree: a time on this one could be taken for one on the other. */
TEST_F(suspend, monotonic_on_time_by_a_clock_that_stood_still)
{
	self->bed.policy.clockid = CLOCK_MONOTONIC;
	self->bed.policy.backoff.jitter = KRETRY_JITTER_EQUAL;
	ASSERT_EQ(0, queue_all(&self->bed));
	ASSERT_NE(0, suspended());
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_EQ(0, all_on_time(&self->bed));
	EXPECT_EQ(0, count_spread(&self->bed));
}

TEST_F(suspend, due_asleep_spread_over_the_own_delay)
{
	uint64_t resumed;

	ASSERT_EQ(0, queue_all(&self->bed));
	resumed = suspended();
	ASSERT_NE(0, resumed);
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_EQ(0, all_spread(&self->bed, resumed));
	EXPECT_EQ(OPS, count_spread(&self->bed));
}

TEST_F(suspend, due_after_it_on_time)
{
	self->bed.policy.backoff.jitter = KRETRY_JITTER_EQUAL;
	self->bed.policy.backoff.base_ns = 30 * MINUTE;
	ASSERT_EQ(0, queue_all(&self->bed));
	ASSERT_NE(0, suspended());
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_EQ(0, all_on_time(&self->bed));
	EXPECT_EQ(0, count_spread(&self->bed));
}

TEST_F(suspend, due_before_it_and_unread_come_at_once)
{
	uint64_t resumed;
	int i;

	ASSERT_EQ(0, queue_all(&self->bed));
	kt_sleep(self->bed.policy.backoff.base_ns + SEC);
	resumed = suspended();
	ASSERT_NE(0, resumed);
	for (i = 0; i < OPS; i += 16)
		ASSERT_EQ(16, take(&self->bed));
	EXPECT_GT(resumed + LATE, kt_now(CLOCK_BOOTTIME));
	EXPECT_EQ(0, count_spread(&self->bed));
}

/* Awake for less than it takes to get over the first. */
TEST_F(suspend, due_asleep_twice_spread_twice)
{
	uint64_t resumed;

	self->bed.policy.backoff.base_ns = 9 * MINUTE;
	ASSERT_EQ(0, queue_all(&self->bed));
	ASSERT_NE(0, suspended());
	ASSERT_EQ(0, take(&self->bed));
	resumed = suspended();
	ASSERT_NE(0, resumed);
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_EQ(0, all_spread(&self->bed, resumed));
	EXPECT_EQ(2 * OPS, count_spread(&self->bed));
}

TEST_F(suspend, thought_better_of_spreads_nothing)
{
	unsigned int i;

	ASSERT_EQ(0, bed_create(&self->bed));
	for (i = 0; i < OPS; i++) {
		ASSERT_EQ(0, queue_one(&self->bed, i));
		kt_sleep(200 * USEC);
	}
	kt_sleep_until(CLOCK_BOOTTIME, self->bed.sleepers[1].deadline);
	ASSERT_EQ(0, almost_suspended());
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_GT(self->bed.sleepers[OPS - 1].deadline + 50 * MSEC, kt_now(CLOCK_BOOTTIME));
	EXPECT_EQ(0, count_spread(&self->bed));
}

TEST_F(suspend, thought_better_of_keeps_the_sleep_before)
{
	uint64_t resumed;

	ASSERT_EQ(0, queue_all(&self->bed));
	ASSERT_NE(0, suspended());
	ASSERT_EQ(0, almost_suspended());
	resumed = kt_now(CLOCK_BOOTTIME);
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_EQ(0, all_spread(&self->bed, resumed));
	EXPECT_EQ(OPS, count_spread(&self->bed));
}

/* -------- limits -------- */

static int64_t balance(struct bed *bed)
{
	return (int64_t)kt_stat_key(&bed->party, bed->policy.id, 0).balance_utok;
}

TEST_F(suspend, limit_passed_asleep_stops_and_costs_nothing)
{
	uint64_t resumed;
	unsigned int i;

	self->bed.policy.max_elapsed_ns = 6 * MINUTE;
	kt_budget(&self->bed.policy, OPS);
	ASSERT_EQ(0, queue_all(&self->bed));
	EXPECT_EQ(0, balance(&self->bed));
	resumed = suspended();
	ASSERT_NE(0, resumed);
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_GT(resumed + LATE, kt_now(CLOCK_BOOTTIME));
	for (i = 0; i < OPS; i++) {
		EXPECT_EQ(KRETRY_STOP_ELAPSED, self->bed.sleepers[i].op.verdict);
		EXPECT_EQ(0, self->bed.sleepers[i].op.attempt);
	}
	EXPECT_EQ(OPS * (int64_t)KRETRY_UTOK, balance(&self->bed));
}

/* What is spread beyond its limit stops then and there, the others come in time. */
TEST_F(suspend, limit_ahead_is_kept)
{
	unsigned int i, stopped = 0;
	uint64_t resumed, limit;
	struct sleeper *sleeper;
	bool stops;

	self->bed.policy.max_elapsed_ns = 12 * MINUTE;
	ASSERT_EQ(0, queue_all(&self->bed));
	limit = self->bed.sleepers[OPS - 1].op.start_ns + self->bed.policy.max_elapsed_ns;
	resumed = suspended();
	ASSERT_NE(0, resumed);
	ASSERT_EQ(0, take_all(&self->bed));
	for (i = 0; i < OPS; i++) {
		sleeper = &self->bed.sleepers[i];
		stops = sleeper->op.verdict == KRETRY_STOP_ELAPSED;
		EXPECT_EQ(stops ? KRETRY_STOP_ELAPSED : KRETRY_GO, sleeper->op.verdict);
		EXPECT_GT((stops ? resumed : limit) + LATE, sleeper->woke);
		stopped += stops;
	}
	/* About two minutes of five are left. */
	EXPECT_LT(OPS / 4, stopped);
	EXPECT_GT(OPS - 16, stopped);
}

/* -------- sleepers -------- */

/* The freezer wakes every task that sleeps; none of them may notice. */
static int read_one(void *arg)
{
	struct bed *bed = arg;
	struct kretry_op op;

	CHECK_EQ(sizeof(op), read(bed->party.fd, &op, sizeof(op)));
	CHECK_EQ(KRETRY_GO, op.verdict);
	CHECK(time_asleep() > ASLEEP - INEXACT);
	return 0;
}

static int poll_one(void *arg)
{
	struct bed *bed = arg;
	struct pollfd file = { .fd = bed->party.fd, .events = POLLIN };

	do {
		CHECK_EQ(1, poll(&file, 1, 3600 * 1000));
		CHECK_EQ(POLLIN, file.revents);
	} while (!take(bed));
	CHECK(time_asleep() > ASLEEP - INEXACT);
	return 0;
}

static int sleep_through(struct bed *bed, int (*fn)(void *arg))
{
	pid_t pid;

	CHECK_EQ(0, bed_create(bed));
	CHECK_EQ(0, queue_one(bed, 0));
	pid = fork();
	if (!pid)
		_exit(fn(bed));
	kt_sleep(SEC);
	CHECK(suspended());
	return kt_wait(pid);
}

TEST_F(suspend, blocked_read_goes_on)
{
	ASSERT_EQ(0, fcntl(self->bed.party.fd, F_SETFL, 0));
	EXPECT_EQ(0, sleep_through(&self->bed, read_one));
	EXPECT_EQ(1, count_spread(&self->bed));
}

TEST_F(suspend, blocked_poll_goes_on)
{
	EXPECT_EQ(0, sleep_through(&self->bed, poll_one));
	EXPECT_EQ(1, count_spread(&self->bed));
}

/* -------- waits -------- */

TEST_F(suspend, wait_due_asleep_spread_over_the_own_delay)
{
	uint64_t resumed;

	if (!kt_ring_waits(self->bed.party.fd))
		SKIP(return, "no WAIT on this kernel");
	ASSERT_EQ(0, wait_all(&self->bed));
	resumed = suspended();
	ASSERT_NE(0, resumed);
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_EQ(0, all_spread(&self->bed, resumed));
	EXPECT_EQ(OPS, count_spread(&self->bed));
}

TEST_F(suspend, wait_monotonic_on_time)
{
	if (!kt_ring_waits(self->bed.party.fd))
		SKIP(return, "no WAIT on this kernel");
	self->bed.policy.clockid = CLOCK_MONOTONIC;
	self->bed.policy.backoff.jitter = KRETRY_JITTER_EQUAL;
	ASSERT_EQ(0, wait_all(&self->bed));
	ASSERT_NE(0, suspended());
	ASSERT_EQ(0, take_all(&self->bed));
	EXPECT_EQ(0, all_on_time(&self->bed));
	EXPECT_EQ(0, count_spread(&self->bed));
}

TEST_HARNESS_MAIN
