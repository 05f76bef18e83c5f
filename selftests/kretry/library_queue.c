// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The library's queue, in the module and in the process: the same for whoever uses it. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include "kretry.h"

#define COUNT	500

FIXTURE(library_queue) {
	struct kretry *k;
	struct kretry_policy policy;
};

FIXTURE_VARIANT(library_queue) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(library_queue, module) { .flags = KRETRY_MODULE_ONLY };
FIXTURE_VARIANT_ADD(library_queue, process) { .flags = KRETRY_PROCESS_ONLY };

FIXTURE_SETUP(library_queue)
{
	ASSERT_EQ(0, kretry_open(&self->k, NULL, variant->flags));
	kt_policy(&self->policy);
}

FIXTURE_TEARDOWN(library_queue)
{
	kretry_close(self->k);
}

static struct kretry_op queued_op(FIXTURE_DATA(library_queue) *self, uint64_t user_data)
{
	struct kretry_op op = kt_op(self->policy.id, KRETRY_EVENT_TRANSIENT);

	op.flags = KRETRY_OP_QUEUE;
	op.user_data = user_data;
	return op;
}

static int enqueue(FIXTURE_DATA(library_queue) *self, uint64_t user_data)
{
	struct kretry_op op = queued_op(self, user_data);

	CHECK_EQ(0, kretry_step(self->k, &op));
	CHECK_EQ(KRETRY_RETRY, op.verdict);
	CHECK_EQ(KRETRY_OP_QUEUE | KRETRY_OP_QUEUED, op.flags);
	return 0;
}

static bool is_readable(FIXTURE_DATA(library_queue) *self, int timeout_ms)
{
	struct pollfd pfd = { .fd = kretry_queue_fd(self->k), .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) == 1 && pfd.revents == POLLIN;
}

static int read_one(FIXTURE_DATA(library_queue) *self, struct kretry_op *op)
{
	int ret = 0;

	while (!ret) {
		CHECK(is_readable(self, 100000));
		ret = kretry_queue_read(self->k, op, 1);
	}
	CHECK_EQ(1, ret);
	return 0;
}

static uint64_t balance(FIXTURE_DATA(library_queue) *self)
{
	struct kretry_stat stat = { .policy = self->policy.id, .flags = KRETRY_SCOPE_KEY };

	return kretry_stat(self->k, &stat) ? ~0ULL : stat.balance_utok;
}

/* -------- delivery -------- */

TEST_F(library_queue, batch_is_read_once_in_order_and_never_early)
{
	struct kretry_op ops[COUNT], got[64];
	uint64_t last = 0, now;
	int i, n, count = 0;

	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = 5 * SEC;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	for (i = 0; i < COUNT; i++)
		ops[i] = queued_op(self, i);
	ASSERT_EQ(COUNT, kretry_step_batch(self->k, ops, COUNT));
	while (count < COUNT) {
		ASSERT_TRUE(is_readable(self, 100000));
		n = kretry_queue_read(self->k, got, ARRAY_LEN(got));
		now = kt_now(CLOCK_MONOTONIC);
		ASSERT_LE(0, n);
		for (i = 0; i < n; i++, count++) {
			ASSERT_GT(COUNT, got[i].user_data);
			EXPECT_EQ(KRETRY_GO, got[i].verdict);
			EXPECT_EQ(1, got[i].attempt);
			EXPECT_LE(last, ops[got[i].user_data].deadline_ns);
			last = ops[got[i].user_data].deadline_ns;
			EXPECT_LE(last, now);
			EXPECT_LE(got[i].deadline_ns, now);
			/* A second time it would be out of order. */
			ops[got[i].user_data].deadline_ns = 0;
		}
	}
	EXPECT_EQ(0, kretry_queue_read(self->k, got, ARRAY_LEN(got)));
	EXPECT_FALSE(is_readable(self, 0));
}

TEST_F(library_queue, read_of_nothing_due_does_not_block)
{
	struct kretry_op op;

	self->policy.backoff.base_ns = self->policy.backoff.cap_ns;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	EXPECT_EQ(0, kretry_queue_read(self->k, &op, 1));
	ASSERT_EQ(0, enqueue(self, 1));
	EXPECT_EQ(0, kretry_queue_read(self->k, &op, 1));
	EXPECT_EQ(0, kretry_queue_read(self->k, &op, 0));
}

TEST_F(library_queue, epoll_tells_at_the_deadline)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 9 };
	int epoll = epoll_create1(0);
	uint64_t begin = kt_now(CLOCK_MONOTONIC), took;
	struct kretry_op op;

	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, kretry_queue_fd(self->k), &event));
	ASSERT_EQ(0, enqueue(self, 1));
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, 100000));
	took = kt_now(CLOCK_MONOTONIC) - begin;
	EXPECT_LE(100 * MSEC, took);
	EXPECT_GT(5 * SEC, took);
	EXPECT_EQ(1, kretry_queue_read(self->k, &op, 1));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	close(epoll);
}

