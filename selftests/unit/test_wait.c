// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Waits on the caller's ring where the kernel has no command for them: granted, or not, at once. */
#include "waits.h"

/* -------- granted -------- */

static void retry_completes_at_its_deadline_and_a_link_goes_on(void **state)
{
	struct fixture f;
	u64 deadline;

	(void)state;
	open_fixture(&f, plain(30 * MS));
	fresh_op(&f, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(prep(&f), 0);
	assert_int_equal(f.w.op.verdict, KRETRY_RETRY);
	assert_int_equal(prep(&f), -EBUSY);
	f.ring.sq.sqe_tail--;
	prep_link(&f);
	deadline = f.w.op.deadline_ns;
	assert_int_equal(wait_result(&f), 0);
	assert_true(kretry_now(CLOCK_MONOTONIC) >= deadline);
	assert_int_equal(f.w.op.verdict, KRETRY_GO);
	assert_int_equal(f.w.op.attempt, 1);
	assert_true(f.w.op.deadline_ns >= deadline);
	assert_int_equal(next_result(&f, LINK_DATA), 0);
	assert_int_equal(kretry_wait_result(&f.w, 0), -EINVAL);
	close_fixture(&f);
}

static void begin_completes_at_once(void **state)
{
	u64 begin = kretry_now(CLOCK_MONOTONIC);
	struct fixture f;

	(void)state;
	open_fixture(&f, plain(3600 * SEC));
	fresh_op(&f, KRETRY_EVENT_BEGIN);
	assert_int_equal(prep(&f), 0);
	prep_link(&f);
	assert_int_equal(wait_result(&f), 0);
	assert_int_equal(next_result(&f, LINK_DATA), 0);
	assert_int_equal(f.w.op.verdict, KRETRY_GO);
	assert_int_equal(f.w.op.attempt, 0);
	assert_true(f.w.op.deadline_ns >= begin);
	close_fixture(&f);
}

static void hundred_waits_of_one_ring_never_early(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_FULL, 50 * MS, SEC);
	struct kretry_wait *waits = calloc(100, sizeof(*waits));
	struct io_uring_cqe *cqe;
	struct fixture f;
	u64 deadlines[100];
	u32 i;

	(void)state;
	open_fixture(&f, p);
	for (i = 0; i < 100; i++) {
		waits[i].op = (struct kretry_op){
			.policy = f.policy, .event = KRETRY_EVENT_TRANSIENT, .user_data = i,
		};
		waits[i].user_data = i;
		if (!io_uring_sq_space_left(&f.ring))
			io_uring_submit(&f.ring);
		assert_int_equal(kretry_prep_wait(io_uring_get_sqe(&f.ring), f.k, &waits[i]), 0);
		deadlines[i] = waits[i].op.deadline_ns;
	}
	for (i = 0; i < 100; i++) {
		assert_true(io_uring_submit_and_wait(&f.ring, 1) >= 0);
		assert_int_equal(io_uring_peek_cqe(&f.ring, &cqe), 0);
		assert_int_equal(kretry_wait_result(&waits[cqe->user_data], cqe->res), 0);
		assert_true(deadlines[cqe->user_data] <= kretry_now(CLOCK_MONOTONIC));
		deadlines[cqe->user_data] = KRETRY_NS_MAX;
		io_uring_cqe_seen(&f.ring, cqe);
	}
	close_fixture(&f);
	free(waits);
}

/* -------- stopped at once -------- */

/* The rest of a chain is cancelled, while what is behind it goes on; in either order. */
static void assert_broken_before_nop(struct fixture *f)
{
	struct io_uring_cqe *cqe;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		assert_true(io_uring_submit_and_wait(&f->ring, 1) >= 0);
		assert_int_equal(io_uring_peek_cqe(&f->ring, &cqe), 0);
		assert_true(cqe->user_data == LINK_DATA || cqe->user_data == NOP_DATA);
		assert_int_equal(cqe->res, cqe->user_data == LINK_DATA ? -ECANCELED : 0);
		io_uring_cqe_seen(&f->ring, cqe);
	}
}

static void assert_stops(struct fixture *f, u8 event, u16 flags, u8 verdict, int error)
{
	struct io_uring_sqe *sqe;

	fresh_op(f, event)->flags = flags;
	assert_int_equal(prep(f), 0);
	prep_link(f);
	sqe = io_uring_get_sqe(&f->ring);
	io_uring_prep_nop(sqe);
	sqe->user_data = NOP_DATA;
	assert_int_equal(io_uring_submit(&f->ring), 3);
	assert_int_equal(wait_result(f), -error);
	assert_int_equal(f->w.op.verdict, verdict);
	assert_int_equal(f->w.op.attempt, 0);
	assert_broken_before_nop(f);
}

