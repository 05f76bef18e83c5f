/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What is the same for all ops of one call: who asks, what time it is, what to draw on. */
#ifndef KRETRY_CALLER_H
#define KRETRY_CALLER_H

#include <linux/kretry.h>
#include <linux/siphash.h>

#include "clock.h"

struct kretry_file;
struct kretry_handle;

/**
 * struct kretry_caller - who asks, and what one call draws on
 * @kf:		the file
 * @monotonic:	CLOCK_MONOTONIC, read when it is 0
 * @boottime:	CLOCK_BOOTTIME, likewise
 * @handle:	the last one used, while under RCU; NULL for none
 * @many:	whether one draw has to do for the whole call
 * @draws:	numbers taken from that draw
 * @bits:	the last 64 of them, of which every second op takes the upper half
 * @key:	that draw
 */
struct kretry_caller {
	struct kretry_file *kf;
	struct kretry_clock monotonic;
	struct kretry_clock boottime;
	struct kretry_handle *handle;
	bool many;
	u32 draws;
	u64 bits;
	siphash_key_t key;
};

static inline void kretry_caller_init(struct kretry_caller *caller, struct kretry_file *kf,
				      bool many)
{
	caller->kf = kf;
	caller->monotonic.now = 0;
	caller->boottime.now = 0;
	caller->handle = NULL;
	caller->many = many;
	caller->draws = 0;
}

/* Time has gone on, and the RCU section is another one. */
static inline void kretry_caller_tick(struct kretry_caller *caller)
{
	caller->monotonic.now = 0;
	caller->boottime.now = 0;
	caller->handle = NULL;
}

/* The policy's clock, as @caller has it. */
static inline const struct kretry_clock *kretry_caller_clock(struct kretry_caller *caller,
							     const struct kretry_policy *p)
{
	struct kretry_clock *clock =
		p->clockid == CLOCK_BOOTTIME ? &caller->boottime : &caller->monotonic;

	if (!clock->now)
		kretry_clock_read(clock, p->clockid);
	return clock;
}

/* Read both without the offsets of a time namespace, where there may be no caller to have one. */
void kretry_caller_read_host(struct kretry_caller *caller);

/* 32 fresh random bits, spread over 64. */
u64 kretry_caller_draw(struct kretry_caller *caller);

/* Who reports: the process or, by policy, the user. Short: two that look alike count once. */
u16 kretry_caller_reporter(const struct kretry_policy *p);

#endif /* KRETRY_CALLER_H */
