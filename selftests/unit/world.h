/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* One key of one policy, a clock that stands still between the steps, and what the module adds. */
#ifndef KRETRY_UNIT_WORLD_H
#define KRETRY_UNIT_WORLD_H

#include "unit.h"

struct world {
	struct kretry_policy p;
	struct kretry_shared s;
	u64 now;
	u32 generation;
	u16 who;		/* reports */
	u64 charged;		/* of the last step */
	u64 returned;
	bool leased;
};

/* @p is checked, its key is new. */
static inline struct world world_of(struct kretry_policy p)
{
	struct world w = { .p = p, .now = NOW, .who = 1 };

	assert_int_equal(kretry_policy_check(&w.p), 0);
	kretry_shared_start(&w.p, &w.s, w.now);
	return w;
}

/* Let @ns go by, and see what that does to the key. */
static inline void pass(struct world *w, u64 ns)
{
	w->now += ns;
	kretry_shared_advance(&w->p, &w->s, w->now);
	if (!w->s.generation)
		w->s.generation = ++w->generation;
}

/* One event of @op now; a probe it has is given back first. */
static inline u8 step_with(struct world *w, struct kretry_op *op, u8 event, u64 rnd)
{
	struct kretry_call call = { .now = w->now, .rnd = rnd, .reporter = w->who };
	bool had_probe = op->flags & KRETRY_OP_PROBE && event != KRETRY_EVENT_BEGIN;

	pass(w, 0);
	op->event = event;
	call.probe = had_probe && w->s.state == KRETRY_HALF_OPEN &&
		     op->generation == w->s.generation;
	if (call.probe)
		kretry_breaker_return(&w->s);
	assert_int_equal(kretry_op_check(op), 0);
	kretry_apply(&w->p, &w->s, op, &call);
	w->charged = call.charged;
	w->returned = call.returned;
	w->leased = call.leased;
	return op->verdict;
}

static inline u8 step(struct world *w, struct kretry_op *op, u8 event)
{
	return step_with(w, op, event, 0);
}

/* A whole operation of one attempt, begun now and ended @took later by @event. */
static inline u8 call_taking(struct world *w, u8 event, u64 took)
{
	struct kretry_op op = { .policy = 1, .flags = KRETRY_OP_IDEMPOTENT };

	if (step(w, &op, KRETRY_EVENT_BEGIN) != KRETRY_GO)
		return op.verdict;
	pass(w, took);
	return step(w, &op, event);
}

static inline void calls(struct world *w, u8 event, u32 count)
{
	while (count--)
		call_taking(w, event, 0);
}

static inline u64 balance(const struct world *w)
{
	return kretry_budget_balance(&w->s);
}

/* A policy with fixed delays of 1 s and nothing shared yet. */
static inline struct kretry_policy plain_shared(void)
{
	return policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, SEC, 10 * SEC);
}

#endif /* KRETRY_UNIT_WORLD_H */
