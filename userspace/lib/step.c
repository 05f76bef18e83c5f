// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Decisions: asked of the module, or taken here by the same code. */

#include <errno.h>
#include <sys/random.h>
#include <time.h>

#include "internal.h"

/* Time and randomness are taken once for so many ops of a batch, as the module does. */
#define CHUNK	64

uint64_t kretry_now(clockid_t clockid)
{
	struct timespec ts;

	clock_gettime(clockid, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/*
 * From the kernel at the time of the request, and nothing is kept: a pool in the process would be
 * copied by fork() and by snapshots of a virtual machine, and the copies would come back in step.
 */
int draw_random(u64 *rnd, unsigned int count)
{
	size_t size = count * sizeof(*rnd);
	size_t have = 0;
	ssize_t ret;

	while (have < size) {
		ret = getrandom((char *)rnd + have, size - have, 0);
		if (ret > 0)
			have += (size_t)ret;
		else if (ret < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

static int process_decide(struct kretry *k, struct policy_entry *entry, struct kretry_op *op,
			  struct kretry_call *call)
{
	if (op->flags & KRETRY_OP_QUEUE)
		return waiting_step(k, entry, op, call);
	return shared_step(k, entry->state, op, call);
}

static int process_step(struct kretry *k, struct kretry_op *op, struct kretry_call *call)
{
	const struct kretry_policy *params;
	struct policy_entry *entry;
	int ret = -ENOENT;

	lock_library();
	entry = policy_find(k, op->policy);
	if (entry) {
		params = &entry->state->params;
		ret = kretry_needs_draw(params, op) ? draw_random(&call->rnd, 1) : 0;
		call->now = kretry_now((clockid_t)params->clockid);
		if (!ret)
			ret = process_decide(k, entry, op, call);
	}
	unlock_library();
	return ret;
}

/*
 * Errors that say something about the request. Any other is a failure of the module, and then the
 * process decides: a caller left without an answer would retry without limits.
 */
static bool is_answer(int ret)
{
	switch (ret) {
	case -EINVAL:
	case -ENOENT:
	case -EACCES:
	case -EFAULT:
	case -EOPNOTSUPP:
	case -ENOBUFS:
	case -EEXIST:
		return true;
	}
	return ret >= 0;
}

/*
 * True if @op has been answered, by @ret. What is to be queued the process cannot take over: the
 * queue is where its readers look.
 */
static bool module_step(struct kretry *k, struct kretry_op *op, int *ret)
{
	if (k->fd < 0)
		return false;
	*ret = device_ioctl(k, KRETRY_IOC_STEP, op);
	return is_answer(*ret) || op->flags & KRETRY_OP_QUEUE;
}

int step_op(struct kretry *k, struct kretry_op *op)
{
	struct kretry_call call = { 0 };
	int ret;

	if (module_step(k, op, &ret))
		return ret < 0 ? ret : 0;
	return process_step(k, op, &call);
}

int step_granted(struct kretry *k, struct kretry_op *op, struct kretry_grant *grant)
{
	struct kretry_call call = { 0 };
	struct kretry_op asked = *op;
	int ret;

	if (!module_step(k, op, &ret))
		ret = process_step(k, op, &call);
	if (ret < 0)
		return ret;
	kretry_grant_keep(grant, &asked, op, &call);
	return 0;
}

void step_undo(struct kretry *k, struct kretry_op *op, struct kretry_grant *grant)
{
	struct policy_entry *entry;

	lock_library();
	entry = policy_find(k, op->policy);
	if (entry)
		shared_undo(entry->state, waiting_key(entry->state, op), op, grant);
	else
		op->attempt -= grant->moved;
	unlock_library();
}

int kretry_step(struct kretry *k, struct kretry_op *op)
{
	if (op->flags & KRETRY_OP_QUEUE && !queue_is_callers(k))
		return -EBUSY;
	return step_op(k, op);
}

static void mark_error(struct kretry_op *op, int error)
{
	op->verdict = KRETRY_ERROR;
	op->flags = (u16)((op->flags & KRETRY_OP_IN_MASK) | (u16)(-error << 8));
}

/* Draws for the ops that need one: one call to the kernel for all of them. */
static int draw_chunk(struct policy_entry **entries, const struct kretry_op *ops,
		      unsigned int count, u64 *rnd)
{
	unsigned int wanted = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		if (entries[i] && kretry_needs_draw(&entries[i]->state->params, &ops[i]))
			wanted++;
	return draw_random(rnd, wanted);
}

/* Called with the lock held. */
static int process_chunk(struct kretry *k, struct kretry_op *ops, unsigned int count)
{
	struct policy_entry *entries[CHUNK];
	u64 monotonic = kretry_now(CLOCK_MONOTONIC);
	u64 boottime = kretry_now(CLOCK_BOOTTIME);
	u64 rnd[CHUNK];
	u64 *next = rnd;
	unsigned int i;
	int ret;

	for (i = 0; i < count; i++)
		entries[i] = policy_find(k, ops[i].policy);
	ret = draw_chunk(entries, ops, count, rnd);
	if (ret < 0)
		return ret;
	for (i = 0; i < count; i++) {
		bool monotonic_one = !entries[i] ||
				     entries[i]->state->params.clockid == CLOCK_MONOTONIC;
		struct kretry_call call = { .now = monotonic_one ? monotonic : boottime };

		ret = -ENOENT;
		if (entries[i] && kretry_needs_draw(&entries[i]->state->params, &ops[i]))
			call.rnd = *next++;
		if (entries[i])
			ret = process_decide(k, entries[i], &ops[i], &call);
		if (ret < 0)
			mark_error(&ops[i], ret);
	}
	return 0;
}

static int process_batch(struct kretry *k, struct kretry_op *ops, unsigned int count)
{
	unsigned int done = 0;
	unsigned int chunk;
	int ret = 0;

	if (count > PROCESS_MAX_BATCH)
		return -EMSGSIZE;
	if (!ops && count)
		return -EFAULT;
	while (done < count && !ret) {
		chunk = min(count - done, (unsigned int)CHUNK);
		lock_library();
		ret = process_chunk(k, ops + done, chunk);
		unlock_library();
		if (!ret)
			done += chunk;
	}
	return done || !ret ? (int)done : ret;
}

static bool any_has(const struct kretry_op *ops, unsigned int count, u16 flag)
{
	u16 flags = 0;

	while (count--)
		flags |= ops++->flags;
	return flags & flag;
}

static int step_batch(struct kretry *k, struct kretry_op *ops, unsigned int count)
{
	struct kretry_batch batch = {
		.size = sizeof(batch),
		.ops = (uintptr_t)ops,
		.count = count,
		.op_size = sizeof(*ops),
	};
	int ret;

	if (k->fd >= 0) {
		ret = device_ioctl(k, KRETRY_IOC_STEP_BATCH, &batch);
		if (is_answer(ret) || ret == -EMSGSIZE || ret == -EINTR)
			return ret;
	}
	return process_batch(k, ops, count);
}

/* Memory that cannot be read is for the kernel to find out: what it has written is looked at. */
int kretry_step_batch(struct kretry *k, struct kretry_op *ops, unsigned int count)
{
	int ret;

	if (atomic_load(&k->queue_user) == QUEUE_SCHEDULERS && ops && count <= PROCESS_MAX_BATCH &&
	    any_has(ops, count, KRETRY_OP_QUEUE))
		return -EBUSY;
	ret = step_batch(k, ops, count);
	if (ret > 0 && any_has(ops, (unsigned int)ret, KRETRY_OP_QUEUED))
		queue_is_callers(k);
	return ret;
}
