// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "deliver.h"

#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "policy.h"
#include "redraw.h"
#include "trace.h"
#include "wait.h"

/* Ops taken out of a queue at a time. */
#define KRETRY_TAKE_MAX	16U

/* Who is refused at the deadline and waits on does not ask again sooner than this. */
#define KRETRY_AGAIN_NS	(1000 * NSEC_PER_USEC)

/* -------- at the deadline -------- */

static bool kretry_deliver_later(struct kretry_queued *queued, u64 deadline)
{
	queued->deadline_ns = deadline;
	kretry_queue_insert(&queued->handle->kf->queue, queued);
	return false;
}

/* What fell due while the machine slept does not wake all at once. */
static bool kretry_deliver_spread(struct kretry_caller *caller, struct kretry_queued *queued,
				  struct kretry_op *op, u64 now)
{
	this_cpu_inc(queued->handle->policy->counts->spread);
	trace_kretry_put_off(false, 1);
	if (kretry_answer_put_off(queued, op, now + 1, kretry_caller_draw(caller)))
		return kretry_deliver_later(queued, queued->deadline_ns);
	return true;
}

/* Ask as BEGIN does. A STOP undoes the grant; a slot that lies ahead is waited for. */
static bool kretry_deliver_admit(struct kretry_caller *caller, struct kretry_queued *queued,
				 struct kretry_op *op, u64 now)
{
	u8 verdict;

	if (kretry_answer_due(caller, queued, op, &now))
		return kretry_deliver_later(queued, kretry_sat_add(now, KRETRY_AGAIN_NS));
	kretry_queued_note(queued, op);
	verdict = op->verdict;
	if (verdict == KRETRY_RETRY)
		return kretry_deliver_later(queued, max(op->deadline_ns,
							kretry_sat_add(now, KRETRY_AGAIN_NS)));
	if (verdict == KRETRY_GO)
		return op->deadline_ns <= now || kretry_deliver_later(queued, op->deadline_ns);
	kretry_answer_undo(queued, op);
	return true;
}

/* It has its verdict already. When it ought to come again is known no more. */
static void kretry_deliver_settled(const struct kretry_queued *queued, struct kretry_op *op)
{
	kretry_queued_show(queued, op);
	if (op->verdict != KRETRY_GO)
		op->deadline_ns = 0;
}

bool kretry_deliver_one(struct kretry_caller *caller, struct kretry_queued *queued,
			struct kretry_op *op)
{
	const struct kretry_policy *p = &queued->handle->policy->params;
	u64 now = kretry_caller_clock(caller, p)->now;
	bool deliver = true;

	lockdep_assert_held(&queued->handle->kf->queue.lock);
	rcu_read_lock();
	if (queued->verdict != KRETRY_VERDICT_NONE)
		kretry_deliver_settled(queued, op);
	else if (kretry_redraw_slept(p->clockid, queued->deadline_ns, now))
		deliver = kretry_deliver_spread(caller, queued, op, now);
	else
		deliver = kretry_deliver_admit(caller, queued, op, now);
	rcu_read_unlock();
	if (deliver)
		queued->verdict = op->verdict;
	return deliver;
}

/* -------- read() -------- */

/* Take due ops, at most @max and KRETRY_TAKE_MAX; *@looked is how many were due. */
static u32 kretry_deliver_take(struct kretry_caller *caller, struct kretry_queued **taken,
			       struct kretry_op *ops, u32 max, u32 *looked)
{
	struct kretry_queue *queue = &caller->kf->queue;
	const struct kretry_clock *clock;
	struct kretry_queued *queued;
	u64 now[2] = {};
	u32 count = 0;

	*looked = 0;
	kretry_caller_tick(caller);
	spin_lock_bh(&queue->lock);
	while ((queued = kretry_queue_first_due(queue, now)) && *looked < KRETRY_TAKE_MAX &&
	       count < max) {
		++*looked;
		kretry_queue_remove(queue, queued);
		if (!kretry_deliver_one(caller, queued, &ops[count]))
			continue;
		clock = kretry_caller_clock(caller, &queued->handle->policy->params);
		if (clock->offset)
			kretry_clock_to_caller(clock, &ops[count]);
		taken[count++] = queued;
	}
	spin_unlock_bh(&queue->lock);
	return count;
}

