// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler's tasks, on a real ring: when they are called, how often, and with what. */
#include "jobs.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "device.h"

static const unsigned int ring_kinds[] = {
	0, IORING_SETUP_SQPOLL, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

static void ten_thousand_due_at_once_on_16_completions_all_called(void **state)
{
	struct fixture f;
	struct job *jobs;
	unsigned int i, n;

	(void)state;
	for (n = 0; n < ARRAY_SIZE(ring_kinds); n++) {
		open_shared(&f, 100 * MS, ring_kinds[n], 10000);
		jobs = start_jobs(&f, 10000, 2);
		run_all(&f);
		for (i = 0; i < 10000; i++) {
			assert_int_equal(jobs[i].attempts, 3);
			assert_int_equal(jobs[i].dones, 1);
			assert_int_equal(jobs[i].last.verdict, KRETRY_DONE);
		}
		assert_int_equal(f.early, 0);
		close_fixture(&f);
		free(jobs);
	}
}

static void start_calls_nothing_itself(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, MS, 1);
	start_job(&f, &job, 0);
	assert_int_equal(job.attempts, 0);
	assert_int_equal(kretry_sched_pending(f.s), 1);
	kretry_sched_poll(f.s);
	assert_int_equal(job.attempts, 1);
	assert_int_equal(job.dones, 1);
	assert_int_equal(kretry_sched_pending(f.s), 0);
	close_fixture(&f);
}

static void start_bad_request_is_refused(void **state)
{
	struct kretry_op op = { 0 };
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, MS, 1);
	op.policy = f.policy + 1;
	assert_int_equal(kretry_sched_start(f.s, &op, &job_ops, NULL, NULL), -ENOENT);
	op.policy = f.policy;
	op.flags = KRETRY_OP_HINT;
	assert_int_equal(kretry_sched_start(f.s, &op, &job_ops, NULL, NULL), -EINVAL);
	assert_int_equal(kretry_sched_pending(f.s), 0);
	start_job(&f, &job, 0);
	op.flags = 0;
	assert_int_equal(kretry_sched_start(f.s, &op, &job_ops, NULL, NULL), -EBUSY);
	run_all(&f);
	start_job(&f, &job, 0);
	close_fixture(&f);
}

static void init_size_at_its_edges(void **state)
{
	struct fixture f;
	struct kretry_sched *s = NULL;

	(void)state;
	open_own(&f, MS, 1U << 20);
	assert_int_equal(kretry_sched_init(&s, f.k, NULL, 0), -EINVAL);
	assert_int_equal(kretry_sched_init(&s, f.k, NULL, (1U << 20) + 1), -EINVAL);
	assert_null(s);
	kretry_sched_exit(NULL);
	close_fixture(&f);
}

static void report_invalid_is_refused_and_changes_nothing(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, MS, 1);
	start_job(&f, &job, -1);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_OK, 0, 0), -EALREADY);
	kretry_sched_poll(f.s);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_BEGIN, 0, 0), -EINVAL);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_NONE, 0, 0), -EINVAL);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_PERMANENT + 1, 0, 0), -EINVAL);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_OK, KRETRY_OP_HINT, 1), -EINVAL);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_TRANSIENT, 0, 1), -EINVAL);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_TRANSIENT, KRETRY_OP_QUEUE, 0),
			 -EINVAL);
	assert_int_equal(job.dones, 0);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_PERMANENT, 0, 0), 0);
	assert_int_equal(job.dones, 1);
	assert_int_equal(job.last.verdict, KRETRY_STOP_PERMANENT);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_OK, 0, 0), -EALREADY);
	close_fixture(&f);
}

static void report_hint_is_slept_to(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, MS, 1);
	start_job(&f, &job, -1);
	kretry_sched_poll(f.s);
	assert_int_equal(kretry_task_report(job.task, KRETRY_EVENT_THROTTLED, KRETRY_OP_HINT,
					    30 * MS), 0);
	assert_true(kretry_task_op(job.task)->delay_ns == 30 * MS);
	job.failures = 0;
	run_all(&f);
	assert_int_equal(job.attempts, 2);
	assert_int_equal(f.early, 0);
	close_fixture(&f);
}

