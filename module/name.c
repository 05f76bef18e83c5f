// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A named policy outlives its last opener by its linger time, so that a program which crashes and
 * is started again does not find a fresh budget each time. One work looks for those whose time is
 * over: armed when the last opener goes, it runs when the first of them is due, and forgets them.
 */
#include "name.h"

#include <linux/capability.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>

#include "limits.h"
#include "user.h"

#define KRETRY_MAY_QUERY	4
#define KRETRY_MAY_STEP		2

static DEFINE_MUTEX(kretry_names_lock);
static DEFINE_HASHTABLE(kretry_names, 8);

static void kretry_linger(struct work_struct *work);
static DECLARE_DELAYED_WORK(kretry_linger_work, kretry_linger);

static bool kretry_is_privileged(const struct cred *cred)
{
	return cred->user_ns == &init_user_ns && cap_raised(cred->cap_effective, CAP_SYS_ADMIN);
}

bool kretry_name_is_owner(const struct kretry_policy_node *policy, const struct cred *cred)
{
	return !policy->params.name[0] || uid_eq(policy->naming.owner, cred->euid) ||
	       kretry_is_privileged(cred);
}

static bool kretry_is_member(const struct cred *cred, kgid_t group)
{
	int i;

	if (gid_eq(cred->egid, group))
		return true;
	for (i = 0; i < cred->group_info->ngroups; i++)
		if (gid_eq(cred->group_info->gid[i], group))
			return true;
	return false;
}

static bool kretry_name_allows(const struct kretry_policy_node *policy, const struct cred *cred,
			       u32 what)
{
	u32 mode = policy->params.mode;

	if (!(policy->params.open_flags & KRETRY_OPEN_GLOBAL) || kretry_is_privileged(cred))
		return true;
	if (uid_eq(policy->naming.owner, cred->euid))
		mode >>= 6;
	else if (kretry_is_member(cred, policy->naming.group))
		mode >>= 3;
	return mode & what;
}

static u32 kretry_name_hash(const u8 *name)
{
	return full_name_hash(NULL, (const char *)name, strnlen((const char *)name,
								 KRETRY_NAME_MAX));
}

/* Its time is over, though the work has not come round yet. */
static bool kretry_name_is_expired(const struct kretry_policy_node *policy)
{
	return !policy->naming.openers && time_after_eq(jiffies, policy->naming.expires);
}

/* Global names are the host's, others the user's own. */
static struct kretry_policy_node *kretry_name_find(const u8 *name, u32 open_flags, kuid_t owner)
{
	struct kretry_policy_node *policy;
	u32 global = open_flags & KRETRY_OPEN_GLOBAL;

	lockdep_assert_held(&kretry_names_lock);
	hash_for_each_possible(kretry_names, policy, naming.node, kretry_name_hash(name))
		if (!memcmp(policy->params.name, name, KRETRY_NAME_MAX) &&
		    policy->params.open_flags == global && !kretry_name_is_expired(policy) &&
		    (global || uid_eq(policy->naming.owner, owner)))
			return policy;
	return NULL;
}

/* Free the name; handles keep the policy. */
static void kretry_name_remove(struct kretry_policy_node *policy)
{
	lockdep_assert_held(&kretry_names_lock);
	hash_del(&policy->naming.node);
	policy->naming.listed = false;
	kretry_user_uncharge(policy->naming.creator);
	put_cred(policy->naming.creator);
	kretry_policy_put(policy);
}

static void kretry_linger(struct work_struct *work)
{
	struct kretry_policy_node *policy;
	struct hlist_node *next;
	unsigned long soonest = 0;
	bool any = false;
	int bucket;

	mutex_lock(&kretry_names_lock);
	hash_for_each_safe(kretry_names, bucket, next, policy, naming.node) {
		if (policy->naming.openers)
			continue;
		if (kretry_name_is_expired(policy)) {
			kretry_name_remove(policy);
		} else if (!any || time_before(policy->naming.expires, soonest)) {
			soonest = policy->naming.expires;
			any = true;
		}
	}
	if (any)
		mod_delayed_work(system_wq, &kretry_linger_work, soonest - jiffies);
	mutex_unlock(&kretry_names_lock);
}

/* The device is gone, so there are no handles. */
void kretry_name_exit(void)
{
	struct kretry_policy_node *policy;
	struct hlist_node *next;
	int bucket;

	cancel_delayed_work_sync(&kretry_linger_work);
	mutex_lock(&kretry_names_lock);
	hash_for_each_safe(kretry_names, bucket, next, policy, naming.node)
		kretry_name_remove(policy);
	mutex_unlock(&kretry_names_lock);
}

static void kretry_name_leave(struct kretry_policy_node *policy, u64 linger_ns)
{
	struct kretry_naming *naming = &policy->naming;
	unsigned long delay = nsecs_to_jiffies64(linger_ns);

	lockdep_assert_held(&kretry_names_lock);
	if (--naming->openers || !naming->listed)
		return;
	if (!linger_ns) {
		kretry_name_remove(policy);
		return;
	}
	naming->expires = jiffies + delay + 1;
	if (!delayed_work_pending(&kretry_linger_work) ||
	    time_before(naming->expires, kretry_linger_work.timer.expires))
		mod_delayed_work(system_wq, &kretry_linger_work, delay + 1);
}

