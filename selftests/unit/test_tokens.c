// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Charges and their return in random order: no token is made, nor lost below the capacity. */
#include "grant.h"
#include "world.h"

#define TOKEN	KRETRY_UTOK
#define YEAR	(31557600 * SEC)
#define PAID	16

/* -------- the bucket alone -------- */

struct paid {
	u64 amount;
	bool from_reserve;
};

/* What came in, and what is out: spent or still to come back. */
struct history {
	unsigned __int128 in;
	unsigned __int128 out;
	struct prng r;
	struct world w;
	struct paid paid[PAID];
	u32 returned;
};

static void move_time(struct history *h, u64 gap)
{
	const struct kretry_budget *b = &h->w.p.budget;

	gap = min(gap, NS_MAX - h->w.now);
	h->in += (unsigned __int128)b->refill_utok_per_s * gap / SEC + !!b->refill_utok_per_s;
	h->w.now += gap;
	kretry_budget_advance(b, &h->w.s, h->w.now);
	h->w.s.touched_ns = h->w.now;
}

static void move_charge(struct history *h, struct paid *paid, u64 amount)
{
	u64 reserve = h->w.s.reserve_utok;

	if (!kretry_budget_admits(&h->w.p.budget, &h->w.s, amount))
		return;
	assert_int_equal(kretry_budget_take(&h->w.p.budget, &h->w.s, amount, h->w.now), amount);
	h->out += amount;
	paid->amount = amount;
	paid->from_reserve = h->w.s.reserve_utok < reserve;
}

/* All of it comes back that finds room, in the one place or the other. */
static void move_back(struct history *h, struct paid *paid)
{
	const struct kretry_budget *b = &h->w.p.budget;
	u64 was = balance(&h->w), reserve = h->w.s.reserve_utok;
	u64 most = max(b->initial_utok, b->reserve_cap_utok);
	u64 due = min(paid->amount, b->capacity_utok - was), lasting = 0;

	if (paid->from_reserve && reserve < most)
		lasting = min(due, most - reserve);
	assert_int_equal(kretry_budget_give_back(b, &h->w.s, paid->amount, paid->from_reserve,
						 h->w.now), due);
	assert_int_equal(balance(&h->w), was + due);
	assert_int_equal(h->w.s.reserve_utok, reserve + (b->window_ns ? lasting : due));
	h->out -= due;
	h->returned += due > 0;
	paid->amount = 0;
}

static void random_move(struct history *h)
{
	u64 amount = prng_edgy(&h->r, 0, h->w.p.budget.capacity_utok);
	struct paid *paid = &h->paid[prng_below(&h->r, PAID)];

	if (prng_below(&h->r, 2))
		amount = prng_below(&h->r, 2 * TOKEN);
	switch (prng_below(&h->r, 5)) {
	case 0:
		move_time(h, prng_next(&h->r) >> (20 + prng_below(&h->r, 44)));
		break;
	case 1:
		h->in += kretry_budget_deposit(&h->w.p.budget, &h->w.s, amount, h->w.now);
		break;
	case 2:
		if (paid->amount)
			move_back(h, paid);
		break;
	default:
		move_charge(h, paid, amount);
	}
}

static void assert_adds_up(const struct history *h)
{
	const struct kretry_budget *b = &h->w.p.budget;
	u64 left = balance(&h->w);

	assert_true(left <= b->capacity_utok);
	assert_true(h->w.s.reserve_utok <= left);
	assert_true(h->out + left <= h->in);
	if (b->window_ns)
		assert_true(h->w.s.reserve_utok <= max(b->initial_utok, b->reserve_cap_utok));
	else if (!b->refill_utok_per_s)
		assert_true(h->out + left == h->in);
}

/* After ten years: no deposits, and the reserve at its cap if that is long enough to refill. */
static void assert_idle(struct history *h)
{
	const struct kretry_budget *b = &h->w.p.budget;
	u64 was = h->w.s.reserve_utok, cap = b->reserve_cap_utok;
	unsigned __int128 refill = (unsigned __int128)b->refill_utok_per_s * 10 * YEAR / SEC;

	if (b->window_ns > 10 * YEAR || h->w.now > NS_MAX - 10 * YEAR)
		return;
	move_time(h, 10 * YEAR);
	if (b->window_ns)
		assert_int_equal(balance(&h->w), h->w.s.reserve_utok);
	if (!refill)
		assert_int_equal(h->w.s.reserve_utok, was);
	else if (refill >= cap)
		assert_int_equal(h->w.s.reserve_utok, max(was, cap));
	if (refill >= cap && refill && b->window_ns && b->initial_utok <= cap)
		assert_int_equal(h->w.s.reserve_utok, cap);
}

