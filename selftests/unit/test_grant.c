// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Grants that wait: which answers wait, how a grant is undone, how a deadline is put off. */
#include "grant.h"
#include "world.h"

#define TOKEN	KRETRY_UTOK
#define ASKED	(KRETRY_OP_IDEMPOTENT | KRETRY_OP_QUEUE)

static void event_waits_if_an_attempt_may_follow(void **state)
{
	u32 event;

	(void)state;
	for (event = 0; event < 256; event++)
		assert_int_equal(kretry_event_may_wait(event),
				 event == KRETRY_EVENT_BEGIN || (event >= KRETRY_EVENT_TRANSIENT &&
								 event <= KRETRY_EVENT_PERMANENT));
}

static void answer_waits_if_it_is_an_attempt_not_to_start_now(void **state)
{
	static const u64 deadlines[] = { 0, NOW - 1, NOW, NOW + 1, NS_MAX };
	u32 verdict, i;

	(void)state;
	for (verdict = 0; verdict < 256; verdict++) {
		for (i = 0; i < ARRAY_SIZE(deadlines); i++) {
			struct kretry_op op = { .verdict = verdict, .deadline_ns = deadlines[i] };

			assert_int_equal(kretry_waits(&op, NOW), verdict == KRETRY_RETRY ||
					 (verdict == KRETRY_GO && deadlines[i] > NOW));
		}
	}
}

/* A cost for each class, and a retry after any of them. */
static struct kretry_policy costly(void)
{
	struct kretry_policy p = plain_shared();

	p.budget.capacity_utok = 100 * TOKEN;
	p.budget.initial_utok = 50 * TOKEN;
	p.budget.cost_transient_utok = 5 * TOKEN;
	p.budget.cost_throttled_utok = 7 * TOKEN;
	p.budget.cost_unknown_utok = 10 * TOKEN;
	p.budget.flags = KRETRY_BUDGET_REFUND_LAST;
	return p;
}

/* One event of @op now, whose answer is kept. */
static struct kretry_call ask(struct world *w, struct kretry_op *op, u8 event,
			      struct kretry_grant *grant)
{
	struct kretry_call call = { .now = w->now, .reporter = w->who };
	struct kretry_op asked;

	pass(w, 0);
	op->event = event;
	asked = *op;
	assert_int_equal(kretry_op_check(op), 0);
	kretry_apply(&w->p, &w->s, op, &call);
	memset(grant, 0xff, sizeof(*grant));
	kretry_grant_keep(grant, &asked, op, &call);
	return call;
}

static u64 undo(struct world *w, struct kretry_grant *grant, struct kretry_op *op)
{
	pass(w, 0);
	return kretry_grant_undo(grant, &w->p, &w->s, op, w->now);
}

static const struct {
	u8 event;
	u16 after;
	u64 cost;
} classes[] = {
	{ KRETRY_EVENT_TRANSIENT, 0, 5 * TOKEN },
	{ KRETRY_EVENT_THROTTLED, KRETRY_OP_AFTER_THROTTLED, 7 * TOKEN },
	{ KRETRY_EVENT_UNKNOWN, KRETRY_OP_AFTER_UNKNOWN, 10 * TOKEN },
};

/* After each class, on top of a retry after each: all of @op but attempt and flags stays. */
static void undo_returns_the_cost_of_its_class_and_the_former_op(void **state)
{
	struct kretry_grant first, last;
	struct kretry_op op, want;
	u32 i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		for (j = 0; j < ARRAY_SIZE(classes); j++) {
			struct world w = world_of(costly());

			op = op_of(0, ASKED, 6);
			ask(&w, &op, classes[i].event, &first);
			assert_int_equal(ask(&w, &op, classes[j].event, &last).charged,
					 classes[j].cost);
			assert_int_equal(op.flags, ASKED | classes[j].after);
			assert_int_equal(op.attempt, 8);
			want = op;
			want.attempt = 7;
			want.flags = ASKED | classes[i].after;
			assert_int_equal(undo(&w, &last, &op), classes[j].cost);
			assert_memory_equal(&op, &want, sizeof(op));
			assert_int_equal(balance(&w), 50 * TOKEN - classes[i].cost);
		}
	}
}

