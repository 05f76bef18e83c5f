// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "caller.h"

#include <linux/hash.h>
#include <linux/random.h>
#include <linux/sched/signal.h>

void kretry_caller_read_host(struct kretry_caller *caller)
{
	caller->monotonic = (struct kretry_clock) { .now = kretry_clock_now(CLOCK_MONOTONIC) };
	caller->boottime = (struct kretry_clock) { .now = kretry_clock_now(CLOCK_BOOTTIME) };
}

/* One fresh kernel draw a call, expanded by a keyed function: half an output for each op. */
static u32 kretry_caller_expand(struct kretry_caller *caller)
{
	u32 draw = caller->draws++;

	if (draw & 1)
		return caller->bits >> 32;
	if (!draw)
		caller->key = (siphash_key_t) {{ get_random_u64(), get_random_u64() }};
	caller->bits = siphash_1u32(draw, &caller->key);
	return caller->bits;
}

/* The kernel's 32 random bits cost half of 64 and tell 2^32 delays apart: spread them over u64. */
u64 kretry_caller_draw(struct kretry_caller *caller)
{
	u64 half = caller->many ? kretry_caller_expand(caller) : get_random_u32();

	return half << 32 | half;
}

u16 kretry_caller_reporter(const struct kretry_policy *p)
{
	if (p->breaker.min_reporters < 2)
		return 0;
	if (p->breaker.flags & KRETRY_BREAKER_REPORTERS_UID)
		return hash_32(__kuid_val(current_euid()), 16);
	return hash_32(task_tgid_nr(current), 16);
}
