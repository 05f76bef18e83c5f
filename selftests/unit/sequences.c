// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdio.h>
#include <stdlib.h>

#include "grant.h"
#include "sequences.h"

#define OPS	6
#define SECOND	1000000000ULL
#define YEAR	(31557600 * SECOND)

/* What an operation was granted, while it waits. */
struct held {
	struct kretry_grant grant;
	bool is_held;
	bool is_wait;
};

/* One key, those who use it, and what the module does around a decision. */
struct world {
	const struct kretry_policy *policy;
	struct kretry_shared key;
	struct kretry_op ops[OPS];
	u32 lease[OPS];		/* the half-open period of the probe that the op has, or 0 */
	struct held held[OPS];
	u32 counter;		/* of generations */
	u32 reporters;
	u32 failing;		/* results of eight that fail */
	u64 now;
};

/* Mostly soon, often exactly when something is due, sometimes years later. */
static u64 later(struct prng *r, const struct world *w)
{
	const struct kretry_policy *p = w->policy;
	const u64 due[] = {
		w->ops[prng_below(r, OPS)].deadline_ns, w->key.changed_ns, w->key.cooling_ns,
		w->key.pace_next_ns, w->now + p->budget.window_ns / 10,
		w->now + p->breaker.window_ns / 10, w->now + p->breaker.window_ns,
		w->now + p->breaker.ramp_ns / 2,
	};
	u64 at = w->now;

	if (w->key.state == KRETRY_OPEN && !prng_below(r, 3))
		return max(w->now, w->key.changed_ns - prng_below(r, 2));
	switch (prng_below(r, 8)) {
	case 0:
		return at;
	case 1:
	case 2:
		at = due[prng_below(r, ARRAY_SIZE(due))] - prng_below(r, 2);
		return max(w->now, min(at, KRETRY_NS_MAX));
	case 3:
		at += prng_below(r, 5) ? prng_below(r, 100) : prng_next(r) % (20 * YEAR);
		break;
	default:
		at += prng_next(r) % (SECOND >> prng_below(r, 20));
	}
	return min(at, KRETRY_NS_MAX);
}

static u64 ages(const struct world *w)
{
	u64 window = w->policy->budget.window_ns, sum = 0;
	u32 slice, left;

	if (!window)
		return 0;
	slice = kretry_slice_at(window, w->now);
	for (left = 1; left <= KRETRY_SLICES; left++)
		sum += left * w->key.deposits_utok[(slice + left) % KRETRY_SLICES];
	return sum;
}

static void see(const struct world *w, struct snapshot *seen)
{
	const struct kretry_shared *s = &w->key;
	u32 i;

	seen->balance = kretry_budget_balance(s);
	seen->reserve = s->reserve_utok;
	seen->ages = ages(w);
	seen->cooling = s->cooling_ns;
	seen->pace_next = s->pace_next_ns;
	seen->half_open = s->state == KRETRY_OPEN ? s->changed_ns : 0;
	seen->generation = s->generation;
	for (i = 0; i < KRETRY_SLICES; i++) {
		seen->calls += s->calls[i];
		seen->failures += s->failures[i];
		seen->slow += s->slow[i];
	}
	seen->streak = s->streak;
	seen->state = s->state;
	seen->mode = s->mode;
	seen->growth = s->growth;
	seen->probes_out = s->probes_out;
	seen->probes_ok = s->probes_ok;
	seen->probes_failed = s->probes_failed;
	seen->probes_lost = s->probes_lost;
	seen->is_new = kretry_shared_is_new(w->policy, s);
}

static u32 fresh_generation(struct world *w)
{
	if (!++w->counter)
		++w->counter;
	return w->counter;
}

/* A probe counts as long as its half-open period lasts. */
static bool take_lease(struct world *w, u32 which)
{
	u32 period = w->lease[which];

	w->lease[which] = 0;
	return period && w->key.state == KRETRY_HALF_OPEN && period == w->key.generation;
}

static void event_of(struct prng *r, const struct world *w, struct kretry_op *op)
{
	static const u8 failures[] = {
		KRETRY_EVENT_TRANSIENT, KRETRY_EVENT_THROTTLED, KRETRY_EVENT_UNKNOWN,
		KRETRY_EVENT_PERMANENT, KRETRY_EVENT_TRANSIENT,
	};

	if (!prng_below(r, 12))
		memset(op, 0, sizeof(*op));
	if (!prng_below(r, 40))
		op->start_ns = 0;
	op->flags &= ~(KRETRY_OP_IDEMPOTENT | KRETRY_OP_QUEUE);
	op->flags |= prng_below(r, 4) ? KRETRY_OP_IDEMPOTENT : 0;
	op->flags |= prng_below(r, 2) ? KRETRY_OP_QUEUE : 0;
	op->event = failures[prng_below(r, ARRAY_SIZE(failures))];
	if (op->verdict != KRETRY_GO && prng_below(r, 8))
		op->event = KRETRY_EVENT_BEGIN;
	else if (prng_below(r, 8) >= w->failing)
		op->event = prng_below(r, 8) ? KRETRY_EVENT_OK : KRETRY_EVENT_CANCELLED;
	if (op->event < KRETRY_EVENT_TRANSIENT || prng_below(r, 3))
		return;
	op->flags |= prng_below(r, 8) ? KRETRY_OP_HINT : KRETRY_OP_NO_RETRY;
	if (op->flags & KRETRY_OP_HINT)
		op->hint_ns = prng_below(r, 8) ? prng_next(r) % (4 * SECOND) : prng_next(r);
}

