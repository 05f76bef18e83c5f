// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "budget.h"

#define KRETRY_NS_PER_S	1000000000ULL

void kretry_budget_start(const struct kretry_budget *b, struct kretry_shared *s, u64 now)
{
	s->reserve_utok = b->initial_utok;
	s->refilled_ns = now;
}

/* What @rate a second makes of @elapsed; *@rest is the time it did not use, in ns. */
static u64 kretry_per_second(u64 rate, u64 elapsed, u64 *rest)
{
	u64 seconds = div64_u64(elapsed, KRETRY_NS_PER_S);
	u64 ns = elapsed - seconds * KRETRY_NS_PER_S;
	u64 rate_whole = div64_u64(rate, KRETRY_NS_PER_S);
	u64 rate_part = rate - rate_whole * KRETRY_NS_PER_S;
	u64 part = rate_part * ns, whole = div64_u64(part, KRETRY_NS_PER_S);
	u64 tokens = kretry_sat_add(kretry_sat_mul(rate_whole, ns), whole);

	*rest = div64_u64(part - whole * KRETRY_NS_PER_S, rate);
	return kretry_sat_add(kretry_sat_mul(seconds, rate), tokens);
}

/*
 * Whole micro-tokens go into the reserve; the time that would make a fraction of one stays
 * unaccounted for, so that a refill loses less than 1 ns of it, however frequent.
 */
static void kretry_budget_refill(const struct kretry_budget *b, struct kretry_shared *s, u64 now)
{
	u64 room = kretry_sat_sub(b->reserve_cap_utok, s->reserve_utok);
	u64 rate = b->refill_utok_per_s, rest, tokens;

	if (!rate || !room) {
		s->refilled_ns = max(s->refilled_ns, now);
		return;
	}
	tokens = kretry_per_second(rate, kretry_sat_sub(now, s->refilled_ns), &rest);
	if (tokens >= room) {
		s->reserve_utok = b->reserve_cap_utok;
		s->refilled_ns = now;
	} else if (tokens) {
		s->reserve_utok += tokens;
		s->refilled_ns = now - rest;
	}
}

/* Deposits lapse with their slices: those that have begun since are empty. */
static void kretry_budget_lapse(const struct kretry_budget *b, struct kretry_shared *s, u64 now)
{
	u32 passed = kretry_slices_since(b->window_ns, s->touched_ns, now), slice;

	if (!passed)
		return;
	slice = kretry_slice_at(b->window_ns, now);
	for (; passed; passed--) {
		s->deposits_utok[slice] = 0;
		slice = slice ? slice - 1 : KRETRY_SLICES - 1;
	}
}

/* Reserve and deposits share the capacity: what a refill would lift above it is not there. */
static void kretry_budget_clip(const struct kretry_budget *b, struct kretry_shared *s)
{
	u64 excess = kretry_sat_sub(kretry_budget_balance(s), b->capacity_utok);

	s->reserve_utok -= min(s->reserve_utok, excess);
}

void kretry_budget_advance(const struct kretry_budget *b, struct kretry_shared *s, u64 now)
{
	if (b->window_ns)
		kretry_budget_lapse(b, s, now);
	kretry_budget_refill(b, s, now);
	kretry_budget_clip(b, s);
}

u64 kretry_budget_balance(const struct kretry_shared *s)
{
	u64 balance = s->reserve_utok;
	u32 i;

#pragma GCC unroll 10
	for (i = 0; i < KRETRY_SLICES; i++)
		balance += s->deposits_utok[i];
	return balance;
}

u64 kretry_budget_deposit(const struct kretry_budget *b, struct kretry_shared *s, u64 amount,
			  u64 now)
{
	u64 room = kretry_sat_sub(b->capacity_utok, kretry_budget_balance(s));

	amount = min(amount, room);
	if (b->window_ns)
		s->deposits_utok[kretry_slice_at(b->window_ns, now)] += amount;
	else
		s->reserve_utok += amount;
	return amount;
}

u64 kretry_budget_give_back(const struct kretry_budget *b, struct kretry_shared *s, u64 amount,
			    bool from_reserve, u64 now)
{
	u64 room = kretry_sat_sub(b->capacity_utok, kretry_budget_balance(s)), reserve = 0;

	amount = min(amount, room);
	if (from_reserve)
		reserve = min(amount, kretry_sat_sub(max(b->initial_utok, b->reserve_cap_utok),
						     s->reserve_utok));
	s->reserve_utok += reserve;
	return reserve + kretry_budget_deposit(b, s, amount - reserve, now);
}

u64 kretry_budget_take(const struct kretry_budget *b, struct kretry_shared *s, u64 amount, u64 now)
{
	u64 balance = kretry_budget_balance(s), taken = min(amount, balance), part;
	u64 lapsing = min(taken, balance - s->reserve_utok);
	u32 slice;

	s->reserve_utok -= taken - lapsing;
	if (!lapsing)
		return taken;
	for (slice = kretry_slice_at(b->window_ns, now); lapsing; lapsing -= part) {
		slice = slice + 1 < KRETRY_SLICES ? slice + 1 : 0;
		part = min(lapsing, s->deposits_utok[slice]);
		s->deposits_utok[slice] -= part;
	}
	return taken;
}

u64 kretry_budget_cost(const struct kretry_budget *b, u8 event)
{
	switch (event) {
	case KRETRY_EVENT_THROTTLED:
		return b->cost_throttled_utok;
	case KRETRY_EVENT_UNKNOWN:
		return b->cost_unknown_utok;
	default:
		return b->cost_transient_utok;
	}
}

bool kretry_budget_admits(const struct kretry_budget *b, const struct kretry_shared *s, u64 cost)
{
	u64 balance = kretry_budget_balance(s);

	return balance >= cost && (!b->admit_above_utok || balance > b->admit_above_utok);
}
