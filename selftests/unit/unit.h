/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the unit tests share: units of time, policies to start from, a good source of draws. */
#ifndef KRETRY_UNIT_H
#define KRETRY_UNIT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "random.h"

#include <cmocka.h>

#define US	1000ULL
#define MS	1000000ULL
#define SEC	1000000000ULL
#define NS_MAX	KRETRY_NS_MAX
#define NOW	(5000 * SEC)

/* A valid policy without limits; TABLE is @base, twice and five times it. */
static inline struct kretry_policy policy_of(u8 strategy, u8 jitter, u64 base, u64 cap)
{
	struct kretry_policy p = {
		.size = sizeof(p),
		.clockid = 1,
		.max_retries = KRETRY_NO_LIMIT,
		.backoff = {
			.strategy = strategy,
			.jitter = jitter,
			.base_ns = base,
			.cap_ns = cap,
		},
	};

	if (strategy == KRETRY_EXPONENTIAL)
		p.backoff.multiplier_ppm = 2 * KRETRY_PPM;
	if (jitter == KRETRY_JITTER_PROPORTIONAL || jitter == KRETRY_JITTER_ADDITIVE)
		p.backoff.jitter_ppm = KRETRY_PPM / 2;
	if (strategy == KRETRY_TABLE) {
		p.backoff.base_ns = 0;
		p.backoff.table_len = 3;
		p.backoff.table_ns[0] = base;
		p.backoff.table_ns[1] = 2 * base;
		p.backoff.table_ns[2] = 5 * base;
	}
	return p;
}

static inline struct kretry_op op_of(u8 event, u16 flags, u32 attempt)
{
	return (struct kretry_op){
		.policy = 1,
		.event = event,
		.flags = flags,
		.key = 0x1122334455667788ULL,
		.user_data = 0x99aabbccddeeff00ULL,
		.attempt = attempt,
		.start_ns = NOW,
		.deadline_ns = NOW,
	};
}

/* The kernel's generator, in blocks: a syscall for each draw would take most of the time. */
static inline u64 fresh_u64(void)
{
	static u64 pool[32];
	static unsigned int left;

	if (!left) {
		if (getrandom(pool, sizeof(pool), 0) != sizeof(pool))
			abort();
		left = ARRAY_SIZE(pool);
	}
	return pool[--left];
}

#define run_group(tests)	cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL)

#endif /* KRETRY_UNIT_H */
