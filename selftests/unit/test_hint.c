// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the server asked for, against the own delay, the limits and the flags. */
#include "unit.h"

#define EXACT	KRETRY_POLICY_HINT_EXACT
#define MOST	KRETRY_POLICY_HINT_MAX
#define CLAMP	KRETRY_POLICY_HINT_CLAMP
#define CLAMPED	KRETRY_OP_CLAMPED

/* Base 10 s, exponential, cap 60 s: with n = 2 the own delay is 40 s, or in [0, 40 s] with FULL. */
static struct kretry_policy hinted_policy(u8 jitter, u32 flags)
{
	struct kretry_policy p = policy_of(KRETRY_EXPONENTIAL, jitter, 10 * SEC, 60 * SEC);

	p.flags = flags;
	return p;
}

static struct kretry_op hinted_op(u64 hint)
{
	struct kretry_op op = op_of(KRETRY_EVENT_THROTTLED, KRETRY_OP_HINT, 2);

	op.hint_ns = hint;
	return op;
}

static struct kretry_op answer(const struct kretry_policy *p, struct kretry_op op, u64 rnd)
{
	assert_int_equal(kretry_policy_check(p), 0);
	assert_int_equal(kretry_decide(p, &op, NOW, rnd), 0);
	return op;
}

struct hint_case {
	u8 jitter;
	u32 flags;
	u64 hint;
	u64 limit;
	u64 over_own;
	u64 least;
	u64 most;
	u16 clamped;
};

#define NONE	KRETRY_JITTER_NONE
#define FULL	KRETRY_JITTER_FULL

/* Times in seconds: what the smallest and the largest draw give. */
static const struct hint_case cases[] = {
	/* at or above the base: the hint, and a spread of at most ceiling and hint */
	{ NONE, 0, 10, 0, 0, 10, 10, 0 },
	{ NONE, 0, 15, 0, 0, 15, 15, 0 },
	{ NONE, 0, 3600, 0, 0, 3600, 3600, 0 },
	{ FULL, 0, 10, 0, 0, 10, 20, 0 },
	{ FULL, 0, 15, 0, 0, 15, 30, 0 },
	{ FULL, 0, 40, 0, 0, 40, 80, 0 },
	{ FULL, 0, 50, 0, 0, 50, 90, 0 },
	{ FULL, 0, 3600, 0, 0, 3600, 3640, 0 },
	/* below the base: never sooner than the own delay */
	{ NONE, 0, 0, 0, 0, 40, 40, 0 },
	{ NONE, 0, 9, 0, 0, 40, 40, 0 },
	{ FULL, 0, 0, 0, 0, 0, 40, 0 },
	{ FULL, 0, 9, 0, 0, 9, 40, 0 },
	/* HINT_EXACT: as it is */
	{ NONE, EXACT, 0, 0, 0, 0, 0, 0 },
	{ FULL, EXACT, 0, 0, 0, 0, 0, 0 },
	{ FULL, EXACT, 9, 0, 0, 9, 9, 0 },
	{ FULL, EXACT, 3600, 0, 0, 3600, 3600, 0 },
	/* HINT_MAX: never sooner than the own delay either */
	{ NONE, MOST, 15, 0, 0, 40, 40, 0 },
	{ NONE, MOST, 50, 0, 0, 50, 50, 0 },
	{ FULL, MOST, 15, 0, 0, 15, 40, 0 },
	{ FULL, MOST, 9, 0, 0, 9, 40, 0 },
	{ NONE, MOST | EXACT, 0, 0, 0, 40, 40, 0 },
	{ FULL, MOST | EXACT, 20, 0, 0, 20, 40, 0 },
	/* over the own delay by no more than that */
	{ NONE, 0, 45, 0, 10, 45, 45, 0 },
	{ NONE, 0, 50, 0, 10, 50, 50, 0 },
	{ NONE, 0, 51, 0, 10, 50, 50, CLAMPED },
	{ NONE, EXACT, 3600, 0, 10, 50, 50, CLAMPED },
	{ FULL, 0, 20, 0, 5, 5, 40, 0 },
	/* HINT_CLAMP: cut down to the limit, then as any other */
	{ NONE, CLAMP, 30, 30, 0, 30, 30, 0 },
	{ NONE, CLAMP, 31, 30, 0, 30, 30, CLAMPED },
	{ FULL, CLAMP, 3600, 30, 0, 30, 60, CLAMPED },
	{ NONE, CLAMP, 3600, 5, 0, 40, 40, CLAMPED },
	{ FULL, CLAMP | EXACT, 3600, 30, 0, 30, 30, CLAMPED },
};

static void hint_of_each_size_and_flag_waits_as_documented(void **state)
{
	struct kretry_op low, high;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct hint_case *c = &cases[i];
		struct kretry_policy p = hinted_policy(c->jitter, c->flags);

		p.hint_limit_ns = c->limit * SEC;
		p.hint_over_own_ns = c->over_own * SEC;
		low = answer(&p, hinted_op(c->hint * SEC), 0);
		high = answer(&p, hinted_op(c->hint * SEC), U64_MAX);
		if (low.verdict != KRETRY_RETRY || low.delay_ns != c->least * SEC ||
		    high.delay_ns != c->most * SEC)
			fail_msg("case %zu: verdict %u, [%llu, %llu]", i, low.verdict,
				 (unsigned long long)low.delay_ns,
				 (unsigned long long)high.delay_ns);
		assert_int_equal(low.deadline_ns, NOW + low.delay_ns);
		assert_int_equal(high.flags & CLAMPED, c->clamped);
		assert_int_equal(low.flags & CLAMPED, low.delay_ns < c->hint * SEC ? CLAMPED : 0);
		assert_int_equal(low.attempt, 3);
	}
}

