// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two trees order what waits, one by deadline and one by user_data, and each clock has one timer.
 * The timer is never armed later than the first wait, nor than the first queued op unless that is
 * due and readers know it. It may be armed too early, after a cancel, and then just looks again.
 */
#include "queue.h"

#include <linux/hash.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "clock.h"
#include "compat.h"
#include "limits.h"
#include "policy.h"
#include "wait.h"

/* Waits that one expiry of a timer sends on their way; for more it is armed again at once. */
#define KRETRY_FIRE_MAX	64

static struct kmem_cache *kretry_queued_cache;

int kretry_queue_cache_init(void)
{
	BUILD_BUG_ON(sizeof(struct kretry_queued) > 112);
	kretry_queued_cache = KMEM_CACHE(kretry_queued, SLAB_ACCOUNT);
	return kretry_queued_cache ? 0 : -ENOMEM;
}

void kretry_queue_cache_exit(void)
{
	kmem_cache_destroy(kretry_queued_cache);
}

bool kretry_queue_prepare(struct kretry_queue *queue)
{
	struct rb_root *index;

	if (READ_ONCE(queue->index))
		return true;
	index = kcalloc(1U << KRETRY_INDEX_BITS, sizeof(*index), KRETRY_GFP);
	if (!index)
		return false;
	if (cmpxchg(&queue->index, NULL, index))
		kfree(index);
	return true;
}

bool kretry_queued_alloc(struct kretry_queue *queue, struct kretry_queued **queued, u32 count)
{
	u32 i;

	if (!kretry_queue_prepare(queue))
		return false;
	if (!kmem_cache_alloc_bulk(kretry_queued_cache, KRETRY_GFP, count, (void **)queued))
		return false;
	for (i = 0; i < count; i++)
		kretry_queued_init(queued[i], false);
	return true;
}

void kretry_queued_free(struct kretry_queued **queued, u32 count)
{
	if (count)
		kmem_cache_free_bulk(kretry_queued_cache, count, (void **)queued);
}

static struct kretry_queue *kretry_queue_of(const struct kretry_queued *queued)
{
	return &queued->handle->kf->queue;
}

