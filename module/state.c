// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "state.h"

#include "decide.h"

void kretry_shared_start(const struct kretry_policy *p, struct kretry_shared *s, u64 now)
{
	memset(s, 0, sizeof(*s));
	s->touched_ns = now;
	kretry_breaker_start(&p->breaker, s, now);
	kretry_budget_start(&p->budget, s, now);
}

void kretry_shared_advance(const struct kretry_policy *p, struct kretry_shared *s, u64 now)
{
	if (now <= s->touched_ns)
		return;
	if (kretry_has_breaker(p))
		kretry_breaker_advance(&p->breaker, s, now);
	if (kretry_has_budget(p))
		kretry_budget_advance(&p->budget, s, now);
	s->touched_ns = now;
}

bool kretry_shared_is_new(const struct kretry_policy *p, const struct kretry_shared *s)
{
	return kretry_breaker_is_new(&p->breaker, s) && s->cooling_ns <= s->touched_ns &&
	       s->pace_next_ns <= s->touched_ns &&
	       kretry_budget_balance(s) >= p->budget.initial_utok;
}
