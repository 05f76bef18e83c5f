/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* How long to wait before a retry. Pure: see pure.h. */
#ifndef KRETRY_DELAY_H
#define KRETRY_DELAY_H

#include "pure.h"

/* The base in force after @event: TABLE's is its first entry. */
u64 kretry_base(const struct kretry_backoff *b, u8 event);

/* The most the strategy asks for when @n retries have been granted, before jitter. */
u64 kretry_ceiling(const struct kretry_backoff *b, u64 base, u32 n);

/* Whether the delay depends on a random number. */
static inline bool kretry_backoff_draws(const struct kretry_backoff *b)
{
	return b->jitter != KRETRY_JITTER_NONE || b->strategy == KRETRY_DECORRELATED ||
	       b->strategy == KRETRY_SLOTTED;
}

/* One of the values from @lo to @hi, each as likely as the others if @rnd is uniform over u64. */
static inline u64 kretry_uniform(u64 lo, u64 hi, u64 rnd)
{
	return lo + mul_u64_u64_shr(rnd, hi - lo + 1, 64);
}

/* The delay after @event, when @n retries have been granted and the last one waited @previous. */
u64 kretry_delay(const struct kretry_backoff *b, u8 event, u32 n, u64 previous, u64 rnd);

#endif /* KRETRY_DELAY_H */
