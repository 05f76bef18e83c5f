// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * No timer watches a lease. Whoever asks a half-open breaker for a probe takes back first what has
 * expired or belongs to a process that is gone, so a silent prober costs nobody else anything, and
 * an idle host nothing at all.
 */
#include "lease.h"

#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "breaker.h"
#include "policy.h"

struct kretry_lease *kretry_lease_add(struct kretry_handle *handle, struct kretry_key *key,
				      u32 generation)
{
	struct kretry_file *kf = handle->kf;
	struct kretry_lease *lease;
	bool closed;

	lockdep_assert_held(&key->lock);
	lease = kmalloc(sizeof(*lease), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!lease)
		return ERR_PTR(-ENOMEM);
	*lease = (struct kretry_lease) {
		.next		= key->leases,
		.handle		= handle,
		.key		= key,
		.held		= true,
		.generation	= generation,
		.period		= key->shared.generation,
		.expires_ns	= KRETRY_NS_MAX,
		.process	= get_pid(task_tgid(current)),
		.exec_id	= current->group_leader->self_exec_id,
	};

	spin_lock(&kf->lease_lock);
	closed = handle->closed;
	if (!closed)
		list_add_tail(&lease->in_file, &kf->leases);
	spin_unlock(&kf->lease_lock);
	if (closed) {
		put_pid(lease->process);
		kfree(lease);
		return ERR_PTR(-ENOENT);
	}
	key->leases = lease;
	return lease;
}

void kretry_lease_remove(struct kretry_lease *lease)
{
	struct kretry_lease **link = &lease->key->leases;
	struct kretry_file *kf = lease->handle->kf;

	lockdep_assert_held(&lease->key->lock);
	while (*link != lease)
		link = &(*link)->next;
	*link = lease->next;
	lease->held = false;

	spin_lock(&kf->lease_lock);
	list_del(&lease->in_file);
	spin_unlock(&kf->lease_lock);
	put_pid(lease->process);
	kfree_rcu(lease, rcu);
}

/* Whether the breaker still counts on it: it does not once the half-open period is over. */
static bool kretry_lease_counts(const struct kretry_lease *lease)
{
	const struct kretry_shared *s = &lease->key->shared;

	return s->state == KRETRY_HALF_OPEN && lease->period == s->generation;
}

bool kretry_lease_take(struct kretry_file *kf, struct kretry_key *key, u32 generation)
{
	struct kretry_lease *lease = key->leases;
	bool counts;

	lockdep_assert_held(&key->lock);
	while (lease && (lease->generation != generation || lease->handle->kf != kf))
		lease = lease->next;
	if (!lease)
		return false;
	counts = kretry_lease_counts(lease);
	kretry_lease_remove(lease);
	if (counts)
		kretry_breaker_return(&key->shared);
	return counts;
}

/* Exiting counts as gone before the parent has looked. */
static bool kretry_process_is_gone(const struct kretry_lease *lease)
{
	struct task_struct *leader = pid_task(lease->process, PIDTYPE_TGID);

	return !leader || leader->signal->flags & SIGNAL_GROUP_EXIT ||
	       (READ_ONCE(leader->exit_state) && thread_group_empty(leader)) ||
	       leader->self_exec_id != lease->exec_id;
}

/* A probe that nobody has reported. */
static void kretry_lease_lose(struct kretry_lease *lease)
{
	atomic64_inc(&lease->handle->policy->probes_lost);
	kretry_lease_remove(lease);
}

void kretry_lease_reap(struct kretry_key *key, u64 now, u64 rnd)
{
	struct kretry_lease *lease, *next;
	bool counts, late;

	lockdep_assert_held(&key->lock);
	for (lease = key->leases; lease; lease = next) {
		next = lease->next;
		late = now >= lease->expires_ns;
		if (!late && !kretry_process_is_gone(lease))
			continue;
		counts = kretry_lease_counts(lease);
		if (counts && late)
			kretry_breaker_lost(&lease->handle->policy->params.breaker, &key->shared,
					    lease->expires_ns, rnd);
		else if (counts)
			kretry_breaker_return(&key->shared);
		kretry_lease_lose(lease);
	}
}

/* A lease of @process or, if that is NULL, of @handle. It stays until the RCU section ends. */
static struct kretry_lease *kretry_lease_first(struct kretry_file *kf, struct pid *process,
					       struct kretry_handle *handle)
{
	struct kretry_lease *lease, *found = NULL;

	spin_lock_bh(&kf->lease_lock);
	list_for_each_entry(lease, &kf->leases, in_file) {
		if (process ? lease->process == process : lease->handle == handle) {
			found = lease;
			break;
		}
	}
	spin_unlock_bh(&kf->lease_lock);
	return found;
}

static void kretry_lease_drop(struct kretry_file *kf, struct pid *process,
			      struct kretry_handle *handle)
{
	struct kretry_lease *lease;
	struct kretry_key *key;

	rcu_read_lock();
	while ((lease = kretry_lease_first(kf, process, handle))) {
		key = lease->key;
		spin_lock_bh(&key->lock);
		if (lease->held) {
			if (kretry_lease_counts(lease))
				kretry_breaker_return(&key->shared);
			kretry_lease_lose(lease);
		}
		spin_unlock_bh(&key->lock);
	}
	rcu_read_unlock();
}

void kretry_lease_drop_process(struct kretry_file *kf, struct pid *process)
{
	if (!list_empty_careful(&kf->leases))
		kretry_lease_drop(kf, process, NULL);
}

void kretry_lease_close(struct kretry_handle *handle)
{
	struct kretry_file *kf = handle->kf;

	spin_lock_bh(&kf->lease_lock);
	handle->closed = true;
	spin_unlock_bh(&kf->lease_lock);
	kretry_lease_drop(kf, NULL, handle);
}

bool kretry_lease_any(struct kretry_handle *handle, u64 now)
{
	struct kretry_file *kf = handle->kf;
	struct kretry_lease *lease;
	bool any = false;

	spin_lock_bh(&kf->lease_lock);
	list_for_each_entry(lease, &kf->leases, in_file)
		any |= lease->handle == handle && now < READ_ONCE(lease->expires_ns);
	spin_unlock_bh(&kf->lease_lock);
	return any;
}
