/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What this build can do, and how much of it. KRETRY_IOC_INFO reports it. */
#ifndef KRETRY_LIMITS_H
#define KRETRY_LIMITS_H

#include <linux/gfp.h>
#include <linux/kretry.h>

#include "compat.h"

/* The parts of the ABI this build has beyond policies, STEP, STEP_BATCH and SHUTDOWN. */
#define KRETRY_FEATURES                                                                            \
	(KRETRY_FEATURE_NAMED | KRETRY_FEATURE_BUDGET | KRETRY_FEATURE_BREAKER |                   \
	 KRETRY_FEATURE_PACING | KRETRY_FEATURE_COOLING | KRETRY_FEATURE_STAT |                    \
	 KRETRY_FEATURE_QUEUE | KRETRY_FEATURE_URING_STEP |                                        \
	 (KRETRY_CAN_CANCEL ? KRETRY_FEATURE_URING_WAIT : 0))

/* Ops in one STEP_BATCH. */
#define KRETRY_MAX_BATCH	65536U

/*
 * How to allocate what a caller makes us hold: charged to its memory cgroup, and at the limit of
 * that ENOMEM, where a plain GFP_KERNEL_ACCOUNT has the process killed.
 */
#define KRETRY_GFP		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL)

/* The most that max_keys may say. */
#define KRETRY_MAX_KEYS		65536U

/* Module parameters: policies of one user, keys of one policy, ops on one file, longest linger. */
extern unsigned int kretry_max_policies;
extern unsigned int kretry_max_keys;
extern unsigned int kretry_max_queued;
extern unsigned int kretry_max_linger_s;

static inline u64 kretry_max_linger_ns(void)
{
	return (u64)kretry_max_linger_s * 1000000000;
}

#endif /* KRETRY_LIMITS_H */
