// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A grant that never reaches its caller gives back what it took. */
#include "answer.h"
#include "lease.h"
#include "visit.h"

static struct kretry_key *kretry_undo_lock(const struct kretry_queued *queued, bool overflow,
					   u64 now)
{
	struct kretry_policy_node *policy = queued->handle->policy;

	if (overflow)
		return kretry_key_lock_overflow(&policy->table);
	return kretry_key_lock(&policy->table, &policy->params, queued->key, now);
}

/* The charge goes back to the key that made it, which may be the overflow key. */
static u64 kretry_answer_give_back(struct kretry_queued *queued, struct kretry_op *op)
{
	struct kretry_policy_node *policy = queued->handle->policy;
	const struct kretry_policy *p = &policy->params;
	u64 now = kretry_clock_now(p->clockid), returned;
	struct kretry_visit visit;
	struct kretry_key *key;

	key = kretry_undo_lock(queued, queued->overflow, now);
	kretry_visit_begin(&visit, policy, key, &now);
	returned = kretry_grant_undo(&queued->grant, p, &key->shared, op, now);
	if (queued->counted)
		key->waiters--;
	queued->counted = false;
	kretry_visit_end(&visit);
	return returned;
}

/* A probe that was given but not made. */
static void kretry_answer_unlease(struct kretry_queued *queued)
{
	u64 now = kretry_clock_now(queued->handle->policy->params.clockid);
	struct kretry_key *key;

	key = kretry_undo_lock(queued, queued->flags & KRETRY_OP_SHARED_KEY, now);
	kretry_lease_take(queued->handle->kf, key, queued->generation);
	kretry_key_unlock(key);
}

void kretry_answer_undo(struct kretry_queued *queued, struct kretry_op *op)
{
	struct kretry_policy_node *policy = queued->handle->policy;
	u64 returned = 0;

	kretry_queued_show(queued, op);
	if (policy->is_shared) {
		rcu_read_lock();
		if (queued->flags & KRETRY_OP_PROBE)
			kretry_answer_unlease(queued);
		returned = kretry_answer_give_back(queued, op);
		rcu_read_unlock();
	} else {
		kretry_grant_undo(&queued->grant, &policy->params, NULL, op, 0);
	}
	if (returned)
		this_cpu_add(policy->counts->returned, returned);
	op->flags &= ~(KRETRY_OP_PROBE | KRETRY_OP_READMIT | KRETRY_OP_CLAMPED);
	kretry_queued_note(queued, op);
}

void kretry_answer_withdraw(struct kretry_queued *queued)
{
	struct kretry_op op;

	kretry_answer_undo(queued, &op);
	kretry_queue_forget(queued);
}

bool kretry_answer_put_off(struct kretry_queued *queued, struct kretry_op *op, u64 from, u64 rnd)
{
	kretry_queued_show(queued, op);
	if (kretry_put_off(&queued->handle->policy->params, op, from, rnd)) {
		queued->deadline_ns = op->deadline_ns;
		return true;
	}
	kretry_answer_undo(queued, op);
	op->verdict = KRETRY_STOP_ELAPSED;
	op->deadline_ns = 0;
	queued->verdict = op->verdict;
	return false;
}
