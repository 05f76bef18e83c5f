// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The library's scheduler at its best, over the module: waits in the kernel where it has them. How
 * its tasks end, and what it leaves behind.
 */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "kretry.h"

#define COUNT	100

struct job {
	struct kretry_task *task;
	int failures;		/* negative: it does not report */
	int attempts, dones;
	struct kretry_op last;
};

FIXTURE(library_sched) {
	struct kretry *k;
	struct kretry_sched *s;
	struct io_uring ring;
	struct kretry_policy policy;
	struct job jobs[COUNT];
	bool by_kernel;		/* WAIT is a command here */
};

FIXTURE_VARIANT(library_sched) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(library_sched, plain) { .flags = 0 };
FIXTURE_VARIANT_ADD(library_sched, sqpoll) { .flags = IORING_SETUP_SQPOLL };
FIXTURE_VARIANT_ADD(library_sched, deferred) {
	.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

FIXTURE_VARIANT_ADD(library_sched, cqe32) { .flags = IORING_SETUP_CQE32 };

/* A budget of so many tokens as there are jobs, and retries in an hour. */
FIXTURE_SETUP(library_sched)
{
	struct kretry_info info;

	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_MODULE_ONLY));
	ASSERT_EQ(0, kretry_info(self->k, &info));
	self->by_kernel = info.features & KRETRY_FEATURE_URING_WAIT;
	ASSERT_EQ(0, io_uring_queue_init(8, &self->ring, variant->flags));
	ASSERT_EQ(0, kretry_sched_init(&self->s, self->k, &self->ring, COUNT));
	kt_policy(&self->policy);
	self->policy.backoff.base_ns = 3600 * SEC;
	self->policy.backoff.cap_ns = 3600 * SEC;
	self->policy.budget.capacity_utok = COUNT * KRETRY_UTOK;
	self->policy.budget.initial_utok = COUNT * KRETRY_UTOK;
	self->policy.budget.cost_transient_utok = KRETRY_UTOK;
}

FIXTURE_TEARDOWN(library_sched)
{
	kretry_sched_exit(self->s);
	io_uring_queue_exit(&self->ring);
	kretry_close(self->k);
}

static void attempt(struct kretry_task *task, void *arg)
{
	struct job *job = arg;
	int dones = job->dones;

	job->attempts++;
	if (job->failures < 0)
		return;
	kretry_task_report(task, job->attempts > job->failures ? KRETRY_EVENT_OK :
			   KRETRY_EVENT_TRANSIENT, 0, 0);
	/* With a wait, not before the report returns. */
	if (job->attempts <= job->failures && job->dones != dones)
		job->dones += 100;
}

static void done(struct kretry_task *task, const struct kretry_op *op, void *arg)
{
	struct job *job = arg;

	(void)task;
	job->dones++;
	job->last = *op;
}

static const struct kretry_task_ops ops = { .attempt = attempt, .done = done };

static int start(FIXTURE_DATA(library_sched) *self, int i, int failures)
{
	struct kretry_op op = { .policy = self->policy.id, .user_data = 7 };

	self->jobs[i] = (struct job) { .failures = failures };
	return kretry_sched_start(self->s, &op, &ops, &self->jobs[i], &self->jobs[i].task);
}

static struct kretry_stat stat_of(FIXTURE_DATA(library_sched) *self, unsigned int flags)
{
	struct kretry_stat stat = { .policy = self->policy.id, .flags = flags };

	if (kretry_stat(self->k, &stat))
		memset(&stat, POISON, sizeof(stat));
	return stat;
}

static uint64_t balance(FIXTURE_DATA(library_sched) *self)
{
	return stat_of(self, KRETRY_SCOPE_KEY).balance_utok;
}

/* The module has granted @count retries. With SQPOLL that takes a while. */
static void await_grants(FIXTURE_DATA(library_sched) *self, unsigned int count)
{
	do {
		kretry_sched_poll(self->s);
		io_uring_submit(&self->ring);
		kt_sleep(MSEC);
	} while (stat_of(self, 0).retry < count);
}

static int start_sleepers(FIXTURE_DATA(library_sched) *self)
{
	int i;

	CHECK_EQ(0, kretry_policy_create(self->k, &self->policy));
	for (i = 0; i < COUNT; i++)
		CHECK_EQ(0, start(self, i, 1));
	await_grants(self, COUNT);
	CHECK_EQ(0, balance(self));
	CHECK_EQ(self->by_kernel ? COUNT : 0, stat_of(self, 0).queued);
	for (i = 0; i < COUNT; i++)
		CHECK(self->jobs[i].attempts == 1 && !self->jobs[i].dones);
	return 0;
}

static uint64_t returned(FIXTURE_DATA(library_sched) *self, unsigned int count)
{
	return self->by_kernel ? count * KRETRY_UTOK : 0;
}

static int check_empty(FIXTURE_DATA(library_sched) *self)
{
	struct io_uring_cqe *cqe;

	CHECK_EQ(0, io_uring_sq_ready(&self->ring));
	io_uring_get_events(&self->ring);
	CHECK_EQ(-EAGAIN, io_uring_peek_cqe(&self->ring, &cqe));
	return 0;
}

