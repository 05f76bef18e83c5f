// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Each strategy's series and each jitter's range, to the nanosecond. */
#include "unit.h"

#define TRANSIENT	KRETRY_EVENT_TRANSIENT

static void assert_range(const struct kretry_backoff *b, u32 n, u64 previous, u64 lo, u64 hi)
{
	u64 least = kretry_delay(b, TRANSIENT, n, previous, 0);
	u64 most = kretry_delay(b, TRANSIENT, n, previous, U64_MAX);

	if (least != lo || most != hi)
		fail_msg("strategy %u jitter %u n %u: [%llu, %llu], not [%llu, %llu]", b->strategy,
			 b->jitter, n, (unsigned long long)least, (unsigned long long)most,
			 (unsigned long long)lo, (unsigned long long)hi);
}

struct series {
	u8 strategy;
	u32 multiplier_ppm;
	u64 base;
	u64 cap;
	u64 floor;
	u64 delays[8];
};

static const struct series series[] = {
	{ KRETRY_FIXED, 0, 100, 1000, 0, { 100, 100, 100, 100, 100, 100, 100, 100 } },
	{ KRETRY_FIXED, 0, 100, 1000, 150, { 150, 150, 150, 150, 150, 150, 150, 150 } },
	{ KRETRY_FIXED, 0, 0, 1000, 0, { 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ KRETRY_LINEAR, 0, 100, 550, 0, { 100, 200, 300, 400, 500, 550, 550, 550 } },
	{ KRETRY_LINEAR, 0, 100, 550, 250, { 250, 250, 300, 400, 500, 550, 550, 550 } },
	{ KRETRY_EXPONENTIAL, 2000000, 100, 5000, 0,
	  { 100, 200, 400, 800, 1600, 3200, 5000, 5000 } },
	{ KRETRY_EXPONENTIAL, 1000000, 100, 5000, 0, { 100, 100, 100, 100, 100, 100, 100, 100 } },
	{ KRETRY_EXPONENTIAL, 1500000, 100, 999, 0, { 100, 150, 225, 337, 506, 759, 999, 999 } },
	{ KRETRY_EXPONENTIAL, 1100000, 1000, 9999, 0,
	  { 1000, 1100, 1210, 1331, 1464, 1610, 1771, 1948 } },
	{ KRETRY_EXPONENTIAL, 1600000, SEC, 120 * SEC, 0,
	  { SEC, 1600 * MS, 2560 * MS, 4096 * MS, 6553600 * US, 10485760 * US, 16777216 * US,
	    26843545600 } },
	{ KRETRY_EXPONENTIAL, 3000000, 7, 9999, 0, { 7, 21, 63, 189, 567, 1701, 5103, 9999 } },
	{ KRETRY_EXPONENTIAL, 10000000, 1, 999999, 0,
	  { 1, 10, 100, 1000, 10000, 100000, 999999, 999999 } },
	{ KRETRY_EXPONENTIAL, U32_MAX, 1, 1000000 * SEC, 0,
	  { 1, 4294, 18446744, 79228162458, 340282366604025, 1000000 * SEC, 1000000 * SEC,
	    1000000 * SEC } },
	{ KRETRY_TABLE, 0, 100, 450, 0, { 100, 200, 450, 450, 450, 450, 450, 450 } },
	{ KRETRY_TABLE, 0, 100, 1000, 150, { 150, 200, 500, 500, 500, 500, 500, 500 } },
};

static void series_of_each_strategy_exact(void **state)
{
	size_t i;
	u64 last;
	u32 n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(series); i++) {
		const struct series *s = &series[i];
		struct kretry_policy p = policy_of(s->strategy, 0, s->base, s->cap);

		p.backoff.floor_ns = s->floor;
		p.backoff.multiplier_ppm = s->multiplier_ppm;
		assert_int_equal(kretry_policy_check(&p), 0);
		for (n = 0; n < ARRAY_SIZE(s->delays); n++)
			assert_range(&p.backoff, n, 0, s->delays[n], s->delays[n]);
		last = s->multiplier_ppm > KRETRY_PPM ? s->cap : s->delays[7];
		assert_range(&p.backoff, U32_MAX, 0, last, last);
	}
}

static void table_of_64_entries_each_one_used_last_repeats(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_TABLE, KRETRY_JITTER_NONE, 1, 1000);
	u32 n;

	(void)state;
	p.backoff.table_len = KRETRY_TABLE_MAX;
	for (n = 0; n < KRETRY_TABLE_MAX; n++)
		p.backoff.table_ns[n] = 10 + n * n / 8;
	for (n = 0; n < 100; n++)
		assert_range(&p.backoff, n, 0, p.backoff.table_ns[n < 63 ? n : 63],
			     p.backoff.table_ns[n < 63 ? n : 63]);
	assert_range(&p.backoff, U32_MAX, 0, 506, 506);
}

