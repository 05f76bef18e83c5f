// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The end of a scheduler: what it leaves on a ring that it shared. */
#include "jobs.h"

#include <sys/syscall.h>

static void queue_nop(struct fixture *f, u64 user_data)
{
	struct io_uring_sqe *sqe = kretry_sched_get_sqe(f->s);

	assert_non_null(sqe);
	io_uring_prep_nop(sqe);
	sqe->user_data = user_data;
}

/* @count jobs asleep for an hour. */
static struct job *start_sleepers(struct fixture *f, unsigned int count)
{
	struct job *jobs = start_jobs(f, count, 1);

	kretry_sched_poll(f->s);
	return jobs;
}

static void end_scheduler(struct fixture *f)
{
	kretry_sched_exit(f->s);
	f->s = NULL;
}

/* Only others' completions are left, @first to @last in order, and the ring works. */
static void assert_left(struct fixture *f, u64 first, u64 last)
{
	struct io_uring_cqe *cqe;
	u64 i;

	for (i = first; i <= last; i++) {
		assert_int_equal(io_uring_peek_cqe(&f->ring, &cqe), 0);
		assert_true(cqe->user_data == i);
		assert_int_equal(cqe->res, 0);
		io_uring_cqe_seen(&f->ring, cqe);
	}
	assert_int_equal(io_uring_peek_cqe(&f->ring, &cqe), -EAGAIN);
	io_uring_prep_nop(io_uring_get_sqe(&f->ring));
	assert_int_equal(io_uring_submit_and_wait(&f->ring, 1), 1);
	assert_int_equal(io_uring_peek_cqe(&f->ring, &cqe), 0);
	io_uring_cqe_seen(&f->ring, cqe);
}

