// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Circuit breakers through the device: when they open, for how long, and what closes them. */
#include "harness.h"
#include "shared.h"

#include <errno.h>

#define KEY	7
#define HOUR	(3600 * SEC)
#define BOB	1001

FIXTURE(breaker) {
	struct kt_party me;
	struct kretry_policy policy;	/* "breaker": opens after 3 failures for 30 s, one probe */
	int id;
};

FIXTURE_SETUP(breaker)
{
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_name(&self->policy, "breaker");
	kt_breaker(&self->policy, 3, 30 * SEC, 1);
}

FIXTURE_TEARDOWN(breaker)
{
	kt_leave(&self->me);
}

static int create(FIXTURE_DATA(breaker) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	return self->id;
}

static struct kretry_stat state(FIXTURE_DATA(breaker) *self)
{
	return kt_stat_key(&self->me, self->id, KEY);
}

static int event(FIXTURE_DATA(breaker) *self, unsigned int event)
{
	return kt_event(&self->me, self->id, KEY, event);
}

/* -------- when it opens -------- */

TEST_F(breaker, consecutive_failures_open_a_success_between_does_not)
{
	uint64_t before, after;
	struct kretry_op op;

	ASSERT_LT(0, create(self));
	EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY, 2));
	EXPECT_EQ(KRETRY_DONE, event(self, KRETRY_EVENT_OK));
	EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY, 2));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	before = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(KRETRY_STOP_OPEN, event(self, KRETRY_EVENT_TRANSIENT));
	after = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
	EXPECT_LE(before + 30 * SEC, state(self).half_open_ns);
	EXPECT_GE(after + 30 * SEC, state(self).half_open_ns);
	/* Nobody returns together at that instant: each adds a delay of its own. */
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(state(self).half_open_ns + 100 * MSEC, op.deadline_ns);
	EXPECT_EQ(0, op.attempt);
	/* The next key knows nothing of it. */
	EXPECT_EQ(KRETRY_GO, kt_event(&self->me, self->id, KEY + 1, KRETRY_EVENT_BEGIN));
}

TEST_F(breaker, ratio_of_failures_opens_from_min_calls_on)
{
	self->policy.breaker.consecutive = 0;
	self->policy.breaker.ratio_ppm = KRETRY_PPM / 2;
	self->policy.breaker.min_calls = 10;
	self->policy.breaker.window_ns = 100 * SEC;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(5, kt_fail(&self->me, self->id, KEY, 5));
	kt_sleep(50 * SEC);
	EXPECT_EQ(4, kt_many(&self->me, self->id, KEY, KRETRY_EVENT_OK, 4, KRETRY_DONE));
	EXPECT_EQ(9, state(self).window_calls);
	EXPECT_EQ(5, state(self).window_failures);
	EXPECT_EQ(KRETRY_STOP_OPEN, event(self, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
}

TEST_F(breaker, ratio_window_forgets_what_is_too_old)
{
	self->policy.breaker.consecutive = 0;
	self->policy.breaker.ratio_ppm = KRETRY_PPM / 2;
	self->policy.breaker.min_calls = 10;
	self->policy.breaker.window_ns = 100 * SEC;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(9, kt_fail(&self->me, self->id, KEY, 9));
	kt_sleep(101 * SEC);
	EXPECT_EQ(0, state(self).window_calls);
	EXPECT_EQ(9, kt_fail(&self->me, self->id, KEY, 9));
	EXPECT_EQ(9, state(self).window_calls);
	EXPECT_EQ(0, kt_fail(&self->me, self->id, KEY, 1));
}

TEST_F(breaker, permanent_is_a_success_throttled_as_the_policy_says)
{
	static const unsigned int as[] = {
		KRETRY_THROTTLED_IGNORED, KRETRY_THROTTLED_SUCCESS, KRETRY_THROTTLED_FAILURE,
	};
	static const unsigned int streaks[] = { 2, 0, 3 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(as); i++) {
		kt_name(&self->policy, "");
		self->policy.breaker.consecutive = 4;
		self->policy.breaker.throttled = as[i];
		ASSERT_LT(0, create(self));
		EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY, 2));
		EXPECT_EQ(KRETRY_RETRY, event(self, KRETRY_EVENT_THROTTLED));
		EXPECT_EQ(streaks[i], state(self).streak);
		EXPECT_EQ(KRETRY_STOP_PERMANENT, event(self, KRETRY_EVENT_PERMANENT));
		EXPECT_EQ(0, state(self).streak);
		EXPECT_EQ(KRETRY_DONE, event(self, KRETRY_EVENT_CANCELLED));
		EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY, 2));
		EXPECT_EQ(KRETRY_DONE, event(self, KRETRY_EVENT_CANCELLED));
		EXPECT_EQ(2, state(self).streak);
	}
}

