// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Pacing, cooling, waiting for an open breaker, forced modes, and who is told of changes. */
#include "harness.h"
#include "shared.h"

#include <poll.h>
#include <pthread.h>

#define KEY	7
#define FAR	(3600 * SEC)

FIXTURE(pacing) {
	struct kt_party me, other;
	struct kretry_policy policy;	/* "pacing" */
	int id, others;
};

FIXTURE_SETUP(pacing)
{
	ASSERT_EQ(0, kt_here(&self->me));
	ASSERT_EQ(0, kt_there(&self->other, 0));
	kt_policy(&self->policy);
	kt_name(&self->policy, "pacing");
}

FIXTURE_TEARDOWN(pacing)
{
	kt_leave(&self->other);
	kt_leave(&self->me);
}

static int create(FIXTURE_DATA(pacing) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	CHECK(self->id > 0);
	self->others = kt_party_named(&self->other, "pacing", self->policy.open_flags);
	CHECK(self->others > 0);
	return 0;
}

static struct kretry_stat state(FIXTURE_DATA(pacing) *self)
{
	return kt_stat_key(&self->me, self->id, KEY);
}

/* -------- pacing -------- */

TEST_F(pacing, all_attempts_paced_slots_host_wide)
{
	uint64_t before, first, deadline;
	struct kretry_op op;
	int i;

	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	self->policy.pacing.pace_ns = 250 * MSEC;
	self->policy.pacing.horizon_ns = FAR;
	ASSERT_EQ(0, create(self));
	before = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	first = op.deadline_ns;
	EXPECT_LE(before, first);
	EXPECT_GE(kt_now(CLOCK_MONOTONIC), first);
	for (i = 1; i < 100; i++) {
		deadline = first + i * 250 * MSEC;
		EXPECT_EQ(KRETRY_GO, kt_begin(i % 2 ? &self->other : &self->me,
					      i % 2 ? self->others : self->id, KEY, &op));
		EXPECT_EQ(deadline, op.deadline_ns);
		EXPECT_EQ(deadline + 250 * MSEC, state(self).pace_next_ns);
	}
	/* Another key has slots of its own, and an unused one is not saved up. */
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY + 1, &op));
	EXPECT_GE(kt_now(CLOCK_MONOTONIC), op.deadline_ns);
	kt_sleep(60 * SEC);
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_LE(kt_now(CLOCK_MONOTONIC) + 249 * MSEC, op.deadline_ns);
}

TEST_F(pacing, beyond_the_horizon_stopped_no_slot_taken)
{
	struct kretry_op op;
	uint64_t next;
	int i;

	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	self->policy.pacing.pace_ns = SEC;
	self->policy.pacing.horizon_ns = 3 * SEC;
	ASSERT_EQ(0, create(self));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	next = state(self).pace_next_ns;
	for (i = 0; i < 10; i++)
		EXPECT_EQ(KRETRY_STOP_PACED, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(next, state(self).pace_next_ns);
	EXPECT_LE(kt_now(CLOCK_MONOTONIC), op.deadline_ns);
	kt_sleep(1100 * MSEC);
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
}

TEST_F(pacing, without_pace_all_only_retries)
{
	struct kretry_op first, retry;
	uint64_t slot;

	self->policy.pacing.pace_ns = SEC;
	self->policy.pacing.horizon_ns = FAR;
	ASSERT_EQ(0, create(self));
	EXPECT_EQ(100, kt_many(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN, 100, KRETRY_GO));
	EXPECT_EQ(0, state(self).pace_next_ns);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &first));
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &first, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_OP_READMIT, first.flags & KRETRY_OP_READMIT);
	retry = first;
	EXPECT_EQ(KRETRY_GO, kt_report(&self->me, &first, KRETRY_EVENT_BEGIN));
	slot = first.deadline_ns;
	EXPECT_EQ(KRETRY_GO, kt_report(&self->me, &retry, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(slot + SEC, retry.deadline_ns);
}

/* -------- cooling -------- */

TEST_F(pacing, shared_hint_cools_the_key_for_everybody)
{
	struct kretry_op op;
	uint64_t until;

	self->policy.flags = KRETRY_POLICY_HINT_SHARED;
	ASSERT_EQ(0, create(self));
	op = kt_op(self->id, 0);
	op.key = KEY;
	op.flags = KRETRY_OP_HINT;
	op.hint_ns = 5 * SEC;
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_THROTTLED));
	until = state(self).cooling_ns;
	EXPECT_LE(kt_now(CLOCK_MONOTONIC) + 4990 * MSEC, until);
	EXPECT_GE(kt_now(CLOCK_MONOTONIC) + 5 * SEC, until);
	EXPECT_EQ(KRETRY_STOP_COOLING, kt_begin(&self->other, self->others, KEY, &op));
	EXPECT_EQ(until, op.deadline_ns);
	op = kt_op(self->others, 0);
	op.key = KEY;
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->other, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(until + 100 * MSEC, op.deadline_ns);
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY + 1, &op));
	/* A shorter hint does not cut it short. */
	op = kt_op(self->id, 0);
	op.key = KEY;
	op.flags = KRETRY_OP_HINT;
	op.hint_ns = SEC;
	kt_report(&self->me, &op, KRETRY_EVENT_THROTTLED);
	EXPECT_EQ(until, state(self).cooling_ns);
	kt_sleep(5 * SEC);
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &op));
	EXPECT_EQ(0, state(self).cooling_ns);
}

