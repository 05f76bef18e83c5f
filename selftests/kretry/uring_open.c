// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * WAIT and the breaker: under WAIT_OPEN it waits until it may be a probe, and its result counts by
 * the generation that was written at issue, or not at all.
 */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>

#define KEY	7

FIXTURE(uring_open) {
	struct kt_party me;
	struct kretry_policy policy;	/* 100 ms, opens for 1 s at the first failure, 1 probe */
	int id;
	struct io_uring ring;
};

FIXTURE_SETUP(uring_open)
{
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	kt_policy(&self->policy);
	kt_budget(&self->policy, 100);
	kt_breaker(&self->policy, 1, SEC, 1);
	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	self->id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, self->id);
	ASSERT_EQ(0, kt_ring(&self->ring, 16, 0));
}

FIXTURE_TEARDOWN(uring_open)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

static struct kretry_stat state(FIXTURE_DATA(uring_open) *self)
{
	return kt_stat_key(&self->me, self->id, KEY);
}

/* @op has failed, opened the breaker, slept and become its probe. */
static int become_probe(FIXTURE_DATA(uring_open) *self, struct kretry_op *op)
{
	uint64_t half_open;

	*op = kt_failed(self->id, KEY, 1);
	kt_put_wait(&self->ring, self->me.fd, op);
	CHECK_EQ(1, io_uring_submit(&self->ring));
	half_open = state(self).half_open_ns;
	CHECK_EQ(KRETRY_OPEN, state(self).state);
	CHECK_EQ(half_open + 100 * MSEC, op->deadline_ns);
	CHECK_EQ(0, kt_result(&self->ring, 1));
	CHECK(kt_now(CLOCK_MONOTONIC) >= op->deadline_ns);
	CHECK(kt_now(CLOCK_MONOTONIC) < op->deadline_ns + MSEC);
	CHECK_EQ(KRETRY_HALF_OPEN, state(self).state);
	CHECK_EQ(1, state(self).leases);
	CHECK_EQ(KRETRY_STOP_OPEN, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
	return 0;
}

/* -------- the probe's report -------- */

TEST_F(uring_open, probe_reports_ok_breaker_closes)
{
	struct kretry_op op;

	ASSERT_EQ(0, become_probe(self, &op));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	EXPECT_EQ(0, state(self).leases);
}

TEST_F(uring_open, probe_reports_a_failure_breaker_reopens)
{
	struct kretry_op op;

	ASSERT_EQ(0, become_probe(self, &op));
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
	EXPECT_EQ(2, kt_stat(&self->me, self->id).opened);
	EXPECT_EQ(0, state(self).leases);
}

TEST_F(uring_open, probe_reports_cancelled_lease_is_free)
{
	struct kretry_op op;

	ASSERT_EQ(0, become_probe(self, &op));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_CANCELLED));
	EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
	EXPECT_EQ(0, state(self).leases);
	EXPECT_EQ(KRETRY_GO, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
}

/* A WAIT takes the report and waits for the next turn: again as the probe. */
TEST_F(uring_open, probe_fails_by_wait_and_is_the_next_probe)
{
	struct kretry_op op;
	uint32_t first;

	ASSERT_EQ(0, become_probe(self, &op));
	first = op.generation;
	op.event = KRETRY_EVENT_TRANSIENT;
	EXPECT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &op));
	EXPECT_NE(first, op.generation);
	EXPECT_EQ(2, op.attempt);
	EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
	EXPECT_EQ(1, state(self).leases);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
}

TEST_F(uring_open, probe_silent_too_long_counts_as_lost)
{
	struct kretry_op op;

	ASSERT_EQ(0, become_probe(self, &op));
	kt_sleep(9 * SEC + 900 * MSEC);
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(0, state(self).probes_lost);
	kt_sleep(200 * MSEC);
	kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN);
	EXPECT_EQ(1, kt_stat(&self->me, self->id).probes_lost);
}

/* -------- the others meanwhile -------- */

