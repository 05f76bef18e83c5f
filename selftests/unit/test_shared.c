// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Decisions with what a key shares: the order of the checks, waiting, cooling, pacing. */
#include "world.h"

#define FAIL	KRETRY_EVENT_TRANSIENT
#define OK	KRETRY_EVENT_OK
#define BEGIN	KRETRY_EVENT_BEGIN
#define TOKEN	KRETRY_UTOK

/* Breaker: the third failure in a row opens it for 10 s. */
static struct kretry_policy with_breaker(void)
{
	struct kretry_policy p = plain_shared();

	p.breaker = (struct kretry_breaker){
		.consecutive = 3, .probes = 1, .open_ns = 10 * SEC, .open_cap_ns = 10 * SEC,
		.probe_timeout_ns = SEC,
	};
	return p;
}

static struct kretry_policy paced(u64 pace, u64 horizon, u32 flags)
{
	struct kretry_policy p = plain_shared();

	p.pacing.pace_ns = pace;
	p.pacing.horizon_ns = horizon;
	p.flags = flags;
	return p;
}

static struct kretry_op retrying(u32 attempt)
{
	return (struct kretry_op){
		.policy = 1, .attempt = attempt, .start_ns = NOW, .deadline_ns = NOW,
		.generation = 1,
	};
}

/* All reasons to stop at once, then one less each time. */
static void stop_reasons_in_their_order_and_nothing_charged(void **state)
{
	static const u8 order[] = {
		KRETRY_STOP_PERMANENT, KRETRY_STOP_UNSAFE, KRETRY_STOP_LIMIT, KRETRY_STOP_HINT,
		KRETRY_STOP_OPEN, KRETRY_STOP_ELAPSED, KRETRY_STOP_BUDGET, KRETRY_RETRY,
	};
	struct kretry_policy p = with_breaker();
	struct kretry_op op = retrying(3);
	struct world w;
	u8 i, event = KRETRY_EVENT_PERMANENT;

	(void)state;
	p.breaker.consecutive = 0;
	p.max_retries = 3;
	p.max_elapsed_ns = SEC - 1;
	p.budget.capacity_utok = 2 * TOKEN;
	p.budget.cost_unknown_utok = TOKEN;
	w = world_of(p);
	w.s.mode = KRETRY_MODE_FORCED_OPEN;
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		struct kretry_op now = op;

		now.flags |= i < 4 ? KRETRY_OP_NO_RETRY : 0;
		assert_int_equal(step(&w, &now, event), order[i]);
		assert_int_equal(w.charged, order[i] == KRETRY_RETRY ? TOKEN : 0);
		assert_int_equal(now.attempt, op.attempt + (order[i] == KRETRY_RETRY));
		if (i == 0)
			event = KRETRY_EVENT_UNKNOWN;
		else if (i == 1)
			op.flags = KRETRY_OP_IDEMPOTENT;
		else if (i == 2)
			op.attempt = 2;
		else if (i == 4)
			w.s.mode = KRETRY_MODE_AUTOMATIC;
		else if (i == 5)
			w.p.max_elapsed_ns = SEC;
		else if (i == 6)
			w.s.reserve_utok = TOKEN;
	}
}

