// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The decision path. Each check has its place: the first that refuses names the reason. */
#include "decide.h"

/* Without a breaker there is one generation: that of every attempt that BEGIN admitted. */
#define KRETRY_GENERATION	1

static bool kretry_is_idempotent(const struct kretry_policy *p, const struct kretry_op *op)
{
	return op->flags & KRETRY_OP_IDEMPOTENT || p->flags & KRETRY_POLICY_ASSUME_IDEMPOTENT;
}

/* A hint the policy does not take. */
static bool kretry_hint_refused(const struct kretry_policy *p, const struct kretry_op *op)
{
	if (op->flags & KRETRY_OP_NO_RETRY)
		return true;
	return op->flags & KRETRY_OP_HINT && p->hint_limit_ns && op->hint_ns > p->hint_limit_ns &&
	       !(p->flags & KRETRY_POLICY_HINT_CLAMP);
}

/*
 * The server's word goes before the own calculation and over the cap. A spread of at most the
 * ceiling keeps those it spoke to apart; a hint shorter than the base makes no hot loop.
 */
static noinline u64 kretry_hinted(const struct kretry_policy *p, const struct kretry_op *op,
				  u64 own, u64 rnd)
{
	const struct kretry_backoff *b = &p->backoff;
	u64 base = kretry_base(b, op->event), hint = min(op->hint_ns, KRETRY_NS_MAX), wait, spread;

	if (p->hint_limit_ns)
		hint = min(hint, p->hint_limit_ns);

	wait = hint;
	if (!(p->flags & KRETRY_POLICY_HINT_EXACT)) {
		if (hint < base) {
			wait = max(own, hint);
		} else if (kretry_backoff_draws(b)) {
			spread = min(kretry_ceiling(b, base, op->attempt), hint);
			wait = kretry_sat_add(hint, kretry_uniform(0, spread, rnd));
		}
	}
	if (p->flags & KRETRY_POLICY_HINT_MAX)
		wait = max(wait, own);
	if (p->hint_over_own_ns)
		wait = min(wait, kretry_sat_add(own, p->hint_over_own_ns));
	return wait;
}

static u8 kretry_decide_failure(const struct kretry_policy *p, struct kretry_op *op, u64 now,
				u64 rnd)
{
	u64 delay, deadline;

	if (op->event == KRETRY_EVENT_PERMANENT)
		return KRETRY_STOP_PERMANENT;
	if (op->event == KRETRY_EVENT_UNKNOWN && !kretry_is_idempotent(p, op))
		return KRETRY_STOP_UNSAFE;
	if (op->attempt >= p->max_retries && p->max_retries != KRETRY_NO_LIMIT)
		return KRETRY_STOP_LIMIT;
	if (op->flags & KRETRY_OP_PER_REPORT && kretry_hint_refused(p, op))
		return KRETRY_STOP_HINT;

	delay = kretry_delay(&p->backoff, op->event, op->attempt, op->delay_ns, rnd);
	if (op->flags & KRETRY_OP_HINT)
		delay = kretry_hinted(p, op, delay, rnd);
	deadline = kretry_sat_add(now, delay);
	if (p->max_elapsed_ns && deadline > kretry_sat_add(op->start_ns, p->max_elapsed_ns))
		return KRETRY_STOP_ELAPSED;

	if (op->flags & KRETRY_OP_HINT && delay < min(op->hint_ns, KRETRY_NS_MAX))
		op->flags |= KRETRY_OP_CLAMPED;
	op->delay_ns = delay;
	op->deadline_ns = deadline;
	if (op->attempt < U32_MAX)
		op->attempt++;
	return KRETRY_RETRY;
}

/* The operation is over: make @op ready for the next one. */
static u8 kretry_finish(struct kretry_op *op)
{
	op->attempt = 0;
	op->start_ns = 0;
	op->delay_ns = 0;
	op->deadline_ns = 0;
	return KRETRY_DONE;
}

/* A connection that opens and dies at once keeps its backoff. */
static bool kretry_keeps_backoff(const struct kretry_policy *p, const struct kretry_op *op,
				 u64 now)
{
	return op->start_ns && kretry_sat_sub(now, op->deadline_ns) < p->reset_after_ns;
}

static u8 kretry_decide_event(const struct kretry_policy *p, struct kretry_op *op, u64 now,
			      u64 rnd)
{
	u8 verdict;

	switch (op->event) {
	case KRETRY_EVENT_OK:
		return kretry_keeps_backoff(p, op, now) ? KRETRY_DONE : kretry_finish(op);
	case KRETRY_EVENT_CANCELLED:
		return kretry_finish(op);
	}

	if (!op->start_ns || op->start_ns > now)
		op->start_ns = now;
	if (op->event == KRETRY_EVENT_BEGIN) {
		op->generation = KRETRY_GENERATION;
		op->deadline_ns = now;
		return KRETRY_GO;
	}

	verdict = kretry_decide_failure(p, op, now, rnd);
	if (verdict != KRETRY_RETRY)
		op->deadline_ns = 0;
	return verdict;
}

void kretry_apply(const struct kretry_policy *p, struct kretry_op *op, u64 now, u64 rnd)
{
	op->flags &= KRETRY_OP_IN_MASK;
	op->verdict = kretry_decide_event(p, op, now, rnd);
	op->flags &= ~KRETRY_OP_PER_REPORT;
	op->event = KRETRY_EVENT_NONE;
	op->hint_ns = 0;
}

int kretry_decide(const struct kretry_policy *p, struct kretry_op *op, u64 now, u64 rnd)
{
	int err = kretry_op_check(op);

	if (!err)
		kretry_apply(p, op, now, rnd);
	return err;
}
