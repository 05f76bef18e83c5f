// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ops come in, are decided and go out in chunks. User memory is touched only between decisions, and
 * is known to be writable before any is made.
 */
#include "step.h"

#include <linux/hash.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/siphash.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "decide.h"
#include "lease.h"
#include "limits.h"
#include "policy.h"
#include "trace.h"

/* Small enough for the stack, large enough to share the price of a clock and two user copies. */
#define KRETRY_CHUNK	16U
#define KRETRY_OP_WORDS	(sizeof(struct kretry_op) / sizeof(u64))

/**
 * struct kretry_step - one call of STEP or STEP_BATCH
 * @kf:		the file
 * @monotonic:	CLOCK_MONOTONIC, read at most once a chunk
 * @boottime:	CLOCK_BOOTTIME, likewise
 * @many:	whether one draw has to do for the whole call
 * @draws:	numbers taken from that draw
 * @bits:	the last 64 of them, of which every second op takes the upper half
 * @key:	that draw
 */
struct kretry_step {
	struct kretry_file *kf;
	struct kretry_clock monotonic;
	struct kretry_clock boottime;
	bool many;
	u32 draws;
	u64 bits;
	siphash_key_t key;
};

static void kretry_step_init(struct kretry_step *step, struct kretry_file *kf, bool many)
{
	step->kf = kf;
	step->monotonic.now = 0;
	step->boottime.now = 0;
	step->many = many;
	step->draws = 0;
}

static const struct kretry_clock *kretry_step_clock(struct kretry_step *step, clockid_t clockid)
{
	struct kretry_clock *clock =
		clockid == CLOCK_BOOTTIME ? &step->boottime : &step->monotonic;

	if (!clock->now)
		kretry_clock_read(clock, clockid);
	return clock;
}

/* One fresh kernel draw a call, expanded by a keyed function: half an output for each op. */
static u32 kretry_step_expand(struct kretry_step *step)
{
	u32 draw = step->draws++;

	if (draw & 1)
		return step->bits >> 32;
	if (!draw)
		step->key = (siphash_key_t) {{ get_random_u64(), get_random_u64() }};
	step->bits = siphash_1u32(draw, &step->key);
	return step->bits;
}

/* The kernel's 32 random bits cost half of 64 and tell 2^32 delays apart: spread them over u64. */
static u64 kretry_step_draw(struct kretry_step *step)
{
	u64 half = step->many ? kretry_step_expand(step) : get_random_u32();

	return half << 32 | half;
}

/* Who reports: the process or, by policy, the user. Short: two that look alike count once. */
static u16 kretry_step_reporter(const struct kretry_policy *p)
{
	if (p->breaker.min_reporters < 2)
		return 0;
	if (p->breaker.flags & KRETRY_BREAKER_REPORTERS_UID)
		return hash_32(__kuid_val(current_euid()), 16);
	return hash_32(task_tgid_nr(current), 16);
}

static void kretry_step_count(struct kretry_policy_node *policy, u8 event, u8 verdict)
{
	this_cpu_inc(policy->counts->events[event]);
	this_cpu_inc(policy->counts->verdicts[verdict]);
}

/* While closed and not ramping a BEGIN has no use for a number. */
static bool kretry_step_needs_draw(const struct kretry_policy *p, const struct kretry_shared *s,
				   const struct kretry_op *op)
{
	if (op->event == KRETRY_EVENT_BEGIN && s->state == KRETRY_CLOSED &&
	    s->mode == KRETRY_MODE_AUTOMATIC && !p->breaker.ramp_ns)
		return false;
	return kretry_needs_draw(p, op);
}

/* True if the breaker has been open meanwhile, and is half-open again. */
static bool kretry_step_reap(const struct kretry_policy *p, struct kretry_key *key,
			     const struct kretry_call *call)
{
	struct kretry_shared *s = &key->shared;

	kretry_lease_reap(key, call->now, call->rnd);
	if (s->state != KRETRY_OPEN)
		return false;
	kretry_breaker_advance(&p->breaker, s, call->now);
	return s->state == KRETRY_HALF_OPEN;
}

