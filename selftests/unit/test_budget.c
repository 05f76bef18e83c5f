// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The retry budget: what comes in, what goes out, what lapses, and that it adds up. */
#include "world.h"

#define TOKEN	KRETRY_UTOK
#define YEAR	(31557600 * SEC)

/* Capacity 10, empty, each retry costs 1. */
static struct kretry_policy bucket(void)
{
	struct kretry_policy p = plain_shared();

	p.budget.capacity_utok = 10 * TOKEN;
	p.budget.cost_transient_utok = TOKEN;
	p.budget.cost_throttled_utok = TOKEN;
	p.budget.cost_unknown_utok = TOKEN;
	return p;
}

static struct kretry_policy full_bucket(void)
{
	struct kretry_policy p = bucket();

	p.budget.initial_utok = p.budget.capacity_utok;
	return p;
}

/* How many of @count operations that fail once are granted a retry. */
static u32 granted(struct world *w, u32 count)
{
	u32 retries = 0;

	while (count--)
		retries += call_taking(w, KRETRY_EVENT_TRANSIENT, 0) == KRETRY_RETRY;
	return retries;
}

static void deposits_of_six_tenths_ten_buy_six_retries(void **state)
{
	struct kretry_policy p = bucket();
	struct world w;
	u32 i;

	(void)state;
	p.budget.deposit_first_success_utok = 6 * TOKEN / 10;
	for (i = 0; i < 2; i++, p.budget.window_ns = 10 * SEC) {
		w = world_of(p);
		calls(&w, KRETRY_EVENT_OK, 10);
		assert_int_equal(balance(&w), 6 * TOKEN);
		assert_int_equal(granted(&w, 10), 6);
		assert_int_equal(balance(&w), 0);
	}
}

/* The loss is the rest of a nanosecond in each step, and never a gain. */
static void refill_in_a_million_steps_loses_less_than_a_nanosecond_each(void **state)
{
	static const u64 rates[] = { 1, 3, 700, 333333, 1000000, 1000001, 7777777777ULL };
	struct kretry_budget b = { .capacity_utok = NS_MAX, .reserve_cap_utok = NS_MAX };
	const u32 steps = 1000000;
	size_t i;
	u32 j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		unsigned __int128 exact;
		struct kretry_shared s = { 0 };
		u64 now = 0;

		b.refill_utok_per_s = rates[i];
		kretry_budget_start(&b, &s, now);
		for (j = 0; j < steps; j++) {
			now += 1 + fresh_u64() % (2 * MS);
			kretry_budget_advance(&b, &s, now);
		}
		exact = (unsigned __int128)rates[i] * now / SEC;
		assert_true(s.reserve_utok <= exact);
		assert_true(exact - s.reserve_utok <= 1 + rates[i] * steps / SEC);
	}
}

static void refill_whose_microtoken_takes_whole_nanoseconds_is_exact(void **state)
{
	struct kretry_policy p = bucket();
	struct world w;
	u32 i;

	(void)state;
	p.budget.reserve_cap_utok = 10 * TOKEN;
	p.budget.refill_utok_per_s = TOKEN;
	w = world_of(p);
	for (i = 0; i < 2000000; i++)
		pass(&w, 777);
	pass(&w, 5 * SEC - 2000000 * 777ULL - 1);
	assert_int_equal(balance(&w), 5 * TOKEN - 1);
	pass(&w, 1);
	assert_int_equal(balance(&w), 5 * TOKEN);
}

static void idle_for_ten_years_leaves_the_reserve_alone(void **state)
{
	static const struct {
		u64 initial, cap, rate, after;
	} cases[] = {
		{ 3, 0, 0, 3 }, { 3, 8, 0, 3 }, { 3, 8, 1, 8 }, { 0, 10, 1, 10 }, { 9, 8, 1, 9 },
		{ 10, 8, 0, 10 },
	};
	struct kretry_policy p = bucket();
	size_t i;

	(void)state;
	p.budget.window_ns = 10 * SEC;
	p.budget.deposit_first_success_utok = TOKEN;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world w;

		p.budget.initial_utok = cases[i].initial * TOKEN;
		p.budget.reserve_cap_utok = cases[i].cap * TOKEN;
		p.budget.refill_utok_per_s = cases[i].rate * TOKEN;
		w = world_of(p);
		calls(&w, KRETRY_EVENT_OK, 20);
		assert_int_equal(balance(&w), 10 * TOKEN);
		pass(&w, 10 * YEAR);
		assert_int_equal(balance(&w), cases[i].after * TOKEN);
		assert_int_equal(w.s.reserve_utok, cases[i].after * TOKEN);
	}
}

