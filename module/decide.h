/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The decision path: an event and a policy in, a verdict and a deadline out. Pure: see pure.h. */
#ifndef KRETRY_DECIDE_H
#define KRETRY_DECIDE_H

#include "delay.h"
#include "pure.h"

#define KRETRY_OP_PER_REPORT	(KRETRY_OP_HINT | KRETRY_OP_NO_RETRY)
#define KRETRY_OP_KNOWN		(KRETRY_OP_IDEMPOTENT | KRETRY_OP_PER_REPORT | KRETRY_OP_QUEUE)

/* 0; EINVAL for parameters outside their range, EOPNOTSUPP for those this build does not have. */
int kretry_policy_check(const struct kretry_policy *p);

static inline bool kretry_event_is_failure(u8 event)
{
	return event >= KRETRY_EVENT_TRANSIENT && event <= KRETRY_EVENT_PERMANENT;
}

/* Whether deciding @op may use a random number; without, kretry_decide() ignores its @rnd. */
static inline bool kretry_needs_draw(const struct kretry_policy *p, const struct kretry_op *op)
{
	return op->event >= KRETRY_EVENT_TRANSIENT && op->event < KRETRY_EVENT_PERMANENT &&
	       kretry_backoff_draws(&p->backoff);
}

/* Whether @op is well formed: 0, EINVAL or EOPNOTSUPP. */
static inline int kretry_op_check(const struct kretry_op *op)
{
	if (op->event == KRETRY_EVENT_NONE || op->event > KRETRY_EVENT_PERMANENT)
		return -EINVAL;
	if (op->flags & KRETRY_OP_IN_MASK & ~KRETRY_OP_KNOWN)
		return -EINVAL;
	if ((op->flags & KRETRY_OP_PER_REPORT) && !kretry_event_is_failure(op->event))
		return -EINVAL;
	if (op->hint_ns && !(op->flags & KRETRY_OP_HINT))
		return -EINVAL;
	if (op->flags & KRETRY_OP_QUEUE)
		return -EOPNOTSUPP;
	return 0;
}

/*
 * Decide @op, which is well formed, under @p at @now with one uniform random number. All times are
 * the host's.
 */
void kretry_apply(const struct kretry_policy *p, struct kretry_op *op, u64 now, u64 rnd);

/* Both: what kretry_op_check() says with @op unchanged, or 0 with it decided. */
int kretry_decide(const struct kretry_policy *p, struct kretry_op *op, u64 now, u64 rnd);

#endif /* KRETRY_DECIDE_H */
