/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The circuit breaker: closed, open, half-open. Pure: see pure.h. */
#ifndef KRETRY_BREAKER_H
#define KRETRY_BREAKER_H

#include "state.h"

/* One result, as the breaker sees it. */
struct kretry_result {
	u64 now;
	u64 took_ns;
	u64 rnd;
	u32 generation;
	u16 reporter;
	u8 event;
	bool probe;
};

static inline bool kretry_has_breaker(const struct kretry_policy *p)
{
	return p->breaker.probes;
}

/* Whether its state decides anything; forced modes and metrics-only see to that. */
static inline bool kretry_breaker_enforced(const struct kretry_breaker *k,
					   const struct kretry_shared *s)
{
	return s->mode == KRETRY_MODE_AUTOMATIC && !(k->flags & KRETRY_BREAKER_METRICS_ONLY);
}

/* Whether it refuses everyone. */
static inline bool kretry_breaker_is_open(const struct kretry_breaker *k,
					  const struct kretry_shared *s)
{
	return s->mode == KRETRY_MODE_FORCED_OPEN ||
	       (s->state == KRETRY_OPEN && kretry_breaker_enforced(k, s));
}

/* Whether an attempt that did not ask was admitted all the same. */
static inline bool kretry_breaker_lets_pass(const struct kretry_breaker *k,
					    const struct kretry_shared *s)
{
	return s->mode != KRETRY_MODE_FORCED_OPEN &&
	       (s->state == KRETRY_CLOSED || !kretry_breaker_enforced(k, s));
}

/* Whether an attempt admitted now is a probe. */
static inline bool kretry_breaker_probes(const struct kretry_breaker *k,
					 const struct kretry_shared *s)
{
	return s->state == KRETRY_HALF_OPEN && kretry_breaker_enforced(k, s);
}

/* Closed, with an empty window. */
void kretry_breaker_start(const struct kretry_breaker *k, struct kretry_shared *s, u64 now);

/* Let time do its part: turn the window over, and open becomes half-open. */
void kretry_breaker_advance(const struct kretry_breaker *k, struct kretry_shared *s, u64 now);

/*
 * Whether one more attempt may start: half-open has probes to give or not, and after closing a ramp
 * may hold some back.
 */
bool kretry_breaker_admits(const struct kretry_breaker *k, const struct kretry_shared *s, u64 now,
			   u64 rnd);

/* Count one result, and change the state if that is what it takes. */
void kretry_breaker_record(const struct kretry_breaker *k, struct kretry_shared *s,
			   const struct kretry_result *r);

/* A probe that came back without a result: given up, or lost with its process or by timeout. */
void kretry_breaker_return(struct kretry_shared *s);
void kretry_breaker_lost(const struct kretry_breaker *k, struct kretry_shared *s, u64 now, u64 rnd);

/* Whether it has nothing to remember. */
bool kretry_breaker_is_new(const struct kretry_breaker *k, const struct kretry_shared *s);

#endif /* KRETRY_BREAKER_H */
