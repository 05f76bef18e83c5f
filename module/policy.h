/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The policies of an open file. */
#ifndef KRETRY_POLICY_H
#define KRETRY_POLICY_H

#include <linux/kretry.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/xarray.h>

#include "file.h"
#include "ioctl.h"

/**
 * struct kretry_policy_node - a policy, immutable once published
 * @params:	what POLICY_CREATE was given, with the id
 * @rcu:	frees it after the last reader
 */
struct kretry_policy_node {
	struct kretry_policy params;
	struct rcu_head rcu;
};

long kretry_policy_create(struct kretry_cmd *cmd);
long kretry_policy_get(struct kretry_cmd *cmd);
long kretry_policy_close(struct kretry_cmd *cmd);
void kretry_policy_drop_all(struct kretry_file *kf);
void kretry_policy_show_all(struct kretry_file *kf, struct seq_file *m);

/* The policy of that id, or NULL. It stays as long as the RCU read-side section. */
static inline const struct kretry_policy *kretry_policy_find(struct kretry_file *kf, u32 id)
{
	struct kretry_policy_node *node;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "policy looked up without RCU protection");
	/* Pairs with kretry_policy_publish(). */
	node = smp_load_acquire(&kf->newest);
	if (!node || node->params.id != id)
		node = xa_load(&kf->policies, id);
	return node ? &node->params : NULL;
}

#endif /* KRETRY_POLICY_H */