static void multiplier_of_two_exact_at_every_n(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_NONE, 1, NS_MAX);
	u32 n;

	(void)state;
	for (n = 0; n < 63; n++)
		assert_int_equal(kretry_ceiling(&p.backoff, 1, n), 1ULL << n);
	assert_int_equal(kretry_ceiling(&p.backoff, 1, 63), NS_MAX);
	assert_int_equal(kretry_ceiling(&p.backoff, 1, 64), NS_MAX);
	assert_int_equal(kretry_ceiling(&p.backoff, 3, 61), 3ULL << 61);
	assert_int_equal(kretry_ceiling(&p.backoff, 3, 62), NS_MAX);
	assert_int_equal(kretry_ceiling(&p.backoff, 5, 62), NS_MAX);
	assert_int_equal(kretry_ceiling(&p.backoff, 1ULL << 62, 10), NS_MAX);
	assert_int_equal(kretry_ceiling(&p.backoff, 1, U32_MAX), NS_MAX);
}

static void smallest_multiplier_grows_to_cap_without_falling(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_NONE, SEC, NS_MAX);
	u64 last = 0, now;
	u32 n;

	(void)state;
	p.backoff.multiplier_ppm = KRETRY_PPM + 1;
	for (n = 0; n < 24000000; n += 1 + n / 64) {
		now = kretry_ceiling(&p.backoff, SEC, n);
		assert_true(now > last || !n || now == NS_MAX);
		assert_true(kretry_ceiling(&p.backoff, SEC, n + 1) >= now);
		last = now;
	}
	assert_int_equal(kretry_ceiling(&p.backoff, SEC, 24000000), NS_MAX);
	assert_int_equal(kretry_ceiling(&p.backoff, SEC, U32_MAX), NS_MAX);
}

static void throttled_base_replaces_base_after_throttled_only(void **state)
{
	static const u8 others[] = { TRANSIENT, KRETRY_EVENT_UNKNOWN };
	struct kretry_policy p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_NONE, 100, 5000);
	size_t i;

	(void)state;
	assert_int_equal(kretry_delay(&p.backoff, KRETRY_EVENT_THROTTLED, 2, 0, 0), 400);
	p.backoff.base_throttled_ns = 1000;
	assert_int_equal(kretry_delay(&p.backoff, KRETRY_EVENT_THROTTLED, 2, 0, 0), 4000);
	assert_int_equal(kretry_base(&p.backoff, KRETRY_EVENT_THROTTLED), 1000);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		assert_int_equal(kretry_delay(&p.backoff, others[i], 2, 0, 0), 400);
		assert_int_equal(kretry_base(&p.backoff, others[i]), 100);
	}
	p = policy_of(KRETRY_TABLE, KRETRY_JITTER_NONE, 70, 5000);
	assert_int_equal(kretry_base(&p.backoff, KRETRY_EVENT_THROTTLED), 70);
}

struct jitter_case {
	u8 jitter;
	u32 ppm;
	u64 ceiling;
	u64 cap;
	u64 floor;
	u64 lo;
	u64 hi;
};

static const struct jitter_case jitters[] = {
	{ KRETRY_JITTER_NONE, 0, 101, 500, 0, 101, 101 },
	{ KRETRY_JITTER_NONE, 0, 101, 500, 200, 200, 200 },
	{ KRETRY_JITTER_FULL, 0, 101, 500, 0, 0, 101 },
	{ KRETRY_JITTER_FULL, 0, 101, 500, 40, 40, 101 },
	{ KRETRY_JITTER_FULL, 0, 101, 500, 200, 200, 200 },
	{ KRETRY_JITTER_FULL, 0, 1, 1, 0, 0, 1 },
	{ KRETRY_JITTER_EQUAL, 0, 100, 500, 0, 50, 100 },
	{ KRETRY_JITTER_EQUAL, 0, 101, 500, 0, 51, 101 },
	{ KRETRY_JITTER_EQUAL, 0, 101, 500, 70, 70, 101 },
	{ KRETRY_JITTER_EQUAL, 0, 1, 1, 0, 1, 1 },
	{ KRETRY_JITTER_EQUAL, 0, 0, 1, 0, 0, 0 },
	{ KRETRY_JITTER_PROPORTIONAL, 0, 100, 500, 0, 100, 100 },
	{ KRETRY_JITTER_PROPORTIONAL, 255000, 100, 500, 0, 75, 125 },
	{ KRETRY_JITTER_PROPORTIONAL, 255000, 99, 500, 0, 74, 124 },
	{ KRETRY_JITTER_PROPORTIONAL, 200000, 450, 500, 0, 320, 500 },
	{ KRETRY_JITTER_PROPORTIONAL, 200000, 500, 500, 0, 300, 500 },
	{ KRETRY_JITTER_PROPORTIONAL, 200000, 500, 500, 400, 400, 500 },
	{ KRETRY_JITTER_PROPORTIONAL, 1000000, 100, 500, 0, 1, 200 },
	{ KRETRY_JITTER_PROPORTIONAL, 1000000, 500, 500, 0, 1, 500 },
	{ KRETRY_JITTER_PROPORTIONAL, 1000000, 0, 500, 0, 0, 0 },
	{ KRETRY_JITTER_PROPORTIONAL, 1000000, NS_MAX, NS_MAX, 0, 1, NS_MAX },
	{ KRETRY_JITTER_PROPORTIONAL, 500000, NS_MAX, NS_MAX, 0, 1, NS_MAX },
	{ KRETRY_JITTER_ADDITIVE, 0, 100, 500, 0, 100, 100 },
	{ KRETRY_JITTER_ADDITIVE, 300000, 100, 500, 0, 100, 130 },
	{ KRETRY_JITTER_ADDITIVE, 300000, 400, 500, 0, 380, 500 },
	{ KRETRY_JITTER_ADDITIVE, 300000, 500, 500, 0, 350, 500 },
	{ KRETRY_JITTER_ADDITIVE, 300000, 500, 500, 410, 410, 500 },
	{ KRETRY_JITTER_ADDITIVE, 3000000, 300, 500, 0, 1, 500 },
	{ KRETRY_JITTER_ADDITIVE, U32_MAX, NS_MAX, NS_MAX, 0, 1, NS_MAX },
	{ KRETRY_JITTER_ADDITIVE, U32_MAX, 0, 500, 0, 0, 0 },
};

