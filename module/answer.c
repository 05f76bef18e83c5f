// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "answer.h"

#include <linux/percpu.h>

#include "decide.h"
#include "lease.h"
#include "policy.h"
#include "trace.h"
#include "visit.h"

/* -------- what the key shares -------- */

/* While closed and not ramping a BEGIN has no use for a number. */
static bool kretry_answer_needs_draw(const struct kretry_policy *p, const struct kretry_shared *s,
				     const struct kretry_op *op)
{
	if (op->event == KRETRY_EVENT_BEGIN && s->state == KRETRY_CLOSED &&
	    s->mode == KRETRY_MODE_AUTOMATIC && !p->breaker.ramp_ns)
		return false;
	return kretry_needs_draw(p, op);
}

/* True if the breaker has been open meanwhile, and is half-open again. */
static bool kretry_answer_reap(const struct kretry_policy *p, struct kretry_key *key,
			       const struct kretry_call *call)
{
	struct kretry_shared *s = &key->shared;

	kretry_lease_reap(key, call->now, call->rnd);
	if (s->state != KRETRY_OPEN)
		return false;
	kretry_breaker_advance(&p->breaker, s, call->now);
	return s->state == KRETRY_HALF_OPEN;
}

/*
 * Leases that bear on @op: a BEGIN may want one, a report gives its own back. The caller of a wait
 * knows its generation already.
 */
static int kretry_answer_lease(struct kretry_handle *handle, struct kretry_key *key,
			       const struct kretry_op *op, struct kretry_call *call,
			       const struct kretry_queued *queued, struct kretry_lease **lease)
{
	struct kretry_policy_node *policy = handle->policy;
	struct kretry_shared *s = &key->shared;
	bool known = queued && queued->is_wait && queued->phase == KRETRY_TAKEN;

	*lease = NULL;
	if (op->event != KRETRY_EVENT_BEGIN) {
		if (key->leases)
			call->probe = kretry_lease_take(handle->kf, key, op->generation);
		return 0;
	}
	if (!kretry_breaker_probes(&policy->params.breaker, s) ||
	    !kretry_breaker_admits(&policy->params.breaker, s, call->now, call->rnd))
		return 0;
	*lease = kretry_lease_add(handle, key,
				  known ? queued->generation : kretry_policy_generation(policy));
	return PTR_ERR_OR_ZERO(*lease);
}

static void kretry_answer_settle(struct kretry_op *op, const struct kretry_call *call,
				 struct kretry_lease *lease, u64 timeout_ns)
{
	if (call->leased) {
		op->generation = lease->generation;
		WRITE_ONCE(lease->expires_ns, kretry_sat_add(op->deadline_ns, timeout_ns));
	} else if (lease) {
		kretry_lease_remove(lease);
	}
}

/*
 * A key that a grant came from is not forgotten before that is delivered or undone. The overflow
 * key never is, and one with a slot or a lease ahead is not either.
 */
static void kretry_answer_count_waiter(struct kretry_queued *queued, struct kretry_key *key,
				       bool overflow, bool waits)
{
	if (waits == queued->counted || overflow || queued->overflow)
		return;
	key->waiters += waits ? 1 : -1;
	queued->counted = waits;
}

/* Decide @op under its key's lock. */
static noinline int kretry_answer_shared(struct kretry_caller *caller, struct kretry_handle *handle,
					 struct kretry_op *op, struct kretry_call *call,
					 struct kretry_queued *queued)
{
	struct kretry_policy_node *policy = handle->policy;
	const struct kretry_policy *p = &policy->params;
	struct kretry_lease *lease;
	struct kretry_visit visit;
	struct kretry_key *key;
	bool overflow;
	int err;

	key = kretry_key_lock(&policy->table, p, op->key, call->now);
	overflow = key == &policy->table.overflow;
	kretry_visit_begin(&visit, policy, key, &call->now);
	if (key->leases || kretry_answer_needs_draw(p, &key->shared, op))
		call->rnd = kretry_caller_draw(caller);
	visit.reopened = key->leases && kretry_answer_reap(p, key, call);
	kretry_visit_stamp(&visit);
	err = kretry_answer_lease(handle, key, op, call, queued, &lease);
	if (!err) {
		kretry_apply(p, &key->shared, op, call);
		kretry_answer_settle(op, call, lease, p->breaker.probe_timeout_ns);
		if (overflow)
			op->flags |= KRETRY_OP_SHARED_KEY;
		if (queued)
			kretry_answer_count_waiter(queued, key, overflow,
						   op->verdict == KRETRY_RETRY);
	}
	kretry_visit_end(&visit);

	if (call->charged)
		this_cpu_add(policy->counts->charged, call->charged);
	if (call->returned)
		this_cpu_add(policy->counts->returned, call->returned);
	return err;
}

static __always_inline int kretry_answer_decide(struct kretry_caller *caller,
						struct kretry_handle *handle, struct kretry_op *op,
						struct kretry_call *call,
						struct kretry_queued *queued)
{
	const struct kretry_policy *p = &handle->policy->params;
	u8 event = op->event;
	int err = 0;

	if (handle->policy->is_shared) {
		call->reporter = kretry_caller_reporter(p);
		err = kretry_answer_shared(caller, handle, op, call, queued);
		if (err)
			return err;
	} else {
		if (kretry_needs_draw(p, op))
			call->rnd = kretry_caller_draw(caller);
		kretry_apply(p, NULL, op, call);
	}
	this_cpu_inc(handle->policy->counts->events[event]);
	this_cpu_inc(handle->policy->counts->verdicts[op->verdict]);
	trace_kretry_decide(op, event);
	return 0;
}

