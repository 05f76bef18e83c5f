// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * When queued ops are delivered: never early, late by the slack of their policy at the most, on
 * their clock, in any time namespace, whatever becomes of the time of day.
 */
#include "harness.h"
#include "queued.h"

#define DAY	86400LL
#define HOUR	3600LL
#define EXACT	(2 * MSEC)	/* what waking a reader may take */

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

FIXTURE(queue_time) {
	int fd;
	struct kretry_policy policy;
};

FIXTURE_SETUP(queue_time)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&self->policy);
}

FIXTURE_TEARDOWN(queue_time)
{
	close(self->fd);
}

static uint32_t create(FIXTURE_DATA(queue_time) *self, clockid_t clock, uint64_t delay_ns,
		       uint64_t slack_ns)
{
	self->policy.clockid = clock;
	self->policy.backoff.base_ns = delay_ns;
	self->policy.backoff.cap_ns = delay_ns;
	self->policy.slack_ns = slack_ns;
	return kt_create(self->fd, &self->policy);
}

/* Queue one and wait for it: how late it is, which is below 0 where it is early. */
static int64_t lateness(int fd, uint32_t id, clockid_t clock, uint64_t delay_ns)
{
	struct kretry_op op = kt_queue_op(id, 1), got;
	uint64_t before = kt_now(clock);

	if (kt_step(fd, &op) || op.deadline_ns < before + delay_ns ||
	    op.deadline_ns > kt_now(clock) + delay_ns || kt_take_one(fd, &got) ||
	    got.deadline_ns < op.deadline_ns || got.deadline_ns > kt_now(clock) ||
	    got.start_ns != op.start_ns)
		return -1;
	return (int64_t)(kt_now(clock) - op.deadline_ns);
}

TEST_F(queue_time, without_slack_on_time_on_both_clocks)
{
	static const uint64_t delays[] = { 0, 1, USEC, MSEC, 7777777, SEC, 1800 * SEC };
	int64_t late;
	size_t i;
	int c;

	for (c = 0; c < 2; c++) {
		for (i = 0; i < ARRAY_LEN(delays); i++) {
			late = lateness(self->fd, create(self, clocks[c], delays[i], 0), clocks[c],
					delays[i]);
			EXPECT_LE(0, late);
			EXPECT_GT((int64_t)EXACT, late)
				TH_LOG("clock %d, %llu ns", clocks[c],
				       (unsigned long long)delays[i]);
		}
	}
}

TEST_F(queue_time, two_thousand_random_delays_never_early)
{
	struct kretry_op op, got;
	uint64_t now, latest = 0;
	int i;

	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	op = kt_queue_op(create(self, CLOCK_MONOTONIC, 20 * MSEC, 0), 1);
	for (i = 0; i < 2000; i++) {
		op.event = KRETRY_EVENT_TRANSIENT;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		ASSERT_EQ(0, kt_take_one(self->fd, &got));
		now = kt_now(CLOCK_MONOTONIC);
		ASSERT_LE(op.deadline_ns, got.deadline_ns);
		ASSERT_GE(now, got.deadline_ns);
		latest = now - op.deadline_ns > latest ? now - op.deadline_ns : latest;
	}
	TH_LOG("at most %llu us late", (unsigned long long)(latest / USEC));
	EXPECT_GT(EXACT, latest);
}

/* No reader is woken for what falls due within the slack of one that it is woken for. */
TEST_F(queue_time, slack_one_wake_up_for_many)
{
	struct kretry_op got[64];
	uint64_t start;
	int i, wakes = 0, count = 0;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, kt_queue(self->fd, create(self, CLOCK_MONOTONIC,
						       SEC + i * 10 * MSEC, 400 * MSEC), i));
	start = kt_now(CLOCK_MONOTONIC);
	while (count < 20) {
		count += kt_take(self->fd, got, 64);
		wakes++;
	}
	EXPECT_EQ(1, wakes);
	EXPECT_LE(190 * MSEC + SEC, kt_now(CLOCK_MONOTONIC) - start + 10 * MSEC);
	EXPECT_GT(SEC + 400 * MSEC + EXACT, kt_now(CLOCK_MONOTONIC) - start);
}

TEST_F(queue_time, slack_never_early_and_late_by_no_more)
{
	static const uint64_t slacks[] = { 1, MSEC, 50 * MSEC, 3 * SEC };
	int64_t late;
	size_t i;
	int c;

	for (c = 0; c < 2; c++) {
		for (i = 0; i < ARRAY_LEN(slacks); i++) {
			late = lateness(self->fd, create(self, clocks[c], SEC, slacks[i]),
					clocks[c], SEC);
			EXPECT_LE(0, late);
			EXPECT_GT((int64_t)(slacks[i] + EXACT), late);
		}
	}
}

