// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stddef.h>

#include "random.h"

/* splitmix64 */
u64 prng_next(struct prng *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

u32 prng_below(struct prng *r, u32 n)
{
	return mul_u64_u64_shr(prng_next(r), n, 64);
}

u64 prng_edgy(struct prng *r, u64 lo, u64 hi)
{
	u64 width = hi - lo, x = prng_next(r);

	switch (prng_below(r, 8)) {
	case 0:
		return lo;
	case 1:
		return hi;
	case 2:
		return hi - min(width, x % 3);
	case 3:
		return lo + min(width, x % 4);
	case 4:
		x = (1ULL << (x % 64)) + prng_below(r, 3) - 1;
		return lo + min(width, x);
	case 5:
		return width == U64_MAX ? x : lo + x % (width + 1);
	default:
		x >>= prng_below(r, 64);
		return lo + min(width, x);
	}
}

/* Zero in about one of @n cases, else up to the largest duration. */
static u64 zero_or(struct prng *r, u32 n)
{
	return prng_below(r, n) ? prng_edgy(r, 0, KRETRY_NS_MAX) : 0;
}

static u32 random_multiplier(struct prng *r)
{
	static const u32 usual[] = {
		1000000, 1000001, 1000003, 1100000, 1500000, 1999999, 2000000, 2000001, 3000000,
		4000000, 10000000, U32_MAX,
	};

	if (prng_below(r, 3))
		return usual[prng_below(r, ARRAY_SIZE(usual))];
	return prng_edgy(r, KRETRY_PPM, U32_MAX);
}

static void random_table(struct prng *r, struct kretry_backoff *b)
{
	u64 entry = prng_edgy(r, 0, b->cap_ns);
	u32 i;

	b->table_len = prng_edgy(r, 1, KRETRY_TABLE_MAX);
	for (i = 0; i < b->table_len; i++) {
		b->table_ns[i] = entry;
		entry += prng_edgy(r, 0, (KRETRY_NS_MAX - entry) >> prng_below(r, 63));
	}
}

static void random_backoff(struct prng *r, struct kretry_backoff *b)
{
	b->strategy = 1 + prng_below(r, 6);
	if (b->strategy != KRETRY_DECORRELATED && b->strategy != KRETRY_SLOTTED)
		b->jitter = prng_below(r, 5);
	if (b->strategy == KRETRY_EXPONENTIAL)
		b->multiplier_ppm = random_multiplier(r);
	if (b->jitter == KRETRY_JITTER_PROPORTIONAL)
		b->jitter_ppm = prng_edgy(r, 0, KRETRY_PPM);
	if (b->jitter == KRETRY_JITTER_ADDITIVE)
		b->jitter_ppm = prng_edgy(r, 0, U32_MAX);
	b->cap_ns = prng_edgy(r, 0, KRETRY_NS_MAX);
	if (b->strategy == KRETRY_SLOTTED && !b->cap_ns)
		b->cap_ns = 1;
	if (b->strategy == KRETRY_TABLE)
		random_table(r, b);
	else
		b->base_ns = prng_edgy(r, b->strategy == KRETRY_SLOTTED, b->cap_ns);
	if (b->strategy != KRETRY_TABLE && !prng_below(r, 3))
		b->base_throttled_ns = prng_edgy(r, 0, b->cap_ns);
	if (prng_below(r, 2))
		b->floor_ns = prng_edgy(r, 0, b->cap_ns);
}

/* With SLOTTED some multiple of each base must lie between the floor and the cap. */
static void fit_floor(struct kretry_backoff *b)
{
	u64 base = max(b->base_ns, b->base_throttled_ns);

	if (b->strategy == KRETRY_SLOTTED && b->floor_ns > b->cap_ns - base)
		b->floor_ns = b->cap_ns - base;
}

void random_policy(struct prng *r, struct kretry_policy *p)
{
	memset(p, 0, sizeof(*p));
	p->size = sizeof(*p);
	p->clockid = prng_below(r, 2) ? 1 : 7;
	p->flags = prng_below(r, 16);
	p->max_retries = prng_below(r, 2) ? KRETRY_NO_LIMIT : prng_edgy(r, 0, U32_MAX);
	p->max_elapsed_ns = zero_or(r, 3);
	p->reset_after_ns = zero_or(r, 2);
	p->slack_ns = zero_or(r, 2);
	p->hint_limit_ns = zero_or(r, 2);
	p->hint_over_own_ns = zero_or(r, 2);
	random_backoff(r, &p->backoff);
	fit_floor(&p->backoff);
}

struct field {
	size_t offset;
	size_t size;
};

#define FIELD(member) { \
	offsetof(struct kretry_policy, member), sizeof(((struct kretry_policy *)0)->member) \
}

