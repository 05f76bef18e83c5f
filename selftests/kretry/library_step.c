// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The library's steps on a caller's ring over the module, and rings without its commands. */
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "kretry.h"

#define COUNT	100

FIXTURE(library_step) {
	struct kretry *k;
	struct io_uring ring;
	struct kretry_policy policy;
	struct kretry_op ops[COUNT];
	bool by_kernel;		/* WAIT is a command here */
};

FIXTURE_SETUP(library_step)
{
	struct kretry_info info;
	int i;

	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_MODULE_ONLY));
	ASSERT_EQ(0, kretry_info(self->k, &info));
	self->by_kernel = info.features & KRETRY_FEATURE_URING_WAIT;
	kt_policy(&self->policy);
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	for (i = 0; i < COUNT; i++) {
		self->ops[i] = kt_op(self->policy.id, KRETRY_EVENT_TRANSIENT);
		self->ops[i].verdict = POISON;
	}
}

FIXTURE_TEARDOWN(library_step)
{
	kretry_close(self->k);
}

/* A ring that takes timeouts and no-ops, but no commands. */
static int restricted_ring(struct io_uring *ring)
{
	struct io_uring_restriction allowed[] = {
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_NOP },
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_TIMEOUT },
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_TIMEOUT_REMOVE },
		{ .opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED, .sqe_flags = IOSQE_IO_LINK },
	};

	CHECK_EQ(0, io_uring_queue_init(8, ring, IORING_SETUP_R_DISABLED));
	CHECK_EQ(0, syscall(__NR_io_uring_register, ring->ring_fd, IORING_REGISTER_RESTRICTIONS,
			    allowed, ARRAY_LEN(allowed)));
	CHECK_EQ(0, syscall(__NR_io_uring_register, ring->ring_fd, IORING_REGISTER_ENABLE_RINGS,
			    NULL, 0));
	return 0;
}

static int next_res(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int res;

	if (io_uring_submit(ring) < 0 || io_uring_wait_cqe(ring, &cqe))
		return -EPROTO;
	res = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

TEST_F(library_step, batch_is_answered_and_a_link_goes_on)
{
	struct io_uring_sqe *sqe;
	int i;

	ASSERT_EQ(0, io_uring_queue_init(8, &self->ring, 0));
	self->ops[7].event = KRETRY_EVENT_NONE;
	sqe = io_uring_get_sqe(&self->ring);
	memset(sqe, POISON, sizeof(*sqe));
	ASSERT_EQ(0, kretry_prep_step(sqe, self->k, self->ops, COUNT));
	EXPECT_EQ(IORING_OP_URING_CMD, sqe->opcode);
	for (i = 0; i < COUNT; i++)
		ASSERT_EQ(KRETRY_VERDICT_NONE, self->ops[i].verdict);
	sqe->flags |= IOSQE_IO_LINK;
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_nop(sqe);
	EXPECT_EQ(COUNT, next_res(&self->ring));
	EXPECT_EQ(0, next_res(&self->ring));
	for (i = 0; i < COUNT; i++)
		EXPECT_EQ(i == 7 ? KRETRY_ERROR : KRETRY_RETRY, self->ops[i].verdict);
	EXPECT_EQ(EINVAL, KRETRY_OP_ERRNO(self->ops[7].flags));
	io_uring_queue_exit(&self->ring);
}

TEST_F(library_step, ring_without_commands_leaves_the_ops_unanswered)
{
	ASSERT_EQ(0, restricted_ring(&self->ring));
	ASSERT_EQ(0, kretry_prep_step(io_uring_get_sqe(&self->ring), self->k, self->ops, 2));
	EXPECT_EQ(-EACCES, next_res(&self->ring));
	EXPECT_EQ(KRETRY_VERDICT_NONE, self->ops[0].verdict);
	EXPECT_EQ(KRETRY_EVENT_TRANSIENT, self->ops[0].event);
	EXPECT_EQ(2, kretry_step_batch(self->k, self->ops, 2));
	EXPECT_EQ(KRETRY_RETRY, self->ops[1].verdict);
	io_uring_queue_exit(&self->ring);
}

TEST_F(library_step, wait_on_a_ring_without_commands_is_prepared_again)
{
	uint64_t begin = kt_now(CLOCK_MONOTONIC);
	struct kretry_wait w = { .op = self->ops[0] };

	ASSERT_EQ(0, restricted_ring(&self->ring));
	ASSERT_EQ(0, kretry_prep_wait(io_uring_get_sqe(&self->ring), self->k, &w));
	if (self->by_kernel) {
		EXPECT_EQ(-EAGAIN, kretry_wait_result(&w, next_res(&self->ring)));
		EXPECT_EQ(KRETRY_EVENT_TRANSIENT, w.op.event);
		ASSERT_EQ(0, kretry_prep_wait(io_uring_get_sqe(&self->ring), self->k, &w));
	}
	EXPECT_EQ(0, kretry_wait_result(&w, next_res(&self->ring)));
	EXPECT_EQ(KRETRY_GO, w.op.verdict);
	EXPECT_EQ(1, w.op.attempt);
	EXPECT_LE(begin + 100 * MSEC, kt_now(CLOCK_MONOTONIC));
	io_uring_queue_exit(&self->ring);
}

/* -------- a scheduler -------- */

struct job {
	int failures, attempts, dones, verdict;
};

static void attempt(struct kretry_task *task, void *arg)
{
	struct job *job = arg;

	job->attempts++;
	kretry_task_report(task, job->attempts > job->failures ? KRETRY_EVENT_OK :
			   KRETRY_EVENT_TRANSIENT, 0, 0);
}

static void done(struct kretry_task *task, const struct kretry_op *op, void *arg)
{
	struct job *job = arg;

	(void)task;
	job->dones++;
	job->verdict = op->verdict;
}

static const struct kretry_task_ops ops = { .attempt = attempt, .done = done };

TEST_F(library_step, scheduler_on_a_ring_without_commands_falls_back_and_says_why)
{
	struct kretry_op op = { .policy = self->policy.id };
	struct job jobs[10] = { 0 };
	struct kretry_sched *s;
	uint64_t begin;
	int i;

	ASSERT_EQ(0, restricted_ring(&self->ring));
	ASSERT_EQ(0, kretry_sched_init(&s, self->k, &self->ring, 10));
	begin = kt_now(CLOCK_MONOTONIC);
	for (i = 0; i < 10; i++) {
		jobs[i].failures = 2;
		ASSERT_EQ(0, kretry_sched_start(s, &op, &ops, &jobs[i], NULL));
	}
	ASSERT_EQ(0, kretry_sched_run(s, NULL, NULL, NULL));
	EXPECT_LE(begin + 200 * MSEC, kt_now(CLOCK_MONOTONIC));
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(3, jobs[i].attempts);
		EXPECT_EQ(1, jobs[i].dones);
		EXPECT_EQ(KRETRY_DONE, jobs[i].verdict);
	}
	EXPECT_EQ(KRETRY_METHOD_TIMEOUT, kretry_sched_method(s));
	EXPECT_TRUE(strstr(kretry_sched_reason(s), self->by_kernel ? "Permission denied" :
			   "cannot be cancelled"))
		TH_LOG("%s", kretry_sched_reason(s));
	kretry_sched_exit(s);
	io_uring_queue_exit(&self->ring);
}

TEST_HARNESS_MAIN