/* An op that may be late does not make one late that may not, whichever comes first. */
TEST_F(queue_time, small_slack_beside_a_large_one_holds)
{
	uint32_t lazy = create(self, CLOCK_MONOTONIC, 500 * MSEC, 5 * SEC);
	uint32_t exact = create(self, CLOCK_MONOTONIC, 500 * MSEC, 0);
	struct kretry_op got;
	uint64_t start;
	int i;

	for (i = 0; i < 4; i++) {
		start = kt_now(CLOCK_MONOTONIC);
		ASSERT_EQ(0, kt_queue(self->fd, i % 2 ? lazy : exact, 1));
		kt_sleep(i / 2 * 100 * MSEC);
		ASSERT_EQ(0, kt_queue(self->fd, i % 2 ? exact : lazy, 2));
		do {
			ASSERT_EQ(sizeof(got), read(self->fd, &got, sizeof(got)));
		} while (got.policy != exact);
		EXPECT_GT(600 * MSEC + EXACT, kt_now(CLOCK_MONOTONIC) - start)
			TH_LOG("row %d", i);
		ASSERT_EQ(0, kt_shutdown(self->fd));
		lazy = create(self, CLOCK_MONOTONIC, 500 * MSEC, 5 * SEC);
		exact = create(self, CLOCK_MONOTONIC, 500 * MSEC, 0);
	}
}

/* As late as the clock can tell, and never delivered: but there to be cancelled. */
TEST_F(queue_time, deadline_at_the_end_of_time_waits)
{
	struct kretry_op op;
	int c;

	for (c = 0; c < 2; c++)
		ASSERT_EQ(0, kt_queue(self->fd, create(self, clocks[c], KRETRY_NS_MAX,
						       c ? KRETRY_NS_MAX : 0), c));
	EXPECT_EQ(0, kt_poll(self->fd, 3600 * 1000));
	ASSERT_EQ(0, kt_queue(self->fd, create(self, CLOCK_MONOTONIC, SEC, 0), 2));
	ASSERT_EQ(0, kt_take_one(self->fd, &op));
	EXPECT_EQ(2, op.user_data);
	EXPECT_EQ(0, kt_cancel(self->fd, 0, &op));
	EXPECT_EQ(0, kt_cancel(self->fd, 1, &op));
}

/* -------- the time of day -------- */

TEST_F(queue_time, time_of_day_jumps_during_the_wait_delivered_on_time)
{
	int64_t late;
	pid_t pid;
	int c;

	for (c = 0; c < 2; c++) {
		pid = fork();
		if (!pid)
			_exit(kt_jump_time_of_day());
		late = lateness(self->fd, create(self, clocks[c], 10 * SEC, 0), clocks[c],
				10 * SEC);
		EXPECT_LE(0, late);
		EXPECT_GT((int64_t)EXACT, late);
		EXPECT_EQ(0, kt_wait(pid));
	}
}

/* -------- time namespaces -------- */

/* Queued here: delivered on this namespace's clock, and cancelled with the start that was told. */
static int queue_read_cancel(void *arg)
{
	FIXTURE_DATA(queue_time) *self = arg;
	struct kretry_op op, got;
	int64_t late;
	uint32_t id;
	int c;

	for (c = 0; c < 2; c++) {
		id = create(self, clocks[c], SEC, 0);
		late = lateness(self->fd, id, clocks[c], SEC);
		CHECK(late >= 0 && late < (int64_t)EXACT);
		op = kt_queue_op(id, 2);
		CHECK_EQ(0, kt_step(self->fd, &op));
		CHECK_EQ(0, kt_cancel(self->fd, 2, &got));
		CHECK_EQ(op.start_ns, got.start_ns);
		CHECK_EQ(0, got.deadline_ns);
	}
	return 0;
}

/* What was queued outside is told on the clock of who reads it, here. */
static int read_and_cancel_others(void *arg)
{
	FIXTURE_DATA(queue_time) *self = arg;
	struct kretry_op got;
	uint64_t now;
	int c;

	for (c = 0; c < 2; c++) {
		now = kt_now(clocks[c]);
		CHECK_EQ(0, kt_cancel(self->fd, 10 + c, &got));
		CHECK(got.start_ns <= now && got.start_ns + 60 * SEC > now);
	}
	for (c = 0; c < 2; c++) {
		CHECK_EQ((ssize_t)sizeof(got), read(self->fd, &got, sizeof(got)));
		CHECK(got.user_data < 2);
		now = kt_now(clocks[got.user_data]);
		CHECK(got.deadline_ns <= now && got.deadline_ns + EXACT > now);
		CHECK(got.start_ns <= now && got.start_ns + 60 * SEC > now);
	}
	return 0;
}

static void both_ways(struct __test_metadata *_metadata, FIXTURE_DATA(queue_time) *self,
		      int (*fn)(void *arg), bool outside)
{
	static const int64_t offsets[] = { DAY, -HOUR };
	uint32_t id;
	int i, c;

	/* A clock cannot be set back to before it started. */
	if (kt_now(CLOCK_MONOTONIC) < (HOUR + 60) * SEC)
		kt_sleep_until(CLOCK_MONOTONIC, (HOUR + 61) * SEC);
	for (i = 0; i < 2; i++) {
		for (c = 0; outside && c < 2; c++) {
			id = create(self, clocks[c], 2 * SEC, 0);
			ASSERT_EQ(0, kt_queue(self->fd, id, c));
			ASSERT_EQ(0, kt_queue(self->fd, id, 10 + c));
		}
		EXPECT_EQ(0, kt_in_time_namespace(offsets[i], fn, self));
	}
}

TEST_F(queue_time, namespace_times_are_on_its_clocks)
{
	both_ways(_metadata, self, queue_read_cancel, false);
}

TEST_F(queue_time, namespace_of_the_reader_counts_not_of_who_queued)
{
	both_ways(_metadata, self, read_and_cancel_others, true);
}

TEST_HARNESS_MAIN
