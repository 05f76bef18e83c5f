// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "policy.h"

#include <linux/limits.h>
#include <linux/slab.h>

#include "decide.h"
#include "limits.h"
#include "user.h"

/*
 * The id is reserved before it is told to the caller and the policy stored after, so that a reply
 * that cannot be written leaves nothing behind. Nobody finds a reserved id.
 */
static int kretry_policy_publish(struct kretry_cmd *cmd, struct kretry_policy_node *node)
{
	struct kretry_policy *params = cmd->arg;
	struct xarray *xa = &cmd->kf->policies;
	u32 id;
	int err;

	err = xa_alloc_cyclic(xa, &id, NULL, XA_LIMIT(1, INT_MAX), &cmd->kf->next_id, KRETRY_GFP);
	if (err < 0)
		return err;

	params->id = id;
	err = kretry_cmd_reply(cmd);
	if (!err) {
		node->params = *params;
		node->params.size = sizeof(*params);
		xa_lock(xa);
		err = xa_err(__xa_store(xa, id, node, KRETRY_GFP));
		if (!err)
			/* Pairs with kretry_policy_find(): who sees it, sees what is in it. */
			smp_store_release(&cmd->kf->newest, node);
		xa_unlock(xa);
	}
	if (err)
		xa_release(xa, id);
	return err;
}

long kretry_policy_create(struct kretry_cmd *cmd)
{
	struct kretry_policy_node *node;
	int err;

	err = kretry_policy_check(cmd->arg);
	if (err)
		return err;
	err = kretry_user_charge(cmd->kf->cred);
	if (err)
		return err;

	node = kmalloc(sizeof(*node), KRETRY_GFP);
	err = node ? kretry_policy_publish(cmd, node) : -ENOMEM;
	if (err) {
		kfree(node);
		kretry_user_uncharge(cmd->kf->cred);
	}
	return err;
}

long kretry_policy_get(struct kretry_cmd *cmd)
{
	struct kretry_policy *params = cmd->arg;
	const struct kretry_policy *found;

	rcu_read_lock();
	found = kretry_policy_find(cmd->kf, params->id);
	if (found)
		*params = *found;
	rcu_read_unlock();
	return found ? kretry_cmd_reply(cmd) : -ENOENT;
}

/* Take the policy of that id off the file, to be freed after its readers. False if none is. */
static bool kretry_policy_drop(struct kretry_file *kf, u32 id)
{
	struct kretry_policy_node *node;

	xa_lock(&kf->policies);
	node = xa_load(&kf->policies, id);
	if (node) {
		__xa_erase(&kf->policies, id);
		if (kf->newest == node)
			WRITE_ONCE(kf->newest, NULL);
	}
	xa_unlock(&kf->policies);
	if (!node)
		return false;

	kretry_user_uncharge(kf->cred);
	kfree_rcu(node, rcu);
	return true;
}

long kretry_policy_close(struct kretry_cmd *cmd)
{
	struct kretry_policy_ref *ref = cmd->arg;

	if (ref->open_flags || ref->reserved || memchr_inv(ref->name, 0, sizeof(ref->name)))
		return -EINVAL;
	return kretry_policy_drop(cmd->kf, ref->id) ? 0 : -ENOENT;
}

void kretry_policy_drop_all(struct kretry_file *kf)
{
	struct kretry_policy_node *node;
	unsigned long id;

	xa_for_each(&kf->policies, id, node)
		kretry_policy_drop(kf, id);
}

static const char * const kretry_strategy_names[] = {
	[KRETRY_FIXED]		= "fixed",
	[KRETRY_LINEAR]		= "linear",
	[KRETRY_EXPONENTIAL]	= "exponential",
	[KRETRY_DECORRELATED]	= "decorrelated",
	[KRETRY_SLOTTED]	= "slotted",
	[KRETRY_TABLE]		= "table",
};

static const char * const kretry_jitter_names[] = {
	[KRETRY_JITTER_NONE]		= "none",
	[KRETRY_JITTER_FULL]		= "full",
	[KRETRY_JITTER_EQUAL]		= "equal",
	[KRETRY_JITTER_PROPORTIONAL]	= "proportional",
	[KRETRY_JITTER_ADDITIVE]	= "additive",
};

/* One line a policy in /proc/PID/fdinfo/FD. */
void kretry_policy_show_all(struct kretry_file *kf, struct seq_file *m)
{
	struct kretry_policy_node *node;
	unsigned long id;

	rcu_read_lock();
	xa_for_each(&kf->policies, id, node) {
		const struct kretry_policy *p = &node->params;

		seq_printf(m, "policy:\t%u clock:%s strategy:%s jitter:%s max_retries:%u\n", p->id,
			   p->clockid == CLOCK_BOOTTIME ? "boottime" : "monotonic",
			   kretry_strategy_names[p->backoff.strategy],
			   kretry_jitter_names[p->backoff.jitter], p->max_retries);
	}
	rcu_read_unlock();
}
