// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler's tasks under a breaker and under pacing, decided in the process. */
#include "jobs.h"

static u32 breaker_policy(struct fixture *f, u64 base, u64 open_ns, u32 flags)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, base, SEC);

	p.flags = flags;
	p.breaker.consecutive = 2;
	p.breaker.probes = 1;
	p.breaker.open_ns = open_ns;
	p.breaker.open_cap_ns = open_ns;
	p.breaker.probe_timeout_ns = 3600 * SEC;
	assert_int_equal(kretry_policy_create(f->k, &p), 0);
	f->policy = p.id;
	return p.id;
}

/* From another client of the same policy. */
static void fail_twice(struct fixture *f)
{
	struct kretry_op op = { .policy = f->policy };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		op.event = KRETRY_EVENT_TRANSIENT;
		op.start_ns = 0;
		assert_int_equal(kretry_step(f->k, &op), 0);
	}
}

static u8 begin_verdict(struct fixture *f)
{
	struct kretry_op op = { .policy = f->policy, .event = KRETRY_EVENT_BEGIN };

	assert_int_equal(kretry_step(f->k, &op), 0);
	return op.verdict;
}

static void start_under_an_open_breaker_is_done_without_an_attempt(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, MS, 1);
	breaker_policy(&f, MS, SEC, 0);
	fail_twice(&f);
	start_job(&f, &job, 0);
	run_all(&f);
	assert_int_equal(job.attempts, 0);
	assert_int_equal(job.dones, 1);
	assert_int_equal(job.last.verdict, KRETRY_STOP_OPEN);
	close_fixture(&f);
}

static void retry_waits_for_an_open_breaker_and_probes_it(void **state)
{
	struct fixture f;
	struct job job;
	u64 begin;

	(void)state;
	open_own(&f, MS, 1);
	breaker_policy(&f, MS, 50 * MS, KRETRY_POLICY_WAIT_OPEN);
	start_job(&f, &job, -1);
	kretry_sched_poll(f.s);
	begin = kretry_now(CLOCK_MONOTONIC);
	fail_twice(&f);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_TRANSIENT, 0, 0), 0);
	job.failures = 0;
	run_all(&f);
	assert_int_equal(job.attempts, 2);
	assert_int_equal(job.last.verdict, KRETRY_DONE);
	assert_true(kretry_now(CLOCK_MONOTONIC) - begin >= 50 * MS);
	assert_int_equal(begin_verdict(&f), KRETRY_GO);
	close_fixture(&f);
}

/* All fail their probes once, so each of them opens the breaker again for all the others. */
static void hundred_waiting_tasks_get_one_probe_at_a_time(void **state)
{
	struct kretry_stat stat = { 0 };
	struct fixture f;
	struct job *jobs;
	unsigned int i;

	(void)state;
	open_own(&f, MS, 100);
	breaker_policy(&f, MS, 5 * MS, KRETRY_POLICY_WAIT_OPEN);
	jobs = start_jobs(&f, 100, 2);
	run_all(&f);
	for (i = 0; i < 100; i++) {
		assert_int_equal(jobs[i].dones, 1);
		assert_int_equal(jobs[i].attempts, 3);
		assert_int_equal(jobs[i].last.verdict, KRETRY_DONE);
	}
	stat.policy = f.policy;
	assert_int_equal(kretry_stat(f.k, &stat), 0);
	assert_true(stat.go == 300);
	assert_true(stat.events[KRETRY_EVENT_BEGIN] > 300);
	assert_true(stat.opened > 2);
	assert_int_equal(stat.leases, 0);
	close_fixture(&f);
	free(jobs);
}

/* Its deadline has come as soon as it is given, again and again: that is no admission. */
static void retry_without_delay_does_not_start_without_a_probe(void **state)
{
	struct fixture f;
	struct job jobs[2];
	unsigned int i;

	(void)state;
	open_own(&f, MS, 2);
	breaker_policy(&f, 0, 10 * MS, KRETRY_POLICY_WAIT_OPEN);
	start_job(&f, &jobs[0], -1);
	start_job(&f, &jobs[1], -1);
	kretry_sched_poll(f.s);
	fail_twice(&f);
	for (i = 0; i < 2; i++)
		assert_int_equal(kretry_task_report(jobs[i].task, KRETRY_EVENT_TRANSIENT, 0, 0), 0);
	sleep_ns(15 * MS);
	for (i = 0; i < 20; i++)
		kretry_sched_poll(f.s);
	assert_int_equal(f.attempts, 3);
	jobs[0].failures = 0;
	jobs[1].failures = 0;
	assert_int_equal(kretry_task_report(jobs[jobs[0].attempts == 1].task, KRETRY_EVENT_OK, 0,
					    0), 0);
	run_all(&f);
	assert_int_equal(f.attempts, 4);
	close_fixture(&f);
}

static void cancelled_task_gives_its_probe_back(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, MS, 1);
	breaker_policy(&f, MS, 10 * MS, 0);
	fail_twice(&f);
	sleep_ns(15 * MS);
	start_job(&f, &job, -1);
	kretry_sched_poll(f.s);
	assert_int_equal(job.attempts, 1);
	assert_int_equal(begin_verdict(&f), KRETRY_STOP_OPEN);
	assert_int_equal(kretry_task_cancel(job.task), 0);
	assert_int_equal(begin_verdict(&f), KRETRY_GO);
	close_fixture(&f);
}

static void exit_gives_probes_back(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, MS, 1);
	breaker_policy(&f, MS, 10 * MS, 0);
	fail_twice(&f);
	sleep_ns(15 * MS);
	start_job(&f, &job, -1);
	kretry_sched_poll(f.s);
	kretry_sched_exit(f.s);
	f.s = NULL;
	assert_int_equal(begin_verdict(&f), KRETRY_GO);
	close_fixture(&f);
}

static void paced_tasks_start_in_their_slots(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, MS, SEC);
	u64 begin = kretry_now(CLOCK_MONOTONIC);
	struct fixture f;
	struct job *jobs;
	unsigned int i, paced = 0;

	(void)state;
	open_own(&f, MS, 10);
	p.flags = KRETRY_POLICY_PACE_ALL;
	p.pacing.pace_ns = 50 * MS;
	p.pacing.horizon_ns = 250 * MS;
	assert_int_equal(kretry_policy_create(f.k, &p), 0);
	f.policy = p.id;
	jobs = start_jobs(&f, 10, 0);
	run_all(&f);
	for (i = 0; i < 10; i++)
		paced += jobs[i].last.verdict == KRETRY_STOP_PACED && !jobs[i].attempts;
	/* Slots at 0 to 250 ms; starting all ten takes less than two of them. */
	assert_in_range(paced, 2, 4);
	assert_int_equal(f.attempts, 10 - paced);
	assert_int_equal(f.early, 0);
	assert_true(kretry_now(CLOCK_MONOTONIC) - begin >= 250 * MS);
	close_fixture(&f);
	free(jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_under_an_open_breaker_is_done_without_an_attempt),
		cmocka_unit_test(retry_waits_for_an_open_breaker_and_probes_it),
		cmocka_unit_test(hundred_waiting_tasks_get_one_probe_at_a_time),
		cmocka_unit_test(retry_without_delay_does_not_start_without_a_probe),
		cmocka_unit_test(cancelled_task_gives_its_probe_back),
		cmocka_unit_test(exit_gives_probes_back),
		cmocka_unit_test(paced_tasks_start_in_their_slots),
	};

	return run_group(tests);
}