/* -------- the end of a scheduler -------- */

TEST_F(library_sched, exit_leaves_no_wait_no_charge_and_no_completion)
{
	int i;

	ASSERT_EQ(0, start_sleepers(self));
	EXPECT_EQ(self->by_kernel, kretry_policy_close(self->k, self->policy.id) == -EBUSY);
	kretry_sched_exit(self->s);
	self->s = NULL;
	EXPECT_EQ(0, check_empty(self));
	for (i = 0; i < COUNT; i++)
		EXPECT_EQ(0, self->jobs[i].dones);
	if (self->by_kernel) {
		EXPECT_EQ(0, stat_of(self, 0).queued);
		EXPECT_EQ(COUNT * KRETRY_UTOK, balance(self));
		EXPECT_EQ(0, kretry_policy_close(self->k, self->policy.id));
	}
}

TEST_F(library_sched, exit_with_nothing_submitted_leaves_nothing)
{
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, start(self, 0, 1));
	kretry_sched_poll(self->s);
	kretry_sched_poll(self->s);
	kretry_sched_exit(self->s);
	self->s = NULL;
	EXPECT_EQ(0, check_empty(self));
	EXPECT_EQ(0, stat_of(self, 0).queued);
	EXPECT_EQ(1, self->jobs[0].attempts);
	EXPECT_EQ(0, self->jobs[0].dones);
}

TEST_F(library_sched, exit_of_an_own_ring_leaves_no_wait)
{
	kretry_sched_exit(self->s);
	ASSERT_EQ(0, kretry_sched_init(&self->s, self->k, NULL, COUNT));
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, start(self, 0, 1));
	kretry_sched_poll(self->s);
	kretry_sched_poll(self->s);
	io_uring_submit(kretry_sched_ring(self->s));
	EXPECT_EQ(self->by_kernel, stat_of(self, 0).queued);
	kretry_sched_exit(self->s);
	self->s = NULL;
	EXPECT_EQ(0, stat_of(self, 0).queued);
	EXPECT_EQ((COUNT - 1) * KRETRY_UTOK + returned(self, 1), balance(self));
}

TEST_F(library_sched, exit_in_a_child_of_fork_leaves_the_parents_waits)
{
	pid_t pid;

	ASSERT_EQ(0, start_sleepers(self));
	pid = fork();
	if (!pid) {
		kretry_sched_exit(self->s);
		_exit(self->jobs[0].dones);
	}
	EXPECT_EQ(0, kt_wait(pid));
	EXPECT_EQ(self->by_kernel ? COUNT : 0, stat_of(self, 0).queued);
	EXPECT_EQ(COUNT, kretry_sched_pending(self->s));
}

/* -------- the end of a task -------- */

TEST_F(library_sched, cancel_asleep_is_done_once_and_its_slot_sleeps_anew)
{
	int i;

	ASSERT_EQ(0, start_sleepers(self));
	for (i = 0; i < COUNT; i++) {
		ASSERT_EQ(0, kretry_task_cancel(self->jobs[i].task));
		EXPECT_EQ(1, self->jobs[i].dones);
		EXPECT_EQ(KRETRY_DONE, self->jobs[i].last.verdict);
		EXPECT_EQ(7, self->jobs[i].last.user_data);
	}
	self->policy.backoff.base_ns = 10 * MSEC;
	self->policy.budget.capacity_utok = 0;
	self->policy.budget.initial_utok = 0;
	self->policy.budget.cost_transient_utok = 0;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	for (i = 0; i < COUNT; i++)
		ASSERT_EQ(0, start(self, i, 2));
	ASSERT_EQ(0, kretry_sched_run(self->s, NULL, NULL, NULL));
	for (i = 0; i < COUNT; i++) {
		EXPECT_EQ(3, self->jobs[i].attempts);
		EXPECT_EQ(1, self->jobs[i].dones);
		EXPECT_EQ(7, self->jobs[i].last.user_data);
	}
	EXPECT_EQ(0, stat_of(self, 0).queued);
}

TEST_F(library_sched, stop_at_once_is_done_after_the_report)
{
	self->policy.max_retries = 1;
	self->policy.backoff.base_ns = MSEC;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, start(self, 0, 5));
	ASSERT_EQ(0, kretry_sched_run(self->s, NULL, NULL, NULL));
	EXPECT_EQ(2, self->jobs[0].attempts);
	EXPECT_EQ(self->by_kernel ? 1 : 101, self->jobs[0].dones);
	EXPECT_EQ(KRETRY_STOP_LIMIT, self->jobs[0].last.verdict);
	EXPECT_EQ(1, self->jobs[0].last.attempt);
}