/* Cooling, then the breaker, then the slot; what refuses later finds nothing taken. */
static void begin_refused_takes_no_probe_no_slot_and_no_deposit(void **state)
{
	struct kretry_policy p = with_breaker();
	struct kretry_shared before;
	struct kretry_op op = { .policy = 1 };
	struct world w;

	(void)state;
	p.pacing = (struct kretry_pacing){ .pace_ns = SEC, .horizon_ns = 5 * SEC };
	p.flags = KRETRY_POLICY_PACE_ALL;
	p.budget.capacity_utok = TOKEN;
	p.budget.deposit_request_utok = TOKEN;
	w = world_of(p);
	pass(&w, 0);
	w.s.state = KRETRY_OPEN;
	w.s.changed_ns = w.now + 3 * SEC;
	w.s.cooling_ns = w.now + 8 * SEC;
	w.s.pace_next_ns = w.now + 9 * SEC + 1;
	before = w.s;
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_COOLING);
	assert_int_equal(op.deadline_ns, w.now + 8 * SEC);
	assert_memory_equal(&before, &w.s, sizeof(before));

	w.s.cooling_ns = w.now;
	before.cooling_ns = w.now;
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_OPEN);
	assert_int_equal(op.deadline_ns, w.now + 4 * SEC);
	assert_memory_equal(&before, &w.s, sizeof(before));

	pass(&w, 4 * SEC);
	before = w.s;
	assert_int_equal(before.state, KRETRY_HALF_OPEN);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_PACED);
	assert_int_equal(op.deadline_ns, w.now + 5 * SEC + 1);
	assert_int_equal(op.start_ns, 0);
	assert_memory_equal(&before, &w.s, sizeof(before));

	pass(&w, 1);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
	assert_int_equal(op.deadline_ns, w.now + 5 * SEC);
	assert_int_equal(w.s.pace_next_ns, w.now + 6 * SEC);
	assert_int_equal(balance(&w), TOKEN);
	assert_true(w.leased);
}

static void failure_that_opens_is_told_so_and_when_to_come_back(void **state)
{
	struct world w = world_of(with_breaker());
	struct kretry_op op = { .policy = 1 };

	(void)state;
	calls(&w, FAIL, 2);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
	assert_int_equal(step(&w, &op, FAIL), KRETRY_STOP_OPEN);
	assert_int_equal(op.deadline_ns, w.now + 10 * SEC + SEC);
	assert_int_equal(op.attempt, 0);
	pass(&w, 3 * SEC);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_OPEN);
	assert_int_equal(op.deadline_ns, w.now + 7 * SEC + SEC);
}

static void stop_open_deadlines_are_spread_by_the_own_jitter(void **state)
{
	struct kretry_policy p = with_breaker();
	struct kretry_op op = { .policy = 1 };
	struct world w;

	(void)state;
	p.backoff.jitter = KRETRY_JITTER_FULL;
	w = world_of(p);
	calls(&w, FAIL, 3);
	assert_int_equal(step_with(&w, &op, BEGIN, 0), KRETRY_STOP_OPEN);
	assert_int_equal(op.deadline_ns, w.s.changed_ns);
	step_with(&w, &op, BEGIN, 1ULL << 63);
	assert_int_equal(op.deadline_ns, w.s.changed_ns + SEC / 2);
	step_with(&w, &op, BEGIN, U64_MAX);
	assert_int_equal(op.deadline_ns, w.s.changed_ns + SEC);
}

static struct kretry_policy waiting(void)
{
	struct kretry_policy p = with_breaker();

	p.flags = KRETRY_POLICY_WAIT_OPEN;
	p.max_elapsed_ns = 25 * SEC;
	p.budget.capacity_utok = 9 * TOKEN;
	p.budget.initial_utok = 9 * TOKEN;
	p.budget.cost_transient_utok = TOKEN;
	return p;
}

static void wait_open_retry_waits_on_and_pays_once(void **state)
{
	struct world w = world_of(waiting());
	struct kretry_op op = { .policy = 1 }, probe = { .policy = 1 };

	(void)state;
	calls(&w, FAIL, 2);
	assert_int_equal(step(&w, &op, FAIL), KRETRY_RETRY);
	assert_int_equal(w.s.state, KRETRY_OPEN);
	assert_int_equal(op.flags, KRETRY_OP_READMIT);
	assert_int_equal(op.deadline_ns, NOW + 11 * SEC);
	assert_int_equal(balance(&w), 6 * TOKEN);

	pass(&w, 2 * SEC);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_RETRY);
	assert_int_equal(op.flags, KRETRY_OP_READMIT);
	assert_int_equal(op.deadline_ns, NOW + 11 * SEC);
	pass(&w, 9 * SEC);
	assert_int_equal(step(&w, &probe, BEGIN), KRETRY_GO);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_RETRY);
	assert_int_equal(op.deadline_ns, NOW + 12 * SEC);
	assert_int_equal(op.attempt, 1);
	assert_int_equal(w.charged, 0);
	assert_int_equal(balance(&w), 6 * TOKEN);
	assert_int_equal(step(&w, &probe, OK), KRETRY_DONE);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
}