static const struct field fields[] = {
	FIELD(flags), FIELD(open_flags), FIELD(clockid), FIELD(uid), FIELD(gid), FIELD(mode),
	FIELD(reserved), FIELD(linger_ns), FIELD(name[0]), FIELD(name[1]), FIELD(name[63]),
	FIELD(max_elapsed_ns), FIELD(reset_after_ns), FIELD(slack_ns), FIELD(hint_limit_ns),
	FIELD(hint_over_own_ns), FIELD(backoff.strategy), FIELD(backoff.jitter),
	FIELD(backoff.table_len), FIELD(backoff.reserved), FIELD(backoff.multiplier_ppm),
	FIELD(backoff.jitter_ppm), FIELD(backoff.reserved2), FIELD(backoff.base_ns),
	FIELD(backoff.base_throttled_ns), FIELD(backoff.cap_ns), FIELD(backoff.floor_ns),
	FIELD(backoff.table_ns[0]), FIELD(backoff.table_ns[1]), FIELD(backoff.table_ns[63]),
	FIELD(budget.capacity_utok), FIELD(budget.initial_utok), FIELD(budget.reserve_cap_utok),
	FIELD(budget.refill_utok_per_s), FIELD(budget.deposit_request_utok),
	FIELD(budget.drain_per_failure_utok), FIELD(budget.cost_unknown_utok),
	FIELD(budget.admit_above_utok), FIELD(budget.window_ns), FIELD(budget.max_retrying),
	FIELD(budget.retrying_ppm), FIELD(budget.flags), FIELD(budget.reserved),
	FIELD(breaker.consecutive), FIELD(breaker.min_calls), FIELD(breaker.ratio_ppm),
	FIELD(breaker.slow_ppm), FIELD(breaker.half_open_ppm), FIELD(breaker.open_growth_ppm),
	FIELD(breaker.open_jitter_ppm), FIELD(breaker.window_calls), FIELD(breaker.probes),
	FIELD(breaker.successes_to_close), FIELD(breaker.min_reporters), FIELD(breaker.throttled),
	FIELD(breaker.throttled_half_open), FIELD(breaker.reserved), FIELD(breaker.flags),
	FIELD(breaker.open_ns), FIELD(breaker.open_cap_ns), FIELD(breaker.window_ns),
	FIELD(breaker.probe_timeout_ns), FIELD(breaker.slow_ns), FIELD(breaker.ramp_ns),
	FIELD(pacing.pace_ns), FIELD(pacing.horizon_ns),
};

void random_suspect(struct prng *r, struct kretry_policy *p)
{
	u32 i, times = prng_below(r, 4);

	if (prng_below(r, 2))
		random_policy(r, p);
	else
		random_shared_policy(r, p);
	for (i = 0; i < times; i++) {
		const struct field *f = &fields[prng_below(r, ARRAY_SIZE(fields))];
		u64 value = prng_edgy(r, 0, U64_MAX >> (64 - 8 * f->size));

		memcpy((char *)p + f->offset, &value, f->size);
	}
}

static u32 random_attempt(struct prng *r)
{
	static const u32 edges[] = { 0, 1, 2, 9, 10, 31, 62, 63, 64, 0x7fffffff, 0x80000000,
				     U32_MAX - 1, U32_MAX };

	if (prng_below(r, 4))
		return edges[prng_below(r, ARRAY_SIZE(edges))];
	return prng_edgy(r, 0, U32_MAX);
}

static u16 random_flags(struct prng *r, u8 event)
{
	u16 flags = prng_next(r) & (0xff00 | KRETRY_OP_IDEMPOTENT | KRETRY_OP_QUEUE);

	if (event >= KRETRY_EVENT_TRANSIENT && prng_below(r, 2))
		flags |= KRETRY_OP_HINT;
	if (event >= KRETRY_EVENT_TRANSIENT && !prng_below(r, 8))
		flags |= KRETRY_OP_NO_RETRY;
	if (!prng_below(r, 16))
		flags ^= 1 << prng_below(r, 8);
	return flags;
}

void random_op(struct prng *r, u64 now, struct kretry_op *op)
{
	memset(op, 0, sizeof(*op));
	op->policy = prng_next(r);
	op->event = prng_below(r, 16) ? 1 + prng_below(r, 7) : prng_edgy(r, 0, 255);
	op->verdict = prng_next(r);
	op->flags = random_flags(r, op->event);
	op->key = prng_next(r);
	op->user_data = prng_next(r);
	op->attempt = random_attempt(r);
	op->generation = prng_edgy(r, 0, U32_MAX);
	if (op->flags & KRETRY_OP_HINT || !prng_below(r, 16))
		op->hint_ns = prng_edgy(r, 0, U64_MAX);
	if (prng_below(r, 4))
		op->start_ns = prng_below(r, 2) ? prng_edgy(r, 0, U64_MAX) : prng_edgy(r, 0, now);
	op->delay_ns = prng_edgy(r, 0, U64_MAX);
	op->deadline_ns = prng_below(r, 2) ? prng_edgy(r, 0, U64_MAX) : prng_edgy(r, 0, now);
}