static void hint_above_limit_or_no_retry_stops(void **state)
{
	struct kretry_policy p = hinted_policy(NONE, 0);
	struct kretry_op op = op_of(KRETRY_EVENT_THROTTLED, KRETRY_OP_NO_RETRY, 2);

	(void)state;
	assert_int_equal(answer(&p, op, 0).verdict, KRETRY_STOP_HINT);
	op.flags |= KRETRY_OP_HINT;
	assert_int_equal(answer(&p, op, 0).verdict, KRETRY_STOP_HINT);
	p.hint_limit_ns = 60 * SEC;
	assert_int_equal(answer(&p, hinted_op(60 * SEC), 0).verdict, KRETRY_RETRY);
	assert_int_equal(answer(&p, hinted_op(60 * SEC + 1), 0).verdict, KRETRY_STOP_HINT);
	assert_int_equal(answer(&p, hinted_op(U64_MAX), 0).verdict, KRETRY_STOP_HINT);
	assert_int_equal(answer(&p, hinted_op(U64_MAX), 0).attempt, 2);
	p.flags = CLAMP;
	assert_int_equal(answer(&p, hinted_op(60 * SEC + 1), 0).verdict, KRETRY_RETRY);
	assert_int_equal(answer(&p, op, 0).verdict, KRETRY_STOP_HINT);
}

static void hint_goes_over_cap_but_not_over_max_elapsed(void **state)
{
	struct kretry_policy p = hinted_policy(NONE, 0);

	(void)state;
	p.max_elapsed_ns = 100 * SEC;
	assert_int_equal(answer(&p, hinted_op(100 * SEC), 0).delay_ns, 100 * SEC);
	assert_int_equal(answer(&p, hinted_op(100 * SEC + 1), 0).verdict, KRETRY_STOP_ELAPSED);
}

static void hint_compares_with_the_base_in_force(void **state)
{
	struct kretry_policy p = hinted_policy(NONE, 0);
	struct kretry_op op = hinted_op(12 * SEC);

	(void)state;
	p.backoff.base_throttled_ns = 15 * SEC;
	assert_int_equal(answer(&p, op, 0).delay_ns, 60 * SEC);
	op.event = KRETRY_EVENT_TRANSIENT;
	assert_int_equal(answer(&p, op, 0).delay_ns, 12 * SEC);

	p = policy_of(KRETRY_TABLE, NONE, 10 * SEC, 60 * SEC);
	assert_int_equal(answer(&p, hinted_op(0), 0).delay_ns, 50 * SEC);
	assert_int_equal(answer(&p, hinted_op(10 * SEC), 0).delay_ns, 10 * SEC);
}

static void hint_spread_for_strategies_that_draw(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_SLOTTED, NONE, 10 * SEC, 300 * SEC);

	(void)state;
	assert_int_equal(answer(&p, hinted_op(100 * SEC), 0).delay_ns, 100 * SEC);
	assert_int_equal(answer(&p, hinted_op(100 * SEC), U64_MAX).delay_ns, 170 * SEC);
	p = policy_of(KRETRY_DECORRELATED, NONE, 10 * SEC, 60 * SEC);
	assert_int_equal(answer(&p, hinted_op(100 * SEC), 0).delay_ns, 100 * SEC);
	assert_in_range(answer(&p, hinted_op(100 * SEC), U64_MAX).delay_ns, 101 * SEC, 160 * SEC);
}

static void hint_beyond_the_largest_duration_saturates(void **state)
{
	static const u64 hints[] = { NS_MAX - 1, NS_MAX, NS_MAX + 1, U64_MAX };
	struct kretry_policy p = hinted_policy(FULL, 0);
	struct kretry_op op;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(hints); i++) {
		op = answer(&p, hinted_op(hints[i]), U64_MAX);
		assert_int_equal(op.verdict, KRETRY_RETRY);
		assert_int_equal(op.delay_ns, NS_MAX);
		assert_int_equal(op.deadline_ns, NS_MAX);
		assert_int_equal(op.flags & CLAMPED, 0);
	}
}

static void clamped_flag_not_carried_into_the_next_answer(void **state)
{
	struct kretry_policy p = hinted_policy(NONE, CLAMP);
	struct kretry_op op;

	(void)state;
	p.hint_limit_ns = 30 * SEC;
	op = answer(&p, hinted_op(60 * SEC), 0);
	assert_int_equal(op.flags, CLAMPED);
	op.event = KRETRY_EVENT_TRANSIENT;
	op = answer(&p, op, 0);
	assert_int_equal(op.verdict, KRETRY_RETRY);
	assert_int_equal(op.flags, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hint_of_each_size_and_flag_waits_as_documented),
		cmocka_unit_test(hint_above_limit_or_no_retry_stops),
		cmocka_unit_test(hint_goes_over_cap_but_not_over_max_elapsed),
		cmocka_unit_test(hint_compares_with_the_base_in_force),
		cmocka_unit_test(hint_spread_for_strategies_that_draw),
		cmocka_unit_test(hint_beyond_the_largest_duration_saturates),
		cmocka_unit_test(clamped_flag_not_carried_into_the_next_answer),
	};

	return run_group(tests);
}