/* -------- ops that wait -------- */

void kretry_queued_show(const struct kretry_queued *queued, struct kretry_op *op)
{
	*op = (struct kretry_op) {
		.policy		= queued->handle->id,
		.verdict	= queued->verdict,
		.flags		= queued->flags,
		.key		= queued->key,
		.user_data	= queued->user_data,
		.attempt	= queued->attempt,
		.generation	= queued->generation,
		.start_ns	= queued->start_ns,
		.delay_ns	= queued->delay_ns,
		.deadline_ns	= queued->deadline_ns,
	};
}

void kretry_queued_note(struct kretry_queued *queued, const struct kretry_op *op)
{
	queued->key = op->key;
	queued->flags = op->flags;
	queued->attempt = op->attempt;
	queued->generation = op->generation;
	queued->start_ns = op->start_ns;
	queued->delay_ns = op->delay_ns;
	queued->deadline_ns = op->deadline_ns;
	queued->verdict = op->verdict == KRETRY_RETRY ? KRETRY_VERDICT_NONE : op->verdict;
}

/*
 * @op is to wait. A wait is told its generation now, since it is told nothing later: one of its
 * own, by which its result is known.
 */
static void kretry_answer_queue(struct kretry_queued *queued, struct kretry_op *op)
{
	struct kretry_policy_node *policy = queued->handle->policy;

	op->flags &= ~KRETRY_OP_READMIT;
	if (queued->is_wait && op->verdict == KRETRY_RETRY &&
	    kretry_has_breaker(&policy->params))
		op->generation = kretry_policy_generation(policy);
	queued->overflow = !!(op->flags & KRETRY_OP_SHARED_KEY);
	kretry_queued_note(queued, op);
	if (!queued->is_wait)
		op->flags |= KRETRY_OP_QUEUED;
}

/* The same for an op that may be queued: it has its place before anything is decided. */
static noinline int kretry_answer_queued(struct kretry_caller *caller, struct kretry_handle *handle,
					 struct kretry_op *op, struct kretry_call *call,
					 struct kretry_queued *queued)
{
	struct kretry_op asked;
	int err = kretry_queue_reserve(queued, handle, op->user_data);

	if (err)
		return err;
	asked.event = op->event;
	asked.flags = op->flags;
	asked.attempt = op->attempt;
	err = kretry_answer_decide(caller, handle, op, call, queued);
	if (!err && kretry_waits(op, call->now)) {
		kretry_grant_keep(&queued->grant, &asked, op, call);
		kretry_answer_queue(queued, op);
		return 0;
	}
	kretry_queue_forget(queued);
	return err;
}

/* Most calls are about one policy. */
static __always_inline struct kretry_handle *kretry_answer_handle(struct kretry_caller *caller,
								  u32 id)
{
	if (!caller->handle || caller->handle->id != id)
		caller->handle = kretry_handle_find(caller->kf, id);
	return caller->handle;
}

static __always_inline int kretry_answer_op(struct kretry_caller *caller, struct kretry_op *op,
					    struct kretry_queued *queued)
{
	struct kretry_handle *handle = kretry_answer_handle(caller, op->policy);
	u64 start = op->start_ns, deadline = op->deadline_ns;
	const struct kretry_clock *clock;
	struct kretry_call call = {};
	int err;

	if (!handle)
		return -ENOENT;
	if (!handle->may_step)
		return -EACCES;
	err = kretry_op_check(op);
	if (err)
		return err;

	clock = kretry_caller_clock(caller, &handle->policy->params);
	call.now = clock->now;
	if (clock->offset)
		kretry_clock_to_host(clock, op);
	if (queued)
		err = kretry_answer_queued(caller, handle, op, &call, queued);
	else
		err = kretry_answer_decide(caller, handle, op, &call, NULL);
	if (err) {
		op->start_ns = start;
		op->deadline_ns = deadline;
		return err;
	}
	if (clock->offset)
		kretry_clock_to_caller(clock, op);
	return 0;
}

int kretry_answer(struct kretry_caller *caller, struct kretry_op *op, struct kretry_queued *queued)
{
	int err;

	rcu_read_lock();
	err = kretry_answer_op(caller, op, queued);
	rcu_read_unlock();
	return err;
}

/* A malformed op says so itself. */
static void kretry_answer_error(struct kretry_op *op, int err)
{
	op->verdict = KRETRY_ERROR;
	op->flags = (op->flags & KRETRY_OP_IN_MASK) | -err << 8;
}

void kretry_answer_all(struct kretry_caller *caller, struct kretry_op *ops, u32 count,
		       struct kretry_queued **places)
{
	u32 i;
	int err;

	kretry_caller_tick(caller);
	rcu_read_lock();
	for (i = 0; i < count; i++) {
		err = places ? PTR_ERR_OR_ZERO(places[i]) : 0;
		if (!err)
			err = kretry_answer_op(caller, &ops[i], places ? places[i] : NULL);
		if (err)
			kretry_answer_error(&ops[i], err);
	}
	rcu_read_unlock();
}

int kretry_answer_due(struct kretry_caller *caller, struct kretry_queued *queued,
		      struct kretry_op *op, u64 *now)
{
	const struct kretry_policy *p = &queued->handle->policy->params;
	struct kretry_call call = { .now = kretry_caller_clock(caller, p)->now };
	int err;

	kretry_queued_show(queued, op);
	op->event = KRETRY_EVENT_BEGIN;
	err = kretry_answer_decide(caller, queued->handle, op, &call, queued);
	*now = call.now;
	return err;
}
