// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One op through STEP: every event, verdict, limit and hint. */
#include "harness.h"

FIXTURE(step) {
	int fd;
	struct kretry_policy policy;
};

FIXTURE_SETUP(step)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&self->policy);
}

FIXTURE_TEARDOWN(step)
{
	close(self->fd);
}

/* The policy as the test has made it, and an op under it. */
static struct kretry_op start(FIXTURE_DATA(step) *self, unsigned int event)
{
	return kt_op(kt_create(self->fd, &self->policy), event);
}

static int again(FIXTURE_DATA(step) *self, struct kretry_op *op, unsigned int event)
{
	op->event = event;
	return kt_step(self->fd, op);
}

TEST_F(step, begin_go_now)
{
	struct kretry_op op = start(self, KRETRY_EVENT_BEGIN);
	uint64_t before = kt_now(CLOCK_MONOTONIC), after;

	op.key = 0x0123456789abcdefULL;
	op.user_data = ~op.key;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	after = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(KRETRY_GO, op.verdict);
	EXPECT_EQ(KRETRY_EVENT_NONE, op.event);
	EXPECT_NE(0, op.generation);
	EXPECT_EQ(0, op.attempt);
	EXPECT_LE(before, op.start_ns);
	EXPECT_GE(after, op.start_ns);
	EXPECT_EQ(op.start_ns, op.deadline_ns);
	EXPECT_EQ(0x0123456789abcdefULL, op.key);
	EXPECT_EQ(~op.key, op.user_data);
}

TEST_F(step, begin_again_keeps_the_start)
{
	struct kretry_op op = start(self, KRETRY_EVENT_BEGIN);
	uint64_t started;

	ASSERT_EQ(0, kt_step(self->fd, &op));
	started = op.start_ns;
	kt_sleep(MSEC);
	ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(started, op.start_ns);
	EXPECT_LE(started + MSEC, op.deadline_ns);
}

TEST_F(step, replay_einval)
{
	struct kretry_op op = start(self, KRETRY_EVENT_TRANSIENT), before;

	ASSERT_EQ(0, kt_step(self->fd, &op));
	before = op;
	EXPECT_EQ(-EINVAL, kt_step(self->fd, &op));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(step, failure_without_begin_retry_with_a_start)
{
	struct kretry_op op = start(self, KRETRY_EVENT_TRANSIENT);
	uint64_t before = kt_now(CLOCK_MONOTONIC);

	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(1, op.attempt);
	EXPECT_EQ(0, op.flags);
	EXPECT_LE(before, op.start_ns);
	EXPECT_EQ(100 * MSEC, op.delay_ns);
	EXPECT_EQ(op.start_ns + op.delay_ns, op.deadline_ns);
}

TEST_F(step, ok_and_cancelled_done_ready_for_the_next_operation)
{
	static const unsigned int events[] = { KRETRY_EVENT_OK, KRETRY_EVENT_CANCELLED };
	struct kretry_op op;
	size_t i;

	for (i = 0; i < ARRAY_LEN(events); i++) {
		op = start(self, KRETRY_EVENT_TRANSIENT);
		ASSERT_EQ(0, kt_step(self->fd, &op));
		kt_sleep(100 * MSEC);
		ASSERT_EQ(0, again(self, &op, events[i]));
		EXPECT_EQ(KRETRY_DONE, op.verdict);
		EXPECT_EQ(0, op.attempt);
		EXPECT_EQ(0, op.start_ns);
		EXPECT_EQ(0, op.delay_ns);
		EXPECT_EQ(0, op.deadline_ns);
		ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_TRANSIENT));
		EXPECT_EQ(100 * MSEC, op.delay_ns);
	}
}

TEST_F(step, ok_without_begin_done)
{
	struct kretry_op op = start(self, KRETRY_EVENT_OK);

	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_DONE, op.verdict);
	EXPECT_EQ(0, op.start_ns);
}

TEST_F(step, ok_sooner_than_reset_after_keeps_the_backoff)
{
	struct kretry_op op, before;

	self->policy.reset_after_ns = 50 * MSEC;
	self->policy.backoff.strategy = KRETRY_LINEAR;
	op = start(self, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	before = op;
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns + 40 * MSEC);
	ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_DONE, op.verdict);
	EXPECT_EQ(before.attempt, op.attempt);
	EXPECT_EQ(before.start_ns, op.start_ns);
	EXPECT_EQ(before.delay_ns, op.delay_ns);
	EXPECT_EQ(before.deadline_ns, op.deadline_ns);
	ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(200 * MSEC, op.delay_ns);
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns + 50 * MSEC);
	ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(0, op.attempt);
}

