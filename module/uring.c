// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "uring.h"

#include "compat.h"
#include "ioctl.h"
#include "step.h"
#include "wait.h"

/* More ops than this are answered where they hold up nobody who submits. */
#define KRETRY_INLINE_MAX	64U

/* A count cannot be returned: a kernel that sees it as an error breaks the link. */
static int kretry_uring_result(struct io_uring_cmd *ioucmd, long ret, unsigned int issue_flags)
{
	if (ret <= 0)
		return ret;
	io_uring_cmd_done(ioucmd, ret, issue_flags);
	return -EIOCBQUEUED;
}

static int kretry_uring_step(struct io_uring_cmd *ioucmd, const struct kretry_uring *args,
			     unsigned int issue_flags)
{
	struct kretry_op __user *uops = u64_to_user_ptr(args->ops);
	long ret;

	if (args->op_size != sizeof(struct kretry_op))
		return -EINVAL;
	if (args->count > KRETRY_INLINE_MAX && issue_flags & IO_URING_F_NONBLOCK)
		return -EAGAIN;
	ret = kretry_step_ops(ioucmd->file->private_data, uops, args->count);
	return kretry_uring_result(ioucmd, ret, issue_flags);
}

static int kretry_uring_wait(struct io_uring_cmd *ioucmd, const struct kretry_uring *args,
			     unsigned int issue_flags)
{
	if (!KRETRY_CAN_CANCEL)
		return -EOPNOTSUPP;
	if (args->op_size != sizeof(struct kretry_op) || args->count != 1)
		return -EINVAL;
	return kretry_wait_issue(ioucmd, u64_to_user_ptr(args->ops), issue_flags);
}

static int kretry_uring_cancel(struct io_uring_cmd *ioucmd, const struct kretry_uring *args)
{
	struct kretry_cancel __user *uarg = u64_to_user_ptr(args->ops);
	u32 size;

	if (args->count != 1)
		return -EINVAL;
	if (get_user(size, &uarg->size))
		return -EFAULT;
	if (size != args->op_size)
		return -EINVAL;
	return kretry_ioctl(ioucmd->file, KRETRY_IOC_CANCEL, args->ops);
}

/* The payload is memory that the caller can change at any time: each field is read once. */
int kretry_uring_cmd(struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	const struct kretry_uring *payload;
	struct kretry_uring args;
	u32 nr;

	if (issue_flags & IO_URING_F_CANCEL)
		return kretry_wait_abandon(ioucmd, issue_flags);
	if (issue_flags & IO_URING_F_IOPOLL)
		return -EOPNOTSUPP;
	if (_IOC_TYPE(ioucmd->cmd_op) != KRETRY_IOC_MAGIC)
		return -ENOTTY;

	payload = kretry_uring_payload(ioucmd);
	args.ops = READ_ONCE(payload->ops);
	args.count = READ_ONCE(payload->count);
	args.op_size = READ_ONCE(payload->op_size);
	args.flags = READ_ONCE(payload->flags);
	if (args.flags)
		return -EINVAL;

	nr = _IOC_NR(ioucmd->cmd_op);
	switch (nr) {
	case _IOC_NR(KRETRY_IOC_STEP):
		return kretry_uring_step(ioucmd, &args, issue_flags);
	case _IOC_NR(KRETRY_IOC_WAIT):
		return kretry_uring_wait(ioucmd, &args, issue_flags);
	case _IOC_NR(KRETRY_IOC_CANCEL):
		return kretry_uring_cancel(ioucmd, &args);
	default:
		return nr <= _IOC_NR(KRETRY_IOC_SHUTDOWN) ? -EOPNOTSUPP : -ENOTTY;
	}
}