static void wait_open_retry_gives_up_at_max_elapsed(void **state)
{
	struct world w = world_of(waiting());
	struct kretry_op op = { .policy = 1 };

	(void)state;
	calls(&w, FAIL, 2);
	assert_int_equal(step(&w, &op, FAIL), KRETRY_RETRY);
	w.s.mode = KRETRY_MODE_FORCED_OPEN;
	pass(&w, 24 * SEC);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_RETRY);
	assert_int_equal(op.deadline_ns, NOW + 25 * SEC);
	pass(&w, 1);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_ELAPSED);
	assert_int_equal(op.deadline_ns, 0);
	assert_int_equal(op.attempt, 1);
	assert_int_equal(op.start_ns, NOW);
}

static void wait_open_first_attempt_is_refused(void **state)
{
	struct world w = world_of(waiting());
	struct kretry_op op = { .policy = 1 };

	(void)state;
	calls(&w, FAIL, 3);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_OPEN);
	assert_int_equal(op.start_ns, 0);
	assert_int_equal(op.deadline_ns, NOW + 11 * SEC);
}

static struct world cooled(u64 hint, u16 flags, u32 policy_flags, u64 limit)
{
	struct kretry_policy p = plain_shared();
	struct kretry_op op = { .policy = 1, .flags = flags, .hint_ns = hint };
	struct world w;

	p.flags = KRETRY_POLICY_HINT_SHARED | policy_flags;
	p.hint_limit_ns = limit;
	w = world_of(p);
	step(&w, &op, KRETRY_EVENT_THROTTLED);
	return w;
}

static void shared_hint_cools_the_key_for_everyone(void **state)
{
	struct world w = cooled(60 * SEC, KRETRY_OP_HINT, 0, 0);
	struct kretry_op op = { .policy = 1 }, hinted = retrying(0);

	(void)state;
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_COOLING);
	assert_int_equal(op.deadline_ns, NOW + 60 * SEC);
	pass(&w, 10 * SEC);
	op = retrying(0);
	assert_int_equal(step(&w, &op, FAIL), KRETRY_RETRY);
	assert_int_equal(op.deadline_ns, NOW + 61 * SEC);
	/* A shorter hint does not warm it up, nor let its caller in before. */
	hinted.flags = KRETRY_OP_HINT;
	hinted.hint_ns = 5 * SEC;
	assert_int_equal(step(&w, &hinted, FAIL), KRETRY_RETRY);
	assert_int_equal(w.s.cooling_ns, NOW + 60 * SEC);
	assert_int_equal(hinted.deadline_ns, NOW + 61 * SEC);
	/* A longer one goes on from there. */
	hinted.flags = KRETRY_OP_HINT;
	hinted.hint_ns = 55 * SEC;
	assert_int_equal(step(&w, &hinted, FAIL), KRETRY_RETRY);
	assert_int_equal(w.s.cooling_ns, NOW + 65 * SEC);
	assert_int_equal(hinted.deadline_ns, NOW + 65 * SEC);
	pass(&w, 55 * SEC - 1);
	assert_int_equal(call_taking(&w, OK, 0), KRETRY_STOP_COOLING);
	pass(&w, 1);
	assert_int_equal(call_taking(&w, OK, 0), KRETRY_DONE);
}