TEST_F(step, permanent_stop_whatever_else)
{
	struct kretry_op op;

	self->policy.max_retries = 0;
	op = start(self, KRETRY_EVENT_PERMANENT);
	op.flags = KRETRY_OP_NO_RETRY | KRETRY_OP_IDEMPOTENT;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_STOP_PERMANENT, op.verdict);
	EXPECT_EQ(0, op.attempt);
	EXPECT_EQ(0, op.deadline_ns);
	EXPECT_EQ(KRETRY_OP_IDEMPOTENT, op.flags);
}

TEST_F(step, unknown_retried_only_if_idempotent)
{
	struct kretry_op op;

	op = start(self, KRETRY_EVENT_UNKNOWN);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_STOP_UNSAFE, op.verdict);
	op.flags = KRETRY_OP_IDEMPOTENT;
	ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_UNKNOWN));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(KRETRY_OP_IDEMPOTENT, op.flags);
	self->policy.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT;
	op = start(self, KRETRY_EVENT_UNKNOWN);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
}

/* max_retries = 3 is four attempts, 0 is one, all ones is any number. */
TEST_F(step, max_retries_stop_after_that_many)
{
	static const uint32_t limits[] = { 0, 1, 3 };
	struct kretry_op op;
	uint32_t retries;
	size_t i;

	for (i = 0; i < ARRAY_LEN(limits); i++) {
		self->policy.max_retries = limits[i];
		op = start(self, KRETRY_EVENT_BEGIN);
		ASSERT_EQ(0, kt_step(self->fd, &op));
		for (retries = 0; retries < 10; retries++) {
			ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_TRANSIENT));
			if (op.verdict != KRETRY_RETRY)
				break;
		}
		EXPECT_EQ(limits[i], retries);
		EXPECT_EQ(KRETRY_STOP_LIMIT, op.verdict);
		EXPECT_EQ(limits[i], op.attempt);
	}
}

TEST_F(step, no_limit_at_the_last_attempt_number_retries)
{
	struct kretry_op op = start(self, KRETRY_EVENT_TRANSIENT);

	op.attempt = 0xfffffffe;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(0xffffffff, op.attempt);
	ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(0xffffffff, op.attempt);
}

/*
 * 15 s in all, 0.5 s by 1.5 up to 5 s, instant failures: seven attempts, the last after 10.39 s,
 * and the eighth is refused at once.
 */
TEST_F(step, max_elapsed_seven_attempts_then_stop_at_once)
{
	struct kretry_op op;
	uint64_t started;
	int attempts;

	kt_exponential(&self->policy, 500 * MSEC, 5 * SEC);
	self->policy.backoff.multiplier_ppm = 1500000;
	self->policy.max_elapsed_ns = 15 * SEC;
	op = start(self, KRETRY_EVENT_BEGIN);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	started = op.start_ns;
	for (attempts = 1; attempts < 20; attempts++) {
		ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_TRANSIENT));
		if (op.verdict != KRETRY_RETRY)
			break;
		kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	}
	EXPECT_EQ(7, attempts);
	EXPECT_EQ(KRETRY_STOP_ELAPSED, op.verdict);
	EXPECT_EQ(0, op.deadline_ns);
	EXPECT_LE(10390 * MSEC, kt_now(CLOCK_MONOTONIC) - started);
	EXPECT_GT(10900 * MSEC, kt_now(CLOCK_MONOTONIC) - started);
}

TEST_F(step, start_in_the_future_counts_as_now)
{
	struct kretry_op op;
	uint64_t now;

	self->policy.max_elapsed_ns = SEC;
	op = start(self, KRETRY_EVENT_TRANSIENT);
	now = kt_now(CLOCK_MONOTONIC);
	op.start_ns = now + 3600 * SEC;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_GT(now + SEC, op.start_ns);
	op.start_ns = ~0ULL;
	ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_GT(now + SEC, op.start_ns);
	op.start_ns = 1;
	ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(now > SEC ? KRETRY_STOP_ELAPSED : KRETRY_RETRY, op.verdict);
}

/* -------- hints -------- */

struct hint_row {
	uint64_t hint_ns, limit_ns, over_own_ns;
	uint32_t policy_flags;
	unsigned int verdict;
	uint64_t delay_ns;
	uint16_t flags;
};

