// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ops come in, are decided and go out in chunks. User memory is touched only between decisions, and
 * is known to be writable before any is made.
 */
#include "step.h"

#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "answer.h"
#include "limits.h"
#include "policy.h"

/* Small enough for the stack, large enough to share the price of a clock and two user copies. */
#define KRETRY_CHUNK	16U
#define KRETRY_OP_WORDS	(sizeof(struct kretry_op) / sizeof(u64))

/*
 * What is to wait does so once its caller has been told, of the first @told; what the caller could
 * not be told is undone. @places have been answered.
 */
static void kretry_step_finish(struct kretry_file *kf, struct kretry_queued **places, u32 count,
			       u32 told)
{
	struct kretry_queued *queued;
	u32 i, rest = 0;

	kretry_queue_arm(&kf->queue, places, told);
	for (i = 0; i < count; i++) {
		queued = places[i];
		if (IS_ERR_OR_NULL(queued))
			continue;
		if (queued->phase == KRETRY_RESERVED)
			kretry_answer_withdraw(queued);
		if (queued->handle)
			kretry_handle_put(queued->handle);
		places[rest++] = queued;
	}
	kretry_queued_free(places, rest);
}

/* Write a word of user memory as it is. */
static bool kretry_step_touch(u64 __user *word)
{
	u64 value;

	return !get_user(value, word) && !put_user(value, word);
}

/*
 * How many of @count ops, from the first on, can be written. A chunk is smaller than a page, so its
 * first and last word tell for all of it.
 */
static u32 kretry_step_writable(struct kretry_op __user *uops, u32 count)
{
	u64 __user *words = (u64 __user *)uops;

	BUILD_BUG_ON(KRETRY_CHUNK * sizeof(struct kretry_op) > PAGE_SIZE);
	if (!count || !kretry_step_touch(words))
		return 0;
	while (count && !kretry_step_touch(words + count * KRETRY_OP_WORDS - 1))
		count--;
	return count;
}

static u32 kretry_step_write(struct kretry_op __user *uops, const struct kretry_op *ops, u32 count)
{
	u32 bytes = count * sizeof(*ops);

	return (bytes - copy_to_user(uops, ops, bytes)) / sizeof(*ops);
}

static bool kretry_step_may_queue(const struct kretry_op *op)
{
	return op->flags & KRETRY_OP_QUEUE && kretry_event_may_wait(op->event);
}

/* Which of the chunk ask for a place in the queue: a bit for each. */
static u32 kretry_step_queueing(const struct kretry_op *ops, u32 count)
{
	u32 i, queueing = 0;

	BUILD_BUG_ON(KRETRY_CHUNK > 32);
	for (i = 0; i < count; i++)
		if (kretry_step_may_queue(&ops[i]))
			queueing |= 1U << i;
	return queueing;
}

/* A place for each of @queueing, or none for any. */
static void kretry_step_places(struct kretry_file *kf, u32 count, u32 queueing,
			       struct kretry_queued **places)
{
	struct kretry_queued *queued[KRETRY_CHUNK], **next = queued;
	bool got = kretry_queued_alloc(&kf->queue, queued, hweight32(queueing));
	u32 i;

	for (i = 0; i < count; i++, queueing >>= 1) {
		if (!(queueing & 1))
			places[i] = NULL;
		else
			places[i] = got ? *next++ : ERR_PTR(-ENOMEM);
	}
}

/* The same for a chunk with ops that may be queued. */
static noinline u32 kretry_step_queue_chunk(struct kretry_caller *caller,
					    struct kretry_op __user *uops, struct kretry_op *ops,
					    u32 count, u32 queueing)
{
	struct kretry_queued *places[KRETRY_CHUNK];
	u32 done;

	kretry_step_places(caller->kf, count, queueing, places);
	kretry_answer_all(caller, ops, count, places);
	done = kretry_step_write(uops, ops, count);
	kretry_step_finish(caller->kf, places, count, done);
	return done;
}

