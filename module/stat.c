// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "stat.h"

#include <linux/percpu.h>

#include "breaker.h"
#include "clock.h"
#include "decide.h"
#include "name.h"
#include "policy.h"

static void kretry_stat_counts(const struct kretry_policy_node *policy, struct kretry_stat *stat)
{
	const struct kretry_counts *counts;
	u64 queued = 0;
	u32 cpu, i;

	BUILD_BUG_ON(ARRAY_SIZE(stat->events) < ARRAY_SIZE(counts->events));
	for_each_possible_cpu(cpu) {
		counts = per_cpu_ptr(policy->counts, cpu);
		for (i = 0; i < ARRAY_SIZE(counts->events); i++)
			stat->events[i] += counts->events[i];
		for (i = KRETRY_STOP_PERMANENT; i < ARRAY_SIZE(counts->verdicts); i++)
			stat->stops[i - KRETRY_STOP_PERMANENT] += counts->verdicts[i];
		stat->go += counts->verdicts[KRETRY_GO];
		stat->retry += counts->verdicts[KRETRY_RETRY];
		stat->done += counts->verdicts[KRETRY_DONE];
		stat->charged_utok += counts->charged;
		stat->refunded_utok += counts->returned;
		stat->redrawn += counts->redrawn;
		stat->spread += counts->spread;
		queued += counts->queued;
	}
	stat->queued = queued;
	stat->opened = atomic64_read(&policy->opened);
	stat->transitions = atomic64_read(&policy->transitions);
	stat->probes_lost = atomic64_read(&policy->probes_lost);
}

static void kretry_stat_add_leases(struct kretry_key *key, void *arg)
{
	struct kretry_stat *stat = arg;

	if (key->shared.state == KRETRY_HALF_OPEN)
		stat->leases += key->shared.probes_out;
}

static void kretry_stat_policy(struct kretry_policy_node *policy, struct kretry_stat *stat)
{
	kretry_stat_counts(policy, stat);
	if (!policy->is_shared)
		return;
	stat->keys = READ_ONCE(policy->table.count);
	stat->evicted = READ_ONCE(policy->table.evicted);
	stat->mode = READ_ONCE(policy->table.mode);
	kretry_table_each(&policy->table, kretry_stat_add_leases, stat);
}

static void kretry_stat_shared(const struct kretry_policy *p, const struct kretry_shared *s,
			       const struct kretry_clock *clock, struct kretry_stat *stat)
{
	u32 i;

	stat->balance_utok = kretry_budget_balance(s);
	stat->leases = s->state == KRETRY_HALF_OPEN ? s->probes_out : 0;
	stat->state = s->state;
	stat->mode = s->mode;
	stat->streak = s->streak;
	for (i = 0; i < KRETRY_SLICES; i++) {
		stat->window_calls += s->calls[i];
		stat->window_failures += s->failures[i];
	}
	if (s->state == KRETRY_OPEN)
		stat->half_open_ns = kretry_clock_caller(clock, s->changed_ns);
	if (s->cooling_ns > clock->now)
		stat->cooling_ns = kretry_clock_caller(clock, s->cooling_ns);
	if (s->pace_next_ns > clock->now)
		stat->pace_next_ns = kretry_clock_caller(clock, s->pace_next_ns);
}

/* A key as it is now, or would be if it were used; looking changes nothing. */
static void kretry_stat_key(struct kretry_policy_node *policy, struct kretry_stat *stat)
{
	const struct kretry_policy *p = &policy->params;
	struct kretry_shared copy;
	struct kretry_clock clock;

	kretry_clock_read(&clock, p->clockid);
	kretry_shared_start(p, &copy, clock.now);
	copy.mode = READ_ONCE(policy->table.mode);
	stat->keys = kretry_key_copy(&policy->table, stat->key, &copy);
	kretry_shared_advance(p, &copy, clock.now);
	kretry_stat_shared(p, &copy, &clock, stat);
}

long kretry_stat(struct kretry_cmd *cmd)
{
	struct kretry_stat *stat = cmd->arg;
	struct kretry_stat in = { .policy = stat->policy, .flags = stat->flags, .key = stat->key };
	struct kretry_handle *handle;
	u64 transitions = 0;
	int err = 0;

	if (in.flags & ~KRETRY_SCOPE_KEY || stat->reserved || (in.key && !in.flags))
		return -EINVAL;
	*stat = in;
	rcu_read_lock();
	handle = kretry_handle_find(cmd->kf, in.policy);
	if (!handle) {
		err = -ENOENT;
	} else if (!handle->may_query) {
		err = -EACCES;
	} else if (in.flags) {
		if (handle->policy->is_shared)
			kretry_stat_key(handle->policy, stat);
	} else {
		kretry_stat_policy(handle->policy, stat);
		transitions = stat->transitions;
	}
	rcu_read_unlock();
	if (!err)
		err = kretry_cmd_reply(cmd);
	if (!err && !in.flags)
		kretry_handle_saw(cmd->kf, in.policy, transitions);
	return err;
}

static void kretry_force_key(struct kretry_key *key, void *arg)
{
	key->shared.mode = *(const u32 *)arg;
}

static void kretry_force_one(struct kretry_policy_node *policy, u64 id, u32 mode)
{
	const struct kretry_policy *p = &policy->params;
	struct kretry_key *key;

	key = kretry_key_lock(&policy->table, p, id, kretry_clock_now(p->clockid));
	key->shared.mode = mode;
	kretry_key_unlock(key);
}

long kretry_force(struct kretry_cmd *cmd)
{
	struct kretry_force *force = cmd->arg;
	struct kretry_handle *handle;
	int err = 0;

	if (force->flags & ~KRETRY_SCOPE_KEY || force->mode > KRETRY_MODE_METRICS_ONLY ||
	    (force->key && !force->flags))
		return -EINVAL;
	rcu_read_lock();
	handle = kretry_handle_find(cmd->kf, force->policy);
	if (!handle) {
		err = -ENOENT;
	} else if (!kretry_name_is_owner(handle->policy, cmd->kf->cred)) {
		err = -EPERM;
	} else if (!kretry_has_breaker(&handle->policy->params)) {
		err = -EINVAL;
	} else if (force->flags) {
		kretry_force_one(handle->policy, force->key, force->mode);
	} else {
		WRITE_ONCE(handle->policy->table.mode, force->mode);
		kretry_table_each(&handle->policy->table, kretry_force_key, &force->mode);
	}
	rcu_read_unlock();
	return err;
}