/* The own delay is 1 s with base 1 s, without jitter. */
static const struct hint_row hint_rows[] = {
	{ 5 * SEC, 0, 0, 0, KRETRY_RETRY, 5 * SEC, 0 },
	{ 86400 * SEC, 0, 0, 0, KRETRY_RETRY, 86400 * SEC, 0 },
	{ 0, 0, 0, 0, KRETRY_RETRY, SEC, 0 },
	{ 0, 0, 0, KRETRY_POLICY_HINT_EXACT, KRETRY_RETRY, 0, 0 },
	{ SEC - 1, 0, 0, 0, KRETRY_RETRY, SEC, 0 },
	{ SEC - 1, 0, 0, KRETRY_POLICY_HINT_EXACT, KRETRY_RETRY, SEC - 1, 0 },
	{ SEC - 1, 0, 0, KRETRY_POLICY_HINT_EXACT | KRETRY_POLICY_HINT_MAX, KRETRY_RETRY, SEC, 0 },
	{ 5 * SEC, 5 * SEC, 0, 0, KRETRY_RETRY, 5 * SEC, 0 },
	{ 5 * SEC + 1, 5 * SEC, 0, 0, KRETRY_STOP_HINT, 0, 0 },
	{ ~0ULL, 5 * SEC, 0, 0, KRETRY_STOP_HINT, 0, 0 },
	{ 9 * SEC, 5 * SEC, 0, KRETRY_POLICY_HINT_CLAMP, KRETRY_RETRY, 5 * SEC, KRETRY_OP_CLAMPED },
	{ 9 * SEC, 0, 2 * SEC, 0, KRETRY_RETRY, 3 * SEC, KRETRY_OP_CLAMPED },
	{ 3 * SEC, 0, 2 * SEC, 0, KRETRY_RETRY, 3 * SEC, 0 },
};

TEST_F(step, hint_each_rule_exact_without_jitter)
{
	const struct hint_row *row;
	struct kretry_op op;

	self->policy.backoff.base_ns = SEC;
	for (row = hint_rows; row < hint_rows + ARRAY_LEN(hint_rows); row++) {
		self->policy.flags = row->policy_flags;
		self->policy.hint_limit_ns = row->limit_ns;
		self->policy.hint_over_own_ns = row->over_own_ns;
		op = start(self, KRETRY_EVENT_THROTTLED);
		op.flags = KRETRY_OP_HINT;
		op.hint_ns = row->hint_ns;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		EXPECT_EQ(row->verdict, op.verdict)
			TH_LOG("row %td", row - hint_rows);
		EXPECT_EQ(row->delay_ns, op.delay_ns)
			TH_LOG("row %td", row - hint_rows);
		EXPECT_EQ(row->flags, op.flags)
			TH_LOG("row %td", row - hint_rows);
		EXPECT_EQ(0, op.hint_ns);
	}
}

TEST_F(step, hint_with_jitter_never_sooner_and_spread)
{
	uint64_t least = ~0ULL, most = 0;
	struct kretry_op op;
	int i;

	self->policy.backoff.base_ns = SEC;
	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	for (i = 0; i < 300; i++) {
		op = start(self, KRETRY_EVENT_THROTTLED);
		op.flags = KRETRY_OP_HINT;
		op.hint_ns = 5 * SEC;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		least = op.delay_ns < least ? op.delay_ns : least;
		most = op.delay_ns > most ? op.delay_ns : most;
	}
	EXPECT_LE(5 * SEC, least);
	EXPECT_GE(6 * SEC, most);
	EXPECT_LE(900 * MSEC, most - least);
}

TEST_F(step, hint_no_retry_stop)
{
	struct kretry_op op = start(self, KRETRY_EVENT_TRANSIENT);

	op.flags = KRETRY_OP_NO_RETRY;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_STOP_HINT, op.verdict);
	EXPECT_EQ(0, op.flags);
}

TEST_F(step, hint_past_max_elapsed_stop_at_once)
{
	struct kretry_op op;

	self->policy.max_elapsed_ns = 5 * SEC;
	op = start(self, KRETRY_EVENT_THROTTLED);
	op.flags = KRETRY_OP_HINT;
	op.hint_ns = 86400 * SEC;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_STOP_ELAPSED, op.verdict);
	EXPECT_EQ(0, op.attempt);
}

/* Always "Retry-After: 0", base 200 ms by 2 up to 5 s: at most 6 requests in 10 s. */
TEST_F(step, hint_of_zero_no_hot_loop)
{
	int requests = 0;
	struct kretry_op op;
	uint64_t end;

	kt_exponential(&self->policy, 200 * MSEC, 5 * SEC);
	op = start(self, KRETRY_EVENT_BEGIN);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	for (end = op.deadline_ns + 10 * SEC; op.deadline_ns < end; requests++) {
		kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
		op.flags = KRETRY_OP_HINT;
		ASSERT_EQ(0, again(self, &op, KRETRY_EVENT_THROTTLED));
		ASSERT_EQ(KRETRY_RETRY, op.verdict);
	}
	EXPECT_EQ(6, requests);
}

TEST_HARNESS_MAIN
