/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Replays the history of one key: reports and the verdicts expected of them. Each history is told
 * twice, with the lowest draw and with the highest, so that the ends of every range are seen.
 */
#ifndef KRETRY_UNIT_REPLAY_H
#define KRETRY_UNIT_REPLAY_H

#include "unit.h"

#include "internal.h"

struct replay {
	struct kretry_policy policy;
	struct kretry_shared shared;
	struct kretry_op op;		/* the operation that goes on */
	u64 now;
	u64 rnd;
	u32 generation;
	u32 period;			/* of the probe that @op is; 0: none */
};

static inline void replay_begin(struct replay *r, const char *preset, u64 rnd)
{
	memset(r, 0, sizeof(*r));
	assert_int_equal(kretry_preset(preset, &r->policy), 0);
	r->now = NOW;
	r->rnd = rnd;
	kretry_shared_start(&r->policy, &r->shared, r->now);
}

#define both_draws(r, preset)                                                                      \
	for (unsigned int draw_ = 0;                                                               \
	     draw_ < 2 && (replay_begin(r, preset, draw_ ? U64_MAX : 0), true); draw_++)

/* Of a range, what the draw of this telling makes of it. */
static inline u64 drawn(const struct replay *r, u64 low, u64 high)
{
	return r->rnd ? high : low;
}

static inline u8 report_hint(struct replay *r, u8 event, u16 flags, u64 hint)
{
	struct kretry_call call = { .now = r->now, .rnd = r->rnd, .reporter = 1 };

	r->op.event = event;
	r->op.flags |= flags;
	r->op.hint_ns = hint;
	assert_int_equal(kretry_op_check(&r->op), 0);
	kretry_shared_advance(&r->policy, &r->shared, r->now);
	if (!r->shared.generation)
		r->shared.generation = ++r->generation;
	if (r->period && r->period == r->shared.generation) {
		kretry_breaker_return(&r->shared);
		call.probe = true;
	}
	r->period = 0;
	kretry_apply(&r->policy, &r->shared, &r->op, &call);
	if (call.leased)
		r->period = r->shared.generation;
	return r->op.verdict;
}

/* The operation that goes on reports @event. */
static inline u8 report(struct replay *r, u8 event)
{
	return report_hint(r, event, 0, 0);
}

/* Another operation begins, and is the one that goes on. */
static inline u8 begin(struct replay *r)
{
	memset(&r->op, 0, sizeof(r->op));
	r->period = 0;
	return report(r, KRETRY_EVENT_BEGIN);
}

/* @count operations of one attempt; each is admitted, and its report is answered by @verdict. */
static inline void calls(struct replay *r, unsigned int count, u8 event, u8 verdict)
{
	while (count--) {
		assert_int_equal(begin(r), KRETRY_GO);
		assert_int_equal(report(r, event), verdict);
	}
}

static inline void assert_retry(struct replay *r, u8 event, u64 low, u64 high)
{
	assert_int_equal(report(r, event), KRETRY_RETRY);
	assert_true(r->op.delay_ns == drawn(r, low, high));
	assert_true(r->op.deadline_ns == r->now + r->op.delay_ns);
}

static inline void assert_tokens(const struct replay *r, u64 milli)
{
	assert_true(kretry_budget_balance(&r->shared) == milli * (KRETRY_UTOK / 1000));
}

/* The breaker is open for as long as this. */
static inline void assert_open_for(const struct replay *r, u64 low, u64 high)
{
	assert_int_equal(r->shared.state, KRETRY_OPEN);
	assert_true(r->shared.changed_ns - r->now == drawn(r, low, high));
}

#endif /* KRETRY_UNIT_REPLAY_H */
