// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One table of commands, one dispatcher, and the rules of extensible structs in one place. */
#include "ioctl.h"

#include <linux/nospec.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/stddef.h>
#include <linux/uaccess.h>

#include "limits.h"
#include "policy.h"
#include "step.h"

/**
 * struct kretry_command - how to run a command
 * @size:	size of its struct in this build; 0 if the argument is for the handler alone
 * @min_size:	size of its struct in the first version
 * @handler:	0 or more for success; NULL if this build does not have the command
 */
struct kretry_command {
	u32 size;
	u32 min_size;
	long (*handler)(struct kretry_cmd *cmd);
};

static long kretry_info(struct kretry_cmd *cmd)
{
	struct kretry_info *info = cmd->arg;

	*info = (struct kretry_info) {
		.abi_version	= KRETRY_ABI_VERSION,
		.features	= KRETRY_FEATURES,
		.max_batch	= KRETRY_MAX_BATCH,
		.max_policies	= kretry_max_policies,
	};
	return kretry_cmd_reply(cmd);
}

static long kretry_shutdown(struct kretry_cmd *cmd)
{
	if (cmd->uarg)
		return -EINVAL;
	kretry_policy_drop_all(cmd->kf);
	return 0;
}

#define KRETRY_RAW(name, fn)							\
	[_IOC_NR(KRETRY_IOC_##name)] = {					\
		.handler	= (fn),						\
	}

#define KRETRY_NOT_BUILT(name)							\
	KRETRY_RAW(name, NULL)

#define KRETRY_SIZED(name, type, last, fn)					\
	[_IOC_NR(KRETRY_IOC_##name)] = {					\
		.size		= sizeof(struct type),				\
		.min_size	= offsetofend(struct type, last),		\
		.handler	= (fn),						\
	}

static const struct kretry_command kretry_commands[] = {
	KRETRY_SIZED(INFO, kretry_info, max_linger_ns, kretry_info),
	KRETRY_SIZED(POLICY_CREATE, kretry_policy, pacing, kretry_policy_create),
	KRETRY_NOT_BUILT(POLICY_OPEN),
	KRETRY_SIZED(POLICY_GET, kretry_policy, pacing, kretry_policy_get),
	KRETRY_SIZED(POLICY_CLOSE, kretry_policy_ref, name, kretry_policy_close),
	KRETRY_NOT_BUILT(POLICY_UNLINK),
	KRETRY_NOT_BUILT(POLICY_LIST),
	KRETRY_RAW(STEP, kretry_step),
	KRETRY_SIZED(STEP_BATCH, kretry_batch, op_size, kretry_step_batch),
	KRETRY_NOT_BUILT(WAIT),
	KRETRY_NOT_BUILT(CANCEL),
	KRETRY_NOT_BUILT(STAT),
	KRETRY_NOT_BUILT(FORCE),
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

static long kretry_run_sized(const struct kretry_command *command, struct kretry_cmd *cmd)
{
	long ret;

	if (get_user(cmd->user_size, (u32 __user *)cmd->uarg))
		return -EFAULT;
	if (cmd->user_size < command->min_size)
		return -EINVAL;
	if (cmd->user_size > SZ_4K)
		return -E2BIG;

	cmd->size = command->size;
	cmd->arg = kzalloc(cmd->size, GFP_KERNEL_ACCOUNT);
	if (!cmd->arg)
		return -ENOMEM;
	ret = copy_struct_from_user(cmd->arg, cmd->size, cmd->uarg, cmd->user_size);
	if (!ret)
		ret = command->handler(cmd);
	kfree(cmd->arg);
	return ret;
}

/* Direction and size in @nr are not looked at: the struct says its size itself. */
long kretry_ioctl(struct file *filp, unsigned int nr, unsigned long arg)
{
	struct kretry_cmd cmd = { .kf = filp->private_data, .uarg = (void __user *)arg };
	const struct kretry_command *command;
	unsigned int index = _IOC_NR(nr);

	if (_IOC_TYPE(nr) != KRETRY_IOC_MAGIC || index >= ARRAY_SIZE(kretry_commands))
		return -ENOTTY;

	command = &kretry_commands[array_index_nospec(index, ARRAY_SIZE(kretry_commands))];
	if (!command->handler)
		return -EOPNOTSUPP;
	return command->size ? kretry_run_sized(command, &cmd) : command->handler(&cmd);
}
