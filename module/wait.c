// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A wait is completed exactly once, by whoever finds it ARMED, or RESERVED, under the queue's lock:
 * its timer and a cancel send it to its task, the ring completes it itself. Once it is on its way,
 * a cancel can only say what it will be completed with.
 */
#include "wait.h"

#include <linux/sched.h>
#include <linux/slab.h>

#include "compat.h"
#include "deliver.h"
#include "limits.h"
#include "policy.h"
#include "step.h"

/**
 * struct kretry_wait - one WAIT
 * @queued:	in the file's queue
 * @ioucmd:	the command
 */
struct kretry_wait {
	struct kretry_queued queued;
	struct io_uring_cmd *ioucmd;
};

static struct kretry_wait *kretry_wait_of(struct io_uring_cmd *ioucmd)
{
	return *io_uring_cmd_to_pdu(ioucmd, struct kretry_wait *);
}

static int kretry_wait_errno(u8 verdict)
{
	switch (verdict) {
	case KRETRY_GO:
		return 0;
	case KRETRY_STOP_PERMANENT:
		return -KRETRY_ERRNO_STOP_PERMANENT;
	case KRETRY_STOP_UNSAFE:
		return -KRETRY_ERRNO_STOP_UNSAFE;
	case KRETRY_STOP_LIMIT:
		return -KRETRY_ERRNO_STOP_LIMIT;
	case KRETRY_STOP_HINT:
		return -KRETRY_ERRNO_STOP_HINT;
	case KRETRY_STOP_ELAPSED:
		return -KRETRY_ERRNO_STOP_ELAPSED;
	case KRETRY_STOP_BUDGET:
		return -KRETRY_ERRNO_STOP_BUDGET;
	case KRETRY_STOP_OPEN:
		return -KRETRY_ERRNO_STOP_OPEN;
	case KRETRY_STOP_COOLING:
		return -KRETRY_ERRNO_STOP_COOLING;
	case KRETRY_STOP_PACED:
		return -KRETRY_ERRNO_STOP_PACED;
	default:
		return -EIO;
	}
}

static void kretry_wait_free(struct kretry_wait *wait)
{
	struct kretry_handle *handle = wait->queued.handle;

	kfree(wait);
	if (handle)
		kretry_handle_put(handle);
}

/* The file may be gone with the command, and until then the ring may still ask for the wait. */
static void kretry_wait_complete(struct kretry_wait *wait, int ret, unsigned int issue_flags)
{
	kretry_handle_put(wait->queued.handle);
	io_uring_cmd_done(wait->ioucmd, ret, issue_flags);
	kfree(wait);
}

/* -------- the deadline -------- */

/* A task that is gone, or going, starts nothing any more. */
static bool kretry_task_is_gone(void)
{
	return current->flags & (PF_EXITING | PF_KTHREAD);
}

/* What the command completes with, or 1 if it waits on. */
static int kretry_wait_look(struct kretry_queued *queued)
{
	struct kretry_queue *queue = &queued->handle->kf->queue;
	struct kretry_caller caller __uninitialized;
	struct kretry_op op;
	int ret = -ECANCELED;

	kretry_caller_init(&caller, queued->handle->kf, false);
	kretry_caller_read_host(&caller);
	spin_lock_bh(&queue->lock);
	if (queued->phase == KRETRY_TAKEN) {
		if (kretry_task_is_gone() || queued->handle->closing)
			kretry_answer_undo(queued, &op);
		else if (kretry_deliver_one(&caller, queued, &op))
			ret = kretry_wait_errno(op.verdict);
		else
			ret = 1;
		if (ret <= 0)
			kretry_queue_unlist(queue, queued);
	}
	spin_unlock_bh(&queue->lock);
	return ret;
}

static void kretry_wait_go_on(struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	struct kretry_wait *wait = kretry_wait_of(ioucmd);
	int ret = kretry_wait_look(&wait->queued);

	if (ret <= 0)
		kretry_wait_complete(wait, ret, issue_flags);
}

KRETRY_TASK_WORK(kretry_wait_task_work, kretry_wait_go_on)

void kretry_wait_send(struct kretry_queued *queued)
{
	struct kretry_wait *wait = container_of(queued, struct kretry_wait, queued);

	io_uring_cmd_complete_in_task(wait->ioucmd, kretry_wait_task_work);
}

/* -------- given up -------- */

int kretry_wait_abandon(struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	struct kretry_wait *wait = kretry_wait_of(ioucmd);
	struct kretry_file *kf = ioucmd->file->private_data;
	struct kretry_queued *queued = &wait->queued;
	struct kretry_queue *queue = &kf->queue;
	struct kretry_op op;
	bool armed;

	spin_lock_bh(&queue->lock);
	armed = queued->phase == KRETRY_ARMED;
	if (armed) {
		kretry_queue_remove(queue, queued);
		kretry_answer_undo(queued, &op);
		kretry_queue_unlist(queue, queued);
	} else if (queued->phase == KRETRY_RESERVED) {
		queued->phase = KRETRY_CANCELLED;
	}
	spin_unlock_bh(&queue->lock);
	if (armed)
		kretry_wait_complete(wait, -ECANCELED, issue_flags);
	return 0;
}

/* -------- issued -------- */

/* From here on the command is completed, never returned from. */
static int kretry_wait_sleep(struct kretry_wait *wait, unsigned int issue_flags)
{
	struct io_uring_cmd *ioucmd = wait->ioucmd;
	struct kretry_file *kf = ioucmd->file->private_data;
	struct kretry_queued *queued = &wait->queued;

	*io_uring_cmd_to_pdu(ioucmd, struct kretry_wait *) = wait;
	io_uring_cmd_mark_cancelable(ioucmd, issue_flags);
	kretry_queue_arm(&kf->queue, &queued, 1);
	if (queued) {
		kretry_answer_withdraw(&wait->queued);
		kretry_wait_complete(wait, -ECANCELED, issue_flags);
	}
	return -EIOCBQUEUED;
}

static int kretry_wait_answer(struct kretry_wait *wait, struct kretry_file *kf,
			      struct kretry_op *op, struct kretry_op __user *uop)
{
	struct kretry_caller caller __uninitialized;
	int err;

	kretry_caller_init(&caller, kf, false);
	err = kretry_answer(&caller, op, &wait->queued);
	if (err || kretry_step_store(op, uop))
		return err;
	if (wait->queued.phase == KRETRY_RESERVED)
		kretry_answer_withdraw(&wait->queued);
	return -EFAULT;
}

int kretry_wait_issue(struct io_uring_cmd *ioucmd, struct kretry_op __user *uop,
		      unsigned int issue_flags)
{
	struct kretry_file *kf = ioucmd->file->private_data;
	struct kretry_wait *wait;
	struct kretry_op op;
	int ret;

	if (!kretry_step_fetch(&op, uop))
		return -EFAULT;
	if (op.flags & KRETRY_OP_QUEUE || !kretry_event_may_wait(op.event))
		return -EINVAL;
	if (!kretry_queue_prepare(&kf->queue))
		return -ENOMEM;
	wait = kmalloc(sizeof(*wait), KRETRY_GFP);
	if (!wait)
		return -ENOMEM;
	kretry_queued_init(&wait->queued, true);
	wait->ioucmd = ioucmd;
	ret = kretry_wait_answer(wait, kf, &op, uop);
	if (!ret && wait->queued.phase == KRETRY_RESERVED)
		return kretry_wait_sleep(wait, issue_flags);
	if (!ret)
		ret = kretry_wait_errno(op.verdict);
	kretry_wait_free(wait);
	return ret;
}
