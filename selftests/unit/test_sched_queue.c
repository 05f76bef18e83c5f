// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The scheduler whose tasks sleep in the queue of the handle, behind one poll on the ring. */
#include "jobs.h"

#include <sys/wait.h>

static const unsigned int ring_kinds[] = {
	0, IORING_SETUP_SQPOLL, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

static void open_queue(struct fixture *f, u64 base, unsigned int flags, unsigned int max_tasks)
{
	open_shared(f, base, flags, max_tasks);
	assert_int_equal(kretry_sched_set_method(f->s, KRETRY_METHOD_QUEUE), 0);
}

static void assert_ring_is_empty(struct fixture *f)
{
	struct io_uring_cqe *cqe;

	assert_int_equal(io_uring_sq_ready(&f->ring), 0);
	io_uring_get_events(&f->ring);
	assert_int_equal(io_uring_peek_cqe(&f->ring, &cqe), -EAGAIN);
}

static u32 queued_of(struct fixture *f)
{
	struct kretry_stat stat = { .policy = f->policy };

	assert_int_equal(kretry_stat(f->k, &stat), 0);
	return stat.queued;
}

/* -------- the choice -------- */

static void method_is_timeout_in_the_process_and_says_why(void **state)
{
	struct fixture f;
	struct job job;

	(void)state;
	open_own(&f, 3600 * SEC, 1);
	assert_int_equal(kretry_sched_method(f.s), KRETRY_METHOD_TIMEOUT);
	assert_string_equal(kretry_sched_reason(f.s), "the process decides, not the module: "
			    "the program asked for decisions in the process");
	assert_int_equal(kretry_sched_set_method(f.s, KRETRY_METHOD_WAIT), -EOPNOTSUPP);
	assert_int_equal(kretry_sched_set_method(f.s, (enum kretry_method)4), -EINVAL);
	assert_int_equal(kretry_sched_method(f.s), KRETRY_METHOD_TIMEOUT);
	assert_int_equal(kretry_sched_set_method(f.s, KRETRY_METHOD_QUEUE), 0);
	assert_int_equal(kretry_sched_set_method(f.s, KRETRY_METHOD_QUEUE), 0);
	assert_int_equal(kretry_sched_method(f.s), KRETRY_METHOD_QUEUE);
	assert_string_equal(kretry_sched_reason(f.s), "the program asked for it");
	start_job(&f, &job, 1);
	assert_int_equal(kretry_sched_set_method(f.s, KRETRY_METHOD_TIMEOUT), -EBUSY);
	assert_int_equal(kretry_task_cancel(job.task), 0);
	assert_int_equal(kretry_sched_set_method(f.s, KRETRY_METHOD_BEST), 0);
	assert_int_equal(kretry_sched_method(f.s), KRETRY_METHOD_TIMEOUT);
	close_fixture(&f);
}

static void queue_is_one_schedulers_or_the_callers(void **state)
{
	struct kretry_op op = { .event = KRETRY_EVENT_TRANSIENT, .flags = KRETRY_OP_QUEUE }, was;
	struct kretry_sched *other;
	struct fixture f;

	(void)state;
	open_queue(&f, MS, 0, 1);
	assert_int_equal(kretry_sched_init(&other, f.k, NULL, 1), 0);
	assert_int_equal(kretry_sched_set_method(other, KRETRY_METHOD_QUEUE), -EBUSY);
	op.policy = f.policy;
	was = op;
	assert_int_equal(kretry_step(f.k, &op), -EBUSY);
	assert_int_equal(kretry_step_batch(f.k, &op, 1), -EBUSY);
	assert_memory_equal(&op, &was, sizeof(op));
	assert_int_equal(kretry_queue_fd(f.k), -EBUSY);
	assert_int_equal(kretry_queue_read(f.k, &op, 1), -EBUSY);
	assert_int_equal(kretry_queue_cancel(f.k, 0, &op), -EBUSY);
	kretry_sched_exit(f.s);
	f.s = NULL;
	assert_int_equal(kretry_step_batch(f.k, &op, 1), 1);
	assert_int_equal(op.flags, KRETRY_OP_QUEUE | KRETRY_OP_QUEUED);
	assert_int_equal(kretry_sched_set_method(other, KRETRY_METHOD_QUEUE), -EBUSY);
	kretry_sched_exit(other);
	close_fixture(&f);
}

/* -------- its tasks -------- */

static void ten_thousand_due_at_once_all_called(void **state)
{
	struct fixture f;
	struct job *jobs;
	unsigned int i, n;

	(void)state;
	for (n = 0; n < ARRAY_SIZE(ring_kinds); n++) {
		open_queue(&f, 100 * MS, ring_kinds[n], 10000);
		jobs = start_jobs(&f, 10000, 2);
		run_all(&f);
		for (i = 0; i < 10000; i++) {
			assert_int_equal(jobs[i].attempts, 3);
			assert_int_equal(jobs[i].dones, 1);
			assert_int_equal(jobs[i].last.verdict, KRETRY_DONE);
			assert_int_equal(jobs[i].last.user_data, 0);
			assert_int_equal(jobs[i].last.flags & KRETRY_OP_QUEUE, 0);
		}
		assert_int_equal(f.early, 0);
		assert_int_equal(queued_of(&f), 0);
		close_fixture(&f);
		free(jobs);
	}
}

static void sleepers_cost_one_request_on_the_ring(void **state)
{
	struct fixture f;
	struct job *jobs;

	(void)state;
	open_queue(&f, 3600 * SEC, 0, 100);
	jobs = start_jobs(&f, 100, 1);
	kretry_sched_poll(f.s);
	assert_int_equal(f.attempts, 100);
	assert_int_equal(queued_of(&f), 100);
	kretry_sched_poll(f.s);
	assert_int_equal(io_uring_sq_ready(&f.ring), 1);
	close_fixture(&f);
	free(jobs);
}

/* The queue is full: the others sleep on timeouts of their own. */
static void more_than_the_queue_holds_sleep_all_the_same(void **state)
{
	const unsigned int count = 65536 + 100;
	struct fixture f;
	struct job *jobs;
	unsigned int i;

	(void)state;
	open_queue(&f, 20 * SEC, 0, count);
	jobs = start_jobs(&f, count - 100, 1);
	kretry_sched_poll(f.s);
	assert_int_equal(queued_of(&f), 65536);
	f.policy = job_policy(&f, KRETRY_JITTER_NONE, 10 * MS);
	for (i = count - 100; i < count; i++) {
		jobs = i == count - 100 ? realloc(jobs, count * sizeof(*jobs)) : jobs;
		start_job(&f, &jobs[i], 1);
	}
	while (f.dones < 100) {
		struct io_uring_cqe *cqe;

		kretry_sched_poll(f.s);
		assert_true(io_uring_submit_and_wait(&f.ring, f.dones < 100) >= 0);
		while (f.dones < 100 && !io_uring_peek_cqe(&f.ring, &cqe)) {
			assert_int_equal(kretry_sched_cqe(f.s, cqe), 1);
			io_uring_cqe_seen(&f.ring, cqe);
		}
	}
	assert_int_equal(f.early, 0);
	close_fixture(&f);
	free(jobs);
}

static void cancel_asleep_gives_the_charge_back(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 3600 * SEC,
					   3600 * SEC);
	struct kretry_stat stat = { .flags = KRETRY_SCOPE_KEY };
	struct fixture f;
	struct job job;

	(void)state;
	open_queue(&f, MS, 0, 1);
	p.budget.capacity_utok = KRETRY_UTOK;
	p.budget.initial_utok = KRETRY_UTOK;
	p.budget.cost_transient_utok = KRETRY_UTOK;
	assert_int_equal(kretry_policy_create(f.k, &p), 0);
	f.policy = p.id;
	start_job(&f, &job, 1);
	kretry_sched_poll(f.s);
	stat.policy = p.id;
	assert_int_equal(kretry_stat(f.k, &stat), 0);
	assert_true(stat.balance_utok == 0);
	assert_int_equal(kretry_task_cancel(job.task), 0);
	assert_int_equal(job.dones, 1);
	assert_int_equal(job.last.verdict, KRETRY_DONE);
	assert_int_equal(kretry_task_cancel(job.task), -EALREADY);
	assert_int_equal(kretry_stat(f.k, &stat), 0);
	assert_true(stat.balance_utok == KRETRY_UTOK);
	start_job(&f, &job, 1);
	close_fixture(&f);
}