TEST_F(library_queue, poll_on_a_ring_tells_at_the_deadline)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	struct kretry_op op;

	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, io_uring_queue_init(2, &ring, 0));
	ASSERT_EQ(0, enqueue(self, 1));
	io_uring_prep_poll_add(io_uring_get_sqe(&ring), kretry_queue_fd(self->k), POLLIN);
	ASSERT_EQ(1, io_uring_submit_and_wait(&ring, 1));
	ASSERT_EQ(0, io_uring_peek_cqe(&ring, &cqe));
	EXPECT_EQ(POLLIN, cqe->res & POLLIN);
	EXPECT_EQ(1, kretry_queue_read(self->k, &op, 1));
	io_uring_queue_exit(&ring);
}

/* -------- what does not arrive -------- */

TEST_F(library_queue, cancel_gives_charge_and_attempt_back_once)
{
	struct kretry_op op;

	self->policy.budget.capacity_utok = KRETRY_UTOK;
	self->policy.budget.initial_utok = KRETRY_UTOK;
	self->policy.budget.cost_transient_utok = KRETRY_UTOK;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, enqueue(self, 1));
	EXPECT_EQ(0, balance(self));
	memset(&op, POISON, sizeof(op));
	EXPECT_EQ(0, kretry_queue_cancel(self->k, 1, &op));
	EXPECT_EQ(1, op.user_data);
	EXPECT_EQ(0, op.attempt);
	EXPECT_EQ(0, op.deadline_ns);
	EXPECT_EQ(KRETRY_VERDICT_NONE, op.verdict);
	EXPECT_EQ(KRETRY_OP_QUEUE, op.flags);
	EXPECT_EQ(KRETRY_UTOK, balance(self));
	EXPECT_EQ(-ENOENT, kretry_queue_cancel(self->k, 1, &op));
	EXPECT_EQ(KRETRY_UTOK, balance(self));
}

TEST_F(library_queue, user_data_in_use_eexist_policy_in_use_ebusy)
{
	struct kretry_op op, was;

	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, enqueue(self, 1));
	op = queued_op(self, 1);
	was = op;
	EXPECT_EQ(-EEXIST, kretry_step(self->k, &op));
	EXPECT_EQ(0, memcmp(&was, &op, sizeof(op)));
	EXPECT_EQ(-EBUSY, kretry_policy_close(self->k, self->policy.id));
	EXPECT_EQ(0, kretry_queue_cancel(self->k, 1, &was));
	EXPECT_EQ(0, kretry_policy_close(self->k, self->policy.id));
}

TEST_F(library_queue, shutdown_drops_what_waits)
{
	struct kretry_op op;

	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, enqueue(self, 1));
	EXPECT_EQ(0, kretry_shutdown(self->k));
	kt_sleep(SEC);
	EXPECT_EQ(0, kretry_queue_read(self->k, &op, 1));
	EXPECT_EQ(-ENOENT, kretry_queue_cancel(self->k, 1, &op));
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, enqueue(self, 1));
	ASSERT_EQ(0, read_one(self, &op));
	EXPECT_EQ(KRETRY_GO, op.verdict);
}

TEST_F(library_queue, breaker_open_at_the_deadline_costs_nothing)
{
	struct kretry_op op;

	self->policy.breaker.consecutive = 2;
	self->policy.breaker.probes = 1;
	self->policy.breaker.open_ns = 3600 * SEC;
	self->policy.breaker.open_cap_ns = 3600 * SEC;
	self->policy.breaker.probe_timeout_ns = SEC;
	self->policy.budget.capacity_utok = 2 * KRETRY_UTOK;
	self->policy.budget.initial_utok = 2 * KRETRY_UTOK;
	self->policy.budget.cost_transient_utok = KRETRY_UTOK;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, enqueue(self, 1));
	op = kt_op(self->policy.id, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(0, kretry_step(self->k, &op));
	EXPECT_EQ(KRETRY_UTOK, balance(self));
	ASSERT_EQ(0, read_one(self, &op));
	EXPECT_EQ(KRETRY_STOP_OPEN, op.verdict);
	EXPECT_EQ(0, op.attempt);
	EXPECT_EQ(2 * KRETRY_UTOK, balance(self));
}

/* -------- whose it is -------- */

static int child_of_fork(FIXTURE_DATA(library_queue) *self)
{
	struct kretry_sched *s;

	CHECK_EQ(0, kretry_sched_init(&s, self->k, NULL, 1));
	CHECK_EQ(-EBUSY, kretry_sched_set_method(s, KRETRY_METHOD_QUEUE));
	kretry_sched_exit(s);
	return 0;
}

TEST_F(library_queue, child_of_fork_has_no_scheduler_on_its_parents_queue)
{
	struct kretry_sched *s;
	pid_t pid = fork();

	if (!pid)
		_exit(child_of_fork(self));
	EXPECT_EQ(0, kt_wait(pid));
	ASSERT_EQ(0, kretry_sched_init(&s, self->k, NULL, 1));
	EXPECT_EQ(0, kretry_sched_set_method(s, KRETRY_METHOD_QUEUE));
	EXPECT_EQ(-EBUSY, kretry_queue_fd(self->k));
	kretry_sched_exit(s);
	EXPECT_LE(0, kretry_queue_fd(self->k));
}

TEST_HARNESS_MAIN
