// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Waits on the caller's ring, without the command: what becomes of them until the deadline. */
#include "waits.h"

static struct kretry_policy budget_and_breaker(u64 delay, u64 open_ns)
{
	struct kretry_policy p = breaker_of(open_ns, 3600 * SEC);

	p.budget = budget_of(2).budget;
	p.backoff.base_ns = delay;
	return p;
}

static void stop_at_the_deadline_costs_nothing_and_breaks_a_link(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, budget_and_breaker(20 * MS, 3600 * SEC));
	fresh_op(&f, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(prep(&f), 0);
	prep_link(&f);
	step(f.k, f.policy, KRETRY_EVENT_TRANSIENT);
	assert_true(stat_of(f.k, f.policy, 1).balance_utok == KRETRY_UTOK);
	assert_int_equal(wait_result(&f), -KRETRY_ERRNO_STOP_OPEN);
	assert_int_equal(next_result(&f, LINK_DATA), -ECANCELED);
	assert_int_equal(f.w.op.verdict, KRETRY_STOP_OPEN);
	assert_int_equal(f.w.op.attempt, 0);
	assert_true(stat_of(f.k, f.policy, 1).balance_utok == 2 * KRETRY_UTOK);
	close_fixture(&f);
}

static void wait_open_waits_until_the_breaker_admits(void **state)
{
	struct kretry_policy p = budget_and_breaker(5 * MS, 50 * MS);
	struct fixture f;
	u64 begin;
	int ret;

	(void)state;
	p.flags = KRETRY_POLICY_WAIT_OPEN;
	open_fixture(&f, p);
	fresh_op(&f, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(prep(&f), 0);
	begin = kretry_now(CLOCK_MONOTONIC);
	step(f.k, f.policy, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(wait_result(&f), -EAGAIN);
	do {
		assert_int_equal(prep(&f), 0);
		ret = wait_result(&f);
	} while (ret == -EAGAIN);
	assert_int_equal(ret, 0);
	assert_true(kretry_now(CLOCK_MONOTONIC) >= begin + 50 * MS);
	assert_int_equal(f.w.op.verdict, KRETRY_GO);
	assert_true(f.w.op.flags & KRETRY_OP_PROBE);
	assert_int_equal(f.w.op.attempt, 1);
	assert_int_equal(continue_op(f.k, &f.w.op, KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(stat_of(f.k, f.policy, 1).state, KRETRY_CLOSED);
	close_fixture(&f);
}

static void paced_waits_complete_in_their_slots(void **state)
{
	struct kretry_policy p = plain(MS);
	u64 begin = kretry_now(CLOCK_MONOTONIC);
	struct fixture f;

	(void)state;
	p.pacing.pace_ns = 40 * MS;
	p.pacing.horizon_ns = SEC;
	open_fixture(&f, p);
	assert_int_equal(wait_for(&f, KRETRY_EVENT_TRANSIENT, 0), 0);
	assert_int_equal(wait_for(&f, KRETRY_EVENT_TRANSIENT, 0), 0);
	assert_int_equal(wait_for(&f, KRETRY_EVENT_TRANSIENT, 0), 0);
	assert_true(kretry_now(CLOCK_MONOTONIC) >= begin + 80 * MS);
	close_fixture(&f);
}

/* -------- cancelled -------- */

static void assert_cancelled(struct fixture *f)
{
	assert_int_equal(wait_result(f), -ECANCELED);
	assert_int_equal(next_result(f, LINK_DATA), -ECANCELED);
	assert_int_equal(f->w.op.attempt, 0);
	assert_int_equal(f->w.op.verdict, KRETRY_VERDICT_NONE);
	assert_true(stat_of(f->k, f->policy, 1).balance_utok == KRETRY_UTOK);
}

static void start_long(struct fixture *f)
{
	fresh_op(f, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(prep(f), 0);
	prep_link(f);
	assert_int_equal(io_uring_submit(&f->ring), 2);
	assert_true(stat_of(f->k, f->policy, 1).balance_utok == 0);
}

static void cancel_gives_the_charge_back_and_breaks_a_link(void **state)
{
	struct kretry_policy p = budget_of(1);
	struct io_uring_sqe *sqe;
	struct fixture f;

	(void)state;
	p.backoff.base_ns = 3600 * SEC;
	p.backoff.cap_ns = 3600 * SEC;
	open_fixture(&f, p);
	start_long(&f);
	sqe = io_uring_get_sqe(&f.ring);
	kretry_prep_wait_cancel(sqe, f.k, &f.w);
	sqe->user_data = CANCEL_DATA;
	assert_int_equal(next_result(&f, CANCEL_DATA), 0);
	assert_cancelled(&f);
	assert_int_equal(kretry_wait_cancel(f.k, &f.ring, &f.w), -ENOENT);
	start_long(&f);
	assert_int_equal(kretry_wait_cancel(f.k, &f.ring, &f.w), 0);
	assert_cancelled(&f);
	sqe = io_uring_get_sqe(&f.ring);
	kretry_prep_wait_cancel(sqe, f.k, &f.w);
	sqe->user_data = CANCEL_DATA;
	assert_int_equal(next_result(&f, CANCEL_DATA), -ENOENT);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stop_at_the_deadline_costs_nothing_and_breaks_a_link),
		cmocka_unit_test(wait_open_waits_until_the_breaker_admits),
		cmocka_unit_test(paced_waits_complete_in_their_slots),
		cmocka_unit_test(cancel_gives_the_charge_back_and_breaks_a_link),
	};

	return run_group(tests);
}
