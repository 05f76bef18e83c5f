/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the tests of the shared state of the library share: policies with a budget or breaker. */
#ifndef KRETRY_UNIT_LIBRARY_H
#define KRETRY_UNIT_LIBRARY_H

#include "unit.h"

#include <string.h>

#include "internal.h"

static inline struct kretry *open_process(void)
{
	struct kretry *k;

	assert_int_equal(kretry_open(&k, NULL, KRETRY_PROCESS_ONLY), 0);
	return k;
}

static inline u32 create(struct kretry *k, struct kretry_policy p)
{
	assert_int_equal(kretry_policy_create(k, &p), 0);
	return p.id;
}

static inline struct kretry_policy name_policy(struct kretry_policy p, const char *name)
{
	memset(p.name, 0, sizeof(p.name));
	memcpy(p.name, name, strlen(name));
	return p;
}

/* @tokens retries, and no more. */
static inline struct kretry_policy budget_of(u64 tokens)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 0, SEC);

	p.budget.capacity_utok = tokens * KRETRY_UTOK;
	p.budget.initial_utok = tokens * KRETRY_UTOK;
	p.budget.cost_transient_utok = KRETRY_UTOK;
	return p;
}

/* Two failures in a row open it, for @open_ns. */
static inline struct kretry_policy breaker_of(u64 open_ns, u64 probe_timeout_ns)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, MS, SEC);

	p.breaker.consecutive = 2;
	p.breaker.probes = 1;
	p.breaker.open_ns = open_ns;
	p.breaker.open_cap_ns = open_ns;
	p.breaker.probe_timeout_ns = probe_timeout_ns;
	return p;
}

static inline struct kretry_op step_key(struct kretry *k, u32 policy, u64 key, u8 event)
{
	struct kretry_op op = { .policy = policy, .event = event, .key = key };

	assert_int_equal(kretry_step(k, &op), 0);
	return op;
}

static inline struct kretry_op step(struct kretry *k, u32 policy, u8 event)
{
	return step_key(k, policy, 1, event);
}

static inline u8 continue_op(struct kretry *k, struct kretry_op *op, u8 event)
{
	op->event = event;
	assert_int_equal(kretry_step(k, op), 0);
	return op->verdict;
}

static inline void open_breaker(struct kretry *k, u32 policy)
{
	step(k, policy, KRETRY_EVENT_TRANSIENT);
	step(k, policy, KRETRY_EVENT_TRANSIENT);
}

static inline struct kretry_stat stat_of(struct kretry *k, u32 policy, u64 key)
{
	struct kretry_stat stat = { .policy = policy, .flags = KRETRY_SCOPE_KEY, .key = key };

	assert_int_equal(kretry_stat(k, &stat), 0);
	return stat;
}

static inline struct kretry_stat count_of(struct kretry *k, u32 policy)
{
	struct kretry_stat stat = { .policy = policy };

	assert_int_equal(kretry_stat(k, &stat), 0);
	return stat;
}

static inline void pause_ns(u64 ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / SEC), .tv_nsec = (long)(ns % SEC) };

	nanosleep(&ts, NULL);
}

#endif /* KRETRY_UNIT_LIBRARY_H */