static void stop_at_the_deadline_is_done_once(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 20 * MS, SEC);
	struct kretry_op op;
	struct fixture f;
	struct job job;

	(void)state;
	open_queue(&f, MS, 0, 1);
	p.breaker.consecutive = 2;
	p.breaker.probes = 1;
	p.breaker.open_ns = 3600 * SEC;
	p.breaker.open_cap_ns = 3600 * SEC;
	p.breaker.probe_timeout_ns = SEC;
	assert_int_equal(kretry_policy_create(f.k, &p), 0);
	f.policy = p.id;
	start_job(&f, &job, 1);
	kretry_sched_poll(f.s);
	op = (struct kretry_op){ .policy = p.id, .event = KRETRY_EVENT_TRANSIENT };
	assert_int_equal(kretry_step(f.k, &op), 0);
	run_all(&f);
	assert_int_equal(job.attempts, 1);
	assert_int_equal(job.dones, 1);
	assert_int_equal(job.last.verdict, KRETRY_STOP_OPEN);
	assert_int_equal(job.last.attempt, 0);
	close_fixture(&f);
}

static void dropped_completion_of_the_poll_is_found(void **state)
{
	struct io_uring_cqe *cqe, late;
	struct fixture f;
	struct job job;

	(void)state;
	open_queue(&f, 5 * MS, 0, 1);
	start_job(&f, &job, 2);
	kretry_sched_poll(f.s);
	assert_true(io_uring_submit_and_wait(&f.ring, 1) >= 0);
	assert_int_equal(io_uring_peek_cqe(&f.ring, &cqe), 0);
	late = *cqe;
	io_uring_cqe_seen(&f.ring, cqe);
	++*f.ring.cq.koverflow;
	kretry_sched_poll(f.s);
	assert_int_equal(job.attempts, 2);
	assert_int_equal(kretry_sched_cqe(f.s, &late), 1);
	run_all(&f);
	assert_int_equal(job.attempts, 3);
	assert_int_equal(f.early, 0);
	close_fixture(&f);
}

