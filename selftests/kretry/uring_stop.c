// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Each reason to stop is an errno of its own, at issue and at the deadline, and breaks a chain. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>

#define KEY	7

struct stop_case {
	void (*policy)(struct kretry_policy *policy);
	void (*happens)(struct kt_party *me, int id);
	unsigned int event;
	unsigned int flags;
	unsigned int verdict;
	int err;
};

/* -------- policies, and what happens on the key -------- */

static void with_no_retries(struct kretry_policy *policy)
{
	policy->max_retries = 2;
}

static void with_short_life(struct kretry_policy *policy)
{
	policy->max_elapsed_ns = 50 * MSEC;
}

static void with_one_token(struct kretry_policy *policy)
{
	kt_budget(policy, 1);
}

static void with_breaker(struct kretry_policy *policy)
{
	kt_breaker(policy, 2, 10 * SEC, 1);
}

static void with_patience(struct kretry_policy *policy)
{
	kt_breaker(policy, 2, 10 * SEC, 1);
	policy->flags = KRETRY_POLICY_WAIT_OPEN;
	policy->max_elapsed_ns = 5 * SEC;
}

static void with_cooling(struct kretry_policy *policy)
{
	policy->flags = KRETRY_POLICY_HINT_SHARED;
}

static void with_pacing(struct kretry_policy *policy)
{
	policy->flags = KRETRY_POLICY_PACE_ALL;
	policy->pacing.pace_ns = SEC;
	policy->pacing.horizon_ns = 500 * MSEC;
}

static void one_fails(struct kt_party *me, int id)
{
	kt_event(me, id, KEY, KRETRY_EVENT_TRANSIENT);
}

static void two_fail(struct kt_party *me, int id)
{
	one_fails(me, id);
	one_fails(me, id);
}

static void server_asks_for_time(struct kt_party *me, int id)
{
	struct kretry_op op = kt_failed(id, KEY, 0);

	op.flags = KRETRY_OP_HINT;
	op.hint_ns = 10 * SEC;
	kt_step(me->fd, &op);
}

static void one_begins(struct kt_party *me, int id)
{
	kt_event(me, id, KEY, KRETRY_EVENT_BEGIN);
}

/* -------- at issue -------- */

FIXTURE(uring_stop) {
	struct kt_party me;
	struct io_uring ring;
};

FIXTURE_VARIANT(uring_stop) {
	struct stop_case is;
};

FIXTURE_VARIANT_ADD(uring_stop, permanent) {
	.is = { NULL, NULL, KRETRY_EVENT_PERMANENT, 0, KRETRY_STOP_PERMANENT,
		KRETRY_ERRNO_STOP_PERMANENT },
};

FIXTURE_VARIANT_ADD(uring_stop, unsafe) {
	.is = { NULL, NULL, KRETRY_EVENT_UNKNOWN, 0, KRETRY_STOP_UNSAFE, KRETRY_ERRNO_STOP_UNSAFE },
};

FIXTURE_VARIANT_ADD(uring_stop, limit) {
	.is = { with_no_retries, NULL, KRETRY_EVENT_TRANSIENT, 0, KRETRY_STOP_LIMIT,
		KRETRY_ERRNO_STOP_LIMIT },
};

FIXTURE_VARIANT_ADD(uring_stop, hint) {
	.is = { NULL, NULL, KRETRY_EVENT_TRANSIENT, KRETRY_OP_NO_RETRY, KRETRY_STOP_HINT,
		KRETRY_ERRNO_STOP_HINT },
};

FIXTURE_VARIANT_ADD(uring_stop, elapsed) {
	.is = { with_short_life, NULL, KRETRY_EVENT_TRANSIENT, 0, KRETRY_STOP_ELAPSED,
		KRETRY_ERRNO_STOP_ELAPSED },
};

FIXTURE_VARIANT_ADD(uring_stop, budget) {
	.is = { with_one_token, one_fails, KRETRY_EVENT_TRANSIENT, 0, KRETRY_STOP_BUDGET,
		KRETRY_ERRNO_STOP_BUDGET },
};

FIXTURE_VARIANT_ADD(uring_stop, open_for_a_failure) {
	.is = { with_breaker, two_fail, KRETRY_EVENT_TRANSIENT, 0, KRETRY_STOP_OPEN,
		KRETRY_ERRNO_STOP_OPEN },
};

FIXTURE_VARIANT_ADD(uring_stop, open_for_begin) {
	.is = { with_breaker, two_fail, KRETRY_EVENT_BEGIN, 0, KRETRY_STOP_OPEN,
		KRETRY_ERRNO_STOP_OPEN },
};

FIXTURE_VARIANT_ADD(uring_stop, cooling) {
	.is = { with_cooling, server_asks_for_time, KRETRY_EVENT_BEGIN, 0, KRETRY_STOP_COOLING,
		KRETRY_ERRNO_STOP_COOLING },
};

FIXTURE_VARIANT_ADD(uring_stop, paced) {
	.is = { with_pacing, one_begins, KRETRY_EVENT_BEGIN, 0, KRETRY_STOP_PACED,
		KRETRY_ERRNO_STOP_PACED },
};

