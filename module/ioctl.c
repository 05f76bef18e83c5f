// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One table of commands, one dispatcher, and the rules of extensible structs in one place. */
#include "ioctl.h"

#include <linux/nospec.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/stddef.h>
#include <linux/uaccess.h>

#include "deliver.h"
#include "limits.h"
#include "name.h"
#include "policy.h"
#include "stat.h"
#include "step.h"

/* An argument up to this size is copied to the stack: who has no memory left can still cancel. */
#define KRETRY_SMALL_ARG	sizeof(struct kretry_cancel)

/**
 * struct kretry_command - how to run a command, if this build has it
 * @raw:	for a command whose argument is no extensible struct: its handler
 * @handler:	for one whose argument is: its handler. Both return 0 or more for success
 * @size:	size of that struct in this build
 * @min_size:	its size in the first version
 */
struct kretry_command {
	long (*raw)(struct kretry_file *kf, void __user *uarg);
	long (*handler)(struct kretry_cmd *cmd);
	u32 size;
	u32 min_size;
};

static long kretry_info(struct kretry_cmd *cmd)
{
	struct kretry_info *info = cmd->arg;

	*info = (struct kretry_info) {
		.abi_version	= KRETRY_ABI_VERSION,
		.features	= KRETRY_FEATURES,
		.max_batch	= KRETRY_MAX_BATCH,
		.max_policies	= kretry_max_policies,
		.max_keys	= kretry_max_keys,
		.max_queued	= kretry_max_queued,
		.max_linger_ns	= kretry_max_linger_ns(),
	};
	return kretry_cmd_reply(cmd);
}

static long kretry_shutdown(struct kretry_file *kf, void __user *uarg)
{
	if (uarg)
		return -EINVAL;
	kretry_handle_drop_all(kf);
	return 0;
}

#define KRETRY_RAW(name, fn)							\
	[_IOC_NR(KRETRY_IOC_##name)] = {					\
		.raw		= (fn),						\
	}

/* On io_uring only: see uring.c. */
#define KRETRY_URING_ONLY(name)							\
	KRETRY_RAW(name, NULL)

#define KRETRY_SIZED(name, type, last, fn)					\
	[_IOC_NR(KRETRY_IOC_##name)] = {					\
		.handler	= (fn),						\
		.size		= sizeof(struct type),				\
		.min_size	= offsetofend(struct type, last),		\
	}

static const struct kretry_command kretry_commands[] = {
	KRETRY_SIZED(INFO, kretry_info, max_linger_ns, kretry_info),
	KRETRY_SIZED(POLICY_CREATE, kretry_policy, pacing, kretry_policy_create),
	KRETRY_SIZED(POLICY_OPEN, kretry_policy_ref, name, kretry_name_open),
	KRETRY_SIZED(POLICY_GET, kretry_policy, pacing, kretry_policy_get),
	KRETRY_SIZED(POLICY_CLOSE, kretry_policy_ref, name, kretry_policy_close),
	KRETRY_SIZED(POLICY_UNLINK, kretry_policy_ref, name, kretry_name_unlink),
	KRETRY_SIZED(POLICY_LIST, kretry_policy_list, reserved, kretry_name_list),
	KRETRY_RAW(STEP, kretry_step),
	KRETRY_SIZED(STEP_BATCH, kretry_batch, op_size, kretry_step_batch),
	KRETRY_URING_ONLY(WAIT),
	KRETRY_SIZED(CANCEL, kretry_cancel, op, kretry_deliver_cancel),
	KRETRY_SIZED(STAT, kretry_stat, spread, kretry_stat),
	KRETRY_SIZED(FORCE, kretry_force, key, kretry_force),
	KRETRY_RAW(SHUTDOWN, kretry_shutdown),
};

int kretry_cmd_reply(struct kretry_cmd *cmd)
{
	u32 both = min(cmd->size, cmd->user_size);

	*(u32 *)cmd->arg = both;
	if (copy_to_user(cmd->uarg, cmd->arg, both) ||
	    clear_user(cmd->uarg + both, cmd->user_size - both))
		return -EFAULT;
	return 0;
}

/* A struct is no longer than a page: its ends tell for all of it. */
bool kretry_cmd_may_reply(struct kretry_cmd *cmd)
{
	u8 __user *first = cmd->uarg, *last = first + cmd->user_size - 1;
	u8 value;

	return !get_user(value, first) && !put_user(value, first) && !get_user(value, last) &&
	       !put_user(value, last);
}

static long kretry_run_sized(const struct kretry_command *command, struct kretry_file *kf,
			     void __user *uarg)
{
	struct kretry_cmd cmd = { .kf = kf, .uarg = uarg, .size = command->size };
	u64 small[KRETRY_SMALL_ARG / sizeof(u64)];
	long ret;

	if (get_user(cmd.user_size, (u32 __user *)uarg))
		return -EFAULT;
	if (cmd.user_size < command->min_size)
		return -EINVAL;
	if (cmd.user_size > SZ_4K)
		return -E2BIG;

	cmd.arg = cmd.size <= sizeof(small) ? small : kmalloc(cmd.size, KRETRY_GFP);
	if (!cmd.arg)
		return -ENOMEM;
	ret = copy_struct_from_user(cmd.arg, cmd.size, uarg, cmd.user_size);
	if (!ret)
		ret = command->handler(&cmd);
	if (cmd.arg != small)
		kfree(cmd.arg);
	return ret;
}

/* Direction and size in @nr are not looked at: the struct says its size itself. */
long kretry_ioctl(struct file *filp, unsigned int nr, unsigned long arg)
{
	const struct kretry_command *command;
	unsigned int index = _IOC_NR(nr);

	if (_IOC_TYPE(nr) != KRETRY_IOC_MAGIC || index >= ARRAY_SIZE(kretry_commands))
		return -ENOTTY;

	command = &kretry_commands[array_index_nospec(index, ARRAY_SIZE(kretry_commands))];
	if (command->raw)
		return command->raw(filp->private_data, (void __user *)arg);
	if (command->handler)
		return kretry_run_sized(command, filp->private_data, (void __user *)arg);
	return -EOPNOTSUPP;
}
