// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table of the storm: one entry, one row of the result.
 */
#include "storm.h"

#include <time.h>

#define COMMON							\
	.size = sizeof(struct kretry_policy),			\
	.clockid = CLOCK_MONOTONIC,				\
	.max_retries = KRETRY_NO_LIMIT

#define FIXED_1S						\
	.backoff = {						\
		.strategy = KRETRY_FIXED,			\
		.jitter = KRETRY_JITTER_NONE,			\
		.base_ns = 1 * NS_PER_S,			\
		.cap_ns = 4 * NS_PER_S,				\
	}

#define EXPONENTIAL(how)					\
	.backoff = {						\
		.strategy = KRETRY_EXPONENTIAL,			\
		.jitter = (how),				\
		.multiplier_ppm = 2 * KRETRY_PPM,		\
		.base_ns = 500 * NS_PER_MS,			\
		.cap_ns = 4 * NS_PER_S,				\
	}

#define FULL_JITTER	EXPONENTIAL(KRETRY_JITTER_FULL)

/*
 * Each operation brings a tenth of a token and each retry takes one, so retries are 10 % of the
 * traffic of the last 10 s; beyond that one a second, of which 10 can be saved up.
 */
#define BUDGET							\
	.budget = {						\
		.capacity_utok = 10 * KRETRY_UTOK,		\
		.initial_utok = 10 * KRETRY_UTOK,		\
		.reserve_cap_utok = 10 * KRETRY_UTOK,		\
		.refill_utok_per_s = KRETRY_UTOK,		\
		.deposit_request_utok = KRETRY_UTOK / 10,	\
		.cost_transient_utok = KRETRY_UTOK,		\
		.cost_throttled_utok = KRETRY_UTOK,		\
		.cost_unknown_utok = KRETRY_UTOK,		\
		.window_ns = 10 * NS_PER_S,			\
	}

/*
 * Open for as long as the first delay, after each probe that fails twice as long, as delays are.
 * The probe may take far longer than an answer does. THROTTLED comes from a server that is alive,
 * so it opens nothing, and of a probe it is a success: each half-open period has just one probe.
 */
#define BREAKER							\
	.breaker = {						\
		.consecutive = 3,				\
		.probes = 1,					\
		.throttled = KRETRY_THROTTLED_SUCCESS,		\
		.throttled_half_open = KRETRY_THROTTLED_SUCCESS, \
		.open_ns = 500 * NS_PER_MS,			\
		.open_growth_ppm = 2 * KRETRY_PPM,		\
		.open_cap_ns = 4 * NS_PER_S,			\
		.probe_timeout_ns = 1 * NS_PER_S,		\
	}

/* 90 % of the capacity. All clients at once stand in line for 2.2 s: nobody is sent away. */
#define PACED							\
	.pacing = {						\
		.pace_ns = STORM_BIN_NS * 10 / (STORM_CAPACITY * 9), \
		.horizon_ns = 10 * NS_PER_S,			\
	}

static const struct storm_row rows[] = {
	{
		.name = "fixed",
		.label = "fixed 1 s",
		.policy = { COMMON, FIXED_1S },
	}, {
		.name = "exponential",
		.label = "exponential 0.5·1·2·4 s",
		.policy = { COMMON, EXPONENTIAL(KRETRY_JITTER_NONE) },
	}, {
		.name = "jitter",
		.label = "exponential with full jitter",
		.policy = { COMMON, FULL_JITTER },
	}, {
		.name = "budget-own",
		.label = "+ 10 % budget, per process",
		.policy = { COMMON, FULL_JITTER, BUDGET },
	}, {
		.name = "budget-host",
		.label = "+ 10 % budget, host-wide",
		.host_wide = true,
		.policy = { COMMON, FULL_JITTER, BUDGET },
	}, {
		.name = "breaker-own",
		.label = "+ breaker, per process",
		.policy = { COMMON, FULL_JITTER, BREAKER,
			    .flags = KRETRY_POLICY_WAIT_OPEN },
	}, {
		.name = "breaker-host",
		.label = "+ breaker, host-wide",
		.host_wide = true,
		.policy = { COMMON, FULL_JITTER, BREAKER,
			    .flags = KRETRY_POLICY_WAIT_OPEN },
	}, {
		.name = "paced-host",
		.label = "+ breaker + pacing, host-wide",
		.host_wide = true,
		.policy = { COMMON, FULL_JITTER, BREAKER, PACED,
			    .flags = KRETRY_POLICY_WAIT_OPEN | KRETRY_POLICY_PACE_ALL },
	},
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) <= STORM_MAX_ROWS, "raise STORM_MAX_ROWS");

const struct storm_row *storm_rows(size_t *count)
{
	*count = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

void storm_run_policy(const struct storm_run *run, struct kretry_policy *policy)
{
	*policy = run->row->policy;
	if (run->row->host_wide)
		snprintf((char *)policy->name, sizeof(policy->name), "storm-%s-%s-%llu",
			 run->row->name, storm_method_name(run->method),
			 (unsigned long long)run->seed);
}
