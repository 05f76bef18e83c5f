/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the decision code needs from its surroundings. It compiles unchanged in the module, in the
 * library and in the unit tests, so it uses nothing else: no clock, no generator, no allocation.
 */
#ifndef KRETRY_PURE_H
#define KRETRY_PURE_H

#ifdef __KERNEL__

#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#else

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define noinline	__attribute__((__noinline__))

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define U32_MAX	((u32)~0U)
#define U64_MAX	((u64)~0ULL)

#define min(a, b)						\
({								\
	__typeof__(a) kretry_a = (a);				\
	__typeof__(b) kretry_b = (b);				\
								\
	kretry_a < kretry_b ? kretry_a : kretry_b;		\
})

#define max(a, b)						\
({								\
	__typeof__(a) kretry_a = (a);				\
	__typeof__(b) kretry_b = (b);				\
								\
	kretry_a > kretry_b ? kretry_a : kretry_b;		\
})

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * b) >> shift);
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

#endif /* __KERNEL__ */

#include <linux/kretry.h>

/* Sums and products stay in 0 to KRETRY_NS_MAX: both sides must already be in it. */
static inline u64 kretry_sat_add(u64 a, u64 b)
{
	return min(a + b, KRETRY_NS_MAX);
}

static inline u64 kretry_sat_sub(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

static inline u64 kretry_sat_mul(u64 a, u64 b)
{
	u64 product;

	if (__builtin_mul_overflow(a, b, &product))
		return KRETRY_NS_MAX;
	return min(product, KRETRY_NS_MAX);
}

/* @a * @ppm / 10^6, rounded down. */
static inline u64 kretry_share(u64 a, u32 ppm)
{
	u64 whole = div64_u64(a, KRETRY_PPM);
	u64 rest = a - whole * KRETRY_PPM;

	return kretry_sat_add(kretry_sat_mul(whole, ppm), div64_u64(rest * ppm, KRETRY_PPM));
}

#endif /* KRETRY_PURE_H */
