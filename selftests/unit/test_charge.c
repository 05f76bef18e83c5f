// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The budget on the decision path: who pays, who gets back, once each; and tokens are conserved. */
#include "world.h"

#define TOKEN	KRETRY_UTOK

static struct kretry_policy aws(void)
{
	struct kretry_policy p = plain_shared();

	p.budget.capacity_utok = 500 * TOKEN;
	p.budget.initial_utok = 500 * TOKEN;
	p.budget.deposit_first_success_utok = TOKEN;
	p.budget.cost_transient_utok = 5 * TOKEN;
	p.budget.cost_throttled_utok = 7 * TOKEN;
	p.budget.cost_unknown_utok = 10 * TOKEN;
	p.budget.flags = KRETRY_BUDGET_REFUND_LAST;
	return p;
}

static struct kretry_op idempotent(void)
{
	return (struct kretry_op){ .policy = 1, .flags = KRETRY_OP_IDEMPOTENT };
}

static void cost_and_refund_follow_the_class_of_the_last_failure(void **state)
{
	static const struct {
		u8 first, second;
		u64 after, refunded;
	} cases[] = {
		{ KRETRY_EVENT_TRANSIENT, 0, 495, 5 },
		{ KRETRY_EVENT_THROTTLED, 0, 493, 7 },
		{ KRETRY_EVENT_UNKNOWN, 0, 490, 10 },
		{ KRETRY_EVENT_UNKNOWN, KRETRY_EVENT_TRANSIENT, 485, 5 },
		{ KRETRY_EVENT_TRANSIENT, KRETRY_EVENT_UNKNOWN, 485, 10 },
		{ KRETRY_EVENT_THROTTLED, KRETRY_EVENT_TRANSIENT, 488, 5 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kretry_op op = idempotent();
		struct world w = world_of(aws());

		step(&w, &op, KRETRY_EVENT_BEGIN);
		assert_int_equal(step(&w, &op, cases[i].first), KRETRY_RETRY);
		step(&w, &op, KRETRY_EVENT_BEGIN);
		if (cases[i].second)
			assert_int_equal(step(&w, &op, cases[i].second), KRETRY_RETRY);
		assert_int_equal(balance(&w), cases[i].after * TOKEN);
		assert_int_equal(step(&w, &op, KRETRY_EVENT_OK), KRETRY_DONE);
		assert_int_equal(w.returned, cases[i].refunded * TOKEN);
		assert_int_equal(balance(&w), (cases[i].after + cases[i].refunded) * TOKEN);
		assert_int_equal(op.flags, KRETRY_OP_IDEMPOTENT);
	}
}

static void refund_once_and_not_above_the_capacity(void **state)
{
	struct kretry_op op = idempotent();
	struct world w = world_of(aws());
	u32 i;

	(void)state;
	assert_int_equal(step(&w, &op, KRETRY_EVENT_UNKNOWN), KRETRY_RETRY);
	calls(&w, KRETRY_EVENT_OK, 6);
	assert_int_equal(step(&w, &op, KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(w.returned, 4 * TOKEN);
	assert_int_equal(balance(&w), 500 * TOKEN);

	w.s.reserve_utok = 0;
	for (i = 0; i < 3; i++)
		assert_int_equal(step(&w, &op, KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(balance(&w), 3 * TOKEN);
}

/* An operation that keeps its backoff succeeds many times after one retry: one refund at most. */
static void refund_not_given_while_the_backoff_is_kept(void **state)
{
	struct kretry_policy p = aws();
	struct kretry_op op = idempotent();
	struct world w;
	u32 i;

	(void)state;
	p.reset_after_ns = SEC;
	p.budget.deposit_first_success_utok = 0;
	w = world_of(p);
	assert_int_equal(step(&w, &op, KRETRY_EVENT_TRANSIENT), KRETRY_RETRY);
	pass(&w, SEC);
	for (i = 0; i < 5; i++) {
		step(&w, &op, KRETRY_EVENT_BEGIN);
		assert_int_equal(step(&w, &op, KRETRY_EVENT_OK), KRETRY_DONE);
		assert_int_equal(op.attempt, 1);
		assert_int_equal(balance(&w), 495 * TOKEN);
	}
	pass(&w, SEC);
	step(&w, &op, KRETRY_EVENT_OK);
	assert_int_equal(op.attempt, 0);
	assert_int_equal(balance(&w), 500 * TOKEN);
}

static void grpc_threshold_stops_at_half_and_recovers_by_tenths(void **state)
{
	struct kretry_policy p = plain_shared();
	struct world w;
	u32 i;

	(void)state;
	p.budget.capacity_utok = 10 * TOKEN;
	p.budget.initial_utok = 10 * TOKEN;
	p.budget.drain_per_failure_utok = TOKEN;
	p.budget.admit_above_utok = 5 * TOKEN;
	p.budget.deposit_first_success_utok = TOKEN / 10;
	w = world_of(p);
	for (i = 0; i < 4; i++)
		assert_int_equal(call_taking(&w, KRETRY_EVENT_TRANSIENT, 0), KRETRY_RETRY);
	assert_int_equal(balance(&w), 6 * TOKEN);
	assert_int_equal(call_taking(&w, KRETRY_EVENT_TRANSIENT, 0), KRETRY_STOP_BUDGET);
	assert_int_equal(balance(&w), 5 * TOKEN);
	calls(&w, KRETRY_EVENT_OK, 10);
	assert_int_equal(call_taking(&w, KRETRY_EVENT_TRANSIENT, 0), KRETRY_STOP_BUDGET);
	calls(&w, KRETRY_EVENT_OK, 11);
	assert_int_equal(call_taking(&w, KRETRY_EVENT_TRANSIENT, 0), KRETRY_RETRY);
}

static void cost_that_is_not_there_in_full_takes_nothing(void **state)
{
	struct kretry_policy p = aws();
	struct kretry_op op = idempotent();
	struct world w;

	(void)state;
	p.budget.initial_utok = 10 * TOKEN - 1;
	w = world_of(p);
	assert_int_equal(step(&w, &op, KRETRY_EVENT_UNKNOWN), KRETRY_STOP_BUDGET);
	assert_int_equal(w.charged, 0);
	assert_int_equal(balance(&w), 10 * TOKEN - 1);
	assert_int_equal(op.attempt, 0);
	assert_int_equal(step(&w, &op, KRETRY_EVENT_TRANSIENT), KRETRY_RETRY);
	assert_int_equal(w.charged, 5 * TOKEN);
	assert_int_equal(balance(&w), 5 * TOKEN - 1);
}

static struct kretry_policy by_request(u64 deposit)
{
	struct kretry_policy p = plain_shared();

	p.budget.capacity_utok = 100 * TOKEN;
	p.budget.deposit_request_utok = deposit;
	p.breaker = (struct kretry_breaker){
		.consecutive = 1, .probes = 1, .open_ns = 10 * SEC, .open_cap_ns = 10 * SEC,
		.probe_timeout_ns = SEC,
	};
	return p;
}

/* The same deposit with BEGIN, without, and with BEGIN only for the retry. */
static void request_deposits_once_however_it_is_begun(void **state)
{
	u8 first, second;

	(void)state;
	for (first = 0; first < 2; first++) {
		for (second = 0; second < 2; second++) {
			struct kretry_policy p = by_request(TOKEN);
			struct kretry_op op = idempotent();
			struct world w;

			p.breaker.consecutive = 9;
			w = world_of(p);
			if (first)
				step(&w, &op, KRETRY_EVENT_BEGIN);
			assert_int_equal(step(&w, &op, KRETRY_EVENT_TRANSIENT), KRETRY_RETRY);
			pass(&w, SEC);
			if (second)
				step(&w, &op, KRETRY_EVENT_BEGIN);
			step(&w, &op, KRETRY_EVENT_OK);
			assert_int_equal(balance(&w), TOKEN);
			step(&w, &op, KRETRY_EVENT_OK);
			assert_int_equal(balance(&w), 2 * TOKEN);
		}
	}
}

static void request_refused_or_not_admitted_deposits_at_its_admission(void **state)
{
	struct world w = world_of(by_request(TOKEN));
	struct kretry_op op = idempotent(), simple = idempotent();

	(void)state;
	calls(&w, KRETRY_EVENT_TRANSIENT, 1);
	assert_int_equal(w.s.state, KRETRY_OPEN);
	assert_int_equal(balance(&w), TOKEN);
	assert_int_equal(step(&w, &op, KRETRY_EVENT_BEGIN), KRETRY_STOP_OPEN);
	assert_int_equal(step(&w, &simple, KRETRY_EVENT_TRANSIENT), KRETRY_STOP_OPEN);
	assert_int_equal(balance(&w), TOKEN);
	pass(&w, 10 * SEC);
	assert_int_equal(step(&w, &simple, KRETRY_EVENT_BEGIN), KRETRY_GO);
	assert_int_equal(balance(&w), 2 * TOKEN);
	assert_int_equal(step(&w, &simple, KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(step(&w, &op, KRETRY_EVENT_BEGIN), KRETRY_GO);
	assert_int_equal(balance(&w), 3 * TOKEN);
}

/* What a random history of one bucket took in and gave out. */
struct account {
	unsigned __int128 in;
	unsigned __int128 out;
};

static void random_move(struct prng *r, const struct kretry_budget *b, struct kretry_shared *s,
			u64 *now, struct account *a)
{
	u64 amount = prng_edgy(r, 0, b->capacity_utok);
	u64 gap = prng_next(r) >> (20 + prng_below(r, 44));

	switch (prng_below(r, 3)) {
	case 0:
		gap = min(gap, KRETRY_NS_MAX - *now);
		*now += gap;
		a->in += (unsigned __int128)b->refill_utok_per_s * gap / SEC + 1;
		kretry_budget_advance(b, s, *now);
		s->touched_ns = *now;
		break;
	case 1:
		a->in += kretry_budget_deposit(b, s, amount, *now);
		break;
	default:
		if (kretry_budget_admits(b, s, amount)) {
			a->out += amount;
			assert_int_equal(kretry_budget_take(b, s, amount, *now), amount);
		}
	}
}

static void charges_of_random_histories_never_exceed_what_came_in(void **state)
{
	struct prng r = { .state = fresh_u64() };
	struct kretry_policy p;
	u32 i, j, seen = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)r.state);
	for (i = 0; i < 20000; i++) {
		struct kretry_shared s;
		struct account a;
		u64 now = prng_edgy(&r, 1, NS_MAX);

		random_shared_policy(&r, &p);
		if (!kretry_has_budget(&p))
			continue;
		kretry_shared_start(&p, &s, now);
		a = (struct account){ .in = p.budget.initial_utok };
		for (j = 0; j < 100; j++) {
			random_move(&r, &p.budget, &s, &now, &a);
			assert_true(a.out <= a.in);
			assert_true(kretry_budget_balance(&s) <= p.budget.capacity_utok);
			assert_true(kretry_budget_balance(&s) <= a.in - a.out);
		}
		seen += a.out > 0;
	}
	assert_true(seen > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cost_and_refund_follow_the_class_of_the_last_failure),
		cmocka_unit_test(refund_once_and_not_above_the_capacity),
		cmocka_unit_test(refund_not_given_while_the_backoff_is_kept),
		cmocka_unit_test(grpc_threshold_stops_at_half_and_recovers_by_tenths),
		cmocka_unit_test(cost_that_is_not_there_in_full_takes_nothing),
		cmocka_unit_test(request_deposits_once_however_it_is_begun),
		cmocka_unit_test(request_refused_or_not_admitted_deposits_at_its_admission),
		cmocka_unit_test(charges_of_random_histories_never_exceed_what_came_in),
	};

	return run_group(tests);
}