/* What was taken, has not reached its caller, and belongs to a policy that is being closed. */
static bool kretry_deliver_drop_taken(struct kretry_queue *queue, struct kretry_queued *queued)
{
	struct kretry_op op;

	if (!queued->handle->closing)
		return false;
	kretry_answer_undo(queued, &op);
	kretry_queue_unlist(queue, queued);
	return true;
}

/* It is due again at once. */
static void kretry_deliver_put_back(struct kretry_queue *queue, struct kretry_queued *queued)
{
	if (queued->verdict != KRETRY_GO)
		queued->deadline_ns = 0;
	kretry_queue_insert(queue, queued);
}

/* The first @told of what was taken have reached the caller, the others stay. */
static void kretry_deliver_finish(struct kretry_queue *queue, struct kretry_queued **taken,
				  u32 count, u32 told)
{
	u32 i, gone = told;

	spin_lock_bh(&queue->lock);
	for (i = 0; i < count; i++) {
		if (i < told)
			kretry_queue_unlist(queue, taken[i]);
		else if (kretry_deliver_drop_taken(queue, taken[i]))
			taken[gone++] = taken[i];
		else
			kretry_deliver_put_back(queue, taken[i]);
	}
	spin_unlock_bh(&queue->lock);

	for (i = 0; i < gone; i++)
		kretry_handle_put(taken[i]->handle);
	kretry_queued_free(taken, gone);
}

/* How much of @bytes, less than a page, can be written; mostly the ends tell, at little cost. */
static size_t kretry_deliver_room(struct iov_iter *to, size_t bytes)
{
	u8 __user *first, *last;
	u8 value;

	if (iter_is_ubuf(to)) {
		first = to->ubuf + to->iov_offset;
		last = first + bytes - 1;
		if (!get_user(value, first) && !put_user(value, first) &&
		    !get_user(value, last) && !put_user(value, last))
			return bytes;
	}
	return bytes - fault_in_iov_iter_writeable(to, bytes);
}

/* One chunk; returns how many reached the caller, or -EFAULT. 0: there is none to deliver. */
static int kretry_deliver_chunk(struct kretry_caller *caller, struct iov_iter *to)
{
	struct kretry_op ops[KRETRY_TAKE_MAX] __uninitialized;
	struct kretry_queued *taken[KRETRY_TAKE_MAX];
	size_t bytes = min(iov_iter_count(to), sizeof(ops));
	u32 max, count, looked, told;

	max = kretry_deliver_room(to, bytes) / sizeof(*ops);
	if (!max)
		return -EFAULT;
	do {
		count = kretry_deliver_take(caller, taken, ops, max, &looked);
	} while (!count && looked && !signal_pending(current));
	if (!count)
		return 0;
	bytes = copy_to_iter(ops, count * sizeof(*ops), to);
	told = bytes / sizeof(*ops);
	iov_iter_revert(to, bytes - told * sizeof(*ops));
	kretry_deliver_finish(&caller->kf->queue, taken, count, told);
	return told ? (int)told : -EFAULT;
}

static ssize_t kretry_deliver_due(struct kretry_file *kf, struct iov_iter *to)
{
	struct kretry_caller caller __uninitialized;
	ssize_t done = 0;
	int got;

	kretry_caller_init(&caller, kf, false);
	do {
		got = kretry_deliver_chunk(&caller, to);
		if (got < 0)
			return done ? done : got;
		done += got * sizeof(struct kretry_op);
		cond_resched();
	} while (got && iov_iter_count(to) >= sizeof(struct kretry_op) &&
		 !fatal_signal_pending(current));
	return done;
}

