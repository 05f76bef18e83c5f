/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared between the files of the library. Everything here stays out of the shared object's
 * symbols: the library is compiled with hidden visibility, and only what the public header
 * declares is made visible again.
 */
#ifndef KRETRY_INTERNAL_H
#define KRETRY_INTERNAL_H

#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#include "kretry.h"
#pragma GCC visibility pop

#include "decide.h"

/* Limits of the process as a backend; the policies are as many as the module allows one user. */
#define PROCESS_MAX_POLICIES	4096
#define PROCESS_MAX_BATCH	65536

#define POLICY_BUCKETS		256

struct policy_entry {
	struct policy_entry	*next;
	struct kretry_policy	policy;
};

/*
 * The table holds the policies of the module too: if the module fails a STEP for a reason of its
 * own, the process can still decide by the same parameters.
 */
struct kretry {
	int			fd;		/* -1: the process decides */
	pthread_rwlock_t	lock;		/* the four fields below */
	struct policy_entry	*buckets[POLICY_BUCKETS];
	u32			policies;
	u32			last_id;	/* ids are cyclic: not soon reused */
	char			reason[256];
};

/* An ioctl on the device: 0 or more, or -errno. */
int device_ioctl(const struct kretry *k, unsigned long cmd, void *arg);

/* policy.c: callers hold the lock */
const struct kretry_policy *policy_find(const struct kretry *k, u32 id);
void policy_drop_all(struct kretry *k);

/* The clock of policy @id, or -ENOENT. */
int policy_clock(struct kretry *k, u32 id);

#endif /* KRETRY_INTERNAL_H */