static clockid_t kretry_side_clock(const struct kretry_side *side)
{
	return side == &side->kf->queue.sides[1] ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

static struct kretry_side *kretry_side_of(struct kretry_queue *queue,
					  const struct kretry_queued *queued)
{
	return &queue->sides[queued->handle->policy->params.clockid == CLOCK_BOOTTIME];
}

static struct kretry_queued *kretry_queued_first(const struct rb_root_cached *tree)
{
	return rb_entry_safe(rb_first_cached(tree), struct kretry_queued, due);
}

/* -------- timers -------- */

/*
 * kretry_side_fire() runs when the first deadline has come, at the latest its slack later. It wakes
 * who reads the file, once until they have looked, and sends due waits back to their tasks. Armed
 * by whatever comes first in a tree; never disarmed before the file is gone.
 */
static void kretry_side_arm(struct kretry_side *side)
{
	const struct kretry_queued *wait = kretry_queued_first(&side->waits);
	const struct kretry_queued *op = side->told ? NULL : kretry_queued_first(&side->ops);
	u64 expires = min(wait ? wait->deadline_ns : U64_MAX, op ? op->deadline_ns : U64_MAX);

	if (expires >= side->expires_ns)
		return;
	side->expires_ns = expires;
	hrtimer_start_range_ns(&side->timer, ns_to_ktime(expires), side->slack_ns,
			       HRTIMER_MODE_ABS_SOFT);
}

/* Take what is due of the waits; how many. */
static u32 kretry_side_take_waits(struct kretry_side *side, struct kretry_queued **due, u64 now)
{
	struct kretry_queued *wait;
	u32 count = 0;

	while (count < KRETRY_FIRE_MAX && (wait = kretry_queued_first(&side->waits)) &&
	       wait->deadline_ns <= now) {
		kretry_queue_remove(&side->kf->queue, wait);
		due[count++] = wait;
	}
	return count;
}

static enum hrtimer_restart kretry_side_fire(struct hrtimer *timer)
{
	struct kretry_side *side = container_of(timer, struct kretry_side, timer);
	struct kretry_file *kf = side->kf;
	struct kretry_queued *due[KRETRY_FIRE_MAX], *op;
	u32 i, count;
	u64 now;
	bool wake;

	spin_lock_bh(&kf->queue.lock);
	side->expires_ns = U64_MAX;
	now = kretry_clock_now(kretry_side_clock(side));
	op = kretry_queued_first(&side->ops);
	wake = op && op->deadline_ns <= now && !side->told;
	side->told |= wake;
	count = kretry_side_take_waits(side, due, now);
	kretry_side_arm(side);
	spin_unlock_bh(&kf->queue.lock);

	for (i = 0; i < count; i++)
		kretry_wait_send(due[i]);
	if (wake)
		wake_up_interruptible_poll(&kf->wait, EPOLLIN | EPOLLRDNORM);
	return HRTIMER_NORESTART;
}

void kretry_queue_init(struct kretry_file *kf)
{
	struct kretry_queue *queue = &kf->queue;
	struct kretry_side *side;

	spin_lock_init(&queue->lock);
	for (side = queue->sides; side < queue->sides + ARRAY_SIZE(queue->sides); side++) {
		side->kf = kf;
		side->ops = RB_ROOT_CACHED;
		side->waits = RB_ROOT_CACHED;
		side->expires_ns = U64_MAX;
		side->slack_ns = U64_MAX;
		hrtimer_setup(&side->timer, kretry_side_fire, kretry_side_clock(side),
			      HRTIMER_MODE_ABS_SOFT);
	}
}

void kretry_queue_exit(struct kretry_file *kf)
{
	WARN_ON_ONCE(kf->queue.count);
	hrtimer_cancel(&kf->queue.sides[0].timer);
	hrtimer_cancel(&kf->queue.sides[1].timer);
	kfree(kf->queue.index);
}

/* -------- the index -------- */

static struct rb_root *kretry_index_tree(struct kretry_queue *queue, u64 user_data)
{
	return &queue->index[hash_64(user_data, KRETRY_INDEX_BITS)];
}

/* Where @user_data is or belongs in @tree. */
static struct rb_node **kretry_index_find(struct rb_root *tree, u64 user_data,
					  struct rb_node **parent)
{
	struct rb_node **link = &tree->rb_node;
	struct kretry_queued *queued;

	*parent = NULL;
	while (*link) {
		queued = rb_entry(*link, struct kretry_queued, node);
		if (queued->user_data == user_data)
			break;
		*parent = *link;
		link = user_data < queued->user_data ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

static int kretry_index_add(struct kretry_queue *queue, struct kretry_queued *queued)
{
	struct rb_root *tree = kretry_index_tree(queue, queued->user_data);
	struct rb_node *parent, **link;

	if (queue->count >= kretry_max_queued)
		return -ENOBUFS;
	link = kretry_index_find(tree, queued->user_data, &parent);
	if (*link)
		return -EEXIST;
	rb_link_node(&queued->node, parent, link);
	rb_insert_color(&queued->node, tree);
	queue->count++;
	return 0;
}

int kretry_queue_reserve(struct kretry_queued *queued, struct kretry_handle *handle, u64 user_data)
{
	struct kretry_queue *queue = &handle->kf->queue;
	int err;

	queued->user_data = user_data;
	spin_lock_bh(&queue->lock);
	err = handle->closing ? -ENOENT : kretry_index_add(queue, queued);
	if (!err) {
		refcount_inc(&handle->refs);
		queued->handle = handle;
		queued->phase = KRETRY_RESERVED;
		this_cpu_inc(handle->policy->counts->queued);
	}
	spin_unlock_bh(&queue->lock);
	return err;
}

void kretry_queue_unlist(struct kretry_queue *queue, struct kretry_queued *queued)
{
	lockdep_assert_held(&queue->lock);
	rb_erase(&queued->node, kretry_index_tree(queue, queued->user_data));
	queue->count--;
	queued->phase = KRETRY_IDLE;
	this_cpu_dec(queued->handle->policy->counts->queued);
}

void kretry_queue_forget(struct kretry_queued *queued)
{
	struct kretry_queue *queue = kretry_queue_of(queued);

	spin_lock_bh(&queue->lock);
	kretry_queue_unlist(queue, queued);
	spin_unlock_bh(&queue->lock);
}

struct kretry_queued *kretry_queue_find(struct kretry_queue *queue, u64 user_data)
{
	struct rb_node *parent;

	lockdep_assert_held(&queue->lock);
	if (!queue->index)
		return NULL;
	return rb_entry_safe(*kretry_index_find(kretry_index_tree(queue, user_data), user_data,
						&parent),
			     struct kretry_queued, node);
}

/* The first of @tree that has @user_data or more. */
static struct kretry_queued *kretry_index_from(const struct rb_root *tree, u64 user_data)
{
	struct rb_node *node = tree->rb_node, *found = NULL;

	while (node) {
		if (rb_entry(node, struct kretry_queued, node)->user_data < user_data) {
			node = node->rb_right;
		} else {
			found = node;
			node = node->rb_left;
		}
	}
	return rb_entry_safe(found, struct kretry_queued, node);
}

struct kretry_queued *kretry_queue_walk(struct kretry_queue *queue, struct kretry_cursor *cursor)
{
	struct kretry_queued *queued;

	lockdep_assert_held(&queue->lock);
	if (!queue->index)
		return NULL;
	while (cursor->tree < 1U << KRETRY_INDEX_BITS) {
		queued = kretry_index_from(&queue->index[cursor->tree], cursor->user_data);
		if (queued && queued->user_data < U64_MAX) {
			cursor->user_data = queued->user_data + 1;
			return queued;
		}
		cursor->tree++;
		cursor->user_data = 0;
		if (queued)
			return queued;
	}
	return NULL;
}

/* -------- by deadline -------- */

static bool kretry_queued_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct kretry_queued, due)->deadline_ns <
	       rb_entry(b, struct kretry_queued, due)->deadline_ns;
}

void kretry_queue_insert(struct kretry_queue *queue, struct kretry_queued *queued)
{
	struct kretry_side *side = kretry_side_of(queue, queued);
	struct rb_root_cached *tree = queued->is_wait ? &side->waits : &side->ops;
	u64 slack = queued->handle->policy->params.slack_ns;

	lockdep_assert_held(&queue->lock);
	queued->phase = KRETRY_ARMED;
	if (slack < side->slack_ns) {
		/* The timer may be less late than it has been told: it is told anew. */
		side->slack_ns = slack;
		side->expires_ns = U64_MAX;
	}
	if (rb_add_cached(&queued->due, tree, kretry_queued_less) || side->expires_ns == U64_MAX)
		kretry_side_arm(side);
}

void kretry_queue_remove(struct kretry_queue *queue, struct kretry_queued *queued)
{
	struct kretry_side *side = kretry_side_of(queue, queued);

	lockdep_assert_held(&queue->lock);
	rb_erase_cached(&queued->due, queued->is_wait ? &side->waits : &side->ops);
	if (RB_EMPTY_ROOT(&side->ops.rb_root) && RB_EMPTY_ROOT(&side->waits.rb_root))
		side->slack_ns = U64_MAX;
	queued->phase = KRETRY_TAKEN;
}

void kretry_queue_arm(struct kretry_queue *queue, struct kretry_queued **queued, u32 count)
{
	u32 i;

	spin_lock_bh(&queue->lock);
	for (i = 0; i < count; i++) {
		if (IS_ERR_OR_NULL(queued[i]) || queued[i]->phase != KRETRY_RESERVED ||
		    queued[i]->handle->closing)
			continue;
		kretry_queue_insert(queue, queued[i]);
		queued[i] = NULL;
	}
	spin_unlock_bh(&queue->lock);
}

/* Of @side's ops the first if it is due, and by how long. @now is read here if it is 0. */
static struct kretry_queued *kretry_side_due(struct kretry_side *side, u64 *now, u64 *late)
{
	struct kretry_queued *op = kretry_queued_first(&side->ops);

	if (!op)
		return NULL;
	if (!*now)
		*now = kretry_clock_now(kretry_side_clock(side));
	if (op->deadline_ns > *now)
		return NULL;
	*late = *now - op->deadline_ns;
	return op;
}

struct kretry_queued *kretry_queue_first_due(struct kretry_queue *queue, u64 now[2])
{
	struct kretry_side *side = queue->sides;
	struct kretry_queued *op[2];
	u64 late[2] = {};
	u32 i;

	lockdep_assert_held(&queue->lock);
	for (i = 0; i < ARRAY_SIZE(op); i++) {
		op[i] = kretry_side_due(&side[i], &now[i], &late[i]);
		if (!op[i] && side[i].told) {
			side[i].told = false;
			kretry_side_arm(&side[i]);
		}
	}
	return op[1] && (!op[0] || late[1] > late[0]) ? op[1] : op[0];
}

bool kretry_queue_is_due(struct kretry_queue *queue)
{
	u64 now[2] = {};
	bool due;

	spin_lock_bh(&queue->lock);
	due = kretry_queue_first_due(queue, now);
	spin_unlock_bh(&queue->lock);
	return due;
}
