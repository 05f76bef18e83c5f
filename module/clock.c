// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "clock.h"

#include <linux/time_namespace.h>
#include <linux/timekeeping.h>

#include "pure.h"

u64 kretry_clock_now(clockid_t clockid)
{
	return clockid == CLOCK_BOOTTIME ? ktime_get_boottime_ns() : ktime_get_ns();
}

void kretry_clock_read(struct kretry_clock *clock, clockid_t clockid)
{
	struct timespec64 offset = {};

	clock->now = kretry_clock_now(clockid);
	if (clockid == CLOCK_BOOTTIME)
		timens_add_boottime(&offset);
	else
		timens_add_monotonic(&offset);
	clock->offset = offset.tv_sec | offset.tv_nsec ? timespec64_to_ns(&offset) : 0;
}

static u64 kretry_clock_shift(u64 time, s64 by)
{
	time = min(time, KRETRY_NS_MAX);
	if (!time)
		return 0;
	if (by >= 0)
		return kretry_sat_add(time, by);
	return max(kretry_sat_sub(time, -by), 1ULL);
}

u64 kretry_clock_caller(const struct kretry_clock *clock, u64 time)
{
	return kretry_clock_shift(time, clock->offset);
}

void kretry_clock_to_host(const struct kretry_clock *clock, struct kretry_op *op)
{
	op->start_ns = kretry_clock_shift(op->start_ns, -clock->offset);
	op->deadline_ns = kretry_clock_shift(op->deadline_ns, -clock->offset);
}

void kretry_clock_to_caller(const struct kretry_clock *clock, struct kretry_op *op)
{
	op->start_ns = kretry_clock_caller(clock, op->start_ns);
	op->deadline_ns = kretry_clock_caller(clock, op->deadline_ns);
}
