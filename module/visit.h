/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A key while its lock is held. */
#ifndef KRETRY_VISIT_H
#define KRETRY_VISIT_H

#include "policy.h"
#include "trace.h"

/**
 * struct kretry_visit - a key, locked and brought up to date
 * @policy:	whose it is
 * @key:	the key
 * @before:	its state when it was found
 * @reopened:	it has been open since, and is half-open again
 */
struct kretry_visit {
	struct kretry_policy_node *policy;
	struct kretry_key *key;
	u8 before;
	bool reopened;
};

static __always_inline void kretry_visit_begin(struct kretry_visit *visit,
					       struct kretry_policy_node *policy,
					       struct kretry_key *key, u64 *now)
{
	visit->policy = policy;
	visit->key = key;
	visit->before = key->shared.state;
	visit->reopened = false;
	kretry_shared_advance(&policy->params, &key->shared, *now);
	*now = max(*now, key->shared.touched_ns);
}

/* Each change of state has a generation of its own, from the start on. */
static __always_inline void kretry_visit_stamp(struct kretry_visit *visit)
{
	if (!visit->key->shared.generation)
		visit->key->shared.generation = kretry_policy_generation(visit->policy);
}

static __always_inline void kretry_visit_end(struct kretry_visit *visit)
{
	struct kretry_policy_node *policy = visit->policy;
	u64 id = visit->key->id;
	u8 after;

	kretry_visit_stamp(visit);
	after = visit->key->shared.state;
	kretry_key_unlock(visit->key);
	if (visit->reopened) {
		kretry_policy_changed(policy, KRETRY_OPEN);
		kretry_policy_changed(policy, KRETRY_HALF_OPEN);
	}
	if (visit->before != after) {
		trace_kretry_transition(&policy->params, id, visit->before, after);
		kretry_policy_changed(policy, after);
	}
}

#endif /* KRETRY_VISIT_H */