/* On a stack of 8 MiB a call for each retry would not get that far. */
static void retries_without_delay_do_not_recurse(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, 0, 1);
	start_job(&f, &job, 300000);
	run_all(&f);
	assert_int_equal(job.attempts, 300001);
	close_fixture(&f);
}

static void closed_policy_ends_its_tasks_with_error(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, MS, 1);
	start_job(&f, &job, 1);
	assert_int_equal(kretry_policy_close(f.k, f.policy), 0);
	run_all(&f);
	assert_int_equal(job.dones, 1);
	assert_int_equal(job.last.verdict, KRETRY_ERROR);
	assert_int_equal(KRETRY_OP_ERRNO(job.last.flags), ENOENT);
	close_fixture(&f);
}

static void waits_of_1_to_20_ms_are_never_early(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_FULL, 20 * MS, 20 * MS);
	struct fixture f;
	struct job *jobs;

	(void)state;
	open_own(&f, MS, 1000);
	p.backoff.floor_ns = MS;
	assert_int_equal(kretry_policy_create(f.k, &p), 0);
	f.policy = p.id;
	jobs = start_jobs(&f, 1000, 20);
	run_all(&f);
	assert_int_equal(f.attempts, 21000);
	assert_int_equal(f.early, 0);
	print_message("# latest of %u attempts: %.3f ms\n", f.attempts, (double)f.latest_ns / 1e6);
	close_fixture(&f);
	free(jobs);
}

static void boottime_policy_sleeps_on_its_clock(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 20 * MS, 20 * MS);
	struct fixture f;
	struct job job;
	u64 begin;

	(void)state;
	open_own(&f, MS, 1);
	p.clockid = CLOCK_BOOTTIME;
	assert_int_equal(kretry_policy_create(f.k, &p), 0);
	f.policy = p.id;
	begin = kretry_now(CLOCK_BOOTTIME);
	start_job(&f, &job, 1);
	run_all(&f);
	assert_int_equal(job.attempts, 2);
	assert_true(kretry_now(CLOCK_BOOTTIME) - begin >= 20 * MS);
	assert_true(kretry_now(CLOCK_BOOTTIME) - begin < 5 * SEC);
	close_fixture(&f);
}

static volatile int stopped;

static void on_alarm(int signal)
{
	(void)signal;
	stopped = 1;
}

static void run_stops_when_told_by_a_signal(void **state)
{
	struct itimerval timer = { .it_value.tv_usec = 50000 };
	struct sigaction action = { .sa_handler = on_alarm };
	struct fixture f;
	struct job job;
	u64 begin = kretry_now(CLOCK_MONOTONIC);

	(void)state;
	open_own(&f, 3600 * SEC, 1);
	start_job(&f, &job, 1);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	assert_int_equal(kretry_sched_run(f.s, NULL, NULL, &stopped), 0);
	assert_true(kretry_now(CLOCK_MONOTONIC) - begin < 5 * SEC);
	assert_int_equal(kretry_sched_pending(f.s), 1);
	assert_int_equal(job.attempts, 1);
	close_fixture(&f);
}

static void *stop_later(void *arg)
{
	sleep_ns(50 * MS);
	*(volatile int *)arg = 1;
	return NULL;
}