/*
 * What waits holds its grant until a BEGIN at the deadline delivers it. A wait, which is told
 * nothing then, has a generation of its own from the start.
 */
static void hold(struct world *w, struct step *t, const struct kretry_call *call)
{
	struct held *held = &w->held[t->which];
	struct kretry_op *op = &w->ops[t->which];
	bool waits = kretry_waits(op, w->now);

	if (held->is_held && t->before.event == KRETRY_EVENT_BEGIN && t->before.start_ns) {
		if (held->is_wait)
			op->generation = t->before.generation;
		held->is_held = waits || op->verdict != KRETRY_GO;
		return;
	}
	held->is_held = waits && kretry_event_may_wait(t->before.event);
	if (!held->is_held)
		return;
	kretry_grant_keep(&held->grant, &t->before, op, call);
	held->is_wait = t->is_wait && op->verdict == KRETRY_RETRY;
	if (held->is_wait)
		op->generation = fresh_generation(w);
}

static void step_undo(struct world *w, struct step *t)
{
	struct kretry_op *op = &w->ops[t->which];

	t->kind = STEP_UNDO;
	t->before = *op;
	t->returned = kretry_grant_undo(&w->held[t->which].grant, w->policy, &w->key, op, w->now);
	t->after = *op;
}

static void step_event(struct prng *r, struct world *w, struct step *t)
{
	const struct kretry_backoff *b = &w->policy->backoff;
	struct kretry_op *op = &w->ops[t->which];
	struct kretry_call call = { .now = w->now, .rnd = t->rnd };

	event_of(r, w, op);
	t->reporter = prng_below(r, w->reporters);
	t->is_wait = !prng_below(r, 4);
	t->before = *op;
	t->ceiling = kretry_ceiling(b, kretry_base(b, op->event), op->attempt);
	call.reporter = t->reporter;
	call.probe = take_lease(w, t->which);
	if (call.probe)
		kretry_breaker_return(&w->key);
	if (!kretry_needs_draw(w->policy, op))
		call.rnd = ~t->rnd;
	kretry_apply(w->policy, &w->key, op, &call);
	if (call.leased) {
		w->lease[t->which] = w->key.generation;
		op->generation = fresh_generation(w);
	}
	hold(w, t, &call);
	t->after = *op;
	t->charged = call.charged;
	t->returned = call.returned;
	t->leased = call.leased;
}

static void one_step(struct prng *r, struct world *w, struct step *t)
{
	w->now = later(r, w);
	t->now = w->now;
	t->rnd = prng_below(r, 8) ? prng_next(r) : prng_edgy(r, 0, U64_MAX);
	t->which = prng_below(r, OPS);
	kretry_shared_advance(w->policy, &w->key, w->now);
	if (!w->key.generation)
		w->key.generation = fresh_generation(w);
	if (w->lease[t->which] && !prng_below(r, 4)) {
		t->kind = STEP_LOST;
		if (take_lease(w, t->which))
			kretry_breaker_lost(&w->policy->breaker, &w->key, w->now, t->rnd);
	} else if (w->held[t->which].is_held && !prng_below(r, 3)) {
		step_undo(w, t);
	} else if (kretry_has_breaker(w->policy) && !prng_below(r, 60)) {
		t->kind = STEP_MODE;
		t->which = prng_below(r, 2) ? prng_below(r, 4) : KRETRY_MODE_AUTOMATIC;
		w->key.mode = t->which;
	} else {
		step_event(r, w, t);
	}
	see(w, &t->key);
}

void random_sequence(struct prng *r, struct sequence *s)
{
	struct world w = { .policy = &s->policy };
	u32 i;

	memset(s, 0, sizeof(*s));
	random_shared_policy(r, &s->policy);
	if (kretry_policy_check(&s->policy)) {
		fprintf(stderr, "vectors: a valid policy was refused\n");
		exit(1);
	}
	w.failing = 1 + prng_below(r, 7);
	w.reporters = 1 + prng_below(r, KRETRY_REPORTERS);
	w.now = prng_below(r, 8) ? 1 + prng_next(r) % (100 * YEAR) : prng_edgy(r, 1, KRETRY_NS_MAX);
	w.counter = prng_below(r, 2) ? 0 : U32_MAX - prng_below(r, 40);
	s->start = w.now;
	s->counter = w.counter;
	kretry_shared_start(&s->policy, &w.key, w.now);
	for (i = 0; i < STEPS; i++)
		one_step(r, &w, &s->steps[i]);
}
