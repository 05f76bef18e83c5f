// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What went wrong for others: whole operations from their first attempt to their end. */
#include "unit.h"

static struct kretry_policy exponential(u64 base, u64 cap)
{
	return policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_NONE, base, cap);
}

static u64 own_delay(const struct kretry_policy *p, u32 n, u64 previous)
{
	return kretry_delay(&p->backoff, KRETRY_EVENT_TRANSIENT, n, previous, fresh_u64());
}

/* An operation whose attempts all fail at once: what they report, and what came of it. */
struct run {
	u8 event;
	u16 flags;
	u64 hint;
	u32 attempts;
	u32 sleeps;
	u64 last_start;
	u64 ended;
	u8 verdict;
};

static void run_until(const struct kretry_policy *p, struct run *run, u64 horizon)
{
	struct kretry_op op = { .policy = 1 };
	u64 now = NOW;

	do {
		op.event = KRETRY_EVENT_BEGIN;
		assert_int_equal(kretry_decide(p, &op, now, fresh_u64()), 0);
		assert_int_equal(op.verdict, KRETRY_GO);
		run->attempts++;
		run->last_start = now - NOW;
		op.event = run->event;
		op.flags = run->flags;
		op.hint_ns = run->hint;
		assert_int_equal(kretry_decide(p, &op, now, fresh_u64()), 0);
		run->verdict = op.verdict;
		run->ended = now - NOW;
		if (op.verdict == KRETRY_RETRY) {
			assert_true(op.deadline_ns >= now);
			run->sleeps += op.deadline_ns > now;
			now = op.deadline_ns;
		}
	} while (op.verdict == KRETRY_RETRY && now - NOW < horizon);
}

static const u32 high_attempts[] = {
	5, 16, 31, 32, 33, 62, 63, 64, 65, 70, 127, 128, 1023, 1024, 1025, 1026, 65535, 65536,
	0x7fffffff, 0x80000000, U32_MAX,
};

static void high_attempt_numbers_stay_at_the_cap(void **state)
{
	struct kretry_policy p = exponential(2 * SEC, 30 * SEC);
	u32 n;
	size_t i;

	(void)state;
	for (n = 0; n < 70; n++)
		assert_int_equal(own_delay(&p, n, 0), n < 4 ? (2 * SEC) << n : 30 * SEC);
	for (i = 0; i < ARRAY_SIZE(high_attempts); i++)
		assert_int_equal(own_delay(&p, high_attempts[i], 0), 30 * SEC);
}

static void high_attempt_numbers_stay_in_bounds_with_every_jitter(void **state)
{
	u8 strategy, jitter;
	size_t i;

	(void)state;
	for (strategy = KRETRY_FIXED; strategy <= KRETRY_TABLE; strategy++) {
		for (jitter = 0; jitter <= KRETRY_JITTER_ADDITIVE; jitter++) {
			struct kretry_policy p = policy_of(strategy, jitter, 2 * SEC, 30 * SEC);

			p.backoff.floor_ns = MS;
			if (kretry_policy_check(&p))
				continue;
			for (i = 0; i < ARRAY_SIZE(high_attempts); i++)
				assert_in_range(own_delay(&p, high_attempts[i], 30 * SEC), MS,
						30 * SEC);
		}
	}
}

static void jitter_at_the_cap_neither_passes_nor_piles_up(void **state)
{
	struct kretry_policy p;
	u32 i, at_cap = 0;

	(void)state;
	p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_PROPORTIONAL, 100 * MS, 500 * MS);
	for (i = 0; i < 1000000; i++) {
		u64 delay = own_delay(&p, 10, 0);

		assert_true(delay <= 500 * MS);
		at_cap += delay == 500 * MS;
	}
	assert_in_range(at_cap, 0, 9999);
}

static bool thousand_callers_spread(const struct kretry_policy *p)
{
	u32 bins[61] = { 0 }, i, most = 0;

	for (i = 0; i < 1000; i++)
		bins[own_delay(p, 50, 0) / SEC]++;
	for (i = 0; i < ARRAY_SIZE(bins); i++)
		most = max(most, bins[i]);
	return most <= 40;
}

static void full_jitter_at_the_cap_is_as_wide_as_the_cap(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_FULL, MS, 60 * SEC);

	(void)state;
	/* A right program fails this once in about 50000 times. */
	assert_true(thousand_callers_spread(&p) || thousand_callers_spread(&p));
}

static void decorrelated_draws_do_not_stick_to_the_cap(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_DECORRELATED, KRETRY_JITTER_NONE, SEC, 10 * SEC);
	u64 delay = 0;
	u32 i, at_cap = 0;

	(void)state;
	for (i = 0; i < 100000; i++) {
		delay = own_delay(&p, i, delay);
		assert_in_range(delay, SEC, 10 * SEC);
		at_cap += delay == 10 * SEC;
	}
	assert_in_range(at_cap, 0, 999);
}

