// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Where the charge of an undone grant goes: into the reserve, or with the deposits of now. */
#include "grant.h"
#include "world.h"

#define TOKEN	KRETRY_UTOK
#define YEAR	(31557600 * SEC)

/* Reserve 10 that does not refill, capacity 20, deposits that lapse after 10 s. */
static struct kretry_policy windowed(void)
{
	struct kretry_policy p = plain_shared();

	p.budget.capacity_utok = 20 * TOKEN;
	p.budget.initial_utok = 10 * TOKEN;
	p.budget.window_ns = 10 * SEC;
	p.budget.cost_transient_utok = 2 * TOKEN;
	return p;
}

static u64 take(struct world *w, u64 amount)
{
	return kretry_budget_take(&w->p.budget, &w->s, amount, w->now);
}

static u64 deposit(struct world *w, u64 amount)
{
	return kretry_budget_deposit(&w->p.budget, &w->s, amount, w->now);
}

static u64 give_back(struct world *w, u64 amount, bool from_reserve)
{
	return kretry_budget_give_back(&w->p.budget, &w->s, amount, from_reserve, w->now);
}

static void assert_holds(const struct world *w, u64 reserve, u64 deposits)
{
	assert_int_equal(w->s.reserve_utok, reserve);
	assert_int_equal(balance(w) - w->s.reserve_utok, deposits);
}

static void charge_of_the_reserve_returns_there_and_stays(void **state)
{
	struct world w = world_of(windowed());

	(void)state;
	assert_int_equal(take(&w, 4 * TOKEN), 4 * TOKEN);
	pass(&w, 3600 * SEC);
	assert_int_equal(give_back(&w, 4 * TOKEN, true), 4 * TOKEN);
	assert_holds(&w, 10 * TOKEN, 0);
	pass(&w, 10 * YEAR);
	assert_holds(&w, 10 * TOKEN, 0);
}

/* It lapses a window after it came back, as if it had come then. */
static void charge_of_deposits_returns_as_a_deposit_of_now(void **state)
{
	struct world w = world_of(windowed());

	(void)state;
	assert_int_equal(take(&w, 3 * TOKEN), 3 * TOKEN);
	deposit(&w, 5 * TOKEN);
	pass(&w, 0);
	assert_int_equal(take(&w, 5 * TOKEN), 5 * TOKEN);
	pass(&w, 3600 * SEC);
	assert_int_equal(give_back(&w, 5 * TOKEN, false), 5 * TOKEN);
	assert_holds(&w, 7 * TOKEN, 5 * TOKEN);
	pass(&w, 10 * SEC - 1);
	assert_holds(&w, 7 * TOKEN, 5 * TOKEN);
	pass(&w, 1);
	assert_holds(&w, 7 * TOKEN, 0);
}

/* Not of when the reserve last grew, which may be a slice ago. */
static void returned_deposit_is_of_now_between_two_refills(void **state)
{
	struct kretry_policy p = windowed();
	struct world w;

	(void)state;
	p.budget.reserve_cap_utok = 20 * TOKEN;
	p.budget.refill_utok_per_s = 1;
	w = world_of(p);
	w.now += SEC / 2;
	kretry_shared_start(&w.p, &w.s, w.now);
	pass(&w, SEC - 1);
	assert_int_equal(give_back(&w, TOKEN, false), TOKEN);
	pass(&w, 9 * SEC + SEC / 2);
	assert_holds(&w, 10 * TOKEN + 10, TOKEN);
	pass(&w, 1);
	assert_holds(&w, 10 * TOKEN + 10, 0);
}

static void charge_without_a_window_returns_to_the_reserve(void **state)
{
	struct kretry_policy p = windowed();
	struct world w;
	u32 i;

	(void)state;
	p.budget.window_ns = 0;
	for (i = 0; i < 2; i++) {
		w = world_of(p);
		deposit(&w, 8 * TOKEN);
		assert_int_equal(take(&w, 6 * TOKEN), 6 * TOKEN);
		assert_int_equal(give_back(&w, 6 * TOKEN, i), 6 * TOKEN);
		assert_holds(&w, 18 * TOKEN, 0);
	}
}

/* Up to where the reserve started or refills to, whichever is more; the rest may lapse. */
static void reserve_full_meanwhile_takes_no_more_than_its_own(void **state)
{
	static const struct {
		u64 initial, cap, reserve, deposits;
	} cases[] = {
		{ 10, 0, 10, 3 }, { 10, 9, 10, 3 }, { 10, 10, 10, 3 }, { 9, 10, 10, 3 },
		{ 8, 12, 12, 1 }, { 8, 20, 13, 0 }, { 0, 13, 13, 0 },
	};
	struct kretry_policy p = windowed();
	struct world w;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		p.budget.initial_utok = cases[i].initial * TOKEN;
		p.budget.reserve_cap_utok = cases[i].cap * TOKEN;
		w = world_of(p);
		w.s.reserve_utok = 8 * TOKEN;
		assert_int_equal(give_back(&w, 5 * TOKEN, true), 5 * TOKEN);
		assert_holds(&w, cases[i].reserve * TOKEN, cases[i].deposits * TOKEN);
		pass(&w, 10 * SEC);
		assert_holds(&w, cases[i].reserve * TOKEN, 0);
	}
}

