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
		.policy = { COMMON, EXPONENTIAL(KRETRY_JITTER_FULL) },
	},
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) <= STORM_MAX_ROWS, "raise STORM_MAX_ROWS");

const struct storm_row *storm_rows(size_t *count)
{
	*count = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

void storm_row_policy(const struct storm_row *row, uint64_t seed, struct kretry_policy *policy)
{
	*policy = row->policy;
	if (row->host_wide)
		snprintf((char *)policy->name, sizeof(policy->name), "storm-%s-%llu", row->name,
			 (unsigned long long)seed);
}
