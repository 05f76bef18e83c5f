/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The time of a policy's clock, and as the caller's time namespace has it. */
#ifndef KRETRY_CLOCK_H
#define KRETRY_CLOCK_H

#include <linux/kretry.h>
#include <linux/time.h>
#include <linux/types.h>

/**
 * struct kretry_clock - one clock, read once
 * @now:	host time in ns; 0 before it is read
 * @offset:	what the caller's time namespace adds to host time, in ns
 */
struct kretry_clock {
	u64 now;
	s64 offset;
};

/* Host time on @clockid, in ns. */
u64 kretry_clock_now(clockid_t clockid);

/* Read @clockid, for the task that makes the call. */
void kretry_clock_read(struct kretry_clock *clock, clockid_t clockid);

/* Host time @time as the caller has it. 0 stays 0. */
u64 kretry_clock_caller(const struct kretry_clock *clock, u64 time);

/* Times of @op from the caller's namespace to the host's, and back. 0 stays 0. */
void kretry_clock_to_host(const struct kretry_clock *clock, struct kretry_op *op);
void kretry_clock_to_caller(const struct kretry_clock *clock, struct kretry_op *op);

#endif /* KRETRY_CLOCK_H */