static void undo_twice_returns_nothing_more_and_moves_nothing(void **state)
{
	struct world w = world_of(costly());
	struct kretry_op op = op_of(0, ASKED, 3), once;
	struct kretry_grant grant;

	(void)state;
	ask(&w, &op, KRETRY_EVENT_UNKNOWN, &grant);
	assert_int_equal(undo(&w, &grant, &op), 10 * TOKEN);
	once = op;
	assert_int_equal(undo(&w, &grant, &op), 0);
	assert_memory_equal(&op, &once, sizeof(op));
	assert_int_equal(op.attempt, 3);
	assert_int_equal(balance(&w), 50 * TOKEN);
}

/* The refund of a later success is that of the retry which was made. */
static void undone_op_that_succeeds_is_refunded_its_former_retry(void **state)
{
	struct kretry_op op = op_of(0, ASKED, 0);
	struct world w = world_of(costly());
	struct kretry_grant grant;
	struct kretry_call call;

	(void)state;
	ask(&w, &op, KRETRY_EVENT_THROTTLED, &grant);
	ask(&w, &op, KRETRY_EVENT_UNKNOWN, &grant);
	assert_int_equal(undo(&w, &grant, &op), 10 * TOKEN);
	call = ask(&w, &op, KRETRY_EVENT_OK, &grant);
	assert_int_equal(call.returned, 7 * TOKEN);
	assert_int_equal(balance(&w), 50 * TOKEN);

	op = op_of(0, ASKED, 0);
	ask(&w, &op, KRETRY_EVENT_UNKNOWN, &grant);
	undo(&w, &grant, &op);
	assert_int_equal(ask(&w, &op, KRETRY_EVENT_OK, &grant).returned, 0);
	assert_int_equal(balance(&w), 50 * TOKEN);
}

static void undo_restores_the_callers_flags_but_no_report(void **state)
{
	struct kretry_policy p = costly();
	struct kretry_op op = op_of(0, 0, 0);
	struct kretry_grant grant;
	struct world w;

	(void)state;
	p.pacing.pace_ns = 1;
	p.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT;
	w = world_of(p);
	op.flags = 0xff00 | KRETRY_OP_HINT | KRETRY_OP_AFTER_UNKNOWN;
	op.hint_ns = SEC;
	ask(&w, &op, KRETRY_EVENT_THROTTLED, &grant);
	assert_int_equal(op.flags, KRETRY_OP_READMIT | KRETRY_OP_AFTER_THROTTLED);
	op.flags |= KRETRY_OP_QUEUED | KRETRY_OP_IDEMPOTENT;
	undo(&w, &grant, &op);
	assert_int_equal(op.flags,
			 KRETRY_OP_READMIT | KRETRY_OP_QUEUED | KRETRY_OP_AFTER_UNKNOWN);
}

/* What cost nothing, and what shares nothing, still gives the attempt back. */
static void undo_of_a_free_grant_returns_the_attempt_only(void **state)
{
	struct kretry_policy p = costly();
	struct kretry_op op = op_of(0, ASKED, 4);
	struct kretry_grant grant;
	struct world w;

	(void)state;
	p.budget.cost_transient_utok = 0;
	w = world_of(p);
	w.s.reserve_utok = 40 * TOKEN;
	assert_int_equal(ask(&w, &op, KRETRY_EVENT_TRANSIENT, &grant).charged, 0);
	assert_int_equal(op.attempt, 5);
	w.p.budget.cost_transient_utok = TOKEN;
	assert_int_equal(undo(&w, &grant, &op), 0);
	assert_int_equal(op.attempt, 4);
	assert_int_equal(balance(&w), 40 * TOKEN);

	ask(&w, &op, KRETRY_EVENT_UNKNOWN, &grant);
	assert_int_equal(kretry_grant_undo(&grant, &w.p, NULL, &op, w.now), 0);
	assert_int_equal(op.attempt, 4);
	assert_int_equal(balance(&w), 30 * TOKEN);
}

