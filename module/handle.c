// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* How open files hold policies. */
#include <linux/limits.h>
#include <linux/slab.h>

#include "clock.h"
#include "deliver.h"
#include "lease.h"
#include "limits.h"
#include "name.h"
#include "policy.h"
#include "user.h"

static void kretry_handle_watch(struct kretry_handle *handle)
{
	struct kretry_policy_node *policy = handle->policy;

	handle->seen = atomic64_read(&policy->transitions);
	spin_lock_bh(&policy->watch_lock);
	list_add_tail(&handle->watching, &policy->watchers);
	spin_unlock_bh(&policy->watch_lock);
}

static void kretry_handle_unwatch(struct kretry_handle *handle)
{
	spin_lock_bh(&handle->policy->watch_lock);
	list_del(&handle->watching);
	spin_unlock_bh(&handle->policy->watch_lock);
}

/* Nobody finds a reserved id, so the handle can be stored after the reply. */
static int kretry_handle_store(struct kretry_file *kf, struct kretry_handle *handle)
{
	struct xarray *xa = &kf->handles;
	int err;

	xa_lock(xa);
	err = xa_err(__xa_store(xa, handle->id, handle, KRETRY_GFP));
	if (!err) {
		/* Pairs with kretry_handle_find(): who sees it, sees what is in it. */
		smp_store_release(&kf->newest, handle);
	}
	xa_unlock(xa);
	return err;
}

/* The id is told before anything can be found by it: a failed reply leaves nothing behind. */
static int kretry_handle_install(struct kretry_cmd *cmd, struct kretry_handle *handle, u32 *id)
{
	struct kretry_file *kf = cmd->kf;
	int err;

	err = xa_alloc_cyclic(&kf->handles, &handle->id, NULL, XA_LIMIT(1, INT_MAX), &kf->next_id,
			      KRETRY_GFP);
	if (err < 0)
		return err;
	*id = handle->id;
	if (handle->notify)
		kretry_handle_watch(handle);
	err = kretry_cmd_reply(cmd);
	if (!err)
		err = kretry_handle_store(kf, handle);
	if (err) {
		if (handle->notify)
			kretry_handle_unwatch(handle);
		xa_release(&kf->handles, *id);
	}
	return err;
}

int kretry_handle_publish(struct kretry_cmd *cmd, struct kretry_policy_node *policy, u32 *id,
			  const struct kretry_handle *like)
{
	struct kretry_handle *handle;
	int err;

	err = kretry_user_charge(cmd->kf->cred);
	if (err)
		return err;
	handle = kmemdup(like, sizeof(*like), KRETRY_GFP);
	if (handle) {
		handle->policy = policy;
		handle->kf = cmd->kf;
		refcount_set(&handle->refs, 1);
		err = kretry_handle_install(cmd, handle, id);
	} else {
		err = -ENOMEM;
	}
	if (err) {
		kfree(handle);
		kretry_user_uncharge(cmd->kf->cred);
	}
	return err;
}

/* Take the handle of that id off the file. */
static struct kretry_handle *kretry_handle_take(struct kretry_file *kf, u32 id)
{
	struct kretry_handle *handle;

	xa_lock(&kf->handles);
	handle = xa_load(&kf->handles, id);
	if (handle) {
		__xa_erase(&kf->handles, id);
		if (kf->newest == handle)
			WRITE_ONCE(kf->newest, NULL);
	}
	xa_unlock(&kf->handles);
	return handle;
}

/* Nothing refers to it but readers, which may still be on it. */
void kretry_handle_put(struct kretry_handle *handle)
{
	if (!refcount_dec_and_test(&handle->refs))
		return;
	kretry_user_uncharge(handle->kf->cred);
	kretry_name_close(handle->policy);
	kretry_policy_put(handle->policy);
	kfree_rcu(handle, rcu);
}

/*
 * No op can be queued on it any more. False if some are, and @idle asks for none; what somebody
 * else closes already is not busy but gone.
 */
static bool kretry_handle_close(struct kretry_handle *handle, bool idle)
{
	struct kretry_queue *queue = &handle->kf->queue;
	bool may;

	spin_lock_bh(&queue->lock);
	may = !idle || handle->closing || refcount_read(&handle->refs) == 1;
	handle->closing |= may;
	spin_unlock_bh(&queue->lock);
	return may;
}

/* Give up what was taken off and is closing. */
static void kretry_handle_free(struct kretry_handle *handle)
{
	if (refcount_read(&handle->refs) > 1)
		kretry_deliver_drop(handle->kf);
	kretry_lease_close(handle);
	if (handle->notify)
		kretry_handle_unwatch(handle);
	kretry_handle_put(handle);
}

long kretry_policy_close(struct kretry_cmd *cmd)
{
	struct kretry_policy_ref *ref = cmd->arg;
	struct kretry_handle *handle;
	bool busy;

	if (ref->open_flags || ref->reserved || memchr_inv(ref->name, 0, sizeof(ref->name)))
		return -EINVAL;
	rcu_read_lock();
	handle = kretry_handle_find(cmd->kf, ref->id);
	busy = handle &&
	       (kretry_lease_any(handle, kretry_clock_now(handle->policy->params.clockid)) ||
		!kretry_handle_close(handle, true));
	rcu_read_unlock();
	if (busy)
		return -EBUSY;
	handle = kretry_handle_take(cmd->kf, ref->id);
	if (!handle)
		return -ENOENT;
	kretry_handle_free(handle);
	return 0;
}

/* What is queued goes in one pass, whatever its policy. */
void kretry_handle_drop_all(struct kretry_file *kf)
{
	struct kretry_handle *handle;
	unsigned long id;

	rcu_read_lock();
	xa_for_each(&kf->handles, id, handle)
		kretry_handle_close(handle, false);
	rcu_read_unlock();
	kretry_deliver_drop(kf);

	xa_for_each(&kf->handles, id, handle) {
		handle = kretry_handle_take(kf, id);
		if (!handle)
			continue;
		kretry_handle_close(handle, false);
		kretry_handle_free(handle);
	}
}

bool kretry_handle_any_news(struct kretry_file *kf)
{
	struct kretry_handle *handle;
	unsigned long id;
	bool news = false;

	rcu_read_lock();
	xa_for_each(&kf->handles, id, handle)
		news |= handle->notify &&
			READ_ONCE(handle->seen) != atomic64_read(&handle->policy->transitions);
	rcu_read_unlock();
	return news;
}

void kretry_handle_saw(struct kretry_file *kf, u32 id, u64 transitions)
{
	struct kretry_handle *handle;

	rcu_read_lock();
	handle = kretry_handle_find(kf, id);
	if (handle)
		WRITE_ONCE(handle->seen, transitions);
	rcu_read_unlock();
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
void kretry_handle_show_all(struct kretry_file *kf, struct seq_file *m)
{
	struct kretry_handle *handle;
	unsigned long id;

	rcu_read_lock();
	xa_for_each(&kf->handles, id, handle) {
		const struct kretry_policy *p = &handle->policy->params;

		seq_printf(m, "policy:\t%u clock:%s strategy:%s jitter:%s max_retries:%u",
			   handle->id, p->clockid == CLOCK_BOOTTIME ? "boottime" : "monotonic",
			   kretry_strategy_names[p->backoff.strategy],
			   kretry_jitter_names[p->backoff.jitter], p->max_retries);
		if (p->name[0]) {
			seq_puts(m, " name:");
			seq_escape(m, p->name, " \t\n\\");
		}
		seq_putc(m, '\n');
	}
	rcu_read_unlock();
}
