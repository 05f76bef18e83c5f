// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Policies as those who hold them share them, and their names. In a process there is one user, so
 * owner and mode of a GLOBAL policy are kept but never in the way.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

static struct policy_state *names;
static u32 names_count;

struct policy_state *state_new(const struct kretry_policy *params)
{
	struct policy_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	state->params = *params;
	state->params.size = sizeof(*params);
	state->params.id = 0;
	state->params.open_flags &= KRETRY_OPEN_GLOBAL;
	state->holders = 1;
	return state;
}

static void state_free(struct policy_state *state)
{
	keys_free(state);
	free(state);
}

static void forget_name(struct policy_state *state)
{
	struct policy_state **slot = &names;

	while (*slot != state)
		slot = &(*slot)->next_named;
	*slot = state->next_named;
	state->named = false;
	names_count--;
	if (!state->holders)
		state_free(state);
}

/* Those that have lingered long enough go when names are next looked at. */
static void expire_names(void)
{
	u64 now = kretry_now(CLOCK_MONOTONIC);
	struct policy_state *state, *next;

	for (state = names; state; state = next) {
		next = state->next_named;
		if (!state->holders && now - state->left_ns >= state->params.linger_ns)
			forget_name(state);
	}
}

void state_put(struct policy_state *state)
{
	if (--state->holders)
		return;
	if (state->named && state->params.linger_ns)
		state->left_ns = kretry_now(CLOCK_MONOTONIC);
	else if (state->named)
		forget_name(state);
	else
		state_free(state);
}

static struct policy_state *find_name(const char *name, u32 open_flags)
{
	struct policy_state *state;

	expire_names();
	for (state = names; state; state = state->next_named)
		if (!strncmp((const char *)state->params.name, name, KRETRY_NAME_MAX) &&
		    state->params.open_flags == (open_flags & KRETRY_OPEN_GLOBAL))
			break;
	return state;
}

static bool same_params(const struct policy_state *state, const struct kretry_policy *params)
{
	struct kretry_policy wanted = *params;

	wanted.size = state->params.size;
	wanted.id = 0;
	wanted.open_flags &= KRETRY_OPEN_GLOBAL;
	return !memcmp(&wanted, &state->params, sizeof(wanted));
}

int named_create(const struct kretry_policy *params, struct policy_state **state)
{
	struct policy_state *found = find_name((const char *)params->name, params->open_flags);

	if (params->linger_ns > PROCESS_MAX_LINGER_NS)
		return -EINVAL;
	if (found) {
		if (!same_params(found, params))
			return -EEXIST;
		found->holders++;
		*state = found;
		return 0;
	}
	if (names_count >= PROCESS_MAX_POLICIES)
		return -EDQUOT;
	found = state_new(params);
	if (!found)
		return -ENOMEM;
	found->named = true;
	found->next_named = names;
	names = found;
	names_count++;
	*state = found;
	return 0;
}

int named_open(const char *name, u32 open_flags, struct policy_state **state)
{
	struct policy_state *found = find_name(name, open_flags);

	if (!found)
		return -ENOENT;
	found->holders++;
	*state = found;
	return 0;
}

int named_unlink(const char *name, u32 open_flags)
{
	struct policy_state *found = find_name(name, open_flags);

	if (!found)
		return -ENOENT;
	forget_name(found);
	return 0;
}

unsigned int named_list(struct kretry_policy_entry *entries, unsigned int count)
{
	const struct policy_state *state;
	unsigned int i = 0;

	expire_names();
	for (state = names; state; state = state->next_named, i++) {
		if (i >= count)
			continue;
		entries[i] = (struct kretry_policy_entry) {
			.open_flags = state->params.open_flags,
			.uid = state->params.uid,
			.gid = state->params.gid,
			.mode = state->params.mode,
			.openers = state->holders,
			.keys = state->count.keys,
		};
		memcpy(entries[i].name, state->params.name, KRETRY_NAME_MAX);
	}
	return i;
}