TEST_F(pacing, hint_not_shared_cools_nobody_else)
{
	struct kretry_op op;

	kt_budget(&self->policy, 10);
	ASSERT_EQ(0, create(self));
	op = kt_op(self->id, 0);
	op.key = KEY;
	op.flags = KRETRY_OP_HINT;
	op.hint_ns = 5 * SEC;
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_THROTTLED));
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &op));
}

/* -------- waiting for an open breaker -------- */

TEST_F(pacing, wait_open_retries_after_the_half_open_instant_within_limits)
{
	struct kretry_op op, late;

	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	self->policy.max_elapsed_ns = 20 * SEC;
	kt_breaker(&self->policy, 1, 10 * SEC, 1);
	ASSERT_EQ(0, create(self));
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(state(self).half_open_ns + 100 * MSEC, op.deadline_ns);
	EXPECT_EQ(1, op.attempt);
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	late = op;
	ASSERT_EQ(KRETRY_GO, kt_report(&self->me, &op, KRETRY_EVENT_BEGIN));
	/* The second finds no free probe: it waits on, at no cost, until its time is over. */
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &late, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(1, late.attempt);
	EXPECT_LE(kt_now(CLOCK_MONOTONIC), late.deadline_ns);
	kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT);
	EXPECT_EQ(KRETRY_STOP_ELAPSED, kt_report(&self->me, &late, KRETRY_EVENT_BEGIN));
}

/* -------- forced modes -------- */

TEST_F(pacing, forced_modes_decide_for_all_keys_or_one)
{
	struct kretry_op op;

	kt_breaker(&self->policy, 3, FAR, 1);
	ASSERT_EQ(0, create(self));
	EXPECT_EQ(0, kt_force(&self->me, self->id, KRETRY_MODE_FORCED_OPEN));
	EXPECT_EQ(KRETRY_MODE_FORCED_OPEN, kt_stat(&self->me, self->id).mode);
	EXPECT_EQ(KRETRY_MODE_FORCED_OPEN, state(self).mode);
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_begin(&self->other, self->others, KEY, &op));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_begin(&self->other, self->others, KEY + 1, &op));
	EXPECT_EQ(0, kt_force_key(&self->me, self->id, KEY, KRETRY_MODE_AUTOMATIC));
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &op));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_begin(&self->other, self->others, KEY + 1, &op));
	EXPECT_EQ(0, kt_force(&self->me, self->id, KRETRY_MODE_AUTOMATIC));
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY + 1, &op));
}

TEST_F(pacing, forced_closed_admits_and_counts_nothing)
{
	struct kretry_op op;

	kt_breaker(&self->policy, 3, FAR, 1);
	ASSERT_EQ(0, create(self));
	kt_fail(&self->me, self->id, KEY, 3);
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(0, kt_force_key(&self->me, self->id, KEY, KRETRY_MODE_FORCED_CLOSED));
	EXPECT_EQ(10, kt_fail(&self->me, self->id, KEY, 10));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).opened);
	EXPECT_EQ(0, kt_force_key(&self->me, self->id, KEY + 1, KRETRY_MODE_FORCED_CLOSED));
	EXPECT_EQ(10, kt_fail(&self->me, self->id, KEY + 1, 10));
	EXPECT_EQ(0, kt_stat_key(&self->me, self->id, KEY + 1).streak);
}