static void jitter_range_both_ends_reached_nothing_outside(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jitters); i++) {
		const struct jitter_case *j = &jitters[i];
		struct kretry_policy p = policy_of(KRETRY_FIXED, j->jitter, j->ceiling, j->cap);

		p.backoff.jitter_ppm = j->ppm;
		p.backoff.floor_ns = j->floor;
		assert_int_equal(kretry_policy_check(&p), 0);
		assert_range(&p.backoff, 5, 0, j->lo, j->hi);
	}
}

static void decorrelated_grows_from_previous_delay_within_cap(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_DECORRELATED, KRETRY_JITTER_NONE, 100, 1000);

	(void)state;
	assert_range(&p.backoff, 0, 0, 100, 300);
	assert_range(&p.backoff, 1, 50, 100, 300);
	assert_range(&p.backoff, 1, 150, 100, 450);
	assert_range(&p.backoff, 1, 333, 100, 999);
	assert_range(&p.backoff, 1, 334, 100, 1000);
	assert_range(&p.backoff, 1, U64_MAX, 100, 1000);
	p.backoff.floor_ns = 200;
	assert_range(&p.backoff, 1, 100, 200, 300);
	p.backoff.floor_ns = 400;
	assert_range(&p.backoff, 1, 100, 400, 400);
	p.backoff.floor_ns = 0;
	p.backoff.base_ns = 0;
	assert_range(&p.backoff, 1, 0, 0, 0);
	p.backoff.cap_ns = NS_MAX;
	assert_range(&p.backoff, 1, NS_MAX, 0, NS_MAX);
}

static void slotted_doubles_its_slots_ten_times_within_cap(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_SLOTTED, KRETRY_JITTER_NONE, 100, NS_MAX);
	static const u32 last[] = { 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1023, 1023 };
	u32 n;

	(void)state;
	for (n = 0; n < ARRAY_SIZE(last); n++) {
		assert_range(&p.backoff, n, 0, 0, 100 * last[n]);
		assert_int_equal(kretry_ceiling(&p.backoff, 100, n), 100 * last[n]);
	}
	assert_range(&p.backoff, U32_MAX, 0, 0, 102300);
	p.backoff.cap_ns = 999;
	assert_range(&p.backoff, 9, 0, 0, 900);
	p.backoff.floor_ns = 201;
	assert_range(&p.backoff, 9, 0, 300, 900);
	assert_range(&p.backoff, 0, 0, 300, 300);
	assert_int_equal(kretry_ceiling(&p.backoff, 100, 0), 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_of_each_strategy_exact),
		cmocka_unit_test(table_of_64_entries_each_one_used_last_repeats),
		cmocka_unit_test(multiplier_of_two_exact_at_every_n),
		cmocka_unit_test(smallest_multiplier_grows_to_cap_without_falling),
		cmocka_unit_test(throttled_base_replaces_base_after_throttled_only),
		cmocka_unit_test(jitter_range_both_ends_reached_nothing_outside),
		cmocka_unit_test(decorrelated_grows_from_previous_delay_within_cap),
		cmocka_unit_test(slotted_doubles_its_slots_ten_times_within_cap),
	};

	return run_group(tests);
}
