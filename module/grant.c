// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "grant.h"

u64 kretry_grant_undo(struct kretry_grant *grant, const struct kretry_policy *p,
		      struct kretry_shared *s, struct kretry_op *op, u64 now)
{
	const struct kretry_budget *b = &p->budget;
	u64 returned = 0;

	if (grant->event && s)
		returned = kretry_budget_give_back(b, s, kretry_budget_cost(b, grant->event),
						   grant->from_reserve, now);
	op->attempt -= grant->moved;
	op->flags = (op->flags & ~KRETRY_OP_IN_MASK) | grant->flags;
	grant->event = KRETRY_EVENT_NONE;
	grant->moved = 0;
	return returned;
}

bool kretry_put_off(const struct kretry_policy *p, struct kretry_op *op, u64 from, u64 rnd)
{
	u64 delay = min(op->delay_ns, KRETRY_NS_MAX);

	op->deadline_ns = kretry_sat_add(from, kretry_uniform(0, delay, rnd));
	return !p->max_elapsed_ns ||
	       op->deadline_ns <= kretry_sat_add(op->start_ns, p->max_elapsed_ns);
}
