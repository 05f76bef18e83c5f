// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A user in a namespace of its own has any number of uids there. So each charge also goes to the
 * owner of that namespace, and of each one above, up to the initial one.
 */
#include "user.h"

#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "limits.h"

/**
 * struct kretry_user - a user that holds something
 * @node:	in kretry_users
 * @uid:	who
 * @policies:	how many policies; gone when it is 0
 *
 * All protected by kretry_users_lock.
 */
struct kretry_user {
	struct hlist_node node;
	kuid_t uid;
	unsigned int policies;
};

static DEFINE_MUTEX(kretry_users_lock);
static DEFINE_HASHTABLE(kretry_users, 6);

/* The user itself and the owners above it; who follows itself is charged once. */
struct kretry_level {
	const struct user_namespace *ns;
	kuid_t uid;
};

static struct kretry_level kretry_level_first(const struct cred *cred)
{
	return (struct kretry_level) { .ns = cred->user_ns, .uid = cred->euid };
}

/* False behind the initial namespace. */
static bool kretry_level_up(struct kretry_level *level)
{
	kuid_t below = level->uid;

	while (level->ns->parent) {
		level->uid = level->ns->owner;
		level->ns = level->ns->parent;
		if (!uid_eq(level->uid, below))
			return true;
	}
	return false;
}

static struct kretry_user *kretry_user_find(kuid_t uid)
{
	struct kretry_user *user;

	lockdep_assert_held(&kretry_users_lock);
	hash_for_each_possible(kretry_users, user, node, __kuid_val(uid))
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

static int kretry_user_take(kuid_t uid)
{
	struct kretry_user *user = kretry_user_find(uid);

	if (!user) {
		user = kzalloc(sizeof(*user), KRETRY_GFP);
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		hash_add(kretry_users, &user->node, __kuid_val(uid));
	}
	if (user->policies >= kretry_max_policies)
		return -EDQUOT;
	user->policies++;
	return 0;
}

static void kretry_user_give(kuid_t uid)
{
	struct kretry_user *user = kretry_user_find(uid);

	if (WARN_ON_ONCE(!user || !user->policies))
		return;
	if (--user->policies)
		return;
	hash_del(&user->node);
	kfree(user);
}

int kretry_user_charge(const struct cred *cred)
{
	struct kretry_level level = kretry_level_first(cred), undo = level;
	int err, charged = 0;

	mutex_lock(&kretry_users_lock);
	do {
		err = kretry_user_take(level.uid);
		charged += !err;
	} while (!err && kretry_level_up(&level));

	for (; err && charged; charged--) {
		kretry_user_give(undo.uid);
		kretry_level_up(&undo);
	}
	mutex_unlock(&kretry_users_lock);
	return err;
}

void kretry_user_uncharge(const struct cred *cred)
{
	struct kretry_level level = kretry_level_first(cred);

	mutex_lock(&kretry_users_lock);
	do {
		kretry_user_give(level.uid);
	} while (kretry_level_up(&level));
	mutex_unlock(&kretry_users_lock);
}