void kretry_name_close(struct kretry_policy_node *policy)
{
	if (!policy->params.name[0])
		return;
	mutex_lock(&kretry_names_lock);
	kretry_name_leave(policy, policy->params.linger_ns);
	mutex_unlock(&kretry_names_lock);
}

/* All that CREATE compares: everything but what belongs to the call and the handle. */
static bool kretry_name_same(const struct kretry_policy_node *policy,
			     const struct kretry_policy *params, const struct cred *cred)
{
	const size_t from = offsetof(struct kretry_policy, linger_ns);
	const struct kretry_policy *p = &policy->params;

	if (p->open_flags & KRETRY_OPEN_GLOBAL &&
	    (!uid_eq(policy->naming.owner, make_kuid(cred->user_ns, params->uid)) ||
	     !gid_eq(policy->naming.group, make_kgid(cred->user_ns, params->gid))))
		return false;
	return p->flags == params->flags && p->clockid == params->clockid &&
	       p->max_retries == params->max_retries && p->mode == params->mode &&
	       !memcmp((const char *)p + from, (const char *)params + from, sizeof(*p) - from);
}

/* A new policy under a name that is free. */
static struct kretry_policy_node *kretry_name_add(const struct kretry_policy *params,
						  const struct cred *cred)
{
	bool global = params->open_flags & KRETRY_OPEN_GLOBAL;
	kuid_t owner = global ? make_kuid(cred->user_ns, params->uid) : cred->euid;
	kgid_t group = global ? make_kgid(cred->user_ns, params->gid) : cred->egid;
	struct kretry_policy_node *policy;
	int err;

	lockdep_assert_held(&kretry_names_lock);
	if (global && !kretry_is_privileged(cred))
		return ERR_PTR(-EPERM);
	if (!uid_valid(owner) || !gid_valid(group))
		return ERR_PTR(-EINVAL);
	err = kretry_user_charge(cred);
	if (err)
		return ERR_PTR(err);
	policy = kretry_policy_new(params);
	if (!policy) {
		kretry_user_uncharge(cred);
		return ERR_PTR(-ENOMEM);
	}
	policy->naming.owner = owner;
	policy->naming.group = group;
	policy->naming.creator = get_cred(cred);
	policy->naming.listed = true;
	hash_add(kretry_names, &policy->naming.node, kretry_name_hash(params->name));
	return policy;
}

/* Find or add, counted as one more opener and with a reference for it. */
static struct kretry_policy_node *kretry_name_get(const struct kretry_policy *params,
						  const struct cred *cred, bool *added)
{
	struct kretry_policy_node *policy;

	mutex_lock(&kretry_names_lock);
	policy = kretry_name_find(params->name, params->open_flags, cred->euid);
	*added = !policy;
	if (!policy)
		policy = kretry_name_add(params, cred);
	else if (!kretry_name_allows(policy, cred, KRETRY_MAY_QUERY | KRETRY_MAY_STEP))
		policy = ERR_PTR(-EACCES);
	else if (!kretry_name_same(policy, params, cred))
		policy = ERR_PTR(-EEXIST);
	if (!IS_ERR(policy)) {
		policy->naming.openers++;
		refcount_inc(&policy->refs);
	}
	mutex_unlock(&kretry_names_lock);
	return policy;
}

/* Give the file its handle. What was added for a call that fails is taken back. */
static int kretry_name_publish(struct kretry_cmd *cmd, struct kretry_policy_node *policy, u32 *id,
			       u32 open_flags, bool added)
{
	const struct cred *cred = cmd->kf->cred;
	struct kretry_handle like = {
		.may_query	= kretry_name_allows(policy, cred, KRETRY_MAY_QUERY),
		.may_step	= kretry_name_allows(policy, cred, KRETRY_MAY_STEP),
		.notify		= open_flags & KRETRY_OPEN_NOTIFY,
	};
	int err = kretry_handle_publish(cmd, policy, id, &like);

	if (err) {
		mutex_lock(&kretry_names_lock);
		kretry_name_leave(policy, added ? 0 : policy->params.linger_ns);
		mutex_unlock(&kretry_names_lock);
		kretry_policy_put(policy);
	}
	return err;
}

long kretry_name_create(struct kretry_cmd *cmd)
{
	struct kretry_policy *params = cmd->arg;
	struct kretry_policy_node *policy;
	bool added;

	policy = kretry_name_get(params, cmd->kf->cred, &added);
	if (IS_ERR(policy))
		return PTR_ERR(policy);
	return kretry_name_publish(cmd, policy, &params->id, params->open_flags, added);
}