static const unsigned int ring_kinds[] = {
	0, IORING_SETUP_SQPOLL, IORING_SETUP_CQE32,
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

static void exit_asleep_leaves_only_others_completions_in_order(void **state)
{
	unsigned int n, dones, attempts;
	struct fixture f;
	struct job *jobs;
	u64 i;

	(void)state;
	for (n = 0; n < ARRAY_SIZE(ring_kinds); n++) {
		open_shared(&f, 3600 * SEC, ring_kinds[n], 100);
		jobs = start_sleepers(&f, 100);
		for (i = 1; i <= 6; i++) {
			queue_nop(&f, i);
			/* Cancels, so that completions of both kinds alternate. */
			assert_int_equal(kretry_task_cancel(jobs[i].task), 0);
			kretry_sched_poll(f.s);
		}
		dones = f.dones;
		attempts = f.attempts;
		end_scheduler(&f);
		assert_int_equal(f.dones, dones);
		assert_int_equal(f.attempts, attempts);
		assert_left(&f, 1, 6);
		close_fixture(&f);
		free(jobs);
	}
}

/* Their completions are there, and nobody has looked yet. */
static void exit_with_timeouts_fired_calls_nobody(void **state)
{
	struct fixture f;
	struct job *jobs;

	(void)state;
	open_shared(&f, 5 * MS, 0, 100);
	jobs = start_sleepers(&f, 100);
	io_uring_submit(&f.ring);
	sleep_ns(20 * MS);
	end_scheduler(&f);
	assert_int_equal(f.attempts, 100);
	assert_int_equal(f.dones, 0);
	assert_left(&f, 1, 0);
	close_fixture(&f);
	free(jobs);
}

static void exit_with_nothing_submitted_leaves_nothing(void **state)
{
	struct fixture f;
	struct job *jobs;

	(void)state;
	open_shared(&f, 3600 * SEC, 0, 4);
	jobs = start_sleepers(&f, 4);
	assert_int_equal(io_uring_sq_ready(&f.ring), 4);
	end_scheduler(&f);
	assert_int_equal(io_uring_sq_ready(&f.ring), 0);
	assert_left(&f, 1, 0);
	close_fixture(&f);
	free(jobs);
}

/* There is no room for the scheduler's own: it ends all the same, and these come with its tag. */
static void exit_on_a_ring_full_of_others_completions_returns(void **state)
{
	struct io_uring_cqe *cqe;
	struct fixture f;
	struct job *jobs;
	u64 i, next = 0;

	(void)state;
	open_shared(&f, 3600 * SEC, 0, 50);
	jobs = start_sleepers(&f, 50);
	for (i = 1; i <= 40; i++)
		queue_nop(&f, i);
	io_uring_submit(&f.ring);
	end_scheduler(&f);
	while (io_uring_peek_cqe(&f.ring, &cqe) == 0) {
		if (cqe->user_data >> KRETRY_SCHED_TAG_SHIFT != KRETRY_SCHED_TAG)
			assert_true(cqe->user_data == ++next);
		io_uring_cqe_seen(&f.ring, cqe);
	}
	assert_true(next == 40);
	assert_int_equal(f.dones, 0);
	close_fixture(&f);
	free(jobs);
}

static void exit_and_a_new_scheduler_on_the_same_ring(void **state)
{
	struct fixture f;
	struct job *jobs;
	int i;

	(void)state;
	open_shared(&f, 2 * MS, 0, 50);
	for (i = 0; i < 20; i++) {
		jobs = start_sleepers(&f, 50);
		if (i % 2)
			sleep_ns(2 * MS);
		end_scheduler(&f);
		free(jobs);
		f.attempts = 0;
		assert_int_equal(kretry_sched_init(&f.s, f.k, &f.ring, 50), 0);
		jobs = start_jobs(&f, 50, 1);
		run_all(&f);
		assert_int_equal(f.attempts, 100);
		assert_int_equal(f.early, 0);
		free(jobs);
	}
	close_fixture(&f);
}

static void exit_of_an_own_ring_with_sleepers(void **state)
{
	struct fixture f;
	struct job *jobs;

	(void)state;
	open_own(&f, 3600 * SEC, 1000);
	jobs = start_sleepers(&f, 1000);
	end_scheduler(&f);
	assert_int_equal(f.dones, 0);
	close_fixture(&f);
	free(jobs);
}

/* Not every liburing has functions for these. */
static void register_ring(struct fixture *f, unsigned int opcode, void *arg, unsigned int count)
{
	assert_int_equal(syscall(__NR_io_uring_register, f->ring.ring_fd, opcode, arg, count), 0);
}

/* A task that cannot sleep is neither called early nor waited for. */
static void run_on_a_ring_that_refuses_timeouts_says_so(void **state)
{
	struct io_uring_restriction only_nop = {
		.opcode = IORING_RESTRICTION_SQE_OP,
		.sqe_op = IORING_OP_NOP,
	};
	struct fixture f;
	struct job job;

	(void)state;
	open_shared(&f, MS, IORING_SETUP_R_DISABLED, 1);
	register_ring(&f, IORING_REGISTER_RESTRICTIONS, &only_nop, 1);
	register_ring(&f, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	start_job(&f, &job, 1);
	assert_int_equal(kretry_sched_run(f.s, NULL, NULL, NULL), -EACCES);
	assert_int_equal(job.attempts, 1);
	assert_int_equal(kretry_sched_pending(f.s), 1);
	close_fixture(&f);
}

static void init_on_a_polled_ring_einval(void **state)
{
	struct kretry_sched *s = NULL;
	struct io_uring ring;
	struct fixture f;

	(void)state;
	open_handle(&f, MS);
	assert_int_equal(io_uring_queue_init(8, &ring, IORING_SETUP_IOPOLL), 0);
	assert_int_equal(kretry_sched_init(&s, f.k, &ring, 1), -EINVAL);
	assert_null(s);
	io_uring_queue_exit(&ring);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_asleep_leaves_only_others_completions_in_order),
		cmocka_unit_test(exit_with_timeouts_fired_calls_nobody),
		cmocka_unit_test(exit_with_nothing_submitted_leaves_nothing),
		cmocka_unit_test(exit_on_a_ring_full_of_others_completions_returns),
		cmocka_unit_test(exit_and_a_new_scheduler_on_the_same_ring),
		cmocka_unit_test(exit_of_an_own_ring_with_sleepers),
		cmocka_unit_test(run_on_a_ring_that_refuses_timeouts_says_so),
		cmocka_unit_test(init_on_a_polled_ring_einval),
	};

	return run_group(tests);
}