TEST_F(uring_open, second_waits_on_until_the_probe_has_closed_it)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1), second = kt_failed(self->id, KEY, 2);
	uint64_t closed;

	kt_put_wait(&self->ring, self->me.fd, &op);
	kt_put_wait(&self->ring, self->me.fd, &second);
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	/* The report of one must not be taken for the other's. */
	EXPECT_NE(op.generation, second.generation);
	kt_sleep(5 * SEC);
	EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	EXPECT_EQ(1, state(self).leases);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	closed = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(0, kt_result(&self->ring, 2));
	EXPECT_GT(closed + 101 * MSEC, kt_now(CLOCK_MONOTONIC));
	EXPECT_EQ(0, state(self).leases);
	EXPECT_EQ(2 * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &second, KRETRY_EVENT_OK));
}

TEST_F(uring_open, forced_open_waits_on_charged_once)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1);

	ASSERT_EQ(0, kt_force(&self->me, self->id, KRETRY_MODE_FORCED_OPEN));
	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	kt_sleep(100 * SEC);
	EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).queued);
	ASSERT_EQ(0, kt_force(&self->me, self->id, KRETRY_MODE_AUTOMATIC));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_EQ(KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
	EXPECT_EQ(0, kt_stat(&self->me, self->id).refunded_utok);
}

/* Opened and half-open again while it sleeps: it is the probe under the generation it was told. */
TEST_F(uring_open, issued_while_closed_becomes_the_probe)
{
	struct kretry_op op;

	self->policy.backoff.base_ns = 5 * SEC;
	self->policy.breaker.consecutive = 2;
	self->id = kt_party_create(&self->me, &self->policy);
	op = kt_failed(self->id, KEY, 1);
	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	kt_event(&self->me, self->id, KEY, KRETRY_EVENT_TRANSIENT);
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
	EXPECT_EQ(1, state(self).leases);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
}

TEST_F(uring_open, cancelled_while_open_the_token_comes_back)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	struct kretry_cancel cancel;

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(99 * KRETRY_UTOK, state(self).balance_utok);
	EXPECT_EQ(0, kt_cancel(self->me.fd, 1, &cancel));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 1));
	EXPECT_EQ(100 * KRETRY_UTOK, state(self).balance_utok);
	EXPECT_EQ(0, state(self).leases);
	kt_sleep(2 * SEC);
	EXPECT_EQ(KRETRY_GO, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
}

/* -------- which result counts -------- */

/* A wait on a closed breaker that stays closed: its result counts as any other. */
static int wait_on_closed(FIXTURE_DATA(uring_open) *self, struct kretry_op *op)
{
	self->policy.breaker.consecutive = 2;
	self->id = kt_party_create(&self->me, &self->policy);
	*op = kt_failed(self->id, KEY, 1);
	CHECK_EQ(0, kt_wait_for(&self->ring, self->me.fd, op));
	CHECK_EQ(KRETRY_CLOSED, state(self).state);
	CHECK_EQ(1, state(self).streak);
	return 0;
}

TEST_F(uring_open, result_counts_while_the_state_is_the_same)
{
	struct kretry_op op;

	ASSERT_EQ(0, wait_on_closed(self, &op));
	kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT);
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
}

TEST_F(uring_open, result_after_a_state_change_counts_nowhere)
{
	struct kretry_op op, probe;

	ASSERT_EQ(0, wait_on_closed(self, &op));
	kt_event(&self->me, self->id, KEY, KRETRY_EVENT_TRANSIENT);
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
	kt_sleep(2 * SEC);
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &probe));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &probe, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(0, state(self).streak);
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(0, state(self).streak);
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
}

/* -------- a prober that dies -------- */

static int probe_and_die(void *arg)
{
	FIXTURE_DATA(uring_open) *self = arg;
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	struct io_uring ring;

	CHECK_EQ(0, kt_ring(&ring, 4, 0));
	CHECK_EQ(0, kt_wait_for(&ring, self->me.fd, &op));
	CHECK_EQ(1, state(self).leases);
	return 0;
}

TEST_F(uring_open, prober_exits_others_may_probe)
{
	EXPECT_EQ(0, kt_child(probe_and_die, self));
	EXPECT_EQ(0, state(self).leases);
	EXPECT_EQ(KRETRY_GO, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(1, state(self).leases);
}

TEST_HARNESS_MAIN
