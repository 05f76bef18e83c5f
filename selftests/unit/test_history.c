// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What holds in every history of a key, with the sanitizers on. KRETRY_SEED=N repeats a run. */
#include "unit.h"

#define HISTORIES	20000
#define STEPS		60

static u64 seed;

struct history {
	struct prng r;
	struct kretry_policy p;
	struct kretry_shared s;
	struct kretry_op op;
	u32 generation;
	u32 out;	/* probes admitted and not returned */
	u64 now;
};

static void start(struct history *h, u64 n)
{
	*h = (struct history){ .r = { .state = seed + n } };
	random_shared_policy(&h->r, &h->p);
	h->now = prng_edgy(&h->r, 1, NS_MAX);
	kretry_shared_start(&h->p, &h->s, h->now);
}

/* On with the clock, or a little back: another processor may have been here with a later time. */
static void move_on(struct history *h)
{
	u64 gap = prng_next(&h->r) >> (10 + prng_below(&h->r, 50));

	if (prng_below(&h->r, 8))
		h->now += min(gap, NS_MAX - h->now);
	else
		h->now -= min(h->now - 1, prng_next(&h->r) % 1000);
	kretry_shared_advance(&h->p, &h->s, h->now);
	if (!h->s.generation)
		h->s.generation = ++h->generation;
}

/* An op of any state, or the last one's next event; well formed. */
static void next_event(struct history *h)
{
	struct kretry_op *op = &h->op;

	if (!prng_below(&h->r, 4)) {
		do
			random_op(&h->r, h->now, op);
		while (kretry_op_check(op));
		return;
	}
	op->event = 1 + prng_below(&h->r, 7);
	op->flags = (op->flags & KRETRY_OP_AFTER) | KRETRY_OP_IDEMPOTENT;
}

static void fail_with(const char *what)
{
	fail_msg("%s, KRETRY_SEED=%llu", what, (unsigned long long)seed);
}

static void check_key(const struct history *h)
{
	const struct kretry_breaker *k = &h->p.breaker;

	if (kretry_budget_balance(&h->s) > h->p.budget.capacity_utok)
		fail_with("balance above the capacity");
	if (h->s.probes_out > k->probes)
		fail_with("more probes out than there are");
	if (h->s.state > KRETRY_HALF_OPEN || h->s.slice >= KRETRY_SLICES ||
	    max(h->s.changed_ns, max(h->s.cooling_ns, h->s.pace_next_ns)) > NS_MAX)
		fail_with("state out of range");
}

static void check_answer(const struct history *h, const struct kretry_op *before, u64 was,
			 const struct kretry_call *call)
{
	const struct kretry_op *op = &h->op;
	bool stop = op->verdict >= KRETRY_STOP_PERMANENT;

	if (op->event || op->hint_ns || op->flags & KRETRY_OP_PER_REPORT)
		fail_with("open to a replay");
	if (stop && (op->attempt != before->attempt || op->delay_ns != before->delay_ns))
		fail_with("a STOP moved the op");
	if (call->charged && op->verdict != KRETRY_RETRY)
		fail_with("charged without a retry");
	if (call->charged > was + h->p.budget.deposit_request_utok)
		fail_with("charged more than there was");
	if ((op->verdict == KRETRY_GO || op->verdict == KRETRY_RETRY) &&
	    (op->deadline_ns < h->now || op->deadline_ns > NS_MAX))
		fail_with("deadline in the past, or beyond the largest");
	if (call->leased != !!(op->flags & KRETRY_OP_PROBE))
		fail_with("lease and flag differ");
}

static void one_step(struct history *h)
{
	struct kretry_call call = { .now = h->now, .rnd = prng_next(&h->r) };
	struct kretry_shared before = h->s;
	struct kretry_op op;

	next_event(h);
	op = h->op;
	call.reporter = prng_below(&h->r, 40);
	kretry_apply(&h->p, &h->s, &h->op, &call);
	check_answer(h, &op, kretry_budget_balance(&before), &call);
	check_key(h);
	if (op.event == KRETRY_EVENT_BEGIN && h->op.verdict != KRETRY_GO &&
	    memcmp(&before, &h->s, sizeof(before)))
		fail_with("a refused BEGIN changed the key");
	if (h->s.probes_out && !prng_below(&h->r, 3)) {
		if (prng_below(&h->r, 2))
			kretry_breaker_return(&h->s);
		else
			kretry_breaker_lost(&h->p.breaker, &h->s, h->now, prng_next(&h->r));
		check_key(h);
	}
}

static void history_of_random_events_keeps_every_bound(void **state)
{
	struct history h;
	u32 i, j;

	(void)state;
	for (i = 0; i < HISTORIES; i++) {
		start(&h, i);
		for (j = 0; j < STEPS; j++) {
			move_on(&h);
			one_step(&h);
		}
	}
}

/* Two keys with the same history, and other random numbers wherever none are needed. */
static void history_without_needed_draw_ignores_it(void **state)
{
	struct history h;
	u32 i, j, seen = 0;

	(void)state;
	for (i = 0; i < HISTORIES; i++) {
		start(&h, i);
		for (j = 0; j < STEPS; j++) {
			struct kretry_call call, other;
			struct kretry_shared s;
			struct kretry_op op;

			move_on(&h);
			next_event(&h);
			call = (struct kretry_call){ .now = h.now, .rnd = prng_next(&h.r) };
			other = call;
			s = h.s;
			op = h.op;
			if (!kretry_needs_draw(&h.p, &op)) {
				other.rnd = ~call.rnd;
				seen++;
			}
			kretry_apply(&h.p, &h.s, &h.op, &call);
			kretry_apply(&h.p, &s, &op, &other);
			assert_memory_equal(&s, &h.s, sizeof(s));
			assert_memory_equal(&op, &h.op, sizeof(op));
		}
	}
	assert_true(seen > HISTORIES);
}

/* Looking at a key more often changes neither its breaker nor, without a refill, its balance. */
static void looking_at_a_key_changes_nothing(void **state)
{
	struct history h, seldom;
	u32 i, j;

	(void)state;
	for (i = 0; i < HISTORIES; i++) {
		start(&h, i);
		h.p.budget.refill_utok_per_s = 0;
		for (j = 0; j < STEPS / 3; j++) {
			move_on(&h);
			one_step(&h);
		}
		seldom = h;
		for (j = 0; j < 20; j++) {
			h.now += min(prng_next(&h.r) >> (20 + prng_below(&h.r, 40)),
				     NS_MAX - h.now);
			kretry_shared_advance(&h.p, &h.s, h.now);
		}
		kretry_shared_advance(&h.p, &seldom.s, h.now);
		if (h.s.state != KRETRY_HALF_OPEN)
			assert_int_equal(h.s.changed_ns, seldom.s.changed_ns);
		h.s.changed_ns = seldom.s.changed_ns;
		h.s.refilled_ns = seldom.s.refilled_ns;
		assert_memory_equal(&h.s, &seldom.s, sizeof(h.s));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(history_of_random_events_keeps_every_bound),
		cmocka_unit_test(history_without_needed_draw_ignores_it),
		cmocka_unit_test(looking_at_a_key_changes_nothing),
	};
	const char *given = getenv("KRETRY_SEED");

	seed = given ? strtoull(given, NULL, 0) : fresh_u64();
	fprintf(stderr, "unit: histories with seed %llu\n", (unsigned long long)seed);
	return run_group(tests);
}