/* One broken client does not open it for the host, unless it is the only one there is. */
TEST_F(breaker, min_reporters_two_processes_must_agree)
{
	struct kt_party other;
	int id;

	self->policy.breaker.min_reporters = 2;
	self->policy.breaker.window_ns = 100 * SEC;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY + 1, 3));
	ASSERT_EQ(0, kt_there(&other, 0));
	id = kt_party_named(&other, "breaker", 0);
	EXPECT_EQ(KRETRY_DONE, kt_event(&other, id, KEY, KRETRY_EVENT_OK));
	EXPECT_EQ(20, kt_fail(&self->me, self->id, KEY, 20));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&other, id, KEY, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
	kt_leave(&other);
}

TEST_F(breaker, min_reporters_by_uid_processes_of_one_user_are_one)
{
	struct kt_party second, bob;
	int id, bobs;

	self->policy.breaker.min_reporters = 2;
	self->policy.breaker.window_ns = 100 * SEC;
	self->policy.breaker.flags = KRETRY_BREAKER_REPORTERS_UID;
	self->policy.open_flags = KRETRY_OPEN_GLOBAL;
	self->policy.mode = 0666;
	ASSERT_LT(0, create(self));
	ASSERT_EQ(0, kt_there(&second, 0));
	ASSERT_EQ(0, kt_there(&bob, BOB));
	id = kt_party_named(&second, "breaker", KRETRY_OPEN_GLOBAL);
	bobs = kt_party_named(&bob, "breaker", KRETRY_OPEN_GLOBAL);
	EXPECT_EQ(KRETRY_DONE, kt_event(&bob, bobs, KEY, KRETRY_EVENT_OK));
	EXPECT_EQ(5, kt_fail(&self->me, self->id, KEY, 5));
	EXPECT_EQ(5, kt_fail(&second, id, KEY, 5));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&bob, bobs, KEY, KRETRY_EVENT_TRANSIENT));
	kt_leave(&bob);
	kt_leave(&second);
}

TEST_F(breaker, slow_calls_open_though_they_succeed)
{
	struct kretry_op op;
	int i;

	self->policy.breaker.consecutive = 0;
	self->policy.breaker.slow_ns = SEC;
	self->policy.breaker.slow_ppm = KRETRY_PPM;
	self->policy.breaker.min_calls = 3;
	self->policy.breaker.window_ns = 100 * SEC;
	ASSERT_LT(0, create(self));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(KRETRY_CLOSED, state(self).state);
		EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
		kt_sleep(1100 * MSEC);
		EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	}
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
}

/* -------- open -------- */

/* Tripped by one process it is open for all, and looking at it moves nothing. */
TEST_F(breaker, tripped_by_one_process_others_refused_and_change_nothing)
{
	struct kretry_stat before, now;
	struct kt_party parties[3];
	int ids[3], i, j;
	uint64_t start;

	ASSERT_LT(0, create(self));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, kt_there(&parties[i], 0));
		ids[i] = kt_party_named(&parties[i], "breaker", 0);
	}
	EXPECT_EQ(2, kt_fail(&parties[0], ids[0], KEY, 3));
	start = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&parties[1], ids[1], KEY, KRETRY_EVENT_BEGIN));
	EXPECT_GT(start + 10 * MSEC, kt_now(CLOCK_MONOTONIC));
	before = state(self);
	ASSERT_EQ(0, kt_there(&parties[2], 0));
	ids[2] = kt_party_named(&parties[2], "breaker", 0);
	for (i = 1; i < 3; i++) {
		for (j = 0; j < 100; j++) {
			now = kt_stat_key(&parties[i], ids[i], KEY);
			ASSERT_EQ(before.half_open_ns, now.half_open_ns);
			ASSERT_EQ(KRETRY_OPEN, now.state);
		}
		kt_leave(&parties[i]);
	}
	now = state(self);
	EXPECT_EQ(before.opened, now.opened);
	EXPECT_EQ(before.transitions, now.transitions);
	EXPECT_EQ(before.half_open_ns, now.half_open_ns);
	kt_leave(&parties[0]);
}

/* Started closed, over when half-open or open again: counted nowhere. */
TEST_F(breaker, results_from_an_earlier_state_counted_nowhere)
{
	struct kretry_op late[4], probe;
	uint64_t half_open;
	int i;

	ASSERT_LT(0, create(self));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &late[i]));
	EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY, 3));
	half_open = state(self).half_open_ns;
	kt_sleep(10 * SEC);
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_report(&self->me, &late[0], KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(half_open, state(self).half_open_ns);
	kt_sleep_open(&self->me, self->id, KEY);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &probe));
	EXPECT_EQ(KRETRY_OP_PROBE, probe.flags & KRETRY_OP_PROBE);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &late[1], KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &late[2], KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
	EXPECT_EQ(1, state(self).leases);
	EXPECT_EQ(1, kt_stat(&self->me, self->id).opened);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &probe, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &late[3], KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(0, state(self).streak);
}