static void max_retries_counts_retries_not_attempts(void **state)
{
	static const u32 limits[] = { 0, 1, 3, 4 };
	struct kretry_policy p = exponential(MS, SEC);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		struct run run = { .event = KRETRY_EVENT_TRANSIENT };

		p.max_retries = limits[i];
		run_until(&p, &run, 3600 * SEC);
		assert_int_equal(run.attempts, limits[i] + 1);
		assert_int_equal(run.sleeps, limits[i]);
		assert_int_equal(run.verdict, KRETRY_STOP_LIMIT);
	}
}

static void first_failure_of_a_new_op_waits_the_base(void **state)
{
	struct kretry_policy p = exponential(100 * MS, 60 * SEC);
	struct kretry_op op = { .policy = 1 };
	u64 now = NOW, want = 100 * MS;
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++, want *= 2) {
		op.event = KRETRY_EVENT_TRANSIENT;
		assert_int_equal(kretry_decide(&p, &op, now, 0), 0);
		assert_int_equal(op.delay_ns, want);
		assert_int_equal(op.deadline_ns, now + want);
		now = op.deadline_ns;
	}
	op.event = KRETRY_EVENT_OK;
	assert_int_equal(kretry_decide(&p, &op, now, 0), 0);
	op.event = KRETRY_EVENT_TRANSIENT;
	assert_int_equal(kretry_decide(&p, &op, now, 0), 0);
	assert_int_equal(op.delay_ns, 100 * MS);
}

static void time_limit_stops_before_the_sleep_that_would_pass_it(void **state)
{
	struct kretry_policy p = exponential(SEC / 2, 5 * SEC);
	struct run run = { .event = KRETRY_EVENT_TRANSIENT };
	struct run hinted = {
		.event = KRETRY_EVENT_THROTTLED, .flags = KRETRY_OP_HINT, .hint = 16 * SEC,
	};

	(void)state;
	p.backoff.multiplier_ppm = 1500000;
	p.max_elapsed_ns = 15 * SEC;
	run_until(&p, &run, 3600 * SEC);
	assert_int_equal(run.attempts, 7);
	assert_int_equal(run.last_start, 10390625 * US);
	assert_int_equal(run.ended, run.last_start);
	assert_int_equal(run.verdict, KRETRY_STOP_ELAPSED);

	run_until(&p, &hinted, 3600 * SEC);
	assert_int_equal(hinted.attempts, 1);
	assert_int_equal(hinted.verdict, KRETRY_STOP_ELAPSED);
}

static void server_wait_longer_than_the_limit_ends_at_once(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_FULL, SEC, 60 * SEC);
	struct run elapsed = {
		.event = KRETRY_EVENT_THROTTLED, .flags = KRETRY_OP_HINT, .hint = 86400 * SEC,
	};
	struct run limited = elapsed, clamped = elapsed;

	(void)state;
	p.max_elapsed_ns = 5 * SEC;
	run_until(&p, &elapsed, 3600 * SEC);
	assert_int_equal(elapsed.attempts, 1);
	assert_int_equal(elapsed.ended, 0);
	assert_int_equal(elapsed.verdict, KRETRY_STOP_ELAPSED);

	p.max_elapsed_ns = 0;
	p.hint_limit_ns = 60 * SEC;
	run_until(&p, &limited, 3600 * SEC);
	assert_int_equal(limited.attempts, 1);
	assert_int_equal(limited.verdict, KRETRY_STOP_HINT);

	p.flags = KRETRY_POLICY_HINT_CLAMP;
	run_until(&p, &clamped, 60 * SEC);
	assert_int_equal(clamped.attempts, 1);
	assert_int_equal(clamped.verdict, KRETRY_RETRY);
}

static void retry_after_zero_is_no_hot_loop(void **state)
{
	struct kretry_policy p = exponential(200 * MS, 5 * SEC);
	struct run run = { .event = KRETRY_EVENT_THROTTLED, .flags = KRETRY_OP_HINT, .hint = 0 };

	(void)state;
	run_until(&p, &run, 10 * SEC);
	assert_int_equal(run.attempts, 6);
	assert_int_equal(run.sleeps, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(high_attempt_numbers_stay_at_the_cap),
		cmocka_unit_test(high_attempt_numbers_stay_in_bounds_with_every_jitter),
		cmocka_unit_test(jitter_at_the_cap_neither_passes_nor_piles_up),
		cmocka_unit_test(full_jitter_at_the_cap_is_as_wide_as_the_cap),
		cmocka_unit_test(decorrelated_draws_do_not_stick_to_the_cap),
		cmocka_unit_test(max_retries_counts_retries_not_attempts),
		cmocka_unit_test(first_failure_of_a_new_op_waits_the_base),
		cmocka_unit_test(time_limit_stops_before_the_sleep_that_would_pass_it),
		cmocka_unit_test(server_wait_longer_than_the_limit_ends_at_once),
		cmocka_unit_test(retry_after_zero_is_no_hot_loop),
	};

	return run_group(tests);
}