/* Leases that bear on @op: a BEGIN may want one, a report gives its own back. */
static int kretry_step_lease(struct kretry_handle *handle, struct kretry_key *key,
			     const struct kretry_op *op, struct kretry_call *call,
			     struct kretry_lease **lease)
{
	struct kretry_policy_node *policy = handle->policy;
	struct kretry_shared *s = &key->shared;

	*lease = NULL;
	if (op->event != KRETRY_EVENT_BEGIN) {
		if (key->leases)
			call->probe = kretry_lease_take(handle->kf, key, op->generation);
		return 0;
	}
	if (!kretry_breaker_probes(&policy->params.breaker, s) ||
	    !kretry_breaker_admits(&policy->params.breaker, s, call->now, call->rnd))
		return 0;
	*lease = kretry_lease_add(handle, key, kretry_policy_generation(policy));
	return PTR_ERR_OR_ZERO(*lease);
}

static void kretry_step_settle(struct kretry_op *op, const struct kretry_call *call,
			       struct kretry_lease *lease, u64 timeout_ns)
{
	if (call->leased) {
		op->generation = lease->generation;
		WRITE_ONCE(lease->expires_ns, kretry_sat_add(op->deadline_ns, timeout_ns));
	} else if (lease) {
		kretry_lease_remove(lease);
	}
}

/* Decide @op under its key's lock. */
static noinline int kretry_step_shared(struct kretry_step *step, struct kretry_handle *handle,
				       struct kretry_op *op, struct kretry_call *call)
{
	struct kretry_policy_node *policy = handle->policy;
	const struct kretry_policy *p = &policy->params;
	struct kretry_lease *lease;
	struct kretry_key *key;
	u8 before, after;
	bool overflow, reopened;
	int err;

	key = kretry_key_lock(&policy->table, p, op->key, call->now);
	overflow = key == &policy->table.overflow;
	before = key->shared.state;
	kretry_shared_advance(p, &key->shared, call->now);
	call->now = max(call->now, key->shared.touched_ns);
	if (key->leases || kretry_step_needs_draw(p, &key->shared, op))
		call->rnd = kretry_step_draw(step);
	reopened = key->leases && kretry_step_reap(p, key, call);
	if (!key->shared.generation)
		key->shared.generation = kretry_policy_generation(policy);
	err = kretry_step_lease(handle, key, op, call, &lease);
	if (!err) {
		kretry_apply(p, &key->shared, op, call);
		kretry_step_settle(op, call, lease, p->breaker.probe_timeout_ns);
		if (overflow)
			op->flags |= KRETRY_OP_SHARED_KEY;
	}
	if (!key->shared.generation)
		key->shared.generation = kretry_policy_generation(policy);
	after = key->shared.state;
	kretry_key_unlock(key);

	if (call->charged)
		this_cpu_add(policy->counts->charged, call->charged);
	if (call->returned)
		this_cpu_add(policy->counts->returned, call->returned);
	if (reopened) {
		kretry_policy_changed(policy, KRETRY_OPEN);
		kretry_policy_changed(policy, KRETRY_HALF_OPEN);
	}
	if (before != after) {
		trace_kretry_transition(p, op->key, before, after);
		kretry_policy_changed(policy, after);
	}
	return err;
}

static __always_inline int kretry_step_decide(struct kretry_step *step,
					      struct kretry_handle *handle, struct kretry_op *op,
					      const struct kretry_clock *clock)
{
	const struct kretry_policy *p = &handle->policy->params;
	struct kretry_call call = { .now = clock->now };

	if (handle->policy->is_shared) {
		call.reporter = kretry_step_reporter(p);
		return kretry_step_shared(step, handle, op, &call);
	}
	if (kretry_needs_draw(p, op))
		call.rnd = kretry_step_draw(step);
	kretry_apply(p, NULL, op, &call);
	return 0;
}