static void tokens_of_random_histories_are_neither_made_nor_lost(void **state)
{
	struct prng r = { .state = fresh_u64() };
	u32 i, j, seen = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)r.state);
	for (i = 0; i < 20000; i++) {
		struct history h = { .r.state = prng_next(&r) };

		random_shared_policy(&h.r, &h.w.p);
		if (!kretry_has_budget(&h.w.p))
			continue;
		h.w.now = prng_edgy(&h.r, 1, NS_MAX);
		h.in = h.w.p.budget.initial_utok;
		kretry_shared_start(&h.w.p, &h.w.s, h.w.now);
		for (j = 0; j < 100; j++) {
			random_move(&h);
			assert_adds_up(&h);
		}
		assert_idle(&h);
		seen += h.returned > 3;
	}
	assert_true(seen > 1000);
}

/* -------- grants on the decision path -------- */

struct waiting {
	struct kretry_op op;
	struct kretry_grant grant;
	u64 charged;
	u32 attempt;
};

/* Where the tokens of one bucket are that takes no deposits. */
struct purse {
	struct prng r;
	struct world w;
	struct waiting waiting[PAID];
	u64 outstanding;
	u64 spent;
};

static void purse_ask(struct purse *purse, struct waiting *wait)
{
	struct kretry_call call = { .now = purse->w.now, .rnd = prng_next(&purse->r) };
	struct kretry_op asked;

	wait->attempt = prng_below(&purse->r, 5);
	asked = op_of(KRETRY_EVENT_TRANSIENT + prng_below(&purse->r, 3),
		      KRETRY_OP_IDEMPOTENT | KRETRY_OP_QUEUE, wait->attempt);
	wait->op = asked;
	kretry_apply(&purse->w.p, &purse->w.s, &wait->op, &call);
	kretry_grant_keep(&wait->grant, &asked, &wait->op, &call);
	wait->charged = call.charged;
	purse->outstanding += call.charged;
}

static void purse_undo(struct purse *purse, struct waiting *wait)
{
	u64 returned = kretry_grant_undo(&wait->grant, &purse->w.p, &purse->w.s, &wait->op,
					 purse->w.now);

	assert_int_equal(returned, wait->charged);
	assert_int_equal(wait->op.attempt, wait->attempt);
	purse->outstanding -= returned;
	wait->charged = 0;
}

static void purse_step(struct purse *purse)
{
	struct waiting *wait = &purse->waiting[prng_below(&purse->r, PAID)];

	pass(&purse->w, prng_below(&purse->r, SEC));
	if (!wait->charged) {
		purse_ask(purse, wait);
	} else if (prng_below(&purse->r, 3)) {
		purse_undo(purse, wait);
	} else {
		purse->spent += wait->charged;
		purse->outstanding -= wait->charged;
		wait->charged = 0;
	}
	assert_int_equal(balance(&purse->w) + purse->outstanding + purse->spent,
			 purse->w.p.budget.initial_utok);
}

static void grants_undone_in_any_order_leave_what_was_not_spent(void **state)
{
	struct prng r = { .state = fresh_u64() };
	u32 i, j, seen = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)r.state);
	for (i = 0; i < 2000; i++) {
		struct kretry_policy p = plain_shared();
		struct purse purse = { .r.state = prng_next(&r) };

		p.budget.window_ns = prng_below(&r, 2) ? 10 * SEC : 0;
		p.budget.capacity_utok = 1 + prng_below(&r, 100 * TOKEN);
		p.budget.initial_utok = prng_below(&r, p.budget.capacity_utok + 1);
		p.budget.cost_transient_utok = prng_below(&r, TOKEN);
		p.budget.cost_throttled_utok = prng_below(&r, 3 * TOKEN);
		p.budget.cost_unknown_utok = prng_below(&r, 9 * TOKEN);
		purse.w = world_of(p);
		for (j = 0; j < 200; j++)
			purse_step(&purse);
		for (j = 0; j < PAID; j++)
			if (purse.waiting[j].charged)
				purse_undo(&purse, &purse.waiting[j]);
		assert_int_equal(purse.outstanding, 0);
		assert_int_equal(balance(&purse.w), p.budget.initial_utok - purse.spent);
		seen += purse.spent > 0 && balance(&purse.w) > 0;
	}
	assert_true(seen > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_of_random_histories_are_neither_made_nor_lost),
		cmocka_unit_test(grants_undone_in_any_order_leave_what_was_not_spent),
	};

	return run_group(tests);
}
