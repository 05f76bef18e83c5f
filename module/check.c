// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a policy may say. Fields that its strategy or jitter does not use are zero, so that they
 * can be given a meaning later.
 */
#include "decide.h"

#define KRETRY_CLOCK_MONOTONIC	1
#define KRETRY_CLOCK_BOOTTIME	7

#define KRETRY_POLICY_KNOWN                                                                        \
	(KRETRY_POLICY_ASSUME_IDEMPOTENT | KRETRY_POLICY_HINT_CLAMP | KRETRY_POLICY_HINT_MAX |     \
	 KRETRY_POLICY_HINT_EXACT | KRETRY_POLICY_HINT_SHARED | KRETRY_POLICY_WAIT_OPEN |          \
	 KRETRY_POLICY_PACE_ALL)
#define KRETRY_POLICY_NOT_BUILT                                                                    \
	(KRETRY_POLICY_HINT_SHARED | KRETRY_POLICY_WAIT_OPEN | KRETRY_POLICY_PACE_ALL)
#define KRETRY_OPEN_KNOWN	(KRETRY_OPEN_GLOBAL | KRETRY_OPEN_NOTIFY)
#define KRETRY_BREAKER_KNOWN	(KRETRY_BREAKER_REPORTERS_UID | KRETRY_BREAKER_METRICS_ONLY)

static bool kretry_is_zero(const void *bytes, size_t len)
{
	const u8 *byte = bytes;

	while (len && !*byte) {
		byte++;
		len--;
	}
	return !len;
}

static bool kretry_is_duration(u64 ns)
{
	return ns <= KRETRY_NS_MAX;
}

static bool kretry_table_ok(const struct kretry_backoff *b)
{
	u32 i;

	if (b->strategy != KRETRY_TABLE)
		return !b->table_len && kretry_is_zero(b->table_ns, sizeof(b->table_ns));
	if (!b->table_len || b->table_len > KRETRY_TABLE_MAX || b->base_ns || b->base_throttled_ns)
		return false;
	for (i = 1; i < b->table_len; i++)
		if (b->table_ns[i] < b->table_ns[i - 1])
			return false;
	return kretry_is_duration(b->table_ns[i - 1]) && b->table_ns[0] <= b->cap_ns &&
	       kretry_is_zero(b->table_ns + i, sizeof(b->table_ns) - i * sizeof(b->table_ns[0]));
}

static bool kretry_jitter_ok(const struct kretry_backoff *b)
{
	switch (b->jitter) {
	case KRETRY_JITTER_NONE:
		return !b->jitter_ppm;
	case KRETRY_JITTER_FULL:
	case KRETRY_JITTER_EQUAL:
		if (b->jitter_ppm)
			return false;
		break;
	case KRETRY_JITTER_PROPORTIONAL:
		if (b->jitter_ppm > KRETRY_PPM)
			return false;
		break;
	case KRETRY_JITTER_ADDITIVE:
		break;
	default:
		return false;
	}
	return b->strategy != KRETRY_DECORRELATED && b->strategy != KRETRY_SLOTTED;
}

/* Slots are multiples of @base, so the first one at or above the floor must be under the cap. */
static bool kretry_slots_ok(const struct kretry_backoff *b, u64 base)
{
	u64 first;

	if (!base)
		return false;
	first = b->floor_ns ? div64_u64(b->floor_ns - 1, base) + 1 : 0;
	return first <= div64_u64(b->cap_ns, base);
}

static bool kretry_strategy_ok(const struct kretry_backoff *b)
{
	if (b->strategy == KRETRY_EXPONENTIAL ? b->multiplier_ppm < KRETRY_PPM : b->multiplier_ppm)
		return false;

	switch (b->strategy) {
	case KRETRY_FIXED:
	case KRETRY_LINEAR:
	case KRETRY_EXPONENTIAL:
	case KRETRY_DECORRELATED:
	case KRETRY_TABLE:
		return true;
	case KRETRY_SLOTTED:
		return kretry_slots_ok(b, b->base_ns) &&
		       (!b->base_throttled_ns || kretry_slots_ok(b, b->base_throttled_ns));
	}
	return false;
}

static bool kretry_backoff_ok(const struct kretry_backoff *b)
{
	return !b->reserved && !b->reserved2 && kretry_is_duration(b->cap_ns) &&
	       b->base_ns <= b->cap_ns && b->base_throttled_ns <= b->cap_ns &&
	       b->floor_ns <= b->cap_ns && kretry_strategy_ok(b) && kretry_jitter_ok(b) &&
	       kretry_table_ok(b);
}

/* A name is padded with NUL, and ends with at least one. Without one nothing of it is set. */
static bool kretry_naming_ok(const struct kretry_policy *p)
{
	size_t len = strnlen((const char *)p->name, KRETRY_NAME_MAX);

	if (p->open_flags & ~KRETRY_OPEN_KNOWN || p->reserved || !kretry_is_duration(p->linger_ns))
		return false;
	if (!len)
		return kretry_is_zero(p->name, KRETRY_NAME_MAX) && !p->uid && !p->gid && !p->mode &&
		       !p->linger_ns && !(p->open_flags & KRETRY_OPEN_GLOBAL);
	return len < KRETRY_NAME_MAX && kretry_is_zero(p->name + len, KRETRY_NAME_MAX - len);
}

static bool kretry_limits_ok(const struct kretry_policy *p)
{
	return kretry_is_duration(p->max_elapsed_ns) && kretry_is_duration(p->reset_after_ns) &&
	       kretry_is_duration(p->slack_ns) && kretry_is_duration(p->hint_limit_ns) &&
	       kretry_is_duration(p->hint_over_own_ns);
}

static bool kretry_reserved_ok(const struct kretry_policy *p)
{
	return !(p->budget.flags & ~KRETRY_BUDGET_REFUND_LAST) && !p->budget.reserved &&
	       !(p->breaker.flags & ~KRETRY_BREAKER_KNOWN) && !p->breaker.reserved;
}

/* Parts of the ABI that this build does not have. */
static bool kretry_is_built(const struct kretry_policy *p)
{
	return !p->name[0] && !p->open_flags && !(p->flags & KRETRY_POLICY_NOT_BUILT) &&
	       kretry_is_zero(&p->budget, sizeof(p->budget)) &&
	       kretry_is_zero(&p->breaker, sizeof(p->breaker)) &&
	       kretry_is_zero(&p->pacing, sizeof(p->pacing));
}

int kretry_policy_check(const struct kretry_policy *p)
{
	if (p->flags & ~KRETRY_POLICY_KNOWN)
		return -EINVAL;
	if (p->clockid != KRETRY_CLOCK_MONOTONIC && p->clockid != KRETRY_CLOCK_BOOTTIME)
		return -EINVAL;
	if (!kretry_naming_ok(p) || !kretry_limits_ok(p) || !kretry_backoff_ok(&p->backoff) ||
	    !kretry_reserved_ok(p))
		return -EINVAL;
	return kretry_is_built(p) ? 0 : -EOPNOTSUPP;
}
