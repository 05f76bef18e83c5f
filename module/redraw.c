// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two clones of a virtual machine hold the same deadlines, so what is not due yet is put off by a
 * draw of each clone's own. And what fell due during a suspend, on a clock that went on, is due all
 * at once when it ends; who delivers it asks here and spreads it out.
 */
#include "redraw.h"

#include <linux/random.h>
#include <linux/seqlock.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include "answer.h"
#include "policy.h"
#include "trace.h"

/* Ops looked at while a queue is locked. */
#define KRETRY_REDRAW_MAX	64

static LIST_HEAD(kretry_files);
static DEFINE_MUTEX(kretry_files_lock);	/* protects the list */

void kretry_redraw_add(struct kretry_file *kf)
{
	mutex_lock(&kretry_files_lock);
	list_add_tail(&kf->node, &kretry_files);
	mutex_unlock(&kretry_files_lock);
}

void kretry_redraw_remove(struct kretry_file *kf)
{
	mutex_lock(&kretry_files_lock);
	list_del(&kf->node);
	mutex_unlock(&kretry_files_lock);
}

/* -------- clones -------- */

/* Past its limit it is delivered at once, as STOP_ELAPSED. */
static void kretry_redraw_one(struct kretry_queue *queue, struct kretry_queued *queued, u64 now)
{
	struct kretry_op op;

	kretry_queue_remove(queue, queued);
	if (!kretry_answer_put_off(queued, &op, queued->deadline_ns, get_random_u64()))
		queued->deadline_ns = now;
	this_cpu_inc(queued->handle->policy->counts->redrawn);
	kretry_queue_insert(queue, queued);
}

/* Whether the wait of @queued is one for a deadline that was drawn and has not come. */
static bool kretry_redraw_concerns(const struct kretry_queued *queued, u64 now)
{
	return queued->phase == KRETRY_ARMED && queued->verdict == KRETRY_VERDICT_NONE &&
	       queued->deadline_ns > now;
}

/* False at the end of the walk. */
static bool kretry_redraw_some(struct kretry_queue *queue, struct kretry_cursor *cursor, u32 *count)
{
	struct kretry_queued *queued = NULL;
	u64 now;
	u32 i;

	spin_lock_bh(&queue->lock);
	for (i = 0; i < KRETRY_REDRAW_MAX; i++) {
		queued = kretry_queue_walk(queue, cursor);
		if (!queued)
			break;
		now = kretry_clock_now(queued->handle->policy->params.clockid);
		if (!kretry_redraw_concerns(queued, now))
			continue;
		kretry_redraw_one(queue, queued, now);
		++*count;
	}
	spin_unlock_bh(&queue->lock);
	return queued;
}

/* Runs after the machine has been cloned, when its generator has been seeded anew. */
static void kretry_redraw_all(struct work_struct *work)
{
	struct kretry_cursor cursor;
	struct kretry_file *kf;
	u32 count;

	mutex_lock(&kretry_files_lock);
	list_for_each_entry(kf, &kretry_files, node) {
		cursor = (struct kretry_cursor) {};
		count = 0;
		while (kretry_redraw_some(&kf->queue, &cursor, &count))
			cond_resched();
		if (count)
			trace_kretry_put_off(true, count);
	}
	mutex_unlock(&kretry_files_lock);
}

static DECLARE_WORK(kretry_redraw_work, kretry_redraw_all);

static int kretry_redraw_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	queue_work(system_highpri_wq, &kretry_redraw_work);
	return NOTIFY_DONE;
}

static struct notifier_block kretry_redraw_vmfork = {
	.notifier_call = kretry_redraw_notify,
};

/* -------- suspend -------- */

/**
 * struct kretry_sleep - suspends, on CLOCK_BOOTTIME; protected by kretry_sleep_lock
 * @from:	when the last one was prepared for; 0 for never
 * @until:	when it was over
 * @prepared:	when the one that is on was prepared for; 0 for none, or none that is not over
 * @asleep:	what CLOCK_BOOTTIME was ahead of CLOCK_MONOTONIC by, then
 */
static struct kretry_sleep {
	u64 from;
	u64 until;
	u64 prepared;
	u64 asleep;
} kretry_sleep;

static DEFINE_SEQLOCK(kretry_sleep_lock);

static u64 kretry_sleep_total(void)
{
	u64 monotonic = ktime_get_ns();

	return ktime_get_boottime_ns() - monotonic;
}

/* The machine has slept if the clocks have parted, by more than reading them takes. */
static void kretry_sleep_ends(u64 now, bool over)
{
	bool slept;

	write_seqlock_bh(&kretry_sleep_lock);
	slept = kretry_sleep.prepared &&
		kretry_sleep_total() > kretry_sleep.asleep + NSEC_PER_MSEC;
	if (slept) {
		kretry_sleep.from = kretry_sleep.prepared;
		kretry_sleep.until = now;
	}
	if (slept || over)
		kretry_sleep.prepared = 0;
	write_sequnlock_bh(&kretry_sleep_lock);
}

static struct kretry_sleep kretry_sleep_read(void)
{
	struct kretry_sleep sleep;
	unsigned int seq;

	do {
		seq = read_seqbegin(&kretry_sleep_lock);
		sleep = kretry_sleep;
	} while (read_seqretry(&kretry_sleep_lock, seq));
	return sleep;
}

/* Tasks run before their thawing has been told of: the first to come here notices. */
bool kretry_redraw_slept(clockid_t clockid, u64 deadline_ns, u64 now)
{
	struct kretry_sleep sleep;

	if (clockid != CLOCK_BOOTTIME)
		return false;
	sleep = kretry_sleep_read();
	if (sleep.prepared && deadline_ns >= sleep.prepared) {
		kretry_sleep_ends(now, false);
		sleep = kretry_sleep_read();
	}
	return sleep.from && deadline_ns >= sleep.from && deadline_ns <= sleep.until;
}

static void kretry_sleep_begins(void)
{
	write_seqlock_bh(&kretry_sleep_lock);
	kretry_sleep.prepared = ktime_get_boottime_ns();
	kretry_sleep.asleep = kretry_sleep_total();
	write_sequnlock_bh(&kretry_sleep_lock);
}

/* Tasks are frozen after the first of these and thawed before the second. */
static int kretry_sleep_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	switch (action) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
		kretry_sleep_begins();
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
		kretry_sleep_ends(ktime_get_boottime_ns(), true);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block kretry_sleep_pm = {
	.notifier_call = kretry_sleep_notify,
};

int kretry_redraw_init(void)
{
	int err = register_random_vmfork_notifier(&kretry_redraw_vmfork);

	if (err)
		return err;
	err = register_pm_notifier(&kretry_sleep_pm);
	if (err)
		unregister_random_vmfork_notifier(&kretry_redraw_vmfork);
	return err;
}

void kretry_redraw_exit(void)
{
	unregister_pm_notifier(&kretry_sleep_pm);
	unregister_random_vmfork_notifier(&kretry_redraw_vmfork);
	cancel_work_sync(&kretry_redraw_work);
}
