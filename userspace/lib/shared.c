// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A decision in the process, with what its key shares, and the leases of probes. */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

/* Who reports, as a short hash. */
static u16 reporter(const struct kretry_policy *p)
{
	u32 who = (u32)(p->breaker.flags & KRETRY_BREAKER_REPORTERS_UID ? getuid() :
			(uid_t)getpid());

	return (u16)((who * 0x9e3779b1U) >> 16);
}

static struct lease *take_lease(struct policy_state *state, struct key_state *key, u32 generation)
{
	struct lease **slot = &key->leases, *lease;

	while (*slot && (*slot)->generation != generation)
		slot = &(*slot)->next;
	lease = *slot;
	if (!lease)
		return NULL;
	*slot = lease->next;
	state->count.leases--;
	return lease;
}

/* The lease comes back, whatever the event; true if the half-open period it is from goes on. */
static bool return_lease(struct key_state *key, struct lease *lease)
{
	bool current = lease && lease->period == key->shared.generation;

	if (current)
		kretry_breaker_return(&key->shared);
	free(lease);
	return current;
}

static void keep_lease(const struct kretry *k, struct policy_state *state, struct key_state *key,
		       struct kretry_op *op, struct lease *lease)
{
	op->generation = key_generation(state);
	lease->owner = k;
	lease->generation = op->generation;
	lease->period = key->shared.generation;
	lease->expires_ns = kretry_sat_add(op->deadline_ns, state->params.breaker.probe_timeout_ns);
	lease->next = key->leases;
	key->leases = lease;
	state->count.leases++;
}

static void count_verdict(struct kretry_stat *count, u8 verdict)
{
	if (verdict == KRETRY_GO)
		count->go++;
	else if (verdict == KRETRY_RETRY)
		count->retry++;
	else if (verdict == KRETRY_DONE)
		count->done++;
	else if (verdict >= KRETRY_STOP_PERMANENT)
		count->stops[verdict - KRETRY_STOP_PERMANENT]++;
}

static int apply_to_key(const struct kretry *k, struct policy_state *state, struct kretry_op *op,
			struct kretry_call *call)
{
	struct lease *lease = NULL;
	struct key_state *key;
	bool overflow;
	u8 was;

	key = key_get(state, op->key, call->now, &overflow);
	if (!key)
		return -ENOMEM;
	/* Before anything is taken. */
	if (op->event == KRETRY_EVENT_BEGIN && key->shared.state == KRETRY_HALF_OPEN) {
		lease = malloc(sizeof(*lease));
		if (!lease)
			return -ENOMEM;
	}
	call->probe = return_lease(key, take_lease(state, key, op->generation));
	was = key->shared.state;
	kretry_apply(&state->params, &key->shared, op, call);
	key_note_change(state, was, key->shared.state);
	if (overflow)
		op->flags |= KRETRY_OP_SHARED_KEY;
	if (call->leased)
		keep_lease(k, state, key, op, lease);
	else
		free(lease);
	return 0;
}

int shared_step(const struct kretry *k, struct policy_state *state, struct kretry_op *op,
		struct kretry_call *call)
{
	u8 event = op->event;
	int ret = kretry_op_check(op);

	if (ret)
		return ret;
	if (kretry_is_shared(&state->params)) {
		call->reporter = reporter(&state->params);
		ret = apply_to_key(k, state, op, call);
		if (ret)
			return ret;
	} else {
		kretry_apply(&state->params, NULL, op, call);
	}
	state->count.events[event]++;
	count_verdict(&state->count, op->verdict);
	state->count.charged_utok += call->charged;
	state->count.refunded_utok += call->returned;
	return 0;
}

/* -------- what never reached its caller -------- */

void shared_undo(struct policy_state *state, struct key_state *key, struct kretry_op *op,
		 struct kretry_grant *grant)
{
	u64 now = kretry_now((clockid_t)state->params.clockid);

	if (key)
		key_advance(state, key, now);
	state->count.refunded_utok += kretry_grant_undo(grant, &state->params,
							key ? &key->shared : NULL, op, now);
}

void shared_take_back(struct policy_state *state, struct key_state *key,
		      const struct kretry_op *op)
{
	if (key)
		return_lease(key, take_lease(state, key, op->generation));
}

/* -------- the leases of a handle -------- */

bool shared_has_leases(const struct kretry *k, const struct policy_state *state)
{
	u64 now = kretry_now((clockid_t)state->params.clockid);
	const struct key_state *key;
	const struct lease *lease;
	unsigned int i;

	for (i = 0; state->buckets && state->count.leases && i <= KEY_BUCKETS; i++)
		for (key = i < KEY_BUCKETS ? state->buckets[i] : state->overflow; key;
		     key = key->next)
			for (lease = key->leases; lease; lease = lease->next)
				if (lease->owner == k && lease->expires_ns > now)
					return true;
	return false;
}

static void return_leases(struct policy_state *state, struct key_state *key, void *arg)
{
	struct lease **slot = &key->leases, *lease;

	while ((lease = *slot)) {
		if (lease->owner != arg) {
			slot = &lease->next;
			continue;
		}
		*slot = lease->next;
		state->count.leases--;
		return_lease(key, lease);
	}
}

void shared_return_leases(const struct kretry *k, struct policy_state *state)
{
	if (state->count.leases)
		keys_each(state, return_leases, (void *)k);
}
