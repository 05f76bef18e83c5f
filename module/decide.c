// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The decision path. Each check has its place: the first that refuses names the reason, and nothing
 * is taken before all have passed.
 */
#include "decide.h"

/* Where nothing is shared there is one generation: that of every attempt that BEGIN admitted. */
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

/* What the policy makes of the hint before anything is drawn. */
static u64 kretry_hint(const struct kretry_policy *p, const struct kretry_op *op)
{
	u64 hint = min(op->hint_ns, KRETRY_NS_MAX);

	return p->hint_limit_ns ? min(hint, p->hint_limit_ns) : hint;
}

/*
 * The server's word goes before the own calculation and over the cap. A spread of at most the
 * ceiling keeps those it spoke to apart; a hint shorter than the base makes no hot loop.
 */
static noinline u64 kretry_hinted(const struct kretry_policy *p, const struct kretry_op *op,
				  u64 own, u64 rnd)
{
	const struct kretry_backoff *b = &p->backoff;
	u64 base = kretry_base(b, op->event), hint = kretry_hint(p, op), wait = hint, spread;

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

static u64 kretry_own_delay(const struct kretry_policy *p, const struct kretry_op *op, u64 rnd)
{
	return kretry_delay(&p->backoff, op->event, op->attempt, op->delay_ns, rnd);
}

/* -------- what the key shares -------- */

/* An operation brings its deposit once, when its first attempt is admitted. */
static void kretry_deposit_request(const struct kretry_policy *p, struct kretry_shared *s,
				   const struct kretry_op *op, u64 now)
{
	if (kretry_has_budget(p) && (!op->start_ns || !op->generation))
		kretry_budget_deposit(&p->budget, s, p->budget.deposit_request_utok, now);
}

/* The cost of the last retry, by the failure it followed. */
static u64 kretry_last_cost(const struct kretry_budget *b, const struct kretry_op *op)
{
	if (op->flags & KRETRY_OP_AFTER_THROTTLED)
		return b->cost_throttled_utok;
	return op->flags & KRETRY_OP_AFTER_UNKNOWN ? b->cost_unknown_utok : b->cost_transient_utok;
}

/* The cost of a retry comes back once: not while an op keeps its backoff and may succeed again. */
static void kretry_deposit_success(const struct kretry_policy *p, struct kretry_shared *s,
				   const struct kretry_op *op, struct kretry_call *call, bool keeps)
{
	const struct kretry_budget *b = &p->budget;
	u64 amount = op->attempt ? b->deposit_retry_success_utok : b->deposit_first_success_utok;

	if (!kretry_has_budget(p))
		return;
	if (op->attempt && b->flags & KRETRY_BUDGET_REFUND_LAST && !keeps)
		call->returned = kretry_budget_deposit(b, s, kretry_last_cost(b, op), call->now);
	kretry_budget_deposit(b, s, amount, call->now);
}

static bool kretry_charge(const struct kretry_policy *p, struct kretry_shared *s,
			  const struct kretry_op *op, struct kretry_call *call)
{
	u64 cost, reserve = s->reserve_utok;

	if (!kretry_has_budget(p))
		return true;
	cost = kretry_budget_cost(&p->budget, op->event);
	if (!kretry_budget_admits(&p->budget, s, cost))
		return false;
	call->charged = kretry_budget_take(&p->budget, s, cost, call->now);
	call->from_reserve = s->reserve_utok < reserve;
	return true;
}

/* A result without a BEGIN implies one, unless the breaker would have had a say in it. */
static void kretry_imply_begin(const struct kretry_policy *p, struct kretry_shared *s,
			       struct kretry_op *op, u64 now)
{
	if (op->start_ns)
		return;
	op->generation = 0;
	if (!kretry_has_breaker(p) || kretry_breaker_lets_pass(&p->breaker, s)) {
		kretry_deposit_request(p, s, op, now);
		op->generation = s->generation;
	}
	op->start_ns = now;
	op->deadline_ns = now;
}

/* The breaker counts the result, the budget is drained, a shared hint cools the key. */
static void kretry_report(const struct kretry_policy *p, struct kretry_shared *s,
			  const struct kretry_op *op, const struct kretry_call *call)
{
	struct kretry_result result = {
		.now		= call->now,
		.took_ns	= kretry_sat_sub(call->now, op->deadline_ns),
		.rnd		= call->rnd,
		.generation	= op->generation,
		.reporter	= call->reporter,
		.event		= op->event,
		.probe		= call->probe,
	};

	if (kretry_has_breaker(p))
		kretry_breaker_record(&p->breaker, s, &result);
	if (op->event == KRETRY_EVENT_OK || op->event == KRETRY_EVENT_PERMANENT)
		return;
	if (kretry_has_budget(p))
		kretry_budget_take(&p->budget, s, p->budget.drain_per_failure_utok, call->now);
	if (p->flags & KRETRY_POLICY_HINT_SHARED && op->flags & KRETRY_OP_HINT &&
	    !kretry_hint_refused(p, op))
		s->cooling_ns = max(s->cooling_ns, kretry_sat_add(call->now, kretry_hint(p, op)));
}

/* -------- BEGIN -------- */

/*
 * Nobody returns together when an open breaker becomes half-open: each adds a delay of its own.
 * With WAIT_OPEN an operation that has been granted a retry waits on, and is not charged again; a
 * first attempt is refused all the same.
 */
static u8 kretry_refuse_open(const struct kretry_policy *p, const struct kretry_shared *s,
			     struct kretry_op *op, const struct kretry_call *call)
{
	u64 from = s->state == KRETRY_OPEN ? max(call->now, s->changed_ns) : call->now;
	u64 start = op->start_ns ? op->start_ns : call->now;

	op->deadline_ns = kretry_sat_add(from, kretry_own_delay(p, op, call->rnd));
	if (!(p->flags & KRETRY_POLICY_WAIT_OPEN) || !op->attempt)
		return KRETRY_STOP_OPEN;
	if (p->max_elapsed_ns && op->deadline_ns > kretry_sat_add(start, p->max_elapsed_ns)) {
		op->deadline_ns = 0;
		return KRETRY_STOP_ELAPSED;
	}
	op->start_ns = start;
	op->flags |= KRETRY_OP_READMIT;
	return KRETRY_RETRY;
}

static u8 kretry_begin_shared(const struct kretry_policy *p, struct kretry_shared *s,
			      struct kretry_op *op, struct kretry_call *call)
{
	bool paced = p->pacing.pace_ns && (op->attempt || p->flags & KRETRY_POLICY_PACE_ALL);
	u64 slot = paced ? max(call->now, s->pace_next_ns) : call->now;

	if (s->cooling_ns > call->now) {
		op->deadline_ns = s->cooling_ns;
		return KRETRY_STOP_COOLING;
	}
	if (kretry_has_breaker(p) && !kretry_breaker_admits(&p->breaker, s, call->now, call->rnd))
		return kretry_refuse_open(p, s, op, call);
	op->deadline_ns = slot;
	if (slot - call->now > p->pacing.horizon_ns)
		return KRETRY_STOP_PACED;

	if (paced)
		s->pace_next_ns = kretry_sat_add(slot, p->pacing.pace_ns);
	if (kretry_has_breaker(p) && kretry_breaker_probes(&p->breaker, s)) {
		s->probes_out++;
		call->leased = true;
		op->flags |= KRETRY_OP_PROBE;
	}
	kretry_deposit_request(p, s, op, call->now);
	op->generation = s->generation;
	return KRETRY_GO;
}

static __always_inline u8 kretry_begin(const struct kretry_policy *p, struct kretry_shared *s,
				       struct kretry_op *op, struct kretry_call *call)
{
	u8 verdict;

	if (s) {
		verdict = kretry_begin_shared(p, s, op, call);
		if (verdict != KRETRY_GO)
			return verdict;
	} else {
		op->generation = KRETRY_GENERATION;
		op->deadline_ns = call->now;
	}
	if (!op->start_ns)
		op->start_ns = call->now;
	return KRETRY_GO;
}

/* -------- a failure -------- */

/*
 * When the retry may start. An open breaker and a cooling key come before the delay; where the
 * server's own word to this caller reaches beyond the cooling, that is enough.
 */
static u64 kretry_retry_deadline(const struct kretry_policy *p, const struct kretry_shared *s,
				 const struct kretry_op *op, u64 now, u64 own, u64 delay)
{
	u64 from = now;

	if (s && s->cooling_ns > (op->flags & KRETRY_OP_HINT ? kretry_sat_add(now, delay) : now)) {
		from = s->cooling_ns;
		delay = own;
	}
	if (s && s->state == KRETRY_OPEN && kretry_breaker_is_open(&p->breaker, s))
		from = max(from, s->changed_ns);
	return kretry_sat_add(from, delay);
}

/* A refund will have to know what the retry cost. */
static void kretry_remember_cost(const struct kretry_policy *p, struct kretry_op *op)
{
	op->flags &= ~KRETRY_OP_AFTER;
	if (!(p->budget.flags & KRETRY_BUDGET_REFUND_LAST))
		return;
	if (op->event == KRETRY_EVENT_THROTTLED)
		op->flags |= KRETRY_OP_AFTER_THROTTLED;
	else if (op->event == KRETRY_EVENT_UNKNOWN)
		op->flags |= KRETRY_OP_AFTER_UNKNOWN;
}

static void kretry_grant(const struct kretry_policy *p, struct kretry_op *op, u64 delay)
{
	if (op->flags & KRETRY_OP_HINT && delay < min(op->hint_ns, KRETRY_NS_MAX))
		op->flags |= KRETRY_OP_CLAMPED;
	if (kretry_has_breaker(p) || p->pacing.pace_ns)
		op->flags |= KRETRY_OP_READMIT;
	kretry_remember_cost(p, op);
	op->delay_ns = delay;
	if (op->attempt < U32_MAX)
		op->attempt++;
}

static __always_inline u8 kretry_decide_failure(const struct kretry_policy *p,
						struct kretry_shared *s, struct kretry_op *op,
						struct kretry_call *call)
{
	u64 own, delay;

	op->deadline_ns = 0;
	if (op->event == KRETRY_EVENT_PERMANENT)
		return KRETRY_STOP_PERMANENT;
	if (op->event == KRETRY_EVENT_UNKNOWN && !kretry_is_idempotent(p, op))
		return KRETRY_STOP_UNSAFE;
	if (op->attempt >= p->max_retries && p->max_retries != KRETRY_NO_LIMIT)
		return KRETRY_STOP_LIMIT;
	if (op->flags & KRETRY_OP_PER_REPORT && kretry_hint_refused(p, op))
		return KRETRY_STOP_HINT;

	own = kretry_own_delay(p, op, call->rnd);
	delay = own;
	if (op->flags & KRETRY_OP_HINT)
		delay = kretry_hinted(p, op, own, call->rnd);
	op->deadline_ns = kretry_retry_deadline(p, s, op, call->now, own, delay);
	if (s && !(p->flags & KRETRY_POLICY_WAIT_OPEN) && kretry_has_breaker(p) &&
	    kretry_breaker_is_open(&p->breaker, s))
		return KRETRY_STOP_OPEN;
	if (p->max_elapsed_ns &&
	    op->deadline_ns > kretry_sat_add(op->start_ns, p->max_elapsed_ns)) {
		op->deadline_ns = 0;
		return KRETRY_STOP_ELAPSED;
	}
	if (s && !kretry_charge(p, s, op, call)) {
		op->deadline_ns = 0;
		return KRETRY_STOP_BUDGET;
	}
	kretry_grant(p, op, delay);
	return KRETRY_RETRY;
}

/* -------- the path -------- */

/* The operation is over: make @op ready for the next one. */
static u8 kretry_finish(struct kretry_op *op)
{
	op->attempt = 0;
	op->start_ns = 0;
	op->delay_ns = 0;
	op->deadline_ns = 0;
	op->flags &= ~KRETRY_OP_AFTER;
	return KRETRY_DONE;
}

/* A connection that opens and dies at once keeps its backoff. */
static bool kretry_keeps_backoff(const struct kretry_policy *p, const struct kretry_op *op,
				 u64 now)
{
	return op->start_ns && kretry_sat_sub(now, op->deadline_ns) < p->reset_after_ns;
}

static __always_inline u8 kretry_decide_event(const struct kretry_policy *p,
					      struct kretry_shared *s, struct kretry_op *op,
					      struct kretry_call *call)
{
	bool keeps = false;

	if (op->event == KRETRY_EVENT_CANCELLED)
		return kretry_finish(op);
	if (op->start_ns > call->now)
		op->start_ns = call->now;
	if (op->event == KRETRY_EVENT_BEGIN)
		return kretry_begin(p, s, op, call);

	if (op->event == KRETRY_EVENT_OK)
		keeps = kretry_keeps_backoff(p, op, call->now);
	if (s) {
		kretry_imply_begin(p, s, op, call->now);
		if (op->event == KRETRY_EVENT_OK)
			kretry_deposit_success(p, s, op, call, keeps);
		kretry_report(p, s, op, call);
	}
	if (op->event == KRETRY_EVENT_OK)
		return keeps ? KRETRY_DONE : kretry_finish(op);
	if (!op->start_ns)
		op->start_ns = call->now;
	return kretry_decide_failure(p, s, op, call);
}

static noinline u8 kretry_decide_shared(const struct kretry_policy *p, struct kretry_shared *s,
					struct kretry_op *op, struct kretry_call *call)
{
	return kretry_decide_event(p, s, op, call);
}

/* The path is compiled twice: without shared state it is short. */
void kretry_apply(const struct kretry_policy *p, struct kretry_shared *s, struct kretry_op *op,
		  struct kretry_call *call)
{
	op->flags &= KRETRY_OP_IN_MASK;
	op->verdict = s ? kretry_decide_shared(p, s, op, call) :
			  kretry_decide_event(p, NULL, op, call);
	op->flags &= ~KRETRY_OP_PER_REPORT;
	op->event = KRETRY_EVENT_NONE;
	op->hint_ns = 0;
}

int kretry_decide(const struct kretry_policy *p, struct kretry_op *op, u64 now, u64 rnd)
{
	struct kretry_call call = { .now = now, .rnd = rnd };
	int err = kretry_op_check(op);

	if (!err)
		kretry_apply(p, NULL, op, &call);
	return err;
}
