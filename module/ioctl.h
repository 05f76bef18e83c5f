/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The commands of /dev/kretry. */
#ifndef KRETRY_IOCTL_H
#define KRETRY_IOCTL_H

#include <linux/fs.h>
#include <linux/types.h>

#include "file.h"

/**
 * struct kretry_cmd - a command with an extensible struct, under way
 * @kf:		the file it came through
 * @uarg:	the caller's struct
 * @user_size:	size of the caller's struct
 * @arg:	the kernel's copy of it, zero where the caller's is shorter
 * @size:	size of that copy
 */
struct kretry_cmd {
	struct kretry_file *kf;
	void __user *uarg;
	u32 user_size;
	void *arg;
	u32 size;
};

long kretry_ioctl(struct file *filp, unsigned int cmd, unsigned long arg);

/*
 * Write the kernel's copy back: as much of it as the caller's struct holds, zero behind. A handler
 * whose work cannot be undone calls it before that work.
 */
int kretry_cmd_reply(struct kretry_cmd *cmd);

/* Whether that would work now; for a handler that cannot reply before its work. */
bool kretry_cmd_may_reply(struct kretry_cmd *cmd);

#endif /* KRETRY_IOCTL_H */