FIXTURE_SETUP(uring_stop)
{
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	ASSERT_EQ(0, kt_ring(&self->ring, 16, 0));
}

FIXTURE_TEARDOWN(uring_stop)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

static int create(struct kt_party *me, const struct stop_case *is)
{
	struct kretry_policy policy;

	kt_policy(&policy);
	kt_budget(&policy, 10);
	if (is->policy)
		is->policy(&policy);
	return kt_create(me->fd, &policy);
}

static uint64_t stopped(struct kt_party *me, int id, const struct stop_case *is)
{
	return kt_stat(me, id).stops[is->verdict - KRETRY_STOP_PERMANENT];
}

TEST_F(uring_stop, at_issue_its_errno_at_once_nothing_moved)
{
	const struct stop_case *is = &variant->is;
	int id = create(&self->me, is);
	struct kretry_stat before, after;
	struct kretry_op op = kt_failed(id, KEY, 1);
	uint64_t stops;

	ASSERT_LT(0, id);
	op.event = (__u8)is->event;
	op.flags = (__u16)is->flags;
	op.attempt = is->event == KRETRY_EVENT_BEGIN ? 0 : 2;
	if (is->happens)
		is->happens(&self->me, id);
	before = kt_stat_key(&self->me, id, KEY);
	stops = stopped(&self->me, id, is);
	kt_put_wait(&self->ring, self->me.fd, &op)->flags = IOSQE_IO_LINK;
	kt_put_nop(&self->ring, 2);
	EXPECT_EQ(-is->err, kt_result(&self->ring, 1));
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 2));
	EXPECT_EQ(is->verdict, op.verdict);
	EXPECT_EQ(is->event == KRETRY_EVENT_BEGIN ? 0 : 2, op.attempt);
	EXPECT_EQ(KRETRY_EVENT_NONE, op.event);
	after = kt_stat_key(&self->me, id, KEY);
	EXPECT_EQ(before.balance_utok, after.balance_utok);
	EXPECT_EQ(0, kt_stat(&self->me, id).queued);
	EXPECT_EQ(stops + 1, stopped(&self->me, id, is));
}

/* -------- at the deadline -------- */

FIXTURE(uring_stop_later) {
	struct kt_party me;
	struct io_uring ring;
};

FIXTURE_VARIANT(uring_stop_later) {
	struct stop_case is;
};

FIXTURE_VARIANT_ADD(uring_stop_later, open) {
	.is = { with_breaker, one_fails, 0, 0, KRETRY_STOP_OPEN, KRETRY_ERRNO_STOP_OPEN },
};

FIXTURE_VARIANT_ADD(uring_stop_later, elapsed) {
	.is = { with_patience, one_fails, 0, 0, KRETRY_STOP_ELAPSED, KRETRY_ERRNO_STOP_ELAPSED },
};

FIXTURE_VARIANT_ADD(uring_stop_later, cooling) {
	.is = { with_cooling, server_asks_for_time, 0, 0, KRETRY_STOP_COOLING,
		KRETRY_ERRNO_STOP_COOLING },
};

FIXTURE_VARIANT_ADD(uring_stop_later, paced) {
	.is = { with_pacing, one_begins, 0, 0, KRETRY_STOP_PACED, KRETRY_ERRNO_STOP_PACED },
};

FIXTURE_SETUP(uring_stop_later)
{
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	ASSERT_EQ(0, kt_ring(&self->ring, 16, 0));
}

FIXTURE_TEARDOWN(uring_stop_later)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

TEST_F(uring_stop_later, at_the_deadline_its_errno_the_token_comes_back)
{
	const struct stop_case *is = &variant->is;
	int id = create(&self->me, is);
	struct kretry_op op = kt_failed(id, KEY, 1), written;
	struct kretry_stat before, after;
	uint64_t now, stops;

	ASSERT_LT(0, id);
	kt_put_wait(&self->ring, self->me.fd, &op)->flags = IOSQE_IO_LINK;
	kt_put_nop(&self->ring, 2);
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	ASSERT_EQ(KRETRY_RETRY, op.verdict);
	ASSERT_EQ(1, op.attempt);
	written = op;
	is->happens(&self->me, id);
	before = kt_stat_key(&self->me, id, KEY);
	stops = stopped(&self->me, id, is);
	EXPECT_EQ(-is->err, kt_result(&self->ring, 1));
	now = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(-ECANCELED, kt_result(&self->ring, 2));
	EXPECT_LE(op.deadline_ns, now);
	EXPECT_GT(op.deadline_ns + MSEC, now);
	EXPECT_EQ(0, memcmp(&written, &op, sizeof(op)));
	after = kt_stat_key(&self->me, id, KEY);
	EXPECT_EQ(before.balance_utok + KRETRY_UTOK, after.balance_utok);
	EXPECT_EQ(KRETRY_UTOK, kt_stat(&self->me, id).refunded_utok);
	EXPECT_EQ(0, kt_stat(&self->me, id).queued);
	EXPECT_EQ(stops + 1, stopped(&self->me, id, is));
}

TEST_HARNESS_MAIN
