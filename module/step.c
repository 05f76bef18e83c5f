// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ops come in, are decided and go out in chunks. User memory is touched only between decisions, and
 * is known to be writable before any is made.
 */
#include "step.h"

#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "decide.h"
#include "limits.h"
#include "policy.h"
#include "trace.h"

#define KRETRY_CHUNK	64U

/**
 * struct kretry_step - one call of STEP or STEP_BATCH
 * @kf:		the file
 * @monotonic:	CLOCK_MONOTONIC, read at most once a chunk
 * @boottime:	CLOCK_BOOTTIME, likewise
 * @key:	of the function that expands the call's one kernel draw
 * @draws:	numbers drawn with @key
 * @keyed:	whether @key has been drawn
 */
struct kretry_step {
	struct kretry_file *kf;
	struct kretry_clock monotonic;
	struct kretry_clock boottime;
	siphash_key_t key;
	u32 draws;
	bool keyed;
};

static const struct kretry_clock *kretry_step_clock(struct kretry_step *step, clockid_t clockid)
{
	struct kretry_clock *clock =
		clockid == CLOCK_BOOTTIME ? &step->boottime : &step->monotonic;

	if (!clock->now)
		kretry_clock_read(clock, clockid);
	return clock;
}

/* A number for one op of many: one fresh kernel draw a call, expanded by a keyed function. */
static u64 kretry_step_expand(struct kretry_step *step)
{
	if (!step->keyed) {
		get_random_bytes(&step->key, sizeof(step->key));
		step->keyed = true;
	}
	return siphash_1u32(step->draws++, &step->key);
}

/* A number for one op: 2^32 values spread evenly over u64, at half the price of 2^64. */
static u64 kretry_step_draw_one(void)
{
	u64 half = get_random_u32();

	return half << 32 | half;
}

static int kretry_step_op(struct kretry_step *step, struct kretry_op *op, bool many)
{
	const struct kretry_policy *p = kretry_policy_find(step->kf, op->policy);
	const struct kretry_clock *clock;
	u8 event = op->event;
	u64 rnd = 0;
	int err;

	if (!p)
		return -ENOENT;
	err = kretry_op_check(op);
	if (err)
		return err;

	clock = kretry_step_clock(step, p->clockid);
	if (kretry_needs_draw(p, op))
		rnd = many ? kretry_step_expand(step) : kretry_step_draw_one();
	if (clock->offset)
		kretry_clock_to_host(clock, op);
	kretry_apply(p, op, clock->now, rnd);
	trace_kretry_decide(op, event);
	if (clock->offset)
		kretry_clock_to_caller(clock, op);
	return 0;
}

/* A malformed op says so itself. */
static void kretry_step_chunk(struct kretry_step *step, struct kretry_op *ops, u32 count)
{
	u32 i;
	int err;

	step->monotonic.now = 0;
	step->boottime.now = 0;

	rcu_read_lock();
	for (i = 0; i < count; i++) {
		err = kretry_step_op(step, &ops[i], true);
		if (!err)
			continue;
		ops[i].verdict = KRETRY_ERROR;
		ops[i].flags = (ops[i].flags & KRETRY_OP_IN_MASK) | -err << 8;
	}
	rcu_read_unlock();
}

/*
 * Read up to @count ops and prove that they can be written, by writing what is there already.
 * Returns how many of them, from the first on, passed both.
 */
static u32 kretry_step_fetch(struct kretry_op *ops, struct kretry_op __user *uops, u32 count)
{
	u32 bytes = count * sizeof(*ops);

	count = (bytes - copy_from_user(ops, uops, bytes)) / sizeof(*ops);
	bytes = count * sizeof(*ops);
	return (bytes - copy_to_user(uops, ops, bytes)) / sizeof(*ops);
}

/* Returns how many ops of the chunk were answered and written back. */
static u32 kretry_step_one_chunk(struct kretry_step *step, struct kretry_op *ops,
				 struct kretry_op __user *uops, u32 count)
{
	u32 bytes;

	count = kretry_step_fetch(ops, uops, count);
	kretry_step_chunk(step, ops, count);
	bytes = count * sizeof(*ops);
	return (bytes - copy_to_user(uops, ops, bytes)) / sizeof(*ops);
}

static long kretry_step_chunks(struct kretry_step *step, struct kretry_op *ops,
			       struct kretry_op __user *uops, u32 count)
{
	u32 done = 0, want, got;

	while (done < count) {
		if (fatal_signal_pending(current))
			return done ? done : -EINTR;
		want = min(count - done, KRETRY_CHUNK);
		got = kretry_step_one_chunk(step, ops, uops + done, want);
		done += got;
		if (got < want)
			return done ? done : -EFAULT;
		cond_resched();
	}
	return done;
}

long kretry_step_batch(struct kretry_cmd *cmd)
{
	struct kretry_step step = { .kf = cmd->kf };
	struct kretry_batch *batch = cmd->arg;
	struct kretry_op *ops;
	long ret;

	if (batch->flags || batch->op_size != sizeof(*ops))
		return -EINVAL;
	if (batch->count > KRETRY_MAX_BATCH)
		return -EMSGSIZE;
	if (!batch->count)
		return 0;

	ops = kmalloc_array(min(batch->count, KRETRY_CHUNK), sizeof(*ops), GFP_KERNEL_ACCOUNT);
	if (!ops)
		return -ENOMEM;
	ret = kretry_step_chunks(&step, ops, u64_to_user_ptr(batch->ops), batch->count);
	memzero_explicit(&step.key, sizeof(step.key));
	kfree(ops);
	return ret;
}

long kretry_step(struct kretry_cmd *cmd)
{
	struct kretry_step step = { .kf = cmd->kf };
	struct kretry_op op;
	int err;

	if (copy_from_user(&op, cmd->uarg, sizeof(op)) || copy_to_user(cmd->uarg, &op, sizeof(op)))
		return -EFAULT;

	rcu_read_lock();
	err = kretry_step_op(&step, &op, false);
	rcu_read_unlock();
	if (err)
		return err;
	return copy_to_user(cmd->uarg, &op, sizeof(op)) ? -EFAULT : 0;
}