/* One token in each of ten slices of a second. */
static struct world ten_deposits(u64 reserve)
{
	struct kretry_policy p = bucket();
	struct world w;
	u32 i;

	p.budget.capacity_utok = 20 * TOKEN;
	p.budget.initial_utok = reserve;
	p.budget.deposit_first_success_utok = TOKEN;
	p.budget.window_ns = 10 * SEC;
	w = world_of(p);
	for (i = 0; i < 10; i++, pass(&w, SEC))
		calls(&w, KRETRY_EVENT_OK, 1);
	return w;
}

static void deposits_lapse_slice_by_slice(void **state)
{
	struct world w = ten_deposits(2 * TOKEN);
	u32 left;

	(void)state;
	for (left = 9; left; left--, pass(&w, 1)) {
		assert_int_equal(balance(&w), (2 + left) * TOKEN);
		pass(&w, SEC - 1);
		assert_int_equal(balance(&w), (2 + left) * TOKEN);
	}
	assert_int_equal(balance(&w), 2 * TOKEN);

	w = ten_deposits(0);
	pass(&w, 10 * SEC);
	assert_int_equal(balance(&w), 0);
}

static void charges_take_the_oldest_deposits_and_the_reserve_last(void **state)
{
	struct world w = ten_deposits(2 * TOKEN);
	u32 left;

	(void)state;
	assert_int_equal(balance(&w), 11 * TOKEN);
	assert_int_equal(kretry_budget_take(&w.p.budget, &w.s, 4 * TOKEN + 1, w.now),
			 4 * TOKEN + 1);
	assert_int_equal(w.s.reserve_utok, 2 * TOKEN);
	/* The four oldest are gone, and so their lapsing costs nothing more. */
	for (left = 4; left; left--, pass(&w, SEC))
		assert_int_equal(balance(&w), 7 * TOKEN - 1);
	pass(&w, SEC);
	assert_int_equal(balance(&w), 6 * TOKEN);
	assert_int_equal(kretry_budget_take(&w.p.budget, &w.s, 5 * TOKEN, w.now), 5 * TOKEN);
	assert_int_equal(w.s.reserve_utok, TOKEN);
	assert_int_equal(kretry_budget_take(&w.p.budget, &w.s, NS_MAX, w.now), TOKEN);
	assert_int_equal(balance(&w), 0);
}

static void balance_of_endless_successes_is_the_capacity_exactly(void **state)
{
	struct kretry_policy p = bucket();
	struct world w;
	u32 i;

	(void)state;
	p.budget.deposit_first_success_utok = TOKEN / 10;
	for (i = 0; i < 2; i++, p.budget.window_ns = 10 * SEC) {
		w = world_of(p);
		calls(&w, KRETRY_EVENT_OK, 1000000);
		assert_int_equal(balance(&w), 10 * TOKEN);
		assert_int_equal(granted(&w, 100), 10);
	}
}

static void drain_of_endless_failures_stops_at_zero(void **state)
{
	struct kretry_policy p = full_bucket();
	struct world w;

	(void)state;
	p.budget.drain_per_failure_utok = 3 * TOKEN / 10;
	p.budget.admit_above_utok = 10 * TOKEN;
	w = world_of(p);
	assert_int_equal(granted(&w, 1000000), 0);
	assert_int_equal(balance(&w), 0);
	calls(&w, KRETRY_EVENT_PERMANENT, 5);
	assert_int_equal(balance(&w), 0);
}

/* After PERMANENT no drain; after the others it is taken whatever the verdict. */
static void drain_taken_whatever_the_verdict_but_permanent(void **state)
{
	struct kretry_policy p = full_bucket();
	struct kretry_op op = { .policy = 1 };
	struct world w;

	(void)state;
	p.budget.drain_per_failure_utok = TOKEN;
	p.max_retries = 0;
	w = world_of(p);
	assert_int_equal(call_taking(&w, KRETRY_EVENT_PERMANENT, 0), KRETRY_STOP_PERMANENT);
	assert_int_equal(balance(&w), 10 * TOKEN);
	assert_int_equal(call_taking(&w, KRETRY_EVENT_TRANSIENT, 0), KRETRY_STOP_LIMIT);
	assert_int_equal(balance(&w), 9 * TOKEN);
	assert_int_equal(step(&w, &op, KRETRY_EVENT_UNKNOWN), KRETRY_STOP_UNSAFE);
	assert_int_equal(balance(&w), 8 * TOKEN);
	assert_int_equal(w.charged, 0);
}

