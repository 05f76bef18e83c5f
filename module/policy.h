/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Policies, and the handles by which open files hold them. */
#ifndef KRETRY_POLICY_H
#define KRETRY_POLICY_H

#include <linux/kretry.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "file.h"
#include "ioctl.h"
#include "key.h"

/**
 * struct kretry_counts - what has been decided, on one CPU
 * @events:	by enum kretry_event
 * @verdicts:	by enum kretry_verdict
 * @charged:	micro-tokens
 * @returned:	micro-tokens of charges that came back
 * @queued:	queued ops and waits; only the sum over all CPUs has a meaning
 * @redrawn:	of these, put off by a new draw after the machine was cloned
 * @spread:	of these, put off after a suspend
 */
struct kretry_counts {
	u64 events[KRETRY_EVENT_PERMANENT + 1];
	u64 verdicts[KRETRY_STOP_PACED + 1];
	u64 charged;
	u64 returned;
	u64 queued;
	u64 redrawn;
	u64 spread;
};

/**
 * struct kretry_naming - the public side of a named policy, all under the lock in name.c
 * @node:	in the hash of names, while the name is taken
 * @owner:	who created it
 * @group:	of a global one
 * @creator:	whose quota it is charged to
 * @openers:	handles
 * @expires:	in jiffies, when it has no openers and lingers
 * @listed:	whether the name is taken
 */
struct kretry_naming {
	struct hlist_node node;
	kuid_t owner;
	kgid_t group;
	const struct cred *creator;
	u32 openers;
	unsigned long expires;
	bool listed;
};

/**
 * struct kretry_policy_node - a policy
 * @params:	what it was created with; immutable. Only GLOBAL of the open flags is kept
 * @refs:	handles, and the hash of names
 * @is_shared:	whether its keys share anything; else there is no @table
 * @table:	the keys
 * @generation:	the last one given out
 * @opened:	times a breaker opened
 * @transitions: changes of a breaker's state
 * @probes_lost: probes that never reported
 * @counts:	per CPU
 * @watch_lock:	protects @watchers
 * @watchers:	handles opened with NOTIFY
 * @naming:	of a named policy
 * @free:	runs after the last reader
 */
struct kretry_policy_node {
	struct kretry_policy params;
	refcount_t refs;
	bool is_shared;
	struct kretry_table table;
	atomic_t generation;
	atomic64_t opened;
	atomic64_t transitions;
	atomic64_t probes_lost;
	struct kretry_counts __percpu *counts;
	spinlock_t watch_lock;
	struct list_head watchers;
	struct kretry_naming naming;
	struct rcu_work free;
};

/**
 * struct kretry_handle - how one file holds one policy
 * @id:		on that file
 * @may_query:	allowed to read it
 * @may_step:	allowed to use it
 * @notify:	opened with NOTIFY
 * @closed:	to get no more leases; protected by the file's lease lock
 * @closing:	to get no more ops queued; protected by the queue's lock
 * @refs:	the file, and each op in its queue; grown under the queue's lock
 * @policy:	the policy, of which this is a reference
 * @kf:		the file
 * @watching:	in the policy's watchers, with NOTIFY
 * @seen:	transitions that STAT last told this file
 * @rcu:	frees it
 */
struct kretry_handle {
	u32 id;
	bool may_query;
	bool may_step;
	bool notify;
	bool closed;
	bool closing;
	refcount_t refs;
	struct kretry_policy_node *policy;
	struct kretry_file *kf;
	struct list_head watching;
	u64 seen;
	struct rcu_head rcu;
};

int kretry_policy_init(void);
void kretry_policy_exit(void);

struct kretry_policy_node *kretry_policy_new(const struct kretry_policy *params);
void kretry_policy_put(struct kretry_policy_node *policy);

/* A fresh generation, never 0. */
u32 kretry_policy_generation(struct kretry_policy_node *policy);

/* A breaker has changed its state. */
void kretry_policy_changed(struct kretry_policy_node *policy, u8 state);

long kretry_policy_create(struct kretry_cmd *cmd);
long kretry_policy_get(struct kretry_cmd *cmd);
long kretry_policy_close(struct kretry_cmd *cmd);

/*
 * Give @cmd's file a handle on @policy, whose reference goes to it. *@id is where in the argument
 * its id belongs. On an error the reference is still the caller's.
 */
int kretry_handle_publish(struct kretry_cmd *cmd, struct kretry_policy_node *policy, u32 *id,
			  const struct kretry_handle *like);
void kretry_handle_put(struct kretry_handle *handle);
void kretry_handle_drop_all(struct kretry_file *kf);
void kretry_handle_show_all(struct kretry_file *kf, struct seq_file *m);

/* POLLPRI: whether there are changes that STAT has not told; and that it has told of some. */
bool kretry_handle_any_news(struct kretry_file *kf);
void kretry_handle_saw(struct kretry_file *kf, u32 id, u64 transitions);

/* The handle of that id, or NULL. It and its policy stay as long as the RCU read-side section. */
static inline struct kretry_handle *kretry_handle_find(struct kretry_file *kf, u32 id)
{
	struct kretry_handle *handle;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "handle looked up without RCU protection");
	/* Pairs with kretry_handle_publish(). */
	handle = smp_load_acquire(&kf->newest);
	if (!handle || handle->id != id)
		handle = xa_load(&kf->handles, id);
	return handle;
}

#endif /* KRETRY_POLICY_H */
