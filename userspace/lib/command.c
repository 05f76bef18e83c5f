// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Commands of the device on the caller's ring, and why they cannot be had. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Of no timeout of anybody: the scheduler's tag, and none of its slots. */
#define NOBODY	(KRETRY_SCHED_TAG << KRETRY_SCHED_TAG_SHIFT | 0xfffff0U)

/* By hand: the functions for it are in newer headers only. */
void command_prep(struct io_uring_sqe *sqe, const struct kretry *k, unsigned long cmd, void *arg,
		  unsigned int count, unsigned int size)
{
	struct kretry_uring payload = {
		.ops = (uintptr_t)arg,
		.count = count,
		.op_size = (u16)size,
	};

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, k->fd, NULL, 0, 0);
	sqe->cmd_op = (u32)cmd;
	sqe->__pad1 = 0;
	memcpy(sqe->cmd, &payload, sizeof(payload));
}

/*
 * Fails when it is issued, on every kernel, and not before: what fails earlier has the kernel stop
 * in the middle of a submission.
 */
void command_prep_failing(struct io_uring_sqe *sqe)
{
	io_uring_prep_timeout_remove(sqe, NOBODY, 0);
}

/* -------- why not -------- */

bool command_offers(struct kretry *k, u64 feature)
{
	return k->fd >= 0 && k->features & feature && !atomic_load(&k->uring_error);
}

/*
 * Whether @res of a command says that this ring or this kernel has none for us; what the command
 * itself would say is asked again by an ioctl. EACCES may be about one policy and is not kept.
 */
bool command_refused(struct kretry *k, int res)
{
	int none = 0;

	switch (res) {
	case -EINVAL:
	case -EOPNOTSUPP:
	case -EPERM:
	case -ENOSYS:
		atomic_compare_exchange_strong(&k->uring_error, &none, -res);
		return true;
	case -EACCES:
		return true;
	}
	return false;
}

static void explain(struct kretry *k)
{
	int error = atomic_load(&k->uring_error);

	if (k->fd < 0) {
		snprintf(k->uring_reason, sizeof(k->uring_reason),
			 "the process decides, not the module: %s", k->reason);
	} else if (!(k->features & KRETRY_FEATURE_URING_WAIT)) {
		snprintf(k->uring_reason, sizeof(k->uring_reason),
			 "io_uring commands cannot be cancelled here: use Linux 6.7 or later");
	} else if (error) {
		errno = error;
		snprintf(k->uring_reason, sizeof(k->uring_reason),
			 "io_uring refuses the device's commands: %m: allow IORING_OP_URING_CMD");
	}
}

/* Written once: another thread may be reading what it got. */
const char *kretry_uring_reason(struct kretry *k)
{
	const char *reason;

	lock_library();
	if (!*k->uring_reason)
		explain(k);
	reason = *k->uring_reason ? k->uring_reason : "";
	unlock_library();
	return reason;
}

/* -------- STEP -------- */

/* What the kernel would have said is in the ops; a link goes on or breaks as it would have. */
static int step_now(struct io_uring_sqe *sqe, struct kretry *k, struct kretry_op *ops,
		    unsigned int count)
{
	int ret = kretry_step_batch(k, ops, count);

	if (ret < 0)
		command_prep_failing(sqe);
	else
		io_uring_prep_nop(sqe);
	return ret < 0 ? ret : 0;
}

int kretry_prep_step(struct io_uring_sqe *sqe, struct kretry *k, struct kretry_op *ops,
		     unsigned int count)
{
	unsigned int i;
	bool queues = false;

	for (i = 0; i < count; i++) {
		ops[i].verdict = KRETRY_VERDICT_NONE;
		queues |= ops[i].flags & KRETRY_OP_QUEUE;
	}
	if (queues && !queue_is_callers(k)) {
		command_prep_failing(sqe);
		return -EBUSY;
	}
	if (!command_offers(k, KRETRY_FEATURE_URING_STEP))
		return step_now(sqe, k, ops, count);
	command_prep(sqe, k, KRETRY_IOC_STEP, ops, count, sizeof(*ops));
	return 0;
}