static void stop_of_each_kind_has_its_errno_and_breaks_a_link(void **state)
{
	struct kretry_policy p = plain(SEC);
	struct fixture f;

	(void)state;
	p.max_elapsed_ns = SEC / 2;
	open_fixture(&f, p);
	assert_stops(&f, KRETRY_EVENT_PERMANENT, 0, KRETRY_STOP_PERMANENT,
		     KRETRY_ERRNO_STOP_PERMANENT);
	assert_stops(&f, KRETRY_EVENT_UNKNOWN, 0, KRETRY_STOP_UNSAFE, KRETRY_ERRNO_STOP_UNSAFE);
	assert_stops(&f, KRETRY_EVENT_TRANSIENT, KRETRY_OP_NO_RETRY, KRETRY_STOP_HINT,
		     KRETRY_ERRNO_STOP_HINT);
	assert_stops(&f, KRETRY_EVENT_TRANSIENT, 0, KRETRY_STOP_ELAPSED,
		     KRETRY_ERRNO_STOP_ELAPSED);
	p.max_retries = 0;
	f.policy = create(f.k, p);
	assert_stops(&f, KRETRY_EVENT_TRANSIENT, 0, KRETRY_STOP_LIMIT, KRETRY_ERRNO_STOP_LIMIT);
	f.policy = create(f.k, budget_of(1));
	assert_int_equal(wait_for(&f, KRETRY_EVENT_TRANSIENT, 0), 0);
	assert_stops(&f, KRETRY_EVENT_TRANSIENT, 0, KRETRY_STOP_BUDGET, KRETRY_ERRNO_STOP_BUDGET);
	f.policy = create(f.k, breaker_of(SEC, SEC));
	open_breaker(f.k, f.policy);
	assert_stops(&f, KRETRY_EVENT_BEGIN, 0, KRETRY_STOP_OPEN, KRETRY_ERRNO_STOP_OPEN);
	close_fixture(&f);
}

static void stop_does_not_end_a_submission(void **state)
{
	struct io_uring_sqe *sqe;
	struct fixture f;

	(void)state;
	open_fixture(&f, plain(SEC));
	fresh_op(&f, KRETRY_EVENT_PERMANENT);
	assert_int_equal(prep(&f), 0);
	sqe = io_uring_get_sqe(&f.ring);
	io_uring_prep_nop(sqe);
	sqe->user_data = NOP_DATA;
	assert_int_equal(io_uring_submit(&f.ring), 2);
	assert_int_equal(wait_result(&f), -KRETRY_ERRNO_STOP_PERMANENT);
	assert_int_equal(next_result(&f, NOP_DATA), 0);
	close_fixture(&f);
}

static void stop_of_what_the_host_shares_has_its_errno(void **state)
{
	struct kretry_policy p = plain(MS);
	struct kretry_op op;
	struct fixture f;

	(void)state;
	p.flags = KRETRY_POLICY_HINT_SHARED | KRETRY_POLICY_PACE_ALL;
	p.pacing.pace_ns = SEC;
	open_fixture(&f, p);
	assert_int_equal(wait_for(&f, KRETRY_EVENT_BEGIN, 0), 0);
	assert_stops(&f, KRETRY_EVENT_BEGIN, 0, KRETRY_STOP_PACED, KRETRY_ERRNO_STOP_PACED);
	op = (struct kretry_op){
		.policy = f.policy, .event = KRETRY_EVENT_THROTTLED, .flags = KRETRY_OP_HINT,
		.key = 1, .hint_ns = 3600 * SEC,
	};
	assert_int_equal(kretry_step(f.k, &op), 0);
	assert_stops(&f, KRETRY_EVENT_BEGIN, 0, KRETRY_STOP_COOLING, KRETRY_ERRNO_STOP_COOLING);
	close_fixture(&f);
}

static void assert_fails(struct fixture *f, int error)
{
	assert_int_equal(prep(f), error);
	prep_link(f);
	assert_int_equal(wait_result(f), error);
	assert_int_equal(next_result(f, LINK_DATA), -ECANCELED);
}

static void malformed_wait_fails_and_leaves_the_op(void **state)
{
	struct fixture f;
	struct kretry_op was;

	(void)state;
	open_fixture(&f, plain(MS));
	was = *fresh_op(&f, KRETRY_EVENT_OK);
	assert_fails(&f, -EINVAL);
	assert_memory_equal(&f.w.op, &was, sizeof(was));
	fresh_op(&f, KRETRY_EVENT_TRANSIENT)->flags = KRETRY_OP_QUEUE;
	assert_fails(&f, -EINVAL);
	fresh_op(&f, KRETRY_EVENT_NONE);
	assert_fails(&f, -EINVAL);
	fresh_op(&f, KRETRY_EVENT_TRANSIENT)->policy++;
	assert_fails(&f, -ENOENT);
	f.w.op.policy--;
	/* The same wait, made good. */
	assert_int_equal(prep(&f), 0);
	assert_int_equal(wait_result(&f), 0);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retry_completes_at_its_deadline_and_a_link_goes_on),
		cmocka_unit_test(begin_completes_at_once),
		cmocka_unit_test(hundred_waits_of_one_ring_never_early),
		cmocka_unit_test(stop_of_each_kind_has_its_errno_and_breaks_a_link),
		cmocka_unit_test(stop_does_not_end_a_submission),
		cmocka_unit_test(stop_of_what_the_host_shares_has_its_errno),
		cmocka_unit_test(malformed_wait_fails_and_leaves_the_op),
	};

	return run_group(tests);
}