static void undo_at_the_largest_attempt_leaves_it(void **state)
{
	struct kretry_op op = op_of(0, ASKED, U32_MAX - 1);
	struct world w = world_of(costly());
	struct kretry_grant first, last;

	(void)state;
	ask(&w, &op, KRETRY_EVENT_TRANSIENT, &first);
	assert_int_equal(op.attempt, U32_MAX);
	ask(&w, &op, KRETRY_EVENT_TRANSIENT, &last);
	assert_int_equal(op.attempt, U32_MAX);
	assert_int_equal(undo(&w, &last, &op), 5 * TOKEN);
	assert_int_equal(op.attempt, U32_MAX);
	assert_int_equal(undo(&w, &first, &op), 5 * TOKEN);
	assert_int_equal(op.attempt, U32_MAX - 1);
}

/* A paced first attempt has brought its deposit, and costs nothing that could come back. */
static void undo_of_a_paced_go_returns_nothing(void **state)
{
	struct kretry_policy p = costly();
	struct kretry_op one = { .policy = 1 }, two = { .policy = 1, .flags = ASKED };
	struct kretry_grant grant;
	struct world w;

	(void)state;
	p.flags = KRETRY_POLICY_PACE_ALL;
	p.pacing.pace_ns = SEC;
	p.pacing.horizon_ns = SEC;
	p.budget.deposit_request_utok = TOKEN;
	w = world_of(p);
	ask(&w, &one, KRETRY_EVENT_BEGIN, &grant);
	assert_false(kretry_waits(&one, w.now));
	ask(&w, &two, KRETRY_EVENT_BEGIN, &grant);
	assert_true(kretry_waits(&two, w.now));
	assert_int_equal(undo(&w, &grant, &two), 0);
	assert_int_equal(balance(&w), 52 * TOKEN);
	assert_int_equal(two.attempt, 0);
	assert_int_equal(two.flags, ASKED);
	assert_int_equal(two.deadline_ns, w.now + SEC);
}

static void refused_grant_has_nothing_to_undo(void **state)
{
	struct kretry_policy p = costly();
	struct kretry_op op = op_of(0, ASKED, 2);
	struct kretry_grant grant;
	struct world w;

	(void)state;
	p.budget.initial_utok = 5 * TOKEN - 1;
	w = world_of(p);
	ask(&w, &op, KRETRY_EVENT_TRANSIENT, &grant);
	assert_int_equal(op.verdict, KRETRY_STOP_BUDGET);
	assert_int_equal(undo(&w, &grant, &op), 0);
	assert_int_equal(op.attempt, 2);
	assert_int_equal(balance(&w), 5 * TOKEN - 1);
}

static void put_off_is_uniform_over_the_own_delay(void **state)
{
	static const struct {
		u64 delay, rnd, added;
	} cases[] = {
		{ SEC, 0, 0 }, { SEC, 1ULL << 63, SEC / 2 }, { SEC, U64_MAX, SEC },
		{ 0, U64_MAX, 0 }, { 1, U64_MAX / 2, 0 }, { 1, 1ULL << 63, 1 },
	};
	struct kretry_policy p = plain_shared();
	struct kretry_op op, want;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		op = op_of(0, ASKED, 2);
		op.delay_ns = cases[i].delay;
		want = op;
		want.deadline_ns = NOW + 7 + cases[i].added;
		assert_true(kretry_put_off(&p, &op, NOW + 7, cases[i].rnd));
		assert_memory_equal(&op, &want, sizeof(op));
	}
}

static void put_off_past_the_limit_is_false_and_at_it_true(void **state)
{
	struct kretry_policy p = plain_shared();
	struct kretry_op op = op_of(0, ASKED, 2);

	(void)state;
	op.delay_ns = SEC;
	p.max_elapsed_ns = 3 * SEC;
	assert_true(kretry_put_off(&p, &op, NOW + 2 * SEC, U64_MAX));
	assert_int_equal(op.deadline_ns, NOW + 3 * SEC);
	assert_false(kretry_put_off(&p, &op, NOW + 2 * SEC + 1, U64_MAX));
	assert_true(kretry_put_off(&p, &op, NOW + 2 * SEC + 1, 0));
	p.max_elapsed_ns = 0;
	assert_true(kretry_put_off(&p, &op, NOW + 2 * SEC + 1, U64_MAX));
}

