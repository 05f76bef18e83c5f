/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A device that fails in ways the module does not fail on demand: it takes the place of ioctl(2) in
 * the test program. What the module really does is tested in the VM.
 */
#ifndef KRETRY_UNIT_DEVICE_H
#define KRETRY_UNIT_DEVICE_H

#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "pure.h"

/* Any file that can be opened. */
#define DEVICE_PATH	"/dev/null"

static struct {
	u32 abi_version;			/* 0: not kretry's device */
	int step_errno;				/* of STEP and STEP_BATCH; 0: @step answers */
	void (*step)(struct kretry_op *op);
	u32 last_id;
	unsigned int steps;
} device;

static int device_answer(unsigned long cmd, void *arg)
{
	switch (cmd) {
	case KRETRY_IOC_INFO:
		((struct kretry_info *)arg)->abi_version = device.abi_version;
		return 0;
	case KRETRY_IOC_POLICY_CREATE:
		((struct kretry_policy *)arg)->id = ++device.last_id;
		return 0;
	case KRETRY_IOC_STEP:
	case KRETRY_IOC_STEP_BATCH:
		device.steps++;
		if (device.step_errno || !device.step)
			return -device.step_errno;
		device.step(arg);
		((struct kretry_op *)arg)->event = KRETRY_EVENT_NONE;
		return 0;
	case KRETRY_IOC_SHUTDOWN:
	case KRETRY_IOC_POLICY_CLOSE:
		return 0;
	}
	return -ENOTTY;
}

int ioctl(int fd, unsigned long cmd, ...)
{
	va_list list;
	void *arg;
	int ret;

	(void)fd;
	va_start(list, cmd);
	arg = va_arg(list, void *);
	va_end(list);
	ret = device.abi_version ? device_answer(cmd, arg) : -ENOTTY;
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

#endif /* KRETRY_UNIT_DEVICE_H */
