// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Draws are uniform over their whole range, below the cap and at it. The numbers are the kernel's,
 * so a right program may fail: a range that looks uneven is drawn a second time, and each draw has
 * 1 chance in 5000 to look so. With all the ranges here that is a false alarm in 10^6 runs.
 */
#include "unit.h"

#define DRAWS	64000
#define BINS	64U

/* The quantiles of chi-square for 1 in 5000, by degrees of freedom. */
static double critical(u32 bins)
{
	switch (bins) {
	case 2:
		return 13.83;
	case 3:
		return 17.03;
	case 7:
		return 26.25;
	case 63:
		return 109.3;
	case 64:
		return 110.6;
	}
	fail_msg("no quantile for %u bins", bins);
	return 0;
}

struct range {
	const char *what;
	u8 strategy;
	u8 jitter;
	u32 jitter_ppm;
	u64 base;
	u64 cap;
	u64 floor;
	u32 n;
	u64 previous;
	u64 lo;
	u64 hi;
	u64 step;
};

#define JITTER(name, ppm, base, cap, floor, lo, hi) \
	{ #name " " #base " of " #cap, KRETRY_EXPONENTIAL, KRETRY_JITTER_##name, ppm, base, cap, \
	  floor, 50, 0, lo, hi, 1 }
#define BELOW(name, ppm, c, cap, lo, hi) \
	{ #name " " #c " below " #cap, KRETRY_FIXED, KRETRY_JITTER_##name, ppm, c, cap, 0, 50, 0, \
	  lo, hi, 1 }

static const struct range ranges[] = {
	BELOW(FULL, 0, SEC, 60 * SEC, 0, SEC),
	BELOW(FULL, 0, 6, 100, 0, 6),
	BELOW(FULL, 0, 1, 100, 0, 1),
	BELOW(EQUAL, 0, SEC, 60 * SEC, SEC / 2, SEC),
	BELOW(EQUAL, 0, 5, 100, 3, 5),
	BELOW(PROPORTIONAL, 300000, SEC, 60 * SEC, 700 * MS, 1300 * MS),
	BELOW(PROPORTIONAL, 1000000, SEC, 60 * SEC, 1, 2 * SEC),
	BELOW(ADDITIVE, 300000, SEC, 60 * SEC, SEC, 1300 * MS),
	BELOW(FULL, 0, 3ULL << 61, NS_MAX, 0, 3ULL << 61),
	JITTER(FULL, 0, SEC, 60 * SEC, 0, 0, 60 * SEC),
	JITTER(FULL, 0, SEC, 60 * SEC, 20 * SEC, 20 * SEC, 60 * SEC),
	JITTER(FULL, 0, SEC, NS_MAX, 0, 0, NS_MAX),
	JITTER(EQUAL, 0, SEC, 60 * SEC, 0, 30 * SEC, 60 * SEC),
	JITTER(EQUAL, 0, SEC, 60 * SEC, 40 * SEC, 40 * SEC, 60 * SEC),
	JITTER(PROPORTIONAL, 250000, SEC, 60 * SEC, 0, 30 * SEC, 60 * SEC),
	JITTER(PROPORTIONAL, 1000000, SEC, 60 * SEC, 0, 1, 60 * SEC),
	JITTER(ADDITIVE, 250000, SEC, 60 * SEC, 0, 45 * SEC, 60 * SEC),
	JITTER(ADDITIVE, 9000000, SEC, 60 * SEC, 0, 1, 60 * SEC),
	{ "decorrelated", KRETRY_DECORRELATED, 0, 0, SEC, 60 * SEC, 0, 5, 7 * SEC, SEC,
	  21 * SEC, 1 },
	{ "decorrelated at the cap", KRETRY_DECORRELATED, 0, 0, SEC, 60 * SEC, 0, 5, 50 * SEC, SEC,
	  60 * SEC, 1 },
	{ "slotted", KRETRY_SLOTTED, 0, 0, MS, SEC, 0, 5, 0, 0, 63 * MS, MS },
	{ "slotted at the cap", KRETRY_SLOTTED, 0, 0, MS, 62 * MS + 5, 0, 99, 0, 0, 62 * MS, MS },
};

