// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "random.h"

#define SECOND	1000000000ULL

static u64 pick(struct prng *r, const u64 *from, u32 count)
{
	return from[prng_below(r, count)];
}

/* Mostly tenths of a token up to ten, sometimes anything. */
static u64 amount(struct prng *r, u64 most)
{
	static const u64 usual[] = { 100000, 200000, 600000, 1000000, 333333, 1, 5000000 };
	u64 x = prng_below(r, 3) ? pick(r, usual, ARRAY_SIZE(usual)) : prng_below(r, 10000001);

	if (!prng_below(r, 16))
		x = prng_edgy(r, 0, KRETRY_NS_MAX);
	return min(x, most);
}

static u64 amount_or_0(struct prng *r, u32 n)
{
	return prng_below(r, n) ? amount(r, KRETRY_NS_MAX) : 0;
}

static u64 duration(struct prng *r, u64 least)
{
	static const u64 usual[] = { 10, 19, 1000, 1000000, 100000000, SECOND, 10 * SECOND };

	if (!prng_below(r, 12))
		return prng_edgy(r, least, KRETRY_NS_MAX);
	return max(pick(r, usual, ARRAY_SIZE(usual)) + prng_below(r, 3), least);
}

static void random_budget(struct prng *r, struct kretry_budget *b)
{
	static const u64 rates[] = { 1, 3, 700, 333333, 1000000, 10000000, 7777777777ULL };

	b->capacity_utok = max(amount(r, KRETRY_NS_MAX) * (1 + prng_below(r, 8)), 1ULL);
	b->capacity_utok = min(b->capacity_utok, KRETRY_NS_MAX);
	b->initial_utok = prng_below(r, 3) ? amount(r, b->capacity_utok) : b->capacity_utok;
	b->reserve_cap_utok = amount(r, b->capacity_utok);
	if (prng_below(r, 2))
		b->refill_utok_per_s = pick(r, rates, ARRAY_SIZE(rates));
	else if (!prng_below(r, 4))
		b->refill_utok_per_s = prng_edgy(r, 0, KRETRY_NS_MAX);
	b->deposit_request_utok = amount_or_0(r, 3);
	b->deposit_first_success_utok = amount_or_0(r, 2);
	b->deposit_retry_success_utok = amount_or_0(r, 2);
	b->drain_per_failure_utok = amount_or_0(r, 2);
	b->cost_transient_utok = amount_or_0(r, 8);
	b->cost_throttled_utok = amount_or_0(r, 8);
	b->cost_unknown_utok = amount_or_0(r, 8);
	if (!prng_below(r, 3))
		b->admit_above_utok = amount(r, b->capacity_utok);
	if (prng_below(r, 2))
		b->window_ns = duration(r, KRETRY_SLICES);
	b->flags = prng_below(r, 2);
}

static u32 share(struct prng *r)
{
	static const u64 usual[] = { 1, 100000, 333333, 500000, 900000, KRETRY_PPM };

	return pick(r, usual, ARRAY_SIZE(usual));
}

/* The ratio rules, and a window that is long enough for them. */
static void random_window(struct prng *r, struct kretry_breaker *k)
{
	u32 most = 20;

	k->ratio_ppm = prng_below(r, 4) ? share(r) : 0;
	if ((!k->ratio_ppm && (k->min_reporters < 2 || prng_below(r, 2))) || !prng_below(r, 3)) {
		k->slow_ppm = share(r);
		k->slow_ns = prng_below(r, 4) ? duration(r, 0) : 0;
	}
	if (prng_below(r, 3)) {
		k->window_ns = duration(r, KRETRY_SLICES);
	} else {
		k->window_calls = KRETRY_SLICES + prng_below(r, prng_below(r, 2) ? 5 : 50);
		most = k->window_calls / KRETRY_SLICES * KRETRY_SLICES;
	}
	if (prng_below(r, 3))
		k->min_calls = prng_below(r, most + 1);
}

static void random_breaker(struct prng *r, struct kretry_breaker *k)
{
	static const u64 growths[] = { 0, KRETRY_PPM, 1000001, 1500000, 2000000, U32_MAX };
	static const u64 jitters[] = { 0, 1, 333333, KRETRY_PPM / 2 };

	k->consecutive = prng_below(r, 3) ? 1 + prng_below(r, 6) : 0;
	k->min_reporters = prng_below(r, 2) ? 0 : prng_below(r, 9);
	if (!k->consecutive || k->min_reporters > 1 || prng_below(r, 2))
		random_window(r, k);
	k->half_open_ppm = prng_below(r, 3) ? 0 : share(r);
	k->open_growth_ppm = pick(r, growths, ARRAY_SIZE(growths));
	k->open_jitter_ppm = pick(r, jitters, ARRAY_SIZE(jitters));
	k->probes = prng_below(r, 16) ? 1 + prng_below(r, 3) : 255;
	k->successes_to_close = prng_below(r, 4);
	k->throttled = prng_below(r, 3);
	k->throttled_half_open = prng_below(r, 3);
	k->flags = prng_below(r, 6) ? 0 : KRETRY_BREAKER_METRICS_ONLY;
	k->open_ns = duration(r, 1);
	k->open_cap_ns = prng_below(r, 4) ? prng_edgy(r, k->open_ns, KRETRY_NS_MAX) : k->open_ns;
	k->probe_timeout_ns = duration(r, 1);
	k->ramp_ns = prng_below(r, 2) ? 0 : duration(r, 0);
}

/* A backoff that comes round soon, so that operations get somewhere. */
static void random_quick_backoff(struct prng *r, struct kretry_policy *p)
{
	struct kretry_backoff *b = &p->backoff;

	memset(b, 0, sizeof(*b));
	b->strategy = prng_below(r, 2) ? KRETRY_FIXED : KRETRY_DECORRELATED;
	if (b->strategy == KRETRY_FIXED)
		b->jitter = prng_below(r, 3);
	b->base_ns = prng_below(r, SECOND);
	b->cap_ns = 2 * SECOND;
	p->max_retries = prng_below(r, 2) ? KRETRY_NO_LIMIT : prng_below(r, 5);
	p->max_elapsed_ns = prng_below(r, 3) ? 0 : duration(r, 0);
	p->reset_after_ns = prng_below(r, 3) ? 0 : duration(r, 0);
	p->hint_limit_ns = prng_below(r, 3) ? 0 : duration(r, 0);
	p->hint_over_own_ns = prng_below(r, 4) ? 0 : duration(r, 0);
}

void random_shared_policy(struct prng *r, struct kretry_policy *p)
{
	u32 parts = 1 + prng_below(r, 15);

	random_policy(r, p);
	if (prng_below(r, 4))
		random_quick_backoff(r, p);
	if (parts & 1)
		random_budget(r, &p->budget);
	if (parts & 2)
		random_breaker(r, &p->breaker);
	if (parts & 2 && prng_below(r, 2))
		p->flags |= KRETRY_POLICY_WAIT_OPEN;
	if (parts & 4) {
		p->pacing.pace_ns = duration(r, 1);
		p->pacing.horizon_ns = prng_below(r, 4) ? duration(r, 0) * prng_below(r, 9) : 0;
		p->pacing.horizon_ns = min(p->pacing.horizon_ns, KRETRY_NS_MAX);
		if (prng_below(r, 2))
			p->flags |= KRETRY_POLICY_PACE_ALL;
	}
	if (parts & 8)
		p->flags |= KRETRY_POLICY_HINT_SHARED;
}