static bool kretry_ref_ok(const struct kretry_policy_ref *ref)
{
	size_t len = strnlen((const char *)ref->name, KRETRY_NAME_MAX);

	return !ref->reserved && !(ref->open_flags & ~(KRETRY_OPEN_GLOBAL | KRETRY_OPEN_NOTIFY)) &&
	       len && len < KRETRY_NAME_MAX &&
	       !memchr_inv(ref->name + len, 0, KRETRY_NAME_MAX - len);
}

long kretry_name_open(struct kretry_cmd *cmd)
{
	struct kretry_policy_ref *ref = cmd->arg;
	const struct cred *cred = cmd->kf->cred;
	struct kretry_policy_node *policy;
	int err = 0;

	if (!kretry_ref_ok(ref) || ref->id)
		return -EINVAL;
	mutex_lock(&kretry_names_lock);
	policy = kretry_name_find(ref->name, ref->open_flags, cred->euid);
	if (!policy) {
		err = -ENOENT;
	} else if (!kretry_name_allows(policy, cred, KRETRY_MAY_QUERY | KRETRY_MAY_STEP)) {
		err = -EACCES;
	} else {
		policy->naming.openers++;
		refcount_inc(&policy->refs);
	}
	mutex_unlock(&kretry_names_lock);
	return err ? err : kretry_name_publish(cmd, policy, &ref->id, ref->open_flags, false);
}

long kretry_name_unlink(struct kretry_cmd *cmd)
{
	struct kretry_policy_ref *ref = cmd->arg;
	struct kretry_policy_node *policy;
	int err = 0;

	if (!kretry_ref_ok(ref) || ref->id || ref->open_flags & KRETRY_OPEN_NOTIFY)
		return -EINVAL;
	mutex_lock(&kretry_names_lock);
	policy = kretry_name_find(ref->name, ref->open_flags, cmd->kf->cred->euid);
	if (!policy)
		err = -ENOENT;
	else if (!kretry_name_is_owner(policy, cmd->kf->cred))
		err = -EPERM;
	else
		kretry_name_remove(policy);
	mutex_unlock(&kretry_names_lock);
	return err;
}

void kretry_name_show(const struct kretry_policy_node *policy, const struct cred *cred,
		      struct kretry_policy *params)
{
	if (!(params->open_flags & KRETRY_OPEN_GLOBAL))
		return;
	params->uid = from_kuid_munged(cred->user_ns, policy->naming.owner);
	params->gid = from_kgid_munged(cred->user_ns, policy->naming.group);
}

/* Whether @cred may know of @policy. */
static bool kretry_name_is_visible(const struct kretry_policy_node *policy,
				   const struct cred *cred)
{
	if (policy->params.open_flags & KRETRY_OPEN_GLOBAL)
		return kretry_name_allows(policy, cred, KRETRY_MAY_QUERY);
	return uid_eq(policy->naming.owner, cred->euid);
}

static void kretry_name_describe(const struct kretry_policy_node *policy, const struct cred *cred,
				 struct kretry_policy_entry *entry)
{
	entry->open_flags = policy->params.open_flags;
	entry->uid = from_kuid_munged(cred->user_ns, policy->naming.owner);
	entry->gid = from_kgid_munged(cred->user_ns, policy->naming.group);
	entry->mode = policy->params.mode;
	entry->openers = policy->naming.openers;
	entry->keys = policy->is_shared ? READ_ONCE(policy->table.count) : 0;
	memcpy(entry->name, policy->params.name, sizeof(entry->name));
}

/* Describe up to @room names, and return how many there are. */
static u32 kretry_name_collect(struct kretry_policy_entry *entries, u32 room,
			       const struct cred *cred)
{
	struct kretry_policy_node *policy;
	u32 count = 0;
	int bucket;

	mutex_lock(&kretry_names_lock);
	hash_for_each(kretry_names, bucket, policy, naming.node) {
		if (kretry_name_is_expired(policy) || !kretry_name_is_visible(policy, cred))
			continue;
		if (count < room)
			kretry_name_describe(policy, cred, &entries[count]);
		count++;
	}
	mutex_unlock(&kretry_names_lock);
	return count;
}

/* No user memory is touched under the lock: it could keep everybody else waiting. */
long kretry_name_list(struct kretry_cmd *cmd)
{
	struct kretry_policy_list *list = cmd->arg;
	void __user *to = u64_to_user_ptr(list->entries);
	struct kretry_policy_entry *entries;
	u32 room;
	int err = 0;

	if (list->entry_size != sizeof(*entries) || list->reserved)
		return -EINVAL;
	room = min(list->count, kretry_name_collect(NULL, 0, cmd->kf->cred));
	entries = kvcalloc(max(room, 1U), sizeof(*entries), KRETRY_GFP);
	if (!entries)
		return -ENOMEM;
	list->count = kretry_name_collect(entries, room, cmd->kf->cred);
	if (copy_to_user(to, entries, min(room, list->count) * sizeof(*entries)))
		err = -EFAULT;
	kvfree(entries);
	return err ? err : kretry_cmd_reply(cmd);
}
