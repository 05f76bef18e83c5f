/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the tests of kretry_policy_check() share. */
#ifndef KRETRY_UNIT_POLICIES_H
#define KRETRY_UNIT_POLICIES_H

#include "unit.h"

/* A change to a valid policy and the answer to it. */
#define CASE(start, error, change) do { \
	struct kretry_policy policy = start, *p = &policy; \
	change; \
	if (kretry_policy_check(p) != (error)) \
		fail_msg("line %d: %s gave %d", __LINE__, #change, kretry_policy_check(p)); \
} while (0)

#define PLAIN		policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 100, 1000)
#define VALID(start, change)	CASE(start, 0, change)
#define INVALID(start, change)	CASE(start, -EINVAL, change)

#endif /* KRETRY_UNIT_POLICIES_H */