ssize_t kretry_deliver_read(struct kretry_file *kf, struct iov_iter *to, bool nonblock)
{
	ssize_t ret;

	if (iov_iter_count(to) < sizeof(struct kretry_op))
		return -EINVAL;
	while (!(ret = kretry_deliver_due(kf, to))) {
		if (nonblock)
			return -EAGAIN;
		ret = wait_event_interruptible(kf->wait, kretry_queue_is_due(&kf->queue));
		if (ret)
			return ret;
	}
	return ret;
}

/* -------- cancelled and dropped -------- */

/*
 * Take @queued out of its queue and undo its grant; @op is what that makes. False: it is not there
 * to be taken. *@sent: its command is on its way to its task, and @queued with it.
 */
static bool kretry_deliver_claim(struct kretry_queue *queue, struct kretry_queued *queued,
				 struct kretry_op *op, bool *sent)
{
	u64 now[2] = {};

	*sent = queued->phase == KRETRY_TAKEN && queued->is_wait;
	if (queued->phase == KRETRY_ARMED) {
		kretry_queue_remove(queue, queued);
		kretry_queue_first_due(queue, now);
	} else if (!*sent) {
		return false;
	}
	kretry_answer_undo(queued, op);
	op->verdict = KRETRY_VERDICT_NONE;
	op->deadline_ns = 0;
	kretry_queue_unlist(queue, queued);
	if (queued->is_wait)
		queued->phase = KRETRY_CANCELLED;
	return true;
}

/* What was claimed, and is not @sent, goes. A wait's command is completed by its task. */
static void kretry_deliver_end(struct kretry_queued *queued)
{
	if (queued->is_wait) {
		kretry_wait_send(queued);
		return;
	}
	kretry_handle_put(queued->handle);
	kretry_queued_free(&queued, 1);
}

static bool kretry_deliver_take_back(struct kretry_queue *queue, struct kretry_cancel *cancel,
				     clockid_t *clockid)
{
	struct kretry_queued *queued;
	bool found, sent;

	spin_lock_bh(&queue->lock);
	queued = kretry_queue_find(queue, cancel->user_data);
	found = queued;
	if (found) {
		*clockid = queued->handle->policy->params.clockid;
		found = kretry_deliver_claim(queue, queued, &cancel->op, &sent);
	}
	spin_unlock_bh(&queue->lock);
	if (found && !sent)
		kretry_deliver_end(queued);
	return found;
}

long kretry_deliver_cancel(struct kretry_cmd *cmd)
{
	struct kretry_cancel *cancel = cmd->arg;
	struct kretry_clock clock;
	clockid_t clockid;

	if (cancel->flags)
		return -EINVAL;
	if (!kretry_cmd_may_reply(cmd))
		return -EFAULT;
	if (!kretry_deliver_take_back(&cmd->kf->queue, cancel, &clockid))
		return -ENOENT;
	kretry_clock_read(&clock, clockid);
	if (clock.offset)
		kretry_clock_to_caller(&clock, &cancel->op);
	return kretry_cmd_reply(cmd);
}

/* Claim some of what is to be dropped; at the end of the walk *@more is false. */
static u32 kretry_deliver_claim_some(struct kretry_queue *queue, struct kretry_queued **claimed,
				     struct kretry_cursor *cursor, bool *more)
{
	struct kretry_queued *queued;
	struct kretry_op op;
	u32 count = 0, i;
	bool sent;

	spin_lock_bh(&queue->lock);
	for (i = 0; i < KRETRY_TAKE_MAX; i++) {
		queued = kretry_queue_walk(queue, cursor);
		*more = queued;
		if (!queued)
			break;
		if (queued->handle->closing && kretry_deliver_claim(queue, queued, &op, &sent) &&
		    !sent)
			claimed[count++] = queued;
	}
	spin_unlock_bh(&queue->lock);
	return count;
}

void kretry_deliver_drop(struct kretry_file *kf)
{
	struct kretry_queued *claimed[KRETRY_TAKE_MAX];
	struct kretry_cursor cursor = {};
	u32 count, i;
	bool more;

	do {
		count = kretry_deliver_claim_some(&kf->queue, claimed, &cursor, &more);
		for (i = 0; i < count; i++)
			kretry_deliver_end(claimed[i]);
		cond_resched();
	} while (more);
}
