// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "policy.h"

#include <linux/limits.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "clock.h"
#include "decide.h"
#include "limits.h"
#include "name.h"

static struct workqueue_struct *kretry_free_queue;

int kretry_policy_init(void)
{
	kretry_free_queue = alloc_workqueue("kretry_free", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return kretry_free_queue ? 0 : -ENOMEM;
}

/* No policy is left but those on their way to being freed. */
void kretry_policy_exit(void)
{
	rcu_barrier();
	destroy_workqueue(kretry_free_queue);
}

/* After the last reader, where it may sleep. */
static void kretry_policy_free(struct work_struct *work)
{
	struct kretry_policy_node *policy =
		container_of(to_rcu_work(work), struct kretry_policy_node, free);

	if (policy->is_shared)
		kretry_table_exit(&policy->table);
	free_percpu(policy->counts);
	kvfree(policy);
}

struct kretry_policy_node *kretry_policy_new(const struct kretry_policy *params)
{
	struct kretry_policy_node *policy = kvzalloc(sizeof(*policy), KRETRY_GFP);

	if (!policy)
		return NULL;
	policy->params = *params;
	policy->params.size = sizeof(*params);
	policy->params.open_flags &= KRETRY_OPEN_GLOBAL;
	refcount_set(&policy->refs, 1);
	spin_lock_init(&policy->watch_lock);
	INIT_LIST_HEAD(&policy->watchers);
	INIT_RCU_WORK(&policy->free, kretry_policy_free);

	policy->counts = alloc_percpu_gfp(struct kretry_counts, KRETRY_GFP);
	if (!policy->counts)
		goto no_counts;
	policy->is_shared = kretry_is_shared(params);
	if (policy->is_shared &&
	    kretry_table_init(&policy->table, params, kretry_clock_now(params->clockid)))
		goto no_table;
	return policy;
no_table:
	free_percpu(policy->counts);
no_counts:
	kvfree(policy);
	return NULL;
}

void kretry_policy_put(struct kretry_policy_node *policy)
{
	if (refcount_dec_and_test(&policy->refs))
		queue_rcu_work(kretry_free_queue, &policy->free);
}

u32 kretry_policy_generation(struct kretry_policy_node *policy)
{
	u32 generation = atomic_inc_return(&policy->generation);

	return generation ? generation : kretry_policy_generation(policy);
}

void kretry_policy_changed(struct kretry_policy_node *policy, u8 state)
{
	struct kretry_handle *handle;

	if (state == KRETRY_OPEN)
		atomic64_inc(&policy->opened);
	atomic64_inc(&policy->transitions);

	spin_lock_bh(&policy->watch_lock);
	list_for_each_entry(handle, &policy->watchers, watching)
		wake_up_interruptible_poll(&handle->kf->wait, EPOLLPRI);
	spin_unlock_bh(&policy->watch_lock);
}

/* A policy without a name: it belongs to its file. */
static int kretry_policy_create_private(struct kretry_cmd *cmd)
{
	struct kretry_policy *params = cmd->arg;
	struct kretry_handle like = {
		.may_query	= true,
		.may_step	= true,
		.notify		= params->open_flags & KRETRY_OPEN_NOTIFY,
	};
	struct kretry_policy_node *policy = kretry_policy_new(params);
	int err;

	if (!policy)
		return -ENOMEM;
	err = kretry_handle_publish(cmd, policy, &params->id, &like);
	if (err)
		kretry_policy_put(policy);
	return err;
}

long kretry_policy_create(struct kretry_cmd *cmd)
{
	struct kretry_policy *params = cmd->arg;
	int err = kretry_policy_check(params);

	if (err)
		return err;
	if (params->linger_ns > kretry_max_linger_ns())
		return -EINVAL;
	return params->name[0] ? kretry_name_create(cmd) : kretry_policy_create_private(cmd);
}

long kretry_policy_get(struct kretry_cmd *cmd)
{
	struct kretry_policy *params = cmd->arg;
	struct kretry_handle *handle;
	u32 id = params->id;
	int err = -ENOENT;

	rcu_read_lock();
	handle = kretry_handle_find(cmd->kf, id);
	if (handle && !handle->may_query) {
		err = -EACCES;
	} else if (handle) {
		*params = handle->policy->params;
		params->id = id;
		if (handle->notify)
			params->open_flags |= KRETRY_OPEN_NOTIFY;
		kretry_name_show(handle->policy, cmd->kf->cred, params);
		err = 0;
	}
	rcu_read_unlock();
	return err ? err : kretry_cmd_reply(cmd);
}
