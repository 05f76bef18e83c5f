// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler on a ring that it shares: timeouts, cancels, lost completions, and the end. */
#include "jobs.h"

static void overwrite_stack(void)
{
	volatile unsigned char junk[4096];
	size_t i;

	for (i = 0; i < sizeof(junk); i++)
		junk[i] = 0xa5;
}

/* The attempts fail, and their timeouts are queued but not submitted when this returns. */
static __attribute__((__noinline__)) void arm(struct fixture *f)
{
	kretry_sched_poll(f->s);
}

static void timeouts_armed_in_a_helper_fire_in_time(void **state)
{
	static const unsigned int flags[] = { 0, IORING_SETUP_SQPOLL };
	unsigned int i, n, round;
	struct fixture f;
	struct job *jobs;

	(void)state;
	for (n = 0; n < ARRAY_SIZE(flags); n++) {
		open_shared(&f, 5 * MS, flags[n], 1000);
		for (round = 0; round < 10; round++) {
			jobs = start_jobs(&f, 1000, 1);
			arm(&f);
			overwrite_stack();
			run_all(&f);
			for (i = 0; i < 1000; i++)
				assert_int_equal(jobs[i].attempts, 2);
			free(jobs);
		}
		assert_int_equal(f.early, 0);
		assert_true(f.latest_ns < 5 * SEC);
		close_fixture(&f);
	}
}

static void prep_sleep_completes_at_its_deadline_on_either_clock(void **state)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;
	struct fixture f;
	unsigned int i;
	u64 deadline;

	(void)state;
	open_shared(&f, MS, 0, 1);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		deadline = kretry_now(clocks[i]) + 20 * MS;
		kretry_prep_sleep(io_uring_get_sqe(&f.ring), &ts, clocks[i], deadline);
		assert_int_equal(io_uring_submit_and_wait(&f.ring, 1), 1);
		assert_true(kretry_now(clocks[i]) >= deadline);
		assert_true(kretry_now(clocks[i]) < deadline + 5 * SEC);
		assert_int_equal(io_uring_peek_cqe(&f.ring, &cqe), 0);
		assert_int_equal(cqe->res, -ETIME);
		io_uring_cqe_seen(&f.ring, cqe);
		/* One that has passed completes at once. */
		kretry_prep_sleep(io_uring_get_sqe(&f.ring), &ts, clocks[i], 1);
		assert_int_equal(io_uring_submit_and_wait(&f.ring, 1), 1);
		assert_int_equal(io_uring_peek_cqe(&f.ring, &cqe), 0);
		assert_int_equal(cqe->res, -ETIME);
		io_uring_cqe_seen(&f.ring, cqe);
	}
	close_fixture(&f);
}

/* -------- the caller's loop -------- */

static void queue_nop(struct fixture *f, u64 user_data)
{
	struct io_uring_sqe *sqe = kretry_sched_get_sqe(f->s);

	assert_non_null(sqe);
	io_uring_prep_nop(sqe);
	sqe->user_data = user_data;
}

/* One turn of a caller's own loop; others' completions must come in the order of @next. */
static void turn(struct fixture *f, u64 *next)
{
	struct io_uring_cqe *cqe;

	kretry_sched_poll(f->s);
	/* That may have ended the last task: then there is nothing to wait for. */
	assert_true(io_uring_submit_and_wait(&f->ring, kretry_sched_pending(f->s) != 0) >= 0);
	while (io_uring_peek_cqe(&f->ring, &cqe) == 0) {
		if (!kretry_sched_cqe(f->s, cqe))
			assert_true(cqe->user_data == ++*next);
		io_uring_cqe_seen(&f->ring, cqe);
	}
}

static void callers_loop_gets_its_completions_and_tasks_theirs(void **state)
{
	u64 queued = 0, seen = 0;
	struct fixture f;
	struct job *jobs;

	(void)state;
	open_shared(&f, 2 * MS, 0, 500);
	jobs = start_jobs(&f, 500, 3);
	while (f.dones < 500 || seen < queued) {
		if (queued < 3000)
			queue_nop(&f, ++queued);
		turn(&f, &seen);
	}
	assert_int_equal(f.attempts, 2000);
	assert_int_equal(f.early, 0);
	assert_true(queued > 1);
	close_fixture(&f);
	free(jobs);
}

/* Without a delay there is no timeout whose completion would end the wait. */
static void callers_loop_does_not_sleep_over_retries_without_delay(void **state)
{
	struct fixture f;
	struct job job;
	u64 seen = 0;

	(void)state;
	open_shared(&f, 0, 0, 1);
	start_job(&f, &job, 50);
	while (!job.dones)
		turn(&f, &seen);
	assert_int_equal(job.attempts, 51);
	close_fixture(&f);
}

