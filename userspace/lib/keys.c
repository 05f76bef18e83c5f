// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the process keeps for each key of a policy. There is a bound: a key that cannot be told from
 * a new one makes room for another, and if there is none, new keys share one state.
 */

#include <stdlib.h>

#include "internal.h"

/* Keys looked at, at most, to find one that can go. */
#define SCAN	64

static u32 key_bucket(u64 key)
{
	return (u32)((key * 0x9e3779b97f4a7c15ULL) >> 32) % KEY_BUCKETS;
}

struct key_state *key_find(const struct policy_state *state, u64 key)
{
	struct key_state *found = state->buckets ? state->buckets[key_bucket(key)] : NULL;

	while (found && found->key != key)
		found = found->next;
	return found;
}

u32 key_generation(struct policy_state *state)
{
	if (!++state->generation)
		state->generation = 1;
	return state->generation;
}

void key_note_change(struct policy_state *state, u8 was, u8 is)
{
	if (was == is)
		return;
	state->count.transitions++;
	if (is == KRETRY_OPEN)
		state->count.opened++;
}

/* The lease that ran out first, taken out of the list; NULL: none had at @now. */
static struct lease *take_expired(struct key_state *key, u64 now)
{
	struct lease **slot, **first = NULL, *lease;

	for (slot = &key->leases; *slot; slot = &(*slot)->next)
		if ((*slot)->expires_ns <= now &&
		    (!first || (*slot)->expires_ns < (*first)->expires_ns))
			first = slot;
	if (!first)
		return NULL;
	lease = *first;
	*first = lease->next;
	return lease;
}

/* Probes that were never reported are lost at their time, whenever it is looked at. */
static void expire_leases(struct policy_state *state, struct key_state *key, u64 now)
{
	struct kretry_shared *s = &key->shared;
	struct lease *lease;
	u64 rnd;
	u8 was;

	while ((lease = take_expired(key, now))) {
		state->count.probes_lost++;
		state->count.leases--;
		if (lease->period == s->generation) {
			rnd = 0;
			draw_random(&rnd, 1);
			was = s->state;
			kretry_breaker_lost(&state->params.breaker, s, lease->expires_ns, rnd);
			key_note_change(state, was, s->state);
		}
		free(lease);
	}
}

void key_advance(struct policy_state *state, struct key_state *key, u64 now)
{
	struct kretry_shared *s = &key->shared;
	u8 was;

	expire_leases(state, key, now);
	was = s->state;
	kretry_shared_advance(&state->params, s, now);
	key_note_change(state, was, s->state);
	if (!s->generation)
		s->generation = key_generation(state);
}

/* Whether nobody would notice if it were forgotten. */
static bool is_idle(struct policy_state *state, struct key_state *key, u64 now)
{
	key_advance(state, key, now);
	return !key->leases && !key->waiters && key->shared.mode == state->count.mode &&
	       kretry_shared_is_new(&state->params, &key->shared);
}

/* Second chance: one that has been used since the last scan is left for the next. */
static bool make_room(struct policy_state *state, u64 now)
{
	struct key_state **slot, *key;
	unsigned int looked = 0, buckets;

	for (buckets = 0; buckets < KEY_BUCKETS && looked < SCAN; buckets++) {
		state->hand = (state->hand + 1) % KEY_BUCKETS;
		for (slot = &state->buckets[state->hand]; *slot; slot = &(*slot)->next) {
			key = *slot;
			looked++;
			if (key->used) {
				key->used = false;
				continue;
			}
			if (!is_idle(state, key, now))
				continue;
			*slot = key->next;
			free(key);
			state->count.keys--;
			state->count.evicted++;
			return true;
		}
	}
	return false;
}

static struct key_state *key_new(struct policy_state *state, u64 key, u64 now)
{
	struct key_state *new = calloc(1, sizeof(*new));

	if (!new)
		return NULL;
	new->key = key;
	kretry_shared_start(&state->params, &new->shared, now);
	new->shared.mode = (u8)state->count.mode & 3;
	return new;
}

static struct key_state *key_insert(struct policy_state *state, u64 key, u64 now)
{
	struct key_state **bucket, *new = key_new(state, key, now);

	if (!new)
		return NULL;
	bucket = &state->buckets[key_bucket(key)];
	new->next = *bucket;
	*bucket = new;
	state->count.keys++;
	return new;
}

/* What stands for every key that has found no place. */
static struct key_state *key_overflow(struct policy_state *state, u64 now)
{
	if (!state->overflow)
		state->overflow = key_new(state, 0, now);
	return state->overflow;
}

struct key_state *key_get(struct policy_state *state, u64 key, u64 now, bool *overflow)
{
	struct key_state *found = key_find(state, key);

	*overflow = false;
	if (!state->buckets)
		state->buckets = calloc(KEY_BUCKETS, sizeof(struct key_state *));
	if (!state->buckets)
		return NULL;
	if (!found) {
		*overflow = state->count.keys >= PROCESS_MAX_KEYS && !make_room(state, now);
		found = *overflow ? key_overflow(state, now) : key_insert(state, key, now);
	}
	if (!found)
		return NULL;
	found->used = true;
	key_advance(state, found, now);
	return found;
}

void keys_each(struct policy_state *state,
	       void (*each)(struct policy_state *state, struct key_state *key, void *arg),
	       void *arg)
{
	struct key_state *key, *next;
	unsigned int i;

	for (i = 0; state->buckets && i < KEY_BUCKETS; i++) {
		for (key = state->buckets[i]; key; key = next) {
			next = key->next;
			each(state, key, arg);
		}
	}
	if (state->overflow)
		each(state, state->overflow, arg);
}

static void key_free(struct policy_state *state, struct key_state *key, void *arg)
{
	struct lease *lease;

	(void)state;
	(void)arg;
	while ((lease = key->leases)) {
		key->leases = lease->next;
		free(lease);
	}
	free(key);
}

void keys_free(struct policy_state *state)
{
	keys_each(state, key_free, NULL);
	free(state->buckets);
}