static struct kretry_policy policy_of_range(const struct range *r)
{
	struct kretry_policy p = policy_of(r->strategy, r->jitter, r->base, r->cap);

	p.backoff.jitter_ppm = r->jitter_ppm;
	p.backoff.floor_ns = r->floor;
	assert_int_equal(kretry_policy_check(&p), 0);
	return p;
}

static u64 draw(const struct kretry_policy *p, const struct range *r, u64 rnd)
{
	return kretry_delay(&p->backoff, KRETRY_EVENT_TRANSIENT, r->n, r->previous, rnd);
}

/* Of @values values, how many fall into bins 0 to @bin - 1 of @bins. */
static u64 values_before(u64 values, u32 bin, u32 bins)
{
	return ((__int128)values * bin + bins - 1) / bins;
}

static double chi_square(const struct kretry_policy *p, const struct range *r, u32 bins)
{
	u64 values = (r->hi - r->lo) / r->step + 1, value;
	double sum = 0, expected, share;
	u32 seen[BINS] = { 0 }, i;

	for (i = 0; i < DRAWS; i++) {
		value = draw(p, r, fresh_u64());
		assert_in_range(value, r->lo, r->hi);
		assert_int_equal((value - r->lo) % r->step, 0);
		value = (value - r->lo) / r->step;
		seen[(u32)((__int128)value * bins / values)]++;
	}
	for (i = 0; i < bins; i++) {
		share = values_before(values, i + 1, bins) - values_before(values, i, bins);
		expected = DRAWS * share / values;
		sum += (seen[i] - expected) * (seen[i] - expected) / expected;
	}
	return sum;
}

static void draws_uniform_over_range_below_and_at_cap(void **state)
{
	double first, second;
	u64 values;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		const struct range *r = &ranges[i];
		struct kretry_policy p = policy_of_range(r);
		u32 bins;

		values = (r->hi - r->lo) / r->step + 1;
		bins = values < BINS ? values : BINS;
		first = chi_square(&p, r, bins);
		if (first <= critical(bins))
			continue;
		second = chi_square(&p, r, bins);
		if (second > critical(bins))
			fail_msg("%s: chi-square %.1f, then %.1f, with %u bins", r->what, first,
				 second, bins);
	}
}

static void draws_reach_both_ends_of_range(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		const struct range *r = &ranges[i];
		struct kretry_policy p = policy_of_range(r);

		if (draw(&p, r, 0) != r->lo || draw(&p, r, U64_MAX) != r->hi)
			fail_msg("%s: [%llu, %llu]", r->what, (unsigned long long)draw(&p, r, 0),
				 (unsigned long long)draw(&p, r, U64_MAX));
	}
}

/* A server's hint of a minute: the spread over it is as even as any other draw. */
static double hint_chi_square(const struct kretry_policy *p)
{
	u32 seen[BINS] = { 0 }, i;
	double sum = 0, expected = (double)DRAWS / BINS;

	for (i = 0; i < DRAWS; i++) {
		struct kretry_op op = op_of(KRETRY_EVENT_THROTTLED, KRETRY_OP_HINT, 3);

		op.hint_ns = 60 * SEC;
		assert_int_equal(kretry_decide(p, &op, NOW, fresh_u64()), 0);
		assert_in_range(op.delay_ns, 60 * SEC, 68 * SEC);
		seen[(op.delay_ns - 60 * SEC) * BINS / (8 * SEC + 1)]++;
	}
	for (i = 0; i < BINS; i++)
		sum += (seen[i] - expected) * (seen[i] - expected) / expected;
	return sum;
}

static void hint_spread_uniform_up_to_the_ceiling(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_FULL, SEC, 60 * SEC);

	(void)state;
	if (hint_chi_square(&p) > critical(BINS))
		assert_true(hint_chi_square(&p) <= critical(BINS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_uniform_over_range_below_and_at_cap),
		cmocka_unit_test(draws_reach_both_ends_of_range),
		cmocka_unit_test(hint_spread_uniform_up_to_the_ceiling),
	};

	return run_group(tests);
}
