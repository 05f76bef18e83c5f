/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The decision path: an event and a policy in, a verdict and a deadline out. Pure: see pure.h. */
#ifndef KRETRY_DECIDE_H
#define KRETRY_DECIDE_H

#include "breaker.h"
#include "budget.h"
#include "delay.h"
#include "state.h"

#define KRETRY_OP_PER_REPORT	(KRETRY_OP_HINT | KRETRY_OP_NO_RETRY)
#define KRETRY_OP_AFTER		(KRETRY_OP_AFTER_THROTTLED | KRETRY_OP_AFTER_UNKNOWN)
#define KRETRY_OP_KNOWN                                                                            \
	(KRETRY_OP_IDEMPOTENT | KRETRY_OP_PER_REPORT | KRETRY_OP_QUEUE | KRETRY_OP_AFTER)

/**
 * struct kretry_call - what deciding one op needs to know, and what it did
 * @now:	[in] host time
 * @rnd:	[in] one uniform random number
 * @reporter:	[in] the reporting process, as a short hash
 * @probe:	[in] the op's attempt is a probe of this half-open period, whose lease has just been
 *		given back
 * @leased:	[out] the GO took a probe, to be kept track of until deadline_ns + probe_timeout_ns
 * @charged:	[out] micro-tokens
 * @returned:	[out] micro-tokens of a charge that came back
 * @from_reserve: [out] some of what was charged came from the reserve
 */
struct kretry_call {
	u64 now;
	u64 rnd;
	u64 charged;
	u64 returned;
	u16 reporter;
	bool probe;
	bool leased;
	bool from_reserve;
};

/* 0; EINVAL for parameters outside their range, EOPNOTSUPP for those this build does not have. */
int kretry_policy_check(const struct kretry_policy *p);

static inline bool kretry_event_is_failure(u8 event)
{
	return event >= KRETRY_EVENT_TRANSIENT && event <= KRETRY_EVENT_PERMANENT;
}

/* Whether the policy has anything that its keys share. */
static inline bool kretry_is_shared(const struct kretry_policy *p)
{
	return kretry_has_budget(p) || kretry_has_breaker(p) || p->pacing.pace_ns ||
	       p->flags & KRETRY_POLICY_HINT_SHARED;
}

/* Whether deciding @op may use a random number; without, its call's @rnd is ignored. */
static inline bool kretry_needs_draw(const struct kretry_policy *p, const struct kretry_op *op)
{
	if (op->event == KRETRY_EVENT_BEGIN)
		return kretry_has_breaker(p);
	if (p->breaker.open_jitter_ppm && op->event != KRETRY_EVENT_CANCELLED)
		return true;
	return op->event >= KRETRY_EVENT_TRANSIENT && op->event < KRETRY_EVENT_PERMANENT &&
	       kretry_backoff_draws(&p->backoff);
}

/* Whether @op is well formed: 0 or EINVAL. */
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
	return 0;
}

/*
 * Decide @op, which is well formed, under @p. @s is what its key shares, brought up to @call->now;
 * NULL where the policy shares nothing. All times are the host's.
 */
void kretry_apply(const struct kretry_policy *p, struct kretry_shared *s, struct kretry_op *op,
		  struct kretry_call *call);

/* Both, where nothing is shared: what kretry_op_check() says with @op unchanged, or 0. */
int kretry_decide(const struct kretry_policy *p, struct kretry_op *op, u64 now, u64 rnd);

#endif /* KRETRY_DECIDE_H */