/* Hours of failing probes: each opening twice as long as the one before, up to the cap. */
TEST_F(breaker, open_time_grows_to_its_cap_and_starts_over_when_closed)
{
	uint64_t want = SEC, opened, left;
	struct kretry_op op;
	int i;

	self->policy.breaker.consecutive = 1;
	self->policy.breaker.open_ns = SEC;
	self->policy.breaker.open_cap_ns = HOUR;
	self->policy.breaker.open_growth_ppm = 2 * KRETRY_PPM;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(0, kt_fail(&self->me, self->id, KEY, 1));
	for (i = 0; i < 14; i++) {
		opened = state(self).half_open_ns;
		left = opened - kt_now(CLOCK_MONOTONIC);
		EXPECT_GE(want, left);
		EXPECT_LE(want - 10 * MSEC, left);
		kt_sleep(want / 2);
		EXPECT_EQ(KRETRY_STOP_OPEN, event(self, KRETRY_EVENT_BEGIN));
		EXPECT_EQ(opened, state(self).half_open_ns);
		kt_sleep_open(&self->me, self->id, KEY);
		ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
		kt_report(&self->me, &op, i == 13 ? KRETRY_EVENT_OK : KRETRY_EVENT_TRANSIENT);
		want = want * 2 < HOUR ? want * 2 : HOUR;
	}
	EXPECT_EQ(HOUR, want);
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	EXPECT_EQ(0, kt_fail(&self->me, self->id, KEY, 1));
	EXPECT_GE(SEC, state(self).half_open_ns - kt_now(CLOCK_MONOTONIC));
}

TEST_F(breaker, open_jitter_within_its_share_and_different_by_key)
{
	uint64_t time, low = HOUR, high = 0;
	int key;

	self->policy.breaker.consecutive = 1;
	self->policy.breaker.open_ns = 100 * SEC;
	self->policy.breaker.open_cap_ns = HOUR;
	self->policy.breaker.open_jitter_ppm = KRETRY_PPM / 2;
	ASSERT_LT(0, create(self));
	for (key = 0; key < 200; key++) {
		kt_fail(&self->me, self->id, key, 1);
		time = kt_stat_key(&self->me, self->id, key).half_open_ns -
		       kt_now(CLOCK_MONOTONIC);
		low = time < low ? time : low;
		high = time > high ? time : high;
	}
	EXPECT_LE(100 * SEC - 10 * MSEC, low);
	EXPECT_GE(105 * SEC, low);
	EXPECT_LE(145 * SEC, high);
	EXPECT_GE(150 * SEC, high);
}

/* -------- closing -------- */

TEST_F(breaker, half_open_share_judged_after_all_probes)
{
	struct kretry_op ops[4];
	int round, i;

	self->policy.breaker.probes = 4;
	self->policy.breaker.half_open_ppm = KRETRY_PPM / 2;
	ASSERT_LT(0, create(self));
	kt_fail(&self->me, self->id, KEY, 3);
	for (round = 0; round < 2; round++) {
		kt_sleep_open(&self->me, self->id, KEY);
		for (i = 0; i < 4; i++)
			ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &ops[i]));
		for (i = 0; i < 4; i++) {
			EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
			kt_report(&self->me, &ops[i],
				  i < 2 - round ? KRETRY_EVENT_TRANSIENT : KRETRY_EVENT_OK);
			if (i < 3)
				EXPECT_EQ(KRETRY_STOP_OPEN, event(self, KRETRY_EVENT_BEGIN));
		}
		EXPECT_EQ(round ? KRETRY_CLOSED : KRETRY_OPEN, state(self).state);
	}
}

TEST_F(breaker, successes_to_close_needed_one_failure_reopens)
{
	struct kretry_op op;
	int i;

	self->policy.breaker.successes_to_close = 3;
	ASSERT_LT(0, create(self));
	kt_fail(&self->me, self->id, KEY, 3);
	kt_sleep_open(&self->me, self->id, KEY);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
		EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
		EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	}
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	kt_fail(&self->me, self->id, KEY, 3);
	kt_sleep_open(&self->me, self->id, KEY);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
	EXPECT_EQ(3, kt_stat(&self->me, self->id).opened);
}

TEST_F(breaker, ramp_after_closing_admits_a_growing_share)
{
	struct kretry_op op;
	int64_t admitted;

	self->policy.breaker.ramp_ns = 100 * SEC;
	ASSERT_LT(0, create(self));
	kt_fail(&self->me, self->id, KEY, 3);
	kt_sleep_open(&self->me, self->id, KEY);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_GT(20, kt_many(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN, 1000, KRETRY_GO));
	kt_sleep(50 * SEC);
	admitted = kt_many(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN, 1000, KRETRY_GO);
	EXPECT_LT(420, admitted);
	EXPECT_GT(580, admitted);
	kt_sleep(51 * SEC);
	EXPECT_EQ(1000, kt_many(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN, 1000, KRETRY_GO));
}

TEST_HARNESS_MAIN