static void reserve_refilled_meanwhile_leaves_the_rest_to_lapse(void **state)
{
	struct kretry_policy p = windowed();
	struct world w;

	(void)state;
	p.budget.reserve_cap_utok = 10 * TOKEN;
	p.budget.refill_utok_per_s = TOKEN;
	w = world_of(p);
	assert_int_equal(take(&w, 4 * TOKEN), 4 * TOKEN);
	pass(&w, 3 * SEC);
	assert_holds(&w, 9 * TOKEN, 0);
	assert_int_equal(give_back(&w, 4 * TOKEN, true), 4 * TOKEN);
	assert_holds(&w, 10 * TOKEN, 3 * TOKEN);
	pass(&w, 10 * YEAR);
	assert_holds(&w, 10 * TOKEN, 0);
}

/* A reserve above its limit, as without a window, is left as it is. */
static void reserve_above_its_limit_is_left_alone(void **state)
{
	struct world w = world_of(windowed());

	(void)state;
	w.s.reserve_utok = 15 * TOKEN;
	assert_int_equal(give_back(&w, 2 * TOKEN, true), 2 * TOKEN);
	assert_holds(&w, 15 * TOKEN, 2 * TOKEN);
}

static void charge_returns_up_to_the_capacity_and_not_above(void **state)
{
	struct world w;
	u32 i;

	(void)state;
	for (i = 0; i < 2; i++) {
		w = world_of(windowed());
		assert_int_equal(take(&w, 4 * TOKEN), 4 * TOKEN);
		assert_int_equal(deposit(&w, 12 * TOKEN), 12 * TOKEN);
		assert_int_equal(give_back(&w, 4 * TOKEN, i), 2 * TOKEN);
		assert_holds(&w, (i ? 8 : 6) * TOKEN, (i ? 12 : 14) * TOKEN);
		assert_int_equal(give_back(&w, NS_MAX, i), 0);
		assert_int_equal(balance(&w), 20 * TOKEN);
	}
}

/* A retry that costs 2, with @deposits there; whether it says that the reserve paid. */
static bool paid_by_reserve(u64 deposits)
{
	struct kretry_op op = { .policy = 1, .event = KRETRY_EVENT_TRANSIENT };
	struct world w = world_of(windowed());
	struct kretry_call call = { .now = w.now };

	pass(&w, 0);
	deposit(&w, deposits);
	kretry_apply(&w.p, &w.s, &op, &call);
	assert_int_equal(op.verdict, KRETRY_RETRY);
	assert_int_equal(call.charged, 2 * TOKEN);
	return call.from_reserve;
}

static void charge_says_whether_any_of_it_was_reserve(void **state)
{
	(void)state;
	assert_true(paid_by_reserve(0));
	assert_true(paid_by_reserve(2 * TOKEN - 1));
	assert_false(paid_by_reserve(2 * TOKEN));
	assert_false(paid_by_reserve(3 * TOKEN));
}

/* Room in the reserve does not make lasting tokens of those that lapse. */
static void grant_paid_by_deposits_is_undone_into_deposits(void **state)
{
	struct kretry_op asked = { .policy = 1, .event = KRETRY_EVENT_TRANSIENT }, op = asked;
	struct world w = world_of(windowed());
	struct kretry_call call = { .now = w.now };
	struct kretry_grant grant;

	(void)state;
	pass(&w, 0);
	assert_int_equal(take(&w, 5 * TOKEN), 5 * TOKEN);
	deposit(&w, 3 * TOKEN);
	kretry_apply(&w.p, &w.s, &op, &call);
	kretry_grant_keep(&grant, &asked, &op, &call);
	assert_holds(&w, 5 * TOKEN, TOKEN);
	assert_int_equal(kretry_grant_undo(&grant, &w.p, &w.s, &op, w.now), 2 * TOKEN);
	assert_holds(&w, 5 * TOKEN, 3 * TOKEN);
	pass(&w, 10 * SEC);
	assert_holds(&w, 5 * TOKEN, 0);
}

/* An undone retry is one that never was, whoever paid. */
static void grant_and_its_undoing_leave_the_bucket_as_it_was(void **state)
{
	u64 deposits;

	(void)state;
	for (deposits = 0; deposits < 4 * TOKEN; deposits += TOKEN) {
		struct kretry_op asked = { .policy = 1, .event = KRETRY_EVENT_TRANSIENT };
		struct world w = world_of(windowed());
		struct kretry_call call = { .now = w.now };
		struct kretry_op op = asked;
		struct kretry_grant grant;

		pass(&w, 0);
		deposit(&w, deposits);
		kretry_apply(&w.p, &w.s, &op, &call);
		kretry_grant_keep(&grant, &asked, &op, &call);
		assert_int_equal(balance(&w), 8 * TOKEN + deposits);
		assert_int_equal(kretry_grant_undo(&grant, &w.p, &w.s, &op, w.now), 2 * TOKEN);
		assert_holds(&w, 10 * TOKEN, deposits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charge_of_the_reserve_returns_there_and_stays),
		cmocka_unit_test(charge_of_deposits_returns_as_a_deposit_of_now),
		cmocka_unit_test(returned_deposit_is_of_now_between_two_refills),
		cmocka_unit_test(charge_without_a_window_returns_to_the_reserve),
		cmocka_unit_test(reserve_full_meanwhile_takes_no_more_than_its_own),
		cmocka_unit_test(reserve_refilled_meanwhile_leaves_the_rest_to_lapse),
		cmocka_unit_test(reserve_above_its_limit_is_left_alone),
		cmocka_unit_test(charge_returns_up_to_the_capacity_and_not_above),
		cmocka_unit_test(charge_says_whether_any_of_it_was_reserve),
		cmocka_unit_test(grant_paid_by_deposits_is_undone_into_deposits),
		cmocka_unit_test(grant_and_its_undoing_leave_the_bucket_as_it_was),
	};

	return run_group(tests);
}