/* Returns how many ops of the chunk, from the first on, were answered and written back. */
static u32 kretry_step_one_chunk(struct kretry_caller *caller, struct kretry_op __user *uops,
				 u32 count)
{
	struct kretry_op ops[KRETRY_CHUNK] __uninitialized;
	u32 bytes = count * sizeof(*ops), queueing;

	count = (bytes - copy_from_user(ops, uops, bytes)) / sizeof(*ops);
	count = kretry_step_writable(uops, count);
	queueing = kretry_step_queueing(ops, count);
	if (queueing)
		return kretry_step_queue_chunk(caller, uops, ops, count, queueing);
	kretry_answer_all(caller, ops, count, NULL);
	return kretry_step_write(uops, ops, count);
}

static long kretry_step_chunks(struct kretry_caller *caller, struct kretry_op __user *uops,
			       u32 count)
{
	u32 done = 0, want, got;
	int err = 0;

	while (done < count && !err) {
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		want = min(count - done, KRETRY_CHUNK);
		got = kretry_step_one_chunk(caller, uops + done, want);
		done += got;
		if (got < want)
			err = -EFAULT;
		cond_resched();
	}
	if (done)
		return done;
	return err;
}

long kretry_step_ops(struct kretry_file *kf, struct kretry_op __user *uops, u32 count)
{
	struct kretry_caller caller __uninitialized;
	long ret;

	if (count > KRETRY_MAX_BATCH)
		return -EMSGSIZE;
	kretry_caller_init(&caller, kf, count > 1);
	ret = kretry_step_chunks(&caller, uops, count);
	memzero_explicit(&caller.key, sizeof(caller.key));
	return ret;
}

long kretry_step_batch(struct kretry_cmd *cmd)
{
	struct kretry_batch *batch = cmd->arg;

	if (batch->flags || batch->op_size != sizeof(struct kretry_op))
		return -EINVAL;
	return kretry_step_ops(cmd->kf, u64_to_user_ptr(batch->ops), batch->count);
}

bool kretry_step_fetch(struct kretry_op *kop, struct kretry_op __user *uop_)
{
	u64 *op = (u64 *)kop;
	u64 __user *uop = (u64 __user *)uop_;
	u32 i;

	if (!user_access_begin(uop, sizeof(struct kretry_op)))
		return false;
#pragma GCC unroll 8
	for (i = 0; i < KRETRY_OP_WORDS; i++)
		unsafe_get_user(op[i], uop + i, fault);
	unsafe_put_user(op[0], uop, fault);
	unsafe_put_user(op[KRETRY_OP_WORDS - 1], uop + KRETRY_OP_WORDS - 1, fault);
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}

bool kretry_step_store(const struct kretry_op *kop, struct kretry_op __user *uop_)
{
	const u64 *op = (const u64 *)kop;
	u64 __user *uop = (u64 __user *)uop_;
	u32 i;

	if (!user_access_begin(uop, sizeof(struct kretry_op)))
		return false;
#pragma GCC unroll 8
	for (i = 0; i < KRETRY_OP_WORDS; i++)
		unsafe_put_user(op[i], uop + i, fault);
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}

/* One op that asks for a place in the queue. */
static noinline long kretry_step_queue(struct kretry_caller *caller, struct kretry_op *op,
				       struct kretry_op __user *uop)
{
	struct kretry_queued *queued;
	bool told = false;
	int err;

	if (!kretry_queued_alloc(&caller->kf->queue, &queued, 1))
		return -ENOMEM;
	err = kretry_answer(caller, op, queued);
	if (!err) {
		told = kretry_step_store(op, uop);
		err = told ? 0 : -EFAULT;
	}
	kretry_step_finish(caller->kf, &queued, 1, told);
	return err;
}

long kretry_step(struct kretry_file *kf, void __user *uarg)
{
	struct kretry_op __user *uop = uarg;
	struct kretry_caller caller __uninitialized;
	struct kretry_op op __uninitialized;
	int err;

	if (!kretry_step_fetch(&op, uop))
		return -EFAULT;

	kretry_caller_init(&caller, kf, false);
	if (kretry_step_may_queue(&op))
		return kretry_step_queue(&caller, &op, uop);
	err = kretry_answer(&caller, &op, NULL);
	if (err)
		return err;
	return kretry_step_store(&op, uop) ? 0 : -EFAULT;
}