static void put_off_at_the_end_of_time_saturates(void **state)
{
	static const u64 limits[] = { 0, NS_MAX };
	struct kretry_policy p = plain_shared();
	struct kretry_op op;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		op = op_of(0, ASKED, 2);
		op.delay_ns = NS_MAX;
		p.max_elapsed_ns = limits[i];
		assert_true(kretry_put_off(&p, &op, NS_MAX - 1, U64_MAX));
		assert_int_equal(op.deadline_ns, NS_MAX);
		assert_true(kretry_put_off(&p, &op, NS_MAX, 0));
		assert_int_equal(op.deadline_ns, NS_MAX);
	}
}

/* What the caller left in the op is not checked anywhere before. */
static void put_off_by_a_delay_out_of_range_is_never_early(void **state)
{
	static const u64 delays[] = { NS_MAX + 1, U64_MAX - 1, U64_MAX };
	struct kretry_policy p = plain_shared();
	struct kretry_op op;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		op = op_of(0, ASKED, 2);
		op.delay_ns = delays[i];
		assert_true(kretry_put_off(&p, &op, NOW, U64_MAX));
		assert_int_equal(op.deadline_ns, NS_MAX);
		assert_true(kretry_put_off(&p, &op, NOW, 1ULL << 32));
		assert_in_range(op.deadline_ns, NOW, NOW + 3 * SEC);
	}
}

/* Who waits has a start that its limit runs from, wherever the op comes from. */
static void retry_that_waits_for_the_breaker_has_a_start(void **state)
{
	static const u64 starts[] = { 0, NOW - 5, NOW + 5 };
	struct kretry_policy p = plain_shared();
	struct kretry_grant grant;
	u32 i;

	(void)state;
	p.flags = KRETRY_POLICY_WAIT_OPEN;
	p.max_elapsed_ns = 5 * SEC;
	p.breaker = (struct kretry_breaker){
		.consecutive = 1, .probes = 1, .open_ns = SEC, .open_cap_ns = SEC,
		.probe_timeout_ns = SEC,
	};
	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		struct kretry_op op = { .policy = 1, .flags = ASKED, .attempt = 1 };
		struct world w = world_of(p);

		calls(&w, KRETRY_EVENT_TRANSIENT, 1);
		op.start_ns = starts[i];
		ask(&w, &op, KRETRY_EVENT_BEGIN, &grant);
		assert_int_equal(op.verdict, KRETRY_RETRY);
		assert_int_equal(op.start_ns, i == 1 ? NOW - 5 : NOW);
		assert_true(kretry_put_off(&p, &op, op.deadline_ns, 0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_waits_if_an_attempt_may_follow),
		cmocka_unit_test(answer_waits_if_it_is_an_attempt_not_to_start_now),
		cmocka_unit_test(undo_returns_the_cost_of_its_class_and_the_former_op),
		cmocka_unit_test(undo_twice_returns_nothing_more_and_moves_nothing),
		cmocka_unit_test(undone_op_that_succeeds_is_refunded_its_former_retry),
		cmocka_unit_test(undo_restores_the_callers_flags_but_no_report),
		cmocka_unit_test(undo_of_a_free_grant_returns_the_attempt_only),
		cmocka_unit_test(undo_at_the_largest_attempt_leaves_it),
		cmocka_unit_test(undo_of_a_paced_go_returns_nothing),
		cmocka_unit_test(refused_grant_has_nothing_to_undo),
		cmocka_unit_test(put_off_is_uniform_over_the_own_delay),
		cmocka_unit_test(put_off_past_the_limit_is_false_and_at_it_true),
		cmocka_unit_test(put_off_at_the_end_of_time_saturates),
		cmocka_unit_test(put_off_by_a_delay_out_of_range_is_never_early),
		cmocka_unit_test(retry_that_waits_for_the_breaker_has_a_start),
	};

	return run_group(tests);
}