static u64 last_foreign;

static void on_foreign(const struct io_uring_cqe *cqe, void *arg)
{
	(void)arg;
	assert_true(cqe->user_data == ++last_foreign);
}

static void run_hands_over_others_completions(void **state)
{
	struct fixture f;
	struct job job;
	u64 i;

	(void)state;
	open_shared(&f, 5 * MS, 0, 1);
	start_job(&f, &job, 1);
	last_foreign = 0;
	for (i = 1; i <= 40; i++)
		queue_nop(&f, i);
	assert_int_equal(kretry_sched_run(f.s, on_foreign, NULL, NULL), 0);
	assert_true(last_foreign == 40);
	assert_int_equal(job.attempts, 2);
	close_fixture(&f);
}

/* -------- cancel -------- */

static void cancel_asleep_or_under_way_is_done_once(void **state)
{
	struct job asleep, under_way, fresh;
	struct fixture f;

	(void)state;
	open_shared(&f, 3600 * SEC, 0, 3);
	start_job(&f, &asleep, 1);
	start_job(&f, &under_way, -1);
	arm(&f);
	start_job(&f, &fresh, 1);
	assert_int_equal(kretry_task_cancel(asleep.task), 0);
	assert_int_equal(kretry_task_cancel(under_way.task), 0);
	assert_int_equal(kretry_task_cancel(fresh.task), 0);
	assert_int_equal(kretry_task_cancel(fresh.task), -EALREADY);
	assert_int_equal(kretry_sched_pending(f.s), 0);
	assert_int_equal(asleep.dones + under_way.dones + fresh.dones, 3);
	assert_int_equal(asleep.last.verdict, KRETRY_DONE);
	assert_int_equal(asleep.attempts, 1);
	assert_int_equal(under_way.attempts, 1);
	assert_int_equal(fresh.attempts, 0);
	close_fixture(&f);
}

/* The new task must neither wake with the old one's timeout nor lose its own. */
static void cancelled_slot_reused_at_once_sleeps_to_the_new_deadline(void **state)
{
	u32 long_one, short_one;
	struct fixture f;
	struct job job;
	int i;

	(void)state;
	open_shared(&f, 5 * MS, 0, 1);
	short_one = f.policy;
	long_one = job_policy(&f, KRETRY_JITTER_NONE, 100 * MS);
	for (i = 0; i < 10; i++) {
		f.policy = i % 2 ? long_one : short_one;
		start_job(&f, &job, 1);
		arm(&f);
		if (i % 3)
			io_uring_submit(&f.ring);
		assert_int_equal(kretry_task_cancel(job.task), 0);
		f.policy = i % 2 ? short_one : long_one;
		start_job(&f, &job, 1);
		run_all(&f);
		assert_int_equal(job.attempts, 2);
	}
	assert_int_equal(f.early, 0);
	assert_true(f.latest_ns < 5 * SEC);
	close_fixture(&f);
}

/* One in two falls due while they are cancelled, some just before, some just after. */
static struct job *start_mixed(struct fixture *f, u32 soon, u32 late)
{
	struct job *jobs = calloc(500, sizeof(*jobs));
	unsigned int i, attempts = f->attempts;
	u64 seen = 0;

	assert_non_null(jobs);
	for (i = 0; i < 500; i++) {
		f->policy = i % 2 ? soon : late;
		start_job(f, &jobs[i], 1);
	}
	while (f->attempts <= attempts + 500)
		turn(f, &seen);
	return jobs;
}

static void cancel_around_the_deadline_ends_each_task_once(void **state)
{
	unsigned int i, round, cancelled = 0;
	struct fixture f;
	struct job *jobs;
	u32 soon, late;
	u64 seen;

	(void)state;
	open_shared(&f, 3600 * SEC, 0, 500);
	late = f.policy;
	soon = job_policy(&f, KRETRY_JITTER_FULL, 4 * MS);
	for (round = 0; round < 40; round++) {
		jobs = start_mixed(&f, soon, late);
		for (i = 0; i < 500; i++) {
			seen = 0;
			if (i % 20 == 0) {
				queue_nop(&f, 1);
				turn(&f, &seen);
			}
			cancelled += kretry_task_cancel(jobs[i].task) == 0;
		}
		run_all(&f);
		for (i = 0; i < 500; i++) {
			assert_int_equal(jobs[i].dones, 1);
			assert_in_range(jobs[i].attempts, 1, i % 2 ? 2 : 1);
		}
		free(jobs);
	}
	assert_in_range(cancelled, 10000, 19960);
	assert_int_equal(f.early, 0);
	close_fixture(&f);
}