/* As when the signal comes just before the wait: nothing interrupts it. */
static void run_stops_without_an_interruption(void **state)
{
	volatile int stop = 0;
	pthread_t thread;
	struct fixture f;
	struct job job;
	u64 begin = kretry_now(CLOCK_MONOTONIC);

	(void)state;
	open_own(&f, 3600 * SEC, 1);
	start_job(&f, &job, 1);
	assert_int_equal(pthread_create(&thread, NULL, stop_later, (void *)&stop), 0);
	assert_int_equal(kretry_sched_run(f.s, NULL, NULL, &stop), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(kretry_now(CLOCK_MONOTONIC) - begin < 5 * SEC);
	assert_int_equal(kretry_sched_pending(f.s), 1);
	close_fixture(&f);
}

/* -------- a device that asks for more than this build of the decision code does -------- */

static u8 begin_verdict;
static u64 begin_delay;
static unsigned int begins, begins_admitted;

static void step_with_breaker(struct kretry_op *op)
{
	u64 now = kretry_now(CLOCK_MONOTONIC);

	if (op->event != KRETRY_EVENT_BEGIN) {
		op->verdict = op->event == KRETRY_EVENT_TRANSIENT ? KRETRY_RETRY : KRETRY_DONE;
		op->flags |= KRETRY_OP_READMIT;
		op->deadline_ns = now + 10 * MS;
		return;
	}
	op->flags &= KRETRY_OP_IN_MASK;
	op->verdict = begins < begins_admitted ? KRETRY_GO : begin_verdict;
	op->deadline_ns = now + (begins < begins_admitted ? 0 : begin_delay);
	begins++;
}

/* The first @admitted BEGINs are answered with GO, the others with @verdict. */
static void run_with_breaker(struct fixture *f, struct job *job, unsigned int admitted, u8 verdict,
			     u64 delay)
{
	memset(f, 0, sizeof(*f));
	memset(&device, 0, sizeof(device));
	device.abi_version = KRETRY_ABI_VERSION;
	device.step = step_with_breaker;
	begins = 0;
	begins_admitted = admitted;
	begin_verdict = verdict;
	begin_delay = delay;
	assert_int_equal(kretry_open(&f->k, DEVICE_PATH, KRETRY_MODULE_ONLY), 0);
	f->policy = job_policy(f, KRETRY_JITTER_NONE, MS);
	assert_int_equal(kretry_sched_init(&f->s, f->k, NULL, 1), 0);
	start_job(f, job, 1);
	run_all(f);
}

static void readmit_asks_again_and_sleeps_to_the_new_deadline(void **state)
{
	struct fixture f;
	struct job job;
	u64 begin = kretry_now(CLOCK_MONOTONIC);

	(void)state;
	run_with_breaker(&f, &job, 1, KRETRY_GO, 30 * MS);
	assert_int_equal(begins, 2);
	assert_int_equal(job.attempts, 2);
	assert_int_equal(f.early, 0);
	assert_true(kretry_now(CLOCK_MONOTONIC) - begin >= 40 * MS);
	close_fixture(&f);
}

static void readmit_refused_is_done_without_an_attempt(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	run_with_breaker(&f, &job, 1, KRETRY_STOP_OPEN, 0);
	assert_int_equal(begins, 2);
	assert_int_equal(job.attempts, 1);
	assert_int_equal(job.dones, 1);
	assert_int_equal(job.last.verdict, KRETRY_STOP_OPEN);
	close_fixture(&f);
}

static void start_refused_is_done_without_an_attempt(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	run_with_breaker(&f, &job, 0, KRETRY_STOP_OPEN, 0);
	assert_int_equal(begins, 1);
	assert_int_equal(job.attempts, 0);
	assert_int_equal(job.dones, 1);
	assert_int_equal(job.last.verdict, KRETRY_STOP_OPEN);
	close_fixture(&f);
}

static void start_paced_sleeps_to_its_slot(void **state)
{
	struct fixture f;
	struct job job;
	u64 begin = kretry_now(CLOCK_MONOTONIC);

	(void)state;
	run_with_breaker(&f, &job, 0, KRETRY_GO, 30 * MS);
	assert_int_equal(job.attempts, 2);
	assert_int_equal(f.early, 0);
	assert_true(kretry_now(CLOCK_MONOTONIC) - begin >= 70 * MS);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_due_at_once_on_16_completions_all_called),
		cmocka_unit_test(start_calls_nothing_itself),
		cmocka_unit_test(start_bad_request_is_refused),
		cmocka_unit_test(init_size_at_its_edges),
		cmocka_unit_test(report_invalid_is_refused_and_changes_nothing),
		cmocka_unit_test(report_hint_is_slept_to),
		cmocka_unit_test(retries_without_delay_do_not_recurse),
		cmocka_unit_test(closed_policy_ends_its_tasks_with_error),
		cmocka_unit_test(waits_of_1_to_20_ms_are_never_early),
		cmocka_unit_test(boottime_policy_sleeps_on_its_clock),
		cmocka_unit_test(run_stops_when_told_by_a_signal),
		cmocka_unit_test(run_stops_without_an_interruption),
		cmocka_unit_test(readmit_asks_again_and_sleeps_to_the_new_deadline),
		cmocka_unit_test(readmit_refused_is_done_without_an_attempt),
		cmocka_unit_test(start_refused_is_done_without_an_attempt),
		cmocka_unit_test(start_paced_sleeps_to_its_slot),
	};

	return run_group(tests);
}