TEST_F(pacing, metrics_only_changes_state_and_refuses_nobody)
{
	unsigned int by_flag;

	kt_breaker(&self->policy, 3, FAR, 1);
	for (by_flag = 0; by_flag < 2; by_flag++) {
		self->policy.breaker.flags = by_flag ? KRETRY_BREAKER_METRICS_ONLY : 0;
		kt_name(&self->policy, "");
		self->id = kt_party_create(&self->me, &self->policy);
		ASSERT_LT(0, self->id);
		if (!by_flag)
			EXPECT_EQ(0, kt_force(&self->me, self->id, KRETRY_MODE_METRICS_ONLY));
		EXPECT_EQ(10, kt_fail(&self->me, self->id, KEY, 10));
		EXPECT_EQ(KRETRY_OPEN, state(self).state);
		EXPECT_EQ(1, kt_stat(&self->me, self->id).opened);
		EXPECT_EQ(KRETRY_GO, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
	}
}

/* -------- POLLPRI -------- */

static short polled(int fd, int timeout)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN | POLLPRI };

	return poll(&ready, 1, timeout) < 0 ? -1 : ready.revents;
}

TEST_F(pacing, notify_readable_until_the_news_are_read)
{
	struct kt_party deaf;

	kt_breaker(&self->policy, 1, 10 * SEC, 1);
	self->policy.open_flags = KRETRY_OPEN_NOTIFY;
	ASSERT_EQ(0, create(self));
	ASSERT_EQ(0, kt_here(&deaf));
	ASSERT_LT(0, kt_party_named(&deaf, "pacing", 0));
	EXPECT_EQ(0, polled(self->me.fd, 0));
	kt_fail(&self->other, self->others, KEY, 1);
	EXPECT_EQ(POLLPRI, polled(self->me.fd, 0));
	EXPECT_EQ(POLLPRI, polled(self->me.fd, 0));
	EXPECT_EQ(0, polled(deaf.fd, 0));
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
	EXPECT_EQ(POLLPRI, polled(self->me.fd, 0));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).transitions);
	EXPECT_EQ(0, polled(self->me.fd, 0));
	kt_sleep_open(&self->me, self->id, KEY);
	kt_event(&self->other, self->others, KEY, KRETRY_EVENT_BEGIN);
	EXPECT_EQ(POLLPRI, polled(self->me.fd, 0));
	kt_leave(&deaf);
}

/* An opener that comes later is not told of what was before. */
TEST_F(pacing, notify_new_opener_has_no_old_news)
{
	struct kt_party late;

	kt_breaker(&self->policy, 1, 10 * SEC, 1);
	ASSERT_EQ(0, create(self));
	kt_fail(&self->other, self->others, KEY, 1);
	ASSERT_EQ(0, kt_here(&late));
	ASSERT_LT(0, kt_party_named(&late, "pacing", KRETRY_OPEN_NOTIFY));
	EXPECT_EQ(0, polled(late.fd, 0));
	kt_leave(&late);
}

static void *trip_later(void *arg)
{
	FIXTURE_DATA(pacing) *self = arg;

	kt_sleep(2 * SEC);
	kt_fail(&self->other, self->others, KEY, 1);
	return NULL;
}

TEST_F(pacing, notify_wakes_a_waiter_when_another_process_trips_it)
{
	uint64_t start = kt_now(CLOCK_MONOTONIC), waited;
	pthread_t thread;

	kt_breaker(&self->policy, 1, 10 * SEC, 1);
	self->policy.open_flags = KRETRY_OPEN_NOTIFY;
	ASSERT_EQ(0, create(self));
	ASSERT_EQ(0, pthread_create(&thread, NULL, trip_later, self));
	EXPECT_EQ(POLLPRI, polled(self->me.fd, 60000));
	waited = kt_now(CLOCK_MONOTONIC) - start;
	EXPECT_LE(2 * SEC, waited);
	EXPECT_GE(3 * SEC, waited);
	pthread_join(thread, NULL);
}

TEST_HARNESS_MAIN