/* -------- completions that are lost, late or wrong -------- */

/* Takes the completion away from the scheduler and counts it as the kernel does. */
static u64 drop_completion(struct fixture *f)
{
	struct io_uring_cqe *cqe;
	u64 user_data;

	assert_true(io_uring_submit_and_wait(&f->ring, 1) >= 0);
	assert_int_equal(io_uring_peek_cqe(&f->ring, &cqe), 0);
	user_data = cqe->user_data;
	io_uring_cqe_seen(&f->ring, cqe);
	++*f->ring.cq.koverflow;
	return user_data;
}

static void dropped_completion_is_found_and_a_late_one_means_nothing(void **state)
{
	struct io_uring_cqe late = { .res = -ETIME };
	struct fixture f;
	struct job job, asleep;

	(void)state;
	open_shared(&f, 5 * MS, 0, 2);
	start_job(&f, &job, 2);
	arm(&f);
	f.policy = job_policy(&f, KRETRY_JITTER_NONE, 100 * MS);
	start_job(&f, &asleep, 1);
	arm(&f);
	late.user_data = drop_completion(&f);
	kretry_sched_poll(f.s);
	assert_int_equal(job.attempts, 2);
	assert_int_equal(asleep.attempts, 1);
	sleep_ns(6 * MS);
	assert_int_equal(kretry_sched_cqe(f.s, &late), 1);
	assert_int_equal(job.attempts, 2);
	run_all(&f);
	assert_int_equal(job.attempts, 3);
	assert_int_equal(asleep.attempts, 2);
	assert_int_equal(f.early, 0);
	close_fixture(&f);
}

static void dropped_cancel_does_not_hold_its_slot(void **state)
{
	struct fixture f;
	struct job job;
	int i;

	(void)state;
	open_shared(&f, 3600 * SEC, 0, 1);
	start_job(&f, &job, 1);
	arm(&f);
	assert_int_equal(kretry_task_cancel(job.task), 0);
	kretry_sched_poll(f.s);
	for (i = 0; i < 2; i++)
		drop_completion(&f);
	f.policy = job_policy(&f, KRETRY_JITTER_NONE, 5 * MS);
	start_job(&f, &job, 1);
	run_all(&f);
	assert_int_equal(job.attempts, 2);
	close_fixture(&f);
}

static void completion_before_the_deadline_is_slept_again(void **state)
{
	struct io_uring_cqe early = { .res = -ETIME };
	struct fixture f;
	struct job job;

	(void)state;
	open_shared(&f, 50 * MS, 0, 1);
	start_job(&f, &job, 1);
	arm(&f);
	early.user_data = f.ring.sq.sqes[0].user_data;
	assert_true(early.user_data >> KRETRY_SCHED_TAG_SHIFT == KRETRY_SCHED_TAG);
	assert_int_equal(kretry_sched_cqe(f.s, &early), 1);
	assert_int_equal(job.attempts, 1);
	run_all(&f);
	assert_int_equal(job.attempts, 2);
	assert_int_equal(f.early, 0);
	close_fixture(&f);
}

static void timeout_cancelled_by_somebody_else_is_slept_again(void **state)
{
	struct io_uring_sqe *sqe;
	struct fixture f;
	struct job job;

	(void)state;
	open_shared(&f, 50 * MS, 0, 1);
	start_job(&f, &job, 1);
	arm(&f);
	sqe = kretry_sched_get_sqe(f.s);
	io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY);
	run_all(&f);
	assert_int_equal(job.attempts, 2);
	assert_int_equal(f.early, 0);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts_armed_in_a_helper_fire_in_time),
		cmocka_unit_test(prep_sleep_completes_at_its_deadline_on_either_clock),
		cmocka_unit_test(callers_loop_gets_its_completions_and_tasks_theirs),
		cmocka_unit_test(callers_loop_does_not_sleep_over_retries_without_delay),
		cmocka_unit_test(run_hands_over_others_completions),
		cmocka_unit_test(cancel_asleep_or_under_way_is_done_once),
		cmocka_unit_test(cancelled_slot_reused_at_once_sleeps_to_the_new_deadline),
		cmocka_unit_test(cancel_around_the_deadline_ends_each_task_once),
		cmocka_unit_test(dropped_completion_is_found_and_a_late_one_means_nothing),
		cmocka_unit_test(dropped_cancel_does_not_hold_its_slot),
		cmocka_unit_test(completion_before_the_deadline_is_slept_again),
		cmocka_unit_test(timeout_cancelled_by_somebody_else_is_slept_again),
	};

	return run_group(tests);
}