static void budget_drained_then_ten_successes_buy_one_retry(void **state)
{
	struct kretry_policy p = full_bucket();
	struct world w;

	(void)state;
	p.budget.deposit_first_success_utok = TOKEN / 10;
	w = world_of(p);
	assert_int_equal(granted(&w, 20), 10);
	calls(&w, KRETRY_EVENT_OK, 9);
	assert_int_equal(granted(&w, 1), 0);
	calls(&w, KRETRY_EVENT_OK, 1);
	assert_int_equal(granted(&w, 5), 1);
}

static void budget_with_minimum_rate_recovers_without_traffic(void **state)
{
	struct kretry_policy p = full_bucket();
	struct world w;

	(void)state;
	p.budget.reserve_cap_utok = 10 * TOKEN;
	p.budget.refill_utok_per_s = TOKEN;
	w = world_of(p);
	assert_int_equal(granted(&w, 20), 10);
	pass(&w, 3 * SEC);
	assert_int_equal(granted(&w, 20), 3);
}

/* An operation that used all its retries takes none from the next one. */
static void attempts_of_one_operation_leave_the_next_its_own(void **state)
{
	struct kretry_policy p = bucket();
	struct world w;
	u32 i, n;

	(void)state;
	p.max_retries = 3;
	p.budget.capacity_utok = 100 * TOKEN;
	p.budget.initial_utok = 100 * TOKEN;
	w = world_of(p);
	for (i = 0; i < 2; i++) {
		struct kretry_op op = { .policy = 1 };

		for (n = 0; n < 3; n++)
			assert_int_equal(step(&w, &op, KRETRY_EVENT_TRANSIENT), KRETRY_RETRY);
		assert_int_equal(step(&w, &op, KRETRY_EVENT_TRANSIENT), KRETRY_STOP_LIMIT);
	}
}

static void failures_of_one_key_leave_the_other_its_minimum_rate(void **state)
{
	struct kretry_policy p = bucket();
	struct world a, b;
	u32 i;

	(void)state;
	p.budget.reserve_cap_utok = 10 * TOKEN;
	p.budget.refill_utok_per_s = TOKEN;
	a = world_of(p);
	b = world_of(p);
	for (i = 0; i < 100; i++) {
		pass(&a, SEC);
		pass(&b, SEC);
		assert_int_equal(granted(&a, 10), 1);
		assert_int_equal(granted(&b, 1), 1);
	}
}

static void budget_of_ten_allows_eleven_requests(void **state)
{
	struct kretry_policy p = full_bucket();
	struct kretry_op op = { .policy = 1 };
	u32 requests = 0;
	struct world w;

	(void)state;
	p.max_retries = 999;
	w = world_of(p);
	do {
		assert_int_equal(step(&w, &op, KRETRY_EVENT_BEGIN), KRETRY_GO);
		requests++;
	} while (step(&w, &op, KRETRY_EVENT_TRANSIENT) == KRETRY_RETRY);
	assert_int_equal(op.verdict, KRETRY_STOP_BUDGET);
	assert_int_equal(requests, 11);
	assert_int_equal(op.attempt, 10);
	assert_int_equal(op.deadline_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deposits_of_six_tenths_ten_buy_six_retries),
		cmocka_unit_test(refill_in_a_million_steps_loses_less_than_a_nanosecond_each),
		cmocka_unit_test(refill_whose_microtoken_takes_whole_nanoseconds_is_exact),
		cmocka_unit_test(idle_for_ten_years_leaves_the_reserve_alone),
		cmocka_unit_test(deposits_lapse_slice_by_slice),
		cmocka_unit_test(charges_take_the_oldest_deposits_and_the_reserve_last),
		cmocka_unit_test(balance_of_endless_successes_is_the_capacity_exactly),
		cmocka_unit_test(drain_of_endless_failures_stops_at_zero),
		cmocka_unit_test(drain_taken_whatever_the_verdict_but_permanent),
		cmocka_unit_test(budget_drained_then_ten_successes_buy_one_retry),
		cmocka_unit_test(budget_with_minimum_rate_recovers_without_traffic),
		cmocka_unit_test(attempts_of_one_operation_leave_the_next_its_own),
		cmocka_unit_test(failures_of_one_key_leave_the_other_its_minimum_rate),
		cmocka_unit_test(budget_of_ten_allows_eleven_requests),
	};

	return run_group(tests);
}
