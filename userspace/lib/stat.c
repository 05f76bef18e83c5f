// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Looking at a policy's counters and at a key's state, and operating a breaker. */

#include <errno.h>

#include "internal.h"

static u32 sum(const u16 *slices)
{
	u32 total = 0;
	unsigned int i;

	for (i = 0; i < KRETRY_SLICES; i++)
		total += slices[i];
	return total;
}

/* As it is at @now, or would be if it were used; what only the policy counts stays 0. */
static void fill_key(struct policy_state *state, struct kretry_stat *stat, u64 now)
{
	struct key_state *key = key_find(state, stat->key);
	struct kretry_shared s;

	if (key) {
		key_advance(state, key, now);
		s = key->shared;
		stat->keys = 1;
	} else {
		kretry_shared_start(&state->params, &s, now);
		s.mode = (u8)state->count.mode & 3;
	}
	stat->balance_utok = kretry_budget_balance(&s);
	stat->leases = s.state == KRETRY_HALF_OPEN ? s.probes_out : 0;
	stat->state = s.state;
	stat->mode = s.mode;
	stat->streak = s.streak;
	stat->window_calls = sum(s.calls);
	stat->window_failures = sum(s.failures);
	stat->half_open_ns = s.state == KRETRY_OPEN ? s.changed_ns : 0;
	stat->cooling_ns = s.cooling_ns > now ? s.cooling_ns : 0;
	stat->pace_next_ns = s.pace_next_ns > now ? s.pace_next_ns : 0;
}

static void advance(struct policy_state *state, struct key_state *key, void *arg)
{
	key_advance(state, key, *(u64 *)arg);
}

static int process_stat(struct kretry *k, struct kretry_stat *stat)
{
	struct policy_entry *entry = policy_find(k, stat->policy);
	struct kretry_stat asked = *stat;
	u64 now;

	if (asked.flags & ~KRETRY_SCOPE_KEY || asked.reserved || (asked.key && !asked.flags))
		return -EINVAL;
	if (!entry)
		return -ENOENT;
	now = kretry_now((clockid_t)entry->state->params.clockid);
	*stat = (struct kretry_stat) { 0 };
	if (!asked.flags) {
		keys_each(entry->state, advance, &now);
		*stat = entry->state->count;
	}
	stat->size = sizeof(*stat);
	stat->policy = asked.policy;
	stat->flags = asked.flags;
	stat->key = asked.key;
	if (asked.flags && kretry_is_shared(&entry->state->params))
		fill_key(entry->state, stat, now);
	return 0;
}

int kretry_stat(struct kretry *k, struct kretry_stat *stat)
{
	int ret;

	stat->size = sizeof(*stat);
	if (k->fd >= 0) {
		ret = device_ioctl(k, KRETRY_IOC_STAT, stat);
		return ret < 0 ? ret : 0;
	}
	lock_library();
	ret = process_stat(k, stat);
	unlock_library();
	return ret;
}

static void set_mode(struct policy_state *state, struct key_state *key, void *arg)
{
	(void)state;
	key->shared.mode = *(u32 *)arg & 3;
}

static int process_force(struct kretry *k, struct kretry_force *force)
{
	struct policy_entry *entry = policy_find(k, force->policy);
	struct policy_state *state;
	struct key_state *key;
	bool overflow;

	if (force->flags & ~KRETRY_SCOPE_KEY || force->mode > KRETRY_MODE_METRICS_ONLY ||
	    (force->key && !force->flags))
		return -EINVAL;
	if (!entry)
		return -ENOENT;
	state = entry->state;
	if (!kretry_has_breaker(&state->params))
		return -EINVAL;
	if (!force->flags) {
		state->count.mode = force->mode;
		keys_each(state, set_mode, &force->mode);
		return 0;
	}
	key = key_get(state, force->key, kretry_now((clockid_t)state->params.clockid), &overflow);
	if (!key)
		return -ENOMEM;
	set_mode(state, key, &force->mode);
	return 0;
}

int kretry_force(struct kretry *k, struct kretry_force *force)
{
	int ret;

	force->size = sizeof(*force);
	if (k->fd >= 0) {
		ret = device_ioctl(k, KRETRY_IOC_FORCE, force);
		return ret < 0 ? ret : 0;
	}
	lock_library();
	ret = process_force(k, force);
	unlock_library();
	return ret;
}
