/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Random policies and operations that favour the edges; the same for the same seed. */
#ifndef KRETRY_UNIT_RANDOM_H
#define KRETRY_UNIT_RANDOM_H

#include "decide.h"
#include "delay.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct prng {
	u64 state;
};

u64 prng_next(struct prng *r);

/* Uniform in 0 to @n - 1. */
u32 prng_below(struct prng *r, u32 n);

/* From @lo to @hi: often an end or a power of two, else small, else anything. */
u64 prng_edgy(struct prng *r, u64 lo, u64 hi);

/* A policy that kretry_policy_check() accepts. */
void random_policy(struct prng *r, struct kretry_policy *p);

/* Another, with a budget, a breaker, pacing or cooling: amounts and times that meet often. */
void random_shared_policy(struct prng *r, struct kretry_policy *p);

/* Either kind with up to three fields overwritten, mostly out of their range. */
void random_suspect(struct prng *r, struct kretry_policy *p);

/* An operation in any state; one in eight is malformed. */
void random_op(struct prng *r, u64 now, struct kretry_op *op);

#endif /* KRETRY_UNIT_RANDOM_H */
