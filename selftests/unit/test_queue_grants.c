// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The queue of a handle where the process decides: grants that do not reach their caller. */
#include "queued.h"

static void cancel_gives_the_charge_back_once(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = budget_of(1);
	struct kretry_op op, was;
	u32 policy;

	(void)state;
	p.backoff.base_ns = 3600 * SEC;
	p.backoff.cap_ns = 3600 * SEC;
	policy = create(k, p);
	enqueue(k, policy, 1);
	assert_true(stat_of(k, policy, 1).balance_utok == 0);
	op = queued_op(policy, 2);
	assert_int_equal(kretry_step(k, &op), 0);
	assert_int_equal(op.verdict, KRETRY_STOP_BUDGET);
	memset(&op, 0xa5, sizeof(op));
	assert_int_equal(kretry_queue_cancel(k, 1, &op), 0);
	assert_int_equal(op.user_data, 1);
	assert_int_equal(op.attempt, 0);
	assert_int_equal(op.verdict, KRETRY_VERDICT_NONE);
	assert_int_equal(op.flags, KRETRY_OP_QUEUE);
	assert_true(stat_of(k, policy, 1).balance_utok == KRETRY_UTOK);
	was = op;
	assert_int_equal(kretry_queue_cancel(k, 1, &op), -ENOENT);
	assert_memory_equal(&op, &was, sizeof(op));
	assert_true(stat_of(k, policy, 1).balance_utok == KRETRY_UTOK);
	assert_true(count_of(k, policy).refunded_utok == KRETRY_UTOK);
	kretry_close(k);
}

/* Two tokens, and a breaker that opens after two failures in a row. */
static struct kretry_policy budget_and_breaker(u64 delay, u64 open_ns)
{
	struct kretry_policy p = breaker_of(open_ns, 3600 * SEC);

	p.budget = budget_of(2).budget;
	p.backoff.base_ns = delay;
	return p;
}

static void stop_at_the_deadline_costs_nothing(void **state)
{
	struct kretry *k = open_process();
	u32 policy = create(k, budget_and_breaker(20 * MS, 3600 * SEC));
	struct kretry_op op;

	(void)state;
	enqueue(k, policy, 1);
	step(k, policy, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(stat_of(k, policy, 1).state, KRETRY_OPEN);
	assert_true(stat_of(k, policy, 1).balance_utok == KRETRY_UTOK);
	op = read_one(k);
	assert_int_equal(op.verdict, KRETRY_STOP_OPEN);
	assert_int_equal(op.attempt, 0);
	assert_true(stat_of(k, policy, 1).balance_utok == 2 * KRETRY_UTOK);
	assert_int_equal(kretry_queue_cancel(k, 1, &op), -ENOENT);
	kretry_close(k);
}

static void wait_open_waits_on_and_is_charged_once(void **state)
{
	struct kretry_policy p = budget_and_breaker(5 * MS, 60 * MS);
	struct kretry *k = open_process();
	struct kretry_op op;
	u64 begin;
	u32 policy;

	(void)state;
	p.flags = KRETRY_POLICY_WAIT_OPEN;
	policy = create(k, p);
	enqueue(k, policy, 1);
	begin = kretry_now(CLOCK_MONOTONIC);
	step(k, policy, KRETRY_EVENT_BEGIN);
	step(k, policy, KRETRY_EVENT_TRANSIENT);
	op = read_one(k);
	assert_true(kretry_now(CLOCK_MONOTONIC) >= begin + 60 * MS);
	assert_int_equal(op.verdict, KRETRY_GO);
	assert_int_equal(op.flags, KRETRY_OP_QUEUE | KRETRY_OP_PROBE);
	assert_int_equal(op.attempt, 1);
	/* The charges of this one and of the other failure, which was granted a retry too. */
	assert_true(stat_of(k, policy, 1).balance_utok == 0);
	assert_true(count_of(k, policy).charged_utok == 2 * KRETRY_UTOK);
	assert_int_equal(continue_op(k, &op, KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(stat_of(k, policy, 1).state, KRETRY_CLOSED);
	kretry_close(k);
}

static void shutdown_and_close_give_charges_back(void **state)
{
	struct kretry *k = open_process(), *other = open_process();
	struct kretry_policy p = name_policy(budget_of(4), "queue-close");
	u32 policy, seen;

	(void)state;
	p.backoff.base_ns = 10 * MS;
	policy = create(k, p);
	seen = create(other, p);
	enqueue(k, policy, 1);
	enqueue(k, policy, 2);
	assert_true(stat_of(other, seen, 1).balance_utok == 2 * KRETRY_UTOK);
	assert_int_equal(kretry_shutdown(k), 0);
	assert_true(stat_of(other, seen, 1).balance_utok == 4 * KRETRY_UTOK);
	pause_ns(15 * MS);
	assert_empty(k);
	policy = create(k, p);
	enqueue(k, policy, 1);
	assert_true(stat_of(other, seen, 1).balance_utok == 3 * KRETRY_UTOK);
	kretry_close(k);
	assert_true(stat_of(other, seen, 1).balance_utok == 4 * KRETRY_UTOK);
	assert_int_equal(count_of(other, seen).queued, 0);
	kretry_close(other);
}

/* A probe whose slot has not come yet. */
static void cancelled_probe_is_there_for_others(void **state)
{
	struct kretry_policy p = breaker_of(10 * MS, 3600 * SEC);
	struct kretry *k = open_process();
	struct kretry_op op, first;
	u32 policy;

	(void)state;
	p.flags = KRETRY_POLICY_PACE_ALL;
	p.pacing.pace_ns = 100 * SEC;
	p.pacing.horizon_ns = 3600 * SEC;
	policy = create(k, p);
	first = step(k, policy, KRETRY_EVENT_BEGIN);
	assert_int_equal(continue_op(k, &first, KRETRY_EVENT_TRANSIENT), KRETRY_RETRY);
	step(k, policy, KRETRY_EVENT_TRANSIENT);
	pause_ns(15 * MS);
	op = queued_op(policy, 1);
	op.event = KRETRY_EVENT_BEGIN;
	assert_int_equal(kretry_step(k, &op), 0);
	assert_int_equal(op.verdict, KRETRY_GO);
	assert_int_equal(op.flags, KRETRY_OP_QUEUE | KRETRY_OP_QUEUED | KRETRY_OP_PROBE);
	assert_int_equal(step(k, policy, KRETRY_EVENT_BEGIN).verdict, KRETRY_STOP_OPEN);
	assert_int_equal(kretry_queue_cancel(k, 1, &op), 0);
	assert_int_equal(step(k, policy, KRETRY_EVENT_BEGIN).verdict, KRETRY_GO);
	kretry_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cancel_gives_the_charge_back_once),
		cmocka_unit_test(stop_at_the_deadline_costs_nothing),
		cmocka_unit_test(wait_open_waits_on_and_is_charged_once),
		cmocka_unit_test(shutdown_and_close_give_charges_back),
		cmocka_unit_test(cancelled_probe_is_there_for_others),
	};

	return run_group(tests);
}
