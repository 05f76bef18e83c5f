// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler where a policy forbids io_uring, as containers' do: the same schedule without. */
#include "jobs.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CHECK(cond) do {								\
	if (!(cond)) {									\
		fprintf(stderr, "# line %d: not true: %s\n", __LINE__, #cond);		\
		return 1;								\
	}										\
} while (0)

/* From here on io_uring_setup() of this process fails with @error. */
static int forbid_io_uring(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (u32)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	return 0;
}

/* Filters stay: each test has a process of its own. */
static void run_in_child(int (*fn)(struct fixture *f))
{
	struct fixture f;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		open_handle(&f, MS);
		_exit(forbid_io_uring(EPERM) || fn(&f));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int start_without(struct fixture *f, unsigned int max_tasks)
{
	CHECK(!kretry_sched_init(&f->s, f->k, NULL, max_tasks));
	CHECK(!kretry_sched_ring(f->s));
	CHECK(!kretry_sched_get_sqe(f->s));
	CHECK(strstr(kretry_sched_reason(f->s), "io_uring_setup: Operation not permitted: "));
	CHECK(kretry_sched_set_method(f->s, KRETRY_METHOD_WAIT) == -EOPNOTSUPP);
	return 0;
}

static int thousand_jobs(struct fixture *f, enum kretry_method method)
{
	struct job *jobs;

	f->policy = job_policy(f, KRETRY_JITTER_FULL, 20 * MS);
	CHECK(!start_without(f, 1000));
	CHECK(kretry_sched_method(f->s) == KRETRY_METHOD_QUEUE);
	CHECK(!kretry_sched_set_method(f->s, method));
	CHECK(kretry_sched_method(f->s) == method);
	CHECK(strstr(kretry_sched_reason(f->s), "io_uring_setup: "));
	jobs = start_jobs(f, 1000, 5);
	run_all(f);
	CHECK(f->attempts == 6000 && f->dones == 1000 && !f->early);
	close_fixture(f);
	free(jobs);
	return 0;
}

static int with_the_queue(struct fixture *f)
{
	return thousand_jobs(f, KRETRY_METHOD_QUEUE);
}

static int with_timers(struct fixture *f)
{
	return thousand_jobs(f, KRETRY_METHOD_TIMEOUT);
}

static void thousand_tasks_on_the_queue_never_early(void **state)
{
	(void)state;
	run_in_child(with_the_queue);
}

static void thousand_tasks_on_timers_never_early(void **state)
{
	(void)state;
	run_in_child(with_timers);
}

/* What no queue can be had for: another scheduler has it. */
static int with_the_queue_taken(struct fixture *f)
{
	struct kretry_sched *other;
	struct job *jobs;

	CHECK(!kretry_sched_init(&other, f->k, NULL, 1));
	CHECK(kretry_sched_method(other) == KRETRY_METHOD_QUEUE);
	CHECK(!start_without(f, 10));
	CHECK(kretry_sched_method(f->s) == KRETRY_METHOD_TIMEOUT);
	jobs = start_jobs(f, 10, 2);
	run_all(f);
	CHECK(f->attempts == 30 && !f->early);
	free(jobs);
	kretry_sched_exit(other);
	close_fixture(f);
	return 0;
}

static void second_scheduler_of_a_handle_sleeps_on_timers(void **state)
{
	(void)state;
	run_in_child(with_the_queue_taken);
}

static u64 took(struct fixture *f)
{
	u64 begin = kretry_now(CLOCK_MONOTONIC);
	struct job job;

	start_job(f, &job, 10);
	run_all(f);
	return kretry_now(CLOCK_MONOTONIC) - begin;
}

/* Ten delays of 30 ms; on a busy machine each of them may be late. */
static int same_schedule(struct fixture *f)
{
	f->policy = job_policy(f, KRETRY_JITTER_NONE, 30 * MS);
	CHECK(!start_without(f, 1));
	CHECK(took(f) >= 300 * MS);
	CHECK(!f->early && f->attempts == 11 && f->latest_ns < SEC);
	close_fixture(f);
	return 0;
}

static void delays_are_what_they_are_with_a_ring(void **state)
{
	(void)state;
	run_in_child(same_schedule);
}

static void *stop_later(void *arg)
{
	sleep_ns(50 * MS);
	*(volatile int *)arg = 1;
	return NULL;
}

static int stopped_or_stuck(struct fixture *f)
{
	volatile int stop = 0;
	pthread_t thread;
	struct job job;

	CHECK(!start_without(f, 2));
	start_job(f, &job, -1);
	CHECK(kretry_sched_run(f->s, NULL, NULL, NULL) == -EDEADLK);
	CHECK(job.attempts == 1 && kretry_sched_pending(f->s) == 1);
	CHECK(!pthread_create(&thread, NULL, stop_later, (void *)&stop));
	CHECK(!kretry_sched_run(f->s, NULL, NULL, &stop));
	CHECK(!pthread_join(thread, NULL));
	CHECK(!kretry_task_report(job.task, KRETRY_EVENT_TRANSIENT, 0, 0));
	CHECK(!kretry_task_cancel(job.task));
	CHECK(job.dones == 1 && !kretry_sched_pending(f->s));
	close_fixture(f);
	return 0;
}

static void run_that_could_never_end_edeadlk(void **state)
{
	(void)state;
	run_in_child(stopped_or_stuck);
}

static int poll_it(struct fixture *f, enum kretry_method method)
{
	struct job job;

	CHECK(!kretry_sched_set_method(f->s, method));
	start_job(f, &job, 2);
	while (!job.dones) {
		kretry_sched_poll(f->s);
		sleep_ns(100 * US);
	}
	CHECK(job.attempts == 3 && !f->early);
	return 0;
}

static int polled(struct fixture *f)
{
	CHECK(!start_without(f, 1));
	CHECK(!poll_it(f, KRETRY_METHOD_QUEUE));
	CHECK(!poll_it(f, KRETRY_METHOD_TIMEOUT));
	close_fixture(f);
	return 0;
}

static void poll_alone_drives_it(void **state)
{
	(void)state;
	run_in_child(polled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thousand_tasks_on_the_queue_never_early),
		cmocka_unit_test(thousand_tasks_on_timers_never_early),
		cmocka_unit_test(second_scheduler_of_a_handle_sleeps_on_timers),
		cmocka_unit_test(delays_are_what_they_are_with_a_ring),
		cmocka_unit_test(run_that_could_never_end_edeadlk),
		cmocka_unit_test(poll_alone_drives_it),
	};

	return run_group(tests);
}
