// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a policy may say about budget, breaker and pacing: each field at and over its edges. */
#include "policies.h"

/* Sets the u64 or u32 at @offset of the policy. */
#define U64_AT(offset)	(*(u64 *)((char *)p + (offset)))
#define U32_AT(offset)	(*(u32 *)((char *)p + (offset)))

static struct kretry_policy budgeted(void)
{
	struct kretry_policy p = PLAIN;

	p.budget.capacity_utok = 100;
	return p;
}

static struct kretry_policy broken(void)
{
	struct kretry_policy p = PLAIN;

	p.breaker = (struct kretry_breaker){
		.consecutive = 5, .probes = 1, .open_ns = 100, .open_cap_ns = 1000,
		.probe_timeout_ns = SEC,
	};
	return p;
}

static struct kretry_policy windowed(void)
{
	struct kretry_policy p = broken();

	p.breaker.ratio_ppm = KRETRY_PPM / 2;
	p.breaker.window_ns = SEC;
	return p;
}

static void check_budget_amounts_above_their_bound_einval(void **state)
{
	static const size_t within_capacity[] = {
		offsetof(struct kretry_policy, budget.initial_utok),
		offsetof(struct kretry_policy, budget.reserve_cap_utok),
	};
	size_t i, at = offsetof(struct kretry_policy, budget.refill_utok_per_s);

	(void)state;
	VALID(budgeted(), p->budget.capacity_utok = NS_MAX);
	INVALID(budgeted(), p->budget.capacity_utok = NS_MAX + 1);
	for (i = 0; i < ARRAY_SIZE(within_capacity); i++) {
		VALID(budgeted(), U64_AT(within_capacity[i]) = 100);
		INVALID(budgeted(), U64_AT(within_capacity[i]) = 101);
	}
	for (; at <= offsetof(struct kretry_policy, budget.admit_above_utok); at += 8) {
		VALID(budgeted(), U64_AT(at) = NS_MAX);
		INVALID(budgeted(), U64_AT(at) = NS_MAX + 1);
	}
	VALID(budgeted(), p->budget.window_ns = 10);
	VALID(budgeted(), p->budget.window_ns = NS_MAX);
	INVALID(budgeted(), p->budget.window_ns = 9);
	INVALID(budgeted(), p->budget.window_ns = NS_MAX + 1);
	VALID(budgeted(), p->budget.flags = KRETRY_BUDGET_REFUND_LAST);
	INVALID(budgeted(), p->budget.flags = 2);
	INVALID(budgeted(), p->budget.reserved = 1);
}

static void check_no_budget_breaker_or_pacing_with_fields_einval(void **state)
{
	size_t i;

	(void)state;
	for (i = offsetof(struct kretry_policy, budget.initial_utok);
	     i < offsetof(struct kretry_policy, breaker); i += 4)
		INVALID(PLAIN, U32_AT(i) = 1);
	for (; i < offsetof(struct kretry_policy, pacing); i += 4)
		if (i != offsetof(struct kretry_policy, breaker.probes))
			INVALID(PLAIN, U32_AT(i) = 1);
	INVALID(PLAIN, p->pacing.horizon_ns = 1);
	INVALID(PLAIN, p->flags = KRETRY_POLICY_PACE_ALL);
	INVALID(PLAIN, p->flags = KRETRY_POLICY_WAIT_OPEN);
	VALID(PLAIN, p->flags = KRETRY_POLICY_HINT_SHARED);
	VALID(broken(), p->flags = KRETRY_POLICY_WAIT_OPEN);
}

static void check_breaker_counts_out_of_range_einval(void **state)
{
	(void)state;
	VALID(broken(), p->breaker.consecutive = 0);
	VALID(broken(), p->breaker.consecutive = 65535);
	INVALID(broken(), p->breaker.consecutive = 65536);
	VALID(broken(), p->breaker.probes = 255);
	INVALID(broken(), p->breaker.probes = 256);
	VALID(broken(), p->breaker.successes_to_close = 255);
	INVALID(broken(), p->breaker.successes_to_close = 256);
	VALID(broken(), p->breaker.min_reporters = 1);
	VALID(windowed(), p->breaker.min_reporters = 8);
	INVALID(windowed(), p->breaker.min_reporters = 9);
	VALID(broken(), p->breaker.half_open_ppm = KRETRY_PPM);
	INVALID(broken(), p->breaker.half_open_ppm = KRETRY_PPM + 1);
	VALID(broken(), p->breaker.throttled = KRETRY_THROTTLED_FAILURE);
	INVALID(broken(), p->breaker.throttled = 3);
	VALID(broken(), p->breaker.throttled_half_open = KRETRY_THROTTLED_SUCCESS);
	INVALID(broken(), p->breaker.throttled_half_open = 3);
	VALID(broken(), p->breaker.flags = 3);
	INVALID(broken(), p->breaker.flags = 4);
	INVALID(broken(), p->breaker.reserved = 1);
}

