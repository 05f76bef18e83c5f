/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What this build can do, and how much of it. KRETRY_IOC_INFO reports it. */
#ifndef KRETRY_LIMITS_H
#define KRETRY_LIMITS_H

#include <linux/gfp.h>
#include <linux/kretry.h>

/* The parts of the ABI this build has beyond policies, STEP, STEP_BATCH and SHUTDOWN. */
#define KRETRY_FEATURES		0ULL

/* Ops in one STEP_BATCH. */
#define KRETRY_MAX_BATCH	65536U

/*
 * How to allocate what a caller makes us hold: charged to its memory cgroup, and at the limit of
 * that ENOMEM, where a plain GFP_KERNEL_ACCOUNT has the process killed.
 */
#define KRETRY_GFP		(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL)

/* Policies of one user, a module parameter. */
extern unsigned int kretry_max_policies;

#endif /* KRETRY_LIMITS_H */
