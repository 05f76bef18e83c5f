/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The retry budget: a token bucket that bounds retries to a share of the traffic. Pure: pure.h. */
#ifndef KRETRY_BUDGET_H
#define KRETRY_BUDGET_H

#include "state.h"

static inline bool kretry_has_budget(const struct kretry_policy *p)
{
	return p->budget.capacity_utok;
}

/* A bucket as it starts. */
void kretry_budget_start(const struct kretry_budget *b, struct kretry_shared *s, u64 now);

/* Refill the reserve and let deposits lapse, from @s->touched_ns to @now. */
void kretry_budget_advance(const struct kretry_budget *b, struct kretry_shared *s, u64 now);

u64 kretry_budget_balance(const struct kretry_shared *s);

/* Add up to @amount, as far as the capacity goes. Returns what was added. */
u64 kretry_budget_deposit(const struct kretry_budget *b, struct kretry_shared *s, u64 amount,
			  u64 now);

/* Take up to @amount: the oldest deposits first, then the reserve. Returns what was taken. */
u64 kretry_budget_take(const struct kretry_budget *b, struct kretry_shared *s, u64 amount, u64 now);

/*
 * Give back a charge of @amount for a retry that was not made, as far as the capacity goes. If any
 * of it had been taken from the reserve it goes there, up to what time or the start would have put
 * there; the rest lapses as a deposit of now does. Returns what was given back.
 */
u64 kretry_budget_give_back(const struct kretry_budget *b, struct kretry_shared *s, u64 amount,
			    bool from_reserve, u64 now);

/* What a retry after @event costs. */
u64 kretry_budget_cost(const struct kretry_budget *b, u8 event);

/* Whether the bucket has @cost to give, and is above its threshold. */
bool kretry_budget_admits(const struct kretry_budget *b, const struct kretry_shared *s, u64 cost);

#endif /* KRETRY_BUDGET_H */
