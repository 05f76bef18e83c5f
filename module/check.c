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
#define KRETRY_OPEN_KNOWN	(KRETRY_OPEN_GLOBAL | KRETRY_OPEN_NOTIFY)
#define KRETRY_MODE_BITS	0666
#define KRETRY_STREAK_MAX	0xffff
#define KRETRY_PROBES_MAX	0xff
#define KRETRY_CALLS_MAX	(KRETRY_SLICES * 0xffffU)
#define KRETRY_MIN_CALLS_MAX	0x8000
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
	bool global = p->open_flags & KRETRY_OPEN_GLOBAL;

	if (p->open_flags & ~KRETRY_OPEN_KNOWN || p->reserved || p->mode & ~KRETRY_MODE_BITS)
		return false;
	if (!len && (global || p->linger_ns))
		return false;
	if (!global && (p->uid || p->gid || p->mode))
		return false;
	return len < KRETRY_NAME_MAX && kretry_is_zero(p->name + len, KRETRY_NAME_MAX - len) &&
	       kretry_is_duration(p->linger_ns);
}

static bool kretry_limits_ok(const struct kretry_policy *p)
{
	return kretry_is_duration(p->max_elapsed_ns) && kretry_is_duration(p->reset_after_ns) &&
	       kretry_is_duration(p->slack_ns) && kretry_is_duration(p->hint_limit_ns) &&
	       kretry_is_duration(p->hint_over_own_ns);
}

/* A slice is at least 1 ns. */
static bool kretry_window_ok(u64 window_ns)
{
	return !window_ns || (window_ns >= KRETRY_SLICES && kretry_is_duration(window_ns));
}

static bool kretry_budget_ok(const struct kretry_budget *b)
{
	const u64 amounts[] = {
		b->capacity_utok, b->refill_utok_per_s, b->deposit_request_utok,
		b->deposit_first_success_utok, b->deposit_retry_success_utok,
		b->drain_per_failure_utok, b->cost_transient_utok, b->cost_throttled_utok,
		b->cost_unknown_utok, b->admit_above_utok,
	};
	u32 i;

	if (b->flags & ~KRETRY_BUDGET_REFUND_LAST || b->reserved)
		return false;
	for (i = 0; i < ARRAY_SIZE(amounts); i++)
		if (amounts[i] > KRETRY_NS_MAX)
			return false;
	if (!b->capacity_utok)
		return kretry_is_zero(b, sizeof(*b));
	return b->initial_utok <= b->capacity_utok && b->reserve_cap_utok <= b->capacity_utok &&
	       kretry_window_ok(b->window_ns) && b->retrying_ppm <= KRETRY_PPM;
}

/* The most results that the window can be sure to hold. */
static u32 kretry_window_holds(const struct kretry_breaker *k)
{
	if (k->window_calls)
		return k->window_calls / KRETRY_SLICES * KRETRY_SLICES;
	return k->window_ns ? KRETRY_MIN_CALLS_MAX : 0;
}

static bool kretry_rules_ok(const struct kretry_breaker *k)
{
	bool windowed = k->window_ns || k->window_calls;

	if ((k->ratio_ppm || k->slow_ppm || k->min_reporters > 1) != windowed ||
	    (k->window_ns && k->window_calls))
		return false;
	return k->consecutive <= KRETRY_STREAK_MAX && k->ratio_ppm <= KRETRY_PPM &&
	       k->slow_ppm <= KRETRY_PPM && k->min_calls <= kretry_window_holds(k) &&
	       (k->slow_ppm || !k->slow_ns) && kretry_window_ok(k->window_ns) &&
	       (!k->window_calls || k->window_calls >= KRETRY_SLICES) &&
	       k->window_calls <= KRETRY_CALLS_MAX &&
	       k->min_reporters <= KRETRY_REPORTERS && k->throttled <= KRETRY_THROTTLED_FAILURE &&
	       k->throttled_half_open <= KRETRY_THROTTLED_FAILURE;
}

static bool kretry_breaker_ok(const struct kretry_breaker *k)
{
	if (k->flags & ~KRETRY_BREAKER_KNOWN || k->reserved)
		return false;
	if (!k->probes)
		return kretry_is_zero(k, sizeof(*k));
	return kretry_rules_ok(k) && k->probes <= KRETRY_PROBES_MAX &&
	       k->successes_to_close <= KRETRY_PROBES_MAX && k->half_open_ppm <= KRETRY_PPM &&
	       (!k->open_growth_ppm || k->open_growth_ppm >= KRETRY_PPM) &&
	       k->open_jitter_ppm <= KRETRY_PPM / 2 && k->open_ns &&
	       k->open_ns <= k->open_cap_ns && kretry_is_duration(k->open_cap_ns) &&
	       k->probe_timeout_ns && kretry_is_duration(k->probe_timeout_ns) &&
	       kretry_is_duration(k->slow_ns) && kretry_is_duration(k->ramp_ns);
}

static bool kretry_pacing_ok(const struct kretry_policy *p)
{
	if (!p->pacing.pace_ns)
		return !p->pacing.horizon_ns && !(p->flags & KRETRY_POLICY_PACE_ALL);
	return kretry_is_duration(p->pacing.pace_ns) && kretry_is_duration(p->pacing.horizon_ns);
}

/* Parts of the ABI that this build does not have. */
static bool kretry_is_built(const struct kretry_policy *p)
{
	return !p->budget.max_retrying && !p->budget.retrying_ppm;
}

int kretry_policy_check(const struct kretry_policy *p)
{
	if (p->flags & ~KRETRY_POLICY_KNOWN)
		return -EINVAL;
	if (p->clockid != KRETRY_CLOCK_MONOTONIC && p->clockid != KRETRY_CLOCK_BOOTTIME)
		return -EINVAL;
	if (p->flags & KRETRY_POLICY_WAIT_OPEN && !kretry_has_breaker(p))
		return -EINVAL;
	if (!kretry_naming_ok(p) || !kretry_limits_ok(p) || !kretry_backoff_ok(&p->backoff) ||
	    !kretry_budget_ok(&p->budget) || !kretry_breaker_ok(&p->breaker) ||
	    !kretry_pacing_ok(p))
		return -EINVAL;
	return kretry_is_built(p) ? 0 : -EOPNOTSUPP;
}