static __always_inline int kretry_step_op(struct kretry_step *step, struct kretry_op *op)
{
	struct kretry_handle *handle = kretry_handle_find(step->kf, op->policy);
	u64 start = op->start_ns, deadline = op->deadline_ns;
	const struct kretry_clock *clock;
	u8 event = op->event;
	int err;

	if (!handle)
		return -ENOENT;
	if (!handle->may_step)
		return -EACCES;
	err = kretry_op_check(op);
	if (err)
		return err;

	clock = kretry_step_clock(step, handle->policy->params.clockid);
	if (clock->offset)
		kretry_clock_to_host(clock, op);
	err = kretry_step_decide(step, handle, op, clock);
	if (err) {
		op->start_ns = start;
		op->deadline_ns = deadline;
		return err;
	}
	kretry_step_count(handle->policy, event, op->verdict);
	trace_kretry_decide(op, event);
	if (clock->offset)
		kretry_clock_to_caller(clock, op);
	return 0;
}

/* A malformed op says so itself. */
static void kretry_step_chunk(struct kretry_step *step, struct kretry_op *op, u32 count)
{
	struct kretry_op *end = op + count;
	int err;

	step->monotonic.now = 0;
	step->boottime.now = 0;
	rcu_read_lock();
	for (; op < end; op++) {
		err = kretry_step_op(step, op);
		if (!err)
			continue;
		op->verdict = KRETRY_ERROR;
		op->flags = (op->flags & KRETRY_OP_IN_MASK) | -err << 8;
	}
	rcu_read_unlock();
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

/* Returns how many ops of the chunk, from the first on, were answered and written back. */
static u32 kretry_step_one_chunk(struct kretry_step *step, struct kretry_op __user *uops, u32 count)
{
	struct kretry_op ops[KRETRY_CHUNK] __uninitialized;
	u32 bytes = count * sizeof(*ops);

	count = (bytes - copy_from_user(ops, uops, bytes)) / sizeof(*ops);
	count = kretry_step_writable(uops, count);
	kretry_step_chunk(step, ops, count);
	bytes = count * sizeof(*ops);
	return (bytes - copy_to_user(uops, ops, bytes)) / sizeof(*ops);
}

static long kretry_step_chunks(struct kretry_step *step, struct kretry_op __user *uops, u32 count)
{
	u32 done = 0, want, got;

	while (done < count) {
		if (fatal_signal_pending(current))
			return done ? done : -EINTR;
		want = min(count - done, KRETRY_CHUNK);
		got = kretry_step_one_chunk(step, uops + done, want);
		done += got;
		if (got < want)
			return done ? done : -EFAULT;
		cond_resched();
	}
	return done;
}

long kretry_step_batch(struct kretry_cmd *cmd)
{
	struct kretry_batch *batch = cmd->arg;
	struct kretry_step step __uninitialized;
	long ret;

	if (batch->flags || batch->op_size != sizeof(struct kretry_op))
		return -EINVAL;
	if (batch->count > KRETRY_MAX_BATCH)
		return -EMSGSIZE;

	kretry_step_init(&step, cmd->kf, batch->count > 1);
	ret = kretry_step_chunks(&step, u64_to_user_ptr(batch->ops), batch->count);
	memzero_explicit(&step.key, sizeof(step.key));
	return ret;
}

/* The same for one op, word by word: fetch it and prove that it can be written. */
static bool kretry_step_fetch_one(u64 *op, u64 __user *uop)
{
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

static bool kretry_step_store_one(const u64 *op, u64 __user *uop)
{
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

long kretry_step(struct kretry_file *kf, void __user *uop)
{
	struct kretry_step step __uninitialized;
	struct kretry_op op __uninitialized;
	int err;

	if (!kretry_step_fetch_one((u64 *)&op, uop))
		return -EFAULT;

	kretry_step_init(&step, kf, false);
	rcu_read_lock();
	err = kretry_step_op(&step, &op);
	rcu_read_unlock();
	if (err)
		return err;
	return kretry_step_store_one((u64 *)&op, uop) ? 0 : -EFAULT;
}