static void hint_that_is_refused_does_not_cool(void **state)
{
	u16 hint = KRETRY_OP_HINT;

	(void)state;
	assert_int_equal(cooled(SEC, hint, 0, SEC).s.cooling_ns, NOW + SEC);
	assert_int_equal(cooled(SEC + 1, hint, 0, SEC).s.cooling_ns, 0);
	assert_int_equal(cooled(9 * SEC, hint, KRETRY_POLICY_HINT_CLAMP, SEC).s.cooling_ns,
			 NOW + SEC);
	assert_int_equal(cooled(SEC, hint | KRETRY_OP_NO_RETRY, 0, 0).s.cooling_ns, 0);
	assert_int_equal(cooled(0, KRETRY_OP_NO_RETRY, 0, 0).s.cooling_ns, 0);
	assert_int_equal(cooled(U64_MAX, hint, 0, 0).s.cooling_ns, NS_MAX);
}

static void pace_all_gives_a_thousand_callers_a_slot_each(void **state)
{
	struct world w = world_of(paced(250 * MS, NS_MAX, KRETRY_POLICY_PACE_ALL));
	u32 i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		struct kretry_op op = { .policy = 1 };

		assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
		assert_int_equal(op.deadline_ns, NOW + i * 250 * MS);
		assert_int_equal(op.start_ns, NOW);
	}
	/* Slots left unused are not caught up on. */
	pass(&w, 3600 * SEC);
	for (i = 0; i < 3; i++) {
		struct kretry_op op = { .policy = 1 };

		step(&w, &op, BEGIN);
		assert_int_equal(op.deadline_ns, w.now + i * 250 * MS);
	}
}

static void pace_without_pace_all_spaces_retries_only(void **state)
{
	struct world w = world_of(paced(SEC, NS_MAX, 0));
	struct kretry_op op;
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++) {
		op = (struct kretry_op){ .policy = 1 };
		assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
		assert_int_equal(op.deadline_ns, NOW);
		op = retrying(1);
		assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
		assert_int_equal(op.deadline_ns, NOW + i * SEC);
	}
}

static void pace_horizon_includes_its_end_and_takes_no_slot_beyond(void **state)
{
	struct world w = world_of(paced(SEC, 2 * SEC, KRETRY_POLICY_PACE_ALL));
	struct kretry_op op = { .policy = 1 };

	(void)state;
	calls(&w, OK, 3);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_PACED);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_PACED);
	assert_int_equal(w.s.pace_next_ns, NOW + 3 * SEC);
	pass(&w, SEC);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
	assert_int_equal(op.deadline_ns, NOW + 3 * SEC);
}

static void readmit_asked_for_with_a_breaker_or_pacing_only(void **state)
{
	struct kretry_policy p[4] = { plain_shared(), plain_shared(), with_breaker(),
				      paced(SEC, 0, 0) };
	u32 i;

	(void)state;
	p[0].flags = KRETRY_POLICY_HINT_SHARED;
	p[1].budget.capacity_utok = TOKEN;
	for (i = 0; i < 4; i++) {
		struct world w = world_of(p[i]);
		struct kretry_op op = { .policy = 1 };

		assert_int_equal(step(&w, &op, FAIL), KRETRY_RETRY);
		assert_int_equal(op.flags, i < 2 ? 0 : KRETRY_OP_READMIT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stop_reasons_in_their_order_and_nothing_charged),
		cmocka_unit_test(begin_refused_takes_no_probe_no_slot_and_no_deposit),
		cmocka_unit_test(failure_that_opens_is_told_so_and_when_to_come_back),
		cmocka_unit_test(stop_open_deadlines_are_spread_by_the_own_jitter),
		cmocka_unit_test(wait_open_retry_waits_on_and_pays_once),
		cmocka_unit_test(wait_open_retry_gives_up_at_max_elapsed),
		cmocka_unit_test(wait_open_first_attempt_is_refused),
		cmocka_unit_test(shared_hint_cools_the_key_for_everyone),
		cmocka_unit_test(hint_that_is_refused_does_not_cool),
		cmocka_unit_test(pace_all_gives_a_thousand_callers_a_slot_each),
		cmocka_unit_test(pace_without_pace_all_spaces_retries_only),
		cmocka_unit_test(pace_horizon_includes_its_end_and_takes_no_slot_beyond),
		cmocka_unit_test(readmit_asked_for_with_a_breaker_or_pacing_only),
	};

	return run_group(tests);
}
