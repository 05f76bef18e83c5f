/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What differs between kernels: the rest is written for the newest. Linux 6.1 to 7.3.
 */
#ifndef KRETRY_COMPAT_H
#define KRETRY_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

/* Since 6.7 a pending io_uring command can be cancelled; without that it holds up exit and exec. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define KRETRY_CAN_CANCEL	1
#else
#define KRETRY_CAN_CANCEL	0
#define IO_URING_F_CANCEL	0

static inline void io_uring_cmd_mark_cancelable(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define kretry_uring_payload(ioucmd)	((ioucmd)->cmd)
#elif LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define kretry_uring_payload(ioucmd)	io_uring_sqe_cmd((ioucmd)->sqe)
#else
#define kretry_uring_payload(ioucmd)	io_uring_sqe_cmd((ioucmd)->sqe, struct kretry_uring)
#endif

#ifndef io_uring_cmd_to_pdu
#define io_uring_cmd_to_pdu(ioucmd, type)	((type *)&(ioucmd)->pdu)
#endif

/*
 * KRETRY_TASK_WORK(name, fn): make of fn(cmd, issue_flags) a function that
 * io_uring_cmd_complete_in_task() takes.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define io_uring_cmd_done(ioucmd, ret, flags)	io_uring_cmd_done(ioucmd, ret, 0, flags)

#define KRETRY_TASK_WORK(name, fn)						\
	static void name(struct io_uring_cmd *ioucmd, unsigned int issue_flags)	\
	{									\
		fn(ioucmd, issue_flags);					\
	}
#else
#define KRETRY_TASK_WORK(name, fn)						\
	static void name(struct io_tw_req req, io_tw_token_t token)		\
	{									\
		fn(io_uring_cmd_from_tw(req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS); \
	}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif /* KRETRY_COMPAT_H */