/* A breaker that opens meanwhile, and admits nobody at the deadline. */
TEST_F(library_sched, stop_at_the_deadline_is_done_once)
{
	struct kretry_op op;

	self->policy.backoff.base_ns = 500 * MSEC;
	self->policy.breaker.consecutive = 2;
	self->policy.breaker.probes = 1;
	self->policy.breaker.open_ns = 3600 * SEC;
	self->policy.breaker.open_cap_ns = 3600 * SEC;
	self->policy.breaker.probe_timeout_ns = SEC;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, start(self, 0, 1));
	await_grants(self, 1);
	op = kt_op(self->policy.id, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(0, kretry_step(self->k, &op));
	ASSERT_EQ(0, kretry_sched_run(self->s, NULL, NULL, NULL));
	EXPECT_EQ(1, self->jobs[0].attempts);
	EXPECT_EQ(1, self->jobs[0].dones);
	EXPECT_EQ(KRETRY_STOP_OPEN, self->jobs[0].last.verdict);
	if (self->by_kernel)
		EXPECT_EQ(0, self->jobs[0].last.attempt);
	EXPECT_EQ((COUNT - 1) * KRETRY_UTOK + returned(self, 1),
		  balance(self) + (op.verdict == KRETRY_RETRY) * KRETRY_UTOK);
}

/* Take what completions there are. */
static void reap(FIXTURE_DATA(library_sched) *self)
{
	struct io_uring_cqe *cqe;

	kretry_sched_poll(self->s);
	io_uring_submit_and_get_events(&self->ring);
	while (!io_uring_peek_cqe(&self->ring, &cqe)) {
		kretry_sched_cqe(self->s, cqe);
		io_uring_cqe_seen(&self->ring, cqe);
	}
}

/* The retry has been admitted as the one probe, but its task is given up before it has heard. */
TEST_F(library_sched, probe_for_a_cancelled_task_is_given_back)
{
	struct kretry_op op;
	int i;

	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	self->policy.backoff.base_ns = 100 * MSEC;
	self->policy.breaker.consecutive = 2;
	self->policy.breaker.probes = 1;
	self->policy.breaker.open_ns = 200 * MSEC;
	self->policy.breaker.open_cap_ns = 200 * MSEC;
	self->policy.breaker.probe_timeout_ns = 3600 * SEC;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, start(self, 0, 1));
	await_grants(self, 1);
	op = kt_op(self->policy.id, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(0, kretry_step(self->k, &op));
	for (i = 0; i < 100 && !stat_of(self, 0).leases; i++) {
		kt_sleep(10 * MSEC);
		io_uring_get_events(&self->ring);
	}
	EXPECT_EQ(self->by_kernel, stat_of(self, 0).leases);
	ASSERT_EQ(0, kretry_task_cancel(self->jobs[0].task));
	EXPECT_EQ(1, self->jobs[0].attempts);
	reap(self);
	EXPECT_EQ(0, stat_of(self, 0).leases);
	op = kt_op(self->policy.id, KRETRY_EVENT_BEGIN);
	ASSERT_EQ(0, kretry_step(self->k, &op));
	EXPECT_EQ(KRETRY_GO, op.verdict);
}

/* All that the handle holds goes: the tasks end, each once, with an error. */
TEST_F(library_sched, shutdown_of_the_handle_ends_sleepers)
{
	int i;

	ASSERT_EQ(0, start_sleepers(self));
	ASSERT_EQ(0, kretry_shutdown(self->k));
	if (!self->by_kernel)
		return;
	ASSERT_EQ(0, kretry_sched_run(self->s, NULL, NULL, NULL));
	for (i = 0; i < COUNT; i++) {
		EXPECT_EQ(1, self->jobs[i].attempts);
		EXPECT_EQ(1, self->jobs[i].dones);
		EXPECT_EQ(KRETRY_ERROR, self->jobs[i].last.verdict);
		EXPECT_EQ(ECANCELED, KRETRY_OP_ERRNO(self->jobs[i].last.flags));
	}
}

/* Takes a completion away from the scheduler and counts it as the kernel does. */
static int drop_completion(FIXTURE_DATA(library_sched) *self)
{
	struct io_uring_cqe *cqe;

	CHECK_EQ(0, io_uring_wait_cqe(&self->ring, &cqe));
	io_uring_cqe_seen(&self->ring, cqe);
	++*self->ring.cq.koverflow;
	return 0;
}

TEST_F(library_sched, dropped_completions_are_found)
{
	self->policy.backoff.base_ns = 500 * MSEC;
	self->policy.max_retries = 1;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, start(self, 0, 2));
	await_grants(self, 1);
	/* A retry is due. */
	ASSERT_EQ(0, drop_completion(self));
	kretry_sched_poll(self->s);
	EXPECT_EQ(2, self->jobs[0].attempts);
	/* That has failed too, and is stopped at once: by a completion, where it is a wait. */
	if (self->by_kernel) {
		kretry_sched_poll(self->s);
		io_uring_submit(&self->ring);
		ASSERT_EQ(0, drop_completion(self));
		kretry_sched_poll(self->s);
		EXPECT_EQ(1, self->jobs[0].dones);
	}
	EXPECT_EQ(KRETRY_STOP_LIMIT, self->jobs[0].last.verdict);
	EXPECT_EQ(0, kretry_sched_pending(self->s));
}

TEST_HARNESS_MAIN
