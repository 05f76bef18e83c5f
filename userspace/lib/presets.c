// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The parameters of other systems, as they document them. kretry-presets(7) says what is the
 * same as there and what differs.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define US(n)		((n) * 1000ULL)
#define MS(n)		((n) * 1000000ULL)
#define SEC(n)		((n) * 1000000000ULL)
#define PERCENT(n)	((n) * (KRETRY_PPM / 100))
#define MILLI_TOKENS(n)	((n) * (KRETRY_UTOK / 1000))
#define TOKENS(n)	((n) * KRETRY_UTOK)

/* Where deposits have no bound but time. */
#define ANY_TOKENS	TOKENS(1000000)

/* A finite time is a must here; none of these systems has one, so that a lost probe wedges them. */
#define PROBE_TIMEOUT	SEC(60)

struct preset {
	const char		*name;
	struct kretry_policy	policy;
};

static const struct preset presets[] = {
	{ "aws-standard", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.max_retries = 2,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_FULL,
			.multiplier_ppm = 2 * KRETRY_PPM,
			.base_ns = SEC(1),
			.cap_ns = SEC(20),
		},
		.budget = {
			.capacity_utok = TOKENS(500),
			.initial_utok = TOKENS(500),
			.deposit_first_success_utok = TOKENS(1),
			.cost_transient_utok = TOKENS(5),
			.cost_throttled_utok = TOKENS(5),
			.cost_unknown_utok = TOKENS(10),
			.flags = KRETRY_BUDGET_REFUND_LAST,
		},
	} },
	{ "aws-2026", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT | KRETRY_POLICY_HINT_EXACT |
			 KRETRY_POLICY_HINT_MAX,
		.max_retries = 2,
		.hint_over_own_ns = SEC(5),
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_FULL,
			.multiplier_ppm = 2 * KRETRY_PPM,
			.base_ns = MS(50),
			.base_throttled_ns = SEC(1),
			.cap_ns = SEC(20),
		},
		.budget = {
			.capacity_utok = TOKENS(500),
			.initial_utok = TOKENS(500),
			.deposit_first_success_utok = TOKENS(1),
			.cost_transient_utok = TOKENS(14),
			.cost_throttled_utok = TOKENS(5),
			.cost_unknown_utok = TOKENS(14),
			.flags = KRETRY_BUDGET_REFUND_LAST,
		},
	} },
	{ "grpc", {
		.flags = KRETRY_POLICY_HINT_EXACT,
		.max_retries = 4,
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_PROPORTIONAL,
			.multiplier_ppm = 2 * KRETRY_PPM,
			.jitter_ppm = PERCENT(20),
			.base_ns = MS(100),
			.cap_ns = SEC(1),
		},
		.budget = {
			.capacity_utok = TOKENS(10),
			.initial_utok = TOKENS(10),
			.deposit_first_success_utok = MILLI_TOKENS(100),
			.deposit_retry_success_utok = MILLI_TOKENS(100),
			.drain_per_failure_utok = TOKENS(1),
			.admit_above_utok = TOKENS(5),
		},
	} },
	{ "linkerd", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.max_retries = 1,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_ADDITIVE,
			.multiplier_ppm = 2 * KRETRY_PPM,
			.jitter_ppm = PERCENT(100),
			.base_ns = MS(25),
			.cap_ns = MS(250),
		},
		.budget = {
			.capacity_utok = ANY_TOKENS,
			.initial_utok = TOKENS(100),
			.reserve_cap_utok = TOKENS(100),
			.refill_utok_per_s = TOKENS(10),
			.deposit_first_success_utok = MILLI_TOKENS(200),
			.deposit_retry_success_utok = MILLI_TOKENS(200),
			.cost_transient_utok = TOKENS(1),
			.cost_throttled_utok = TOKENS(1),
			.cost_unknown_utok = TOKENS(1),
			.window_ns = SEC(10),
		},
		.breaker = {
			.consecutive = 7,
			.open_growth_ppm = 2 * KRETRY_PPM,
			.open_jitter_ppm = PERCENT(50),
			.probes = 1,
			.throttled = KRETRY_THROTTLED_SUCCESS,
			.throttled_half_open = KRETRY_THROTTLED_SUCCESS,
			.open_ns = SEC(1),
			.open_cap_ns = SEC(60),
			.probe_timeout_ns = PROBE_TIMEOUT,
		},
	} },
	{ "finagle", {
		.max_retries = 20,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_FIXED,
			.jitter = KRETRY_JITTER_NONE,
		},
		.budget = {
			.capacity_utok = ANY_TOKENS,
			.initial_utok = TOKENS(100),
			.reserve_cap_utok = TOKENS(100),
			.refill_utok_per_s = TOKENS(10),
			.deposit_request_utok = MILLI_TOKENS(200),
			.cost_transient_utok = TOKENS(1),
			.cost_throttled_utok = TOKENS(1),
			.cost_unknown_utok = TOKENS(1),
			.window_ns = SEC(10),
		},
		.breaker = {
			.consecutive = 5,
			.min_calls = 5,
			.ratio_ppm = PERCENT(20) + 1,	/* a success rate below 80 % */
			.open_growth_ppm = 2 * KRETRY_PPM,
			.open_jitter_ppm = PERCENT(50),
			.probes = 1,
			.throttled = KRETRY_THROTTLED_FAILURE,
			.throttled_half_open = KRETRY_THROTTLED_FAILURE,
			.open_ns = SEC(5),
			.open_cap_ns = SEC(300),
			.window_ns = SEC(30),
			.probe_timeout_ns = PROBE_TIMEOUT,
		},
	} },
	{ "envoy", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.max_retries = 1,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_FULL,
			.multiplier_ppm = 2 * KRETRY_PPM,
			.base_ns = MS(25),
			.cap_ns = MS(250),
		},
		.budget = {
			.capacity_utok = ANY_TOKENS,
			.initial_utok = TOKENS(3),
			.reserve_cap_utok = TOKENS(3),
			.refill_utok_per_s = TOKENS(3),
			.deposit_request_utok = MILLI_TOKENS(200),
			.cost_transient_utok = TOKENS(1),
			.cost_throttled_utok = TOKENS(1),
			.cost_unknown_utok = TOKENS(1),
			.window_ns = SEC(10),
		},
		.breaker = {
			.consecutive = 5,
			.open_growth_ppm = 2 * KRETRY_PPM,
			.probes = 255,
			.throttled = KRETRY_THROTTLED_SUCCESS,
			.throttled_half_open = KRETRY_THROTTLED_SUCCESS,
			.open_ns = SEC(30),
			.open_cap_ns = SEC(300),
			.probe_timeout_ns = PROBE_TIMEOUT,
		},
	} },
	{ "resilience4j", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.max_retries = 2,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_PROPORTIONAL,
			.multiplier_ppm = KRETRY_PPM / 2 * 3,
			.jitter_ppm = PERCENT(50),
			.base_ns = MS(500),
			.cap_ns = KRETRY_NS_MAX,
		},
		.breaker = {
			/* Ten slices of eleven: always the last 100 results, and up to ten more. */
			.window_calls = 110,
			.min_calls = 100,
			.ratio_ppm = PERCENT(50),
			.slow_ppm = PERCENT(100),
			.half_open_ppm = PERCENT(50),
			.probes = 10,
			.throttled = KRETRY_THROTTLED_FAILURE,
			.throttled_half_open = KRETRY_THROTTLED_FAILURE,
			.open_ns = SEC(60),
			.open_cap_ns = SEC(60),
			.probe_timeout_ns = PROBE_TIMEOUT,
			.slow_ns = SEC(60),
		},
	} },
	{ "hystrix", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_FIXED,
			.jitter = KRETRY_JITTER_FULL,
			.base_ns = SEC(1),
			.cap_ns = SEC(1),
		},
		.breaker = {
			.min_calls = 20,
			.ratio_ppm = PERCENT(50),
			.probes = 1,
			.throttled = KRETRY_THROTTLED_FAILURE,
			.throttled_half_open = KRETRY_THROTTLED_FAILURE,
			.open_ns = SEC(5),
			.open_cap_ns = SEC(5),
			.window_ns = SEC(10),
			.probe_timeout_ns = PROBE_TIMEOUT,
		},
	} },
	{ "polly", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.max_retries = 3,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_PROPORTIONAL,
			.multiplier_ppm = 2 * KRETRY_PPM,
			.jitter_ppm = PERCENT(100),
			.base_ns = SEC(2),
			.cap_ns = KRETRY_NS_MAX,
		},
		.breaker = {
			.min_calls = 100,
			.ratio_ppm = PERCENT(10),
			.probes = 1,
			.throttled = KRETRY_THROTTLED_FAILURE,
			.throttled_half_open = KRETRY_THROTTLED_FAILURE,
			.open_ns = SEC(5),
			.open_cap_ns = SEC(5),
			.window_ns = SEC(30),
			.probe_timeout_ns = PROBE_TIMEOUT,
		},
	} },
	{ "curl", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT | KRETRY_POLICY_HINT_EXACT,
		.max_retries = 7,
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_NONE,
			.multiplier_ppm = 2 * KRETRY_PPM,
			.base_ns = SEC(1),
			.cap_ns = SEC(600),
		},
	} },
	{ "systemd", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.max_retries = KRETRY_NO_LIMIT,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_FIXED,
			.jitter = KRETRY_JITTER_NONE,
			.base_ns = MS(100),
			.cap_ns = MS(100),
		},
		.budget = {
			/* Five starts in 10 s, of which the first is no retry. */
			.capacity_utok = TOKENS(4),
			.initial_utok = TOKENS(4),
			.reserve_cap_utok = TOKENS(4),
			.refill_utok_per_s = MILLI_TOKENS(500),
			.cost_transient_utok = TOKENS(1),
			.cost_throttled_utok = TOKENS(1),
			.cost_unknown_utok = TOKENS(1),
		},
	} },
	{ "kubernetes", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.max_retries = KRETRY_NO_LIMIT,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_EXPONENTIAL,
			.jitter = KRETRY_JITTER_NONE,
			.multiplier_ppm = 2 * KRETRY_PPM,
			.base_ns = MS(5),
			.cap_ns = SEC(1000),
		},
	} },
	{ "ethernet", {
		.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT,
		.max_retries = 15,
		.hint_limit_ns = SEC(60),
		.backoff = {
			.strategy = KRETRY_SLOTTED,
			.jitter = KRETRY_JITTER_NONE,
			.base_ns = US(512) / 10,	/* 512 bit times at 10 Mbit/s */
			.cap_ns = 1023 * US(512) / 10,
		},
	} },
};

#define PRESETS	(sizeof(presets) / sizeof(*presets))

const char *kretry_preset_name(unsigned int i)
{
	return i < PRESETS ? presets[i].name : NULL;
}

int kretry_preset(const char *name, struct kretry_policy *policy)
{
	unsigned int i;

	for (i = 0; i < PRESETS; i++) {
		if (strcmp(presets[i].name, name))
			continue;
		*policy = presets[i].policy;
		policy->size = sizeof(*policy);
		policy->clockid = CLOCK_MONOTONIC;
		return 0;
	}
	return -ENOENT;
}