static void check_breaker_times_out_of_range_einval(void **state)
{
	(void)state;
	INVALID(broken(), p->breaker.open_ns = 0);
	VALID(broken(), p->breaker.open_ns = 1000);
	INVALID(broken(), p->breaker.open_ns = 1001);
	VALID(broken(), p->breaker.open_cap_ns = NS_MAX);
	INVALID(broken(), p->breaker.open_cap_ns = NS_MAX + 1);
	VALID(broken(), p->breaker.open_growth_ppm = KRETRY_PPM);
	VALID(broken(), p->breaker.open_growth_ppm = U32_MAX);
	INVALID(broken(), p->breaker.open_growth_ppm = KRETRY_PPM - 1);
	VALID(broken(), p->breaker.open_jitter_ppm = KRETRY_PPM / 2);
	INVALID(broken(), p->breaker.open_jitter_ppm = KRETRY_PPM / 2 + 1);
	VALID(broken(), p->breaker.probe_timeout_ns = NS_MAX);
	INVALID(broken(), p->breaker.probe_timeout_ns = 0);
	INVALID(broken(), p->breaker.probe_timeout_ns = NS_MAX + 1);
	VALID(broken(), p->breaker.ramp_ns = NS_MAX);
	INVALID(broken(), p->breaker.ramp_ns = NS_MAX + 1);
	INVALID(broken(), p->breaker.slow_ns = 1);
	VALID(windowed(), (p->breaker.slow_ppm = 1, p->breaker.slow_ns = NS_MAX));
	INVALID(windowed(), (p->breaker.slow_ppm = 1, p->breaker.slow_ns = NS_MAX + 1));
}

/* A rule and its window come together, and the window can hold the calls that the rule needs. */
static void check_breaker_window_that_does_not_fit_its_rules_einval(void **state)
{
	(void)state;
	INVALID(windowed(), p->breaker.window_ns = 0);
	INVALID(broken(), p->breaker.window_ns = SEC);
	INVALID(broken(), p->breaker.window_calls = 100);
	INVALID(broken(), p->breaker.min_reporters = 2);
	VALID(broken(), (p->breaker.min_reporters = 2, p->breaker.window_ns = SEC));
	VALID(broken(), (p->breaker.min_reporters = 2, p->breaker.window_calls = 100));
	INVALID(broken(), (p->breaker.min_reporters = 1, p->breaker.window_ns = SEC));
	INVALID(broken(), p->breaker.min_calls = 1);
	VALID(windowed(), (p->breaker.ratio_ppm = 0, p->breaker.slow_ppm = KRETRY_PPM));
	INVALID(windowed(), p->breaker.ratio_ppm = KRETRY_PPM + 1);
	INVALID(windowed(), p->breaker.slow_ppm = KRETRY_PPM + 1);
	VALID(windowed(), p->breaker.window_ns = 10);
	INVALID(windowed(), p->breaker.window_ns = 9);
	INVALID(windowed(), p->breaker.window_ns = NS_MAX + 1);
	INVALID(windowed(), p->breaker.window_calls = 100);
	VALID(windowed(), p->breaker.min_calls = 32768);
	INVALID(windowed(), p->breaker.min_calls = 32769);
	VALID(windowed(), (p->breaker.window_ns = 0, p->breaker.window_calls = 10));
	INVALID(windowed(), (p->breaker.window_ns = 0, p->breaker.window_calls = 9));
	VALID(windowed(), (p->breaker.window_ns = 0, p->breaker.window_calls = 655350,
			   p->breaker.min_calls = 655350));
	INVALID(windowed(), (p->breaker.window_ns = 0, p->breaker.window_calls = 655351));
	VALID(windowed(), (p->breaker.window_ns = 0, p->breaker.window_calls = 19,
			   p->breaker.min_calls = 10));
	INVALID(windowed(), (p->breaker.window_ns = 0, p->breaker.window_calls = 19,
			     p->breaker.min_calls = 11));
}

static void check_pacing_out_of_range_einval(void **state)
{
	(void)state;
	VALID(PLAIN, (p->pacing.pace_ns = NS_MAX, p->pacing.horizon_ns = NS_MAX));
	VALID(PLAIN, (p->pacing.pace_ns = 1, p->flags = KRETRY_POLICY_PACE_ALL));
	INVALID(PLAIN, p->pacing.pace_ns = NS_MAX + 1);
	INVALID(PLAIN, (p->pacing.pace_ns = 1, p->pacing.horizon_ns = NS_MAX + 1));
}

static void check_part_not_built_eopnotsupp_unless_malformed(void **state)
{
	(void)state;
	CASE(budgeted(), -EOPNOTSUPP, p->budget.max_retrying = 1);
	CASE(budgeted(), -EOPNOTSUPP, p->budget.retrying_ppm = KRETRY_PPM);
	INVALID(budgeted(), p->budget.retrying_ppm = KRETRY_PPM + 1);
	INVALID(budgeted(), (p->budget.max_retrying = 1, p->clockid = 3));
	INVALID(budgeted(), (p->budget.max_retrying = 1, p->budget.flags = 2));
	INVALID(budgeted(), (p->budget.max_retrying = 1, p->breaker.open_ns = 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_budget_amounts_above_their_bound_einval),
		cmocka_unit_test(check_no_budget_breaker_or_pacing_with_fields_einval),
		cmocka_unit_test(check_breaker_counts_out_of_range_einval),
		cmocka_unit_test(check_breaker_times_out_of_range_einval),
		cmocka_unit_test(check_breaker_window_that_does_not_fit_its_rules_einval),
		cmocka_unit_test(check_pacing_out_of_range_einval),
		cmocka_unit_test(check_part_not_built_eopnotsupp_unless_malformed),
	};

	return run_group(tests);
}