/* -------- the end -------- */

static void exit_asleep_leaves_nothing_on_the_ring_or_in_the_queue(void **state)
{
	struct fixture f;
	struct job *jobs;
	unsigned int n;

	(void)state;
	for (n = 0; n < ARRAY_SIZE(ring_kinds); n++) {
		open_queue(&f, 3600 * SEC, ring_kinds[n], 100);
		jobs = start_jobs(&f, 100, 1);
		kretry_sched_poll(f.s);
		io_uring_submit(&f.ring);
		assert_int_equal(queued_of(&f), 100);
		kretry_sched_exit(f.s);
		f.s = NULL;
		assert_int_equal(f.dones, 0);
		assert_int_equal(queued_of(&f), 0);
		assert_ring_is_empty(&f);
		assert_true(kretry_queue_fd(f.k) >= 0);
		close_fixture(&f);
		free(jobs);
	}
}

static void exit_with_ops_due_calls_nobody(void **state)
{
	struct fixture f;
	struct job *jobs;

	(void)state;
	open_queue(&f, 5 * MS, 0, 100);
	jobs = start_jobs(&f, 100, 1);
	kretry_sched_poll(f.s);
	io_uring_submit(&f.ring);
	sleep_ns(10 * MS);
	kretry_sched_exit(f.s);
	f.s = NULL;
	assert_int_equal(f.attempts, 100);
	assert_int_equal(f.dones, 0);
	assert_ring_is_empty(&f);
	close_fixture(&f);
	free(jobs);
}

/* A child that tidies up takes nothing from its parent. */
static void exit_in_a_child_of_fork_leaves_the_parents_tasks(void **state)
{
	static const enum kretry_method methods[] = { KRETRY_METHOD_QUEUE, KRETRY_METHOD_TIMEOUT };
	struct fixture f;
	struct job job;
	unsigned int i;
	int status;
	pid_t pid;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(methods); i++) {
		open_shared(&f, 50 * MS, 0, 1);
		assert_int_equal(kretry_sched_set_method(f.s, methods[i]), 0);
		start_job(&f, &job, 1);
		kretry_sched_poll(f.s);
		io_uring_submit(&f.ring);
		pid = fork();
		if (!pid) {
			kretry_sched_exit(f.s);
			_exit(job.dones);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		run_all(&f);
		assert_int_equal(job.attempts, 2);
		assert_int_equal(job.last.verdict, KRETRY_DONE);
		close_fixture(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(method_is_timeout_in_the_process_and_says_why),
		cmocka_unit_test(queue_is_one_schedulers_or_the_callers),
		cmocka_unit_test(ten_thousand_due_at_once_all_called),
		cmocka_unit_test(sleepers_cost_one_request_on_the_ring),
		cmocka_unit_test(more_than_the_queue_holds_sleep_all_the_same),
		cmocka_unit_test(cancel_asleep_gives_the_charge_back),
		cmocka_unit_test(stop_at_the_deadline_is_done_once),
		cmocka_unit_test(dropped_completion_of_the_poll_is_found),
		cmocka_unit_test(exit_asleep_leaves_nothing_on_the_ring_or_in_the_queue),
		cmocka_unit_test(exit_with_ops_due_calls_nobody),
		cmocka_unit_test(exit_in_a_child_of_fork_leaves_the_parents_tasks),
	};

	return run_group(tests);
}
