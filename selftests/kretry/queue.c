// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* QUEUE: which of STEP's answers wait in the kernel, by what name, and what read() gives back. */
#include "harness.h"
#include "queued.h"

#include <poll.h>

FIXTURE(queue) {
	int fd;
	struct kretry_policy policy;
	uint32_t id;	/* 100 ms */
};

FIXTURE_SETUP(queue)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_nonblock(self->fd, true);
	kt_policy(&self->policy);
	self->id = kt_create(self->fd, &self->policy);
	ASSERT_LT(0, (int)self->id);
}

FIXTURE_TEARDOWN(queue)
{
	close(self->fd);
}

static struct kretry_stat stat_of(FIXTURE_DATA(queue) *self)
{
	struct kretry_stat stat = { .size = sizeof(stat), .policy = self->id };

	if (kt_ioctl(self->fd, KRETRY_IOC_STAT, &stat))
		memset(&stat, POISON, sizeof(stat));
	return stat;
}

/* Another policy, with a slot every @pace_ns for every attempt. */
static uint32_t create_paced(FIXTURE_DATA(queue) *self, uint64_t pace_ns)
{
	kt_policy(&self->policy);
	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	self->policy.pacing.pace_ns = pace_ns;
	self->policy.pacing.horizon_ns = 3600 * SEC;
	self->id = kt_create(self->fd, &self->policy);
	return self->id;
}

TEST_F(queue, step_retry_is_queued_and_read_when_due)
{
	struct kretry_op op = kt_queue_op(self->id, 0xfedcba9876543210ULL), asked, got;
	uint64_t before = kt_now(CLOCK_MONOTONIC);

	op.key = 99;
	op.flags |= KRETRY_OP_IDEMPOTENT;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(KRETRY_OP_QUEUE | KRETRY_OP_IDEMPOTENT | KRETRY_OP_QUEUED, op.flags);
	EXPECT_EQ(1, op.attempt);
	EXPECT_EQ(1, stat_of(self).queued);
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	asked = op;
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_LE(op.deadline_ns, got.deadline_ns);
	EXPECT_GE(kt_now(CLOCK_MONOTONIC), got.deadline_ns);
	EXPECT_LE(before, got.start_ns);
	asked.verdict = KRETRY_GO;
	asked.flags = KRETRY_OP_QUEUE | KRETRY_OP_IDEMPOTENT;
	asked.deadline_ns = got.deadline_ns;
	asked.generation = got.generation;
	EXPECT_EQ(0, memcmp(&asked, &got, sizeof(got)));
	EXPECT_NE(0, got.generation);
	EXPECT_EQ(0, stat_of(self).queued);
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
}

/* What is delivered goes on as if it had been granted by hand. */
TEST_F(queue, delivered_op_reported_next_retry_goes_on)
{
	struct kretry_op op;
	uint32_t i;

	op = kt_queue_op(self->id, 1);
	for (i = 1; i <= 5; i++) {
		op.event = KRETRY_EVENT_TRANSIENT;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		EXPECT_EQ(i, op.attempt);
		kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
		ASSERT_EQ(0, kt_take_one(self->fd, &op));
		EXPECT_EQ(KRETRY_GO, op.verdict);
		EXPECT_EQ(i, op.attempt);
	}
	op.event = KRETRY_EVENT_OK;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_DONE, op.verdict);
	EXPECT_EQ(KRETRY_OP_QUEUE, op.flags);
	EXPECT_EQ(0, op.attempt);
	EXPECT_EQ(5, stat_of(self).events[KRETRY_EVENT_BEGIN]);
	EXPECT_EQ(5, stat_of(self).go);
	EXPECT_EQ(5, stat_of(self).retry);
}

/* READMIT is the kernel's task then: with a breaker or with pacing, the caller is not told to. */
TEST_F(queue, step_retry_that_needs_readmission_does_not_say_so)
{
	struct kretry_op op;
	int i;

	for (i = 0; i < 2; i++) {
		op = kt_queue_op(create_paced(self, MSEC), i);
		op.flags = i ? KRETRY_OP_QUEUE : 0;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		EXPECT_EQ(KRETRY_RETRY, op.verdict);
		EXPECT_EQ(i ? KRETRY_OP_QUEUE | KRETRY_OP_QUEUED : KRETRY_OP_READMIT, op.flags);
	}
}

/* A first attempt whose slot lies ahead waits, too, and has that slot. */
TEST_F(queue, step_paced_begin_is_queued_until_its_slot)
{
	uint32_t id = create_paced(self, SEC);
	struct kretry_op op, got;
	int i;

	for (i = 0; i < 3; i++) {
		op = kt_queue_op(id, i);
		op.event = KRETRY_EVENT_BEGIN;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		EXPECT_EQ(KRETRY_GO, op.verdict);
		EXPECT_EQ(0, op.attempt);
		EXPECT_EQ(i ? KRETRY_OP_QUEUE | KRETRY_OP_QUEUED : KRETRY_OP_QUEUE, op.flags);
	}
	EXPECT_EQ(2, stat_of(self).queued);
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns - SEC);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(1, got.user_data);
	EXPECT_EQ(KRETRY_GO, got.verdict);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(op.deadline_ns - SEC, got.deadline_ns);
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(2, got.user_data);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(op.deadline_ns, got.deadline_ns);
	/* Each asked once and was told once. */
	EXPECT_EQ(3, stat_of(self).events[KRETRY_EVENT_BEGIN]);
	EXPECT_EQ(3, stat_of(self).go);
}

TEST_F(queue, step_that_does_not_wait_is_not_queued)
{
	static const struct {
		unsigned int event, verdict;
	} rows[] = {
		{ KRETRY_EVENT_BEGIN, KRETRY_GO },
		{ KRETRY_EVENT_OK, KRETRY_DONE },
		{ KRETRY_EVENT_CANCELLED, KRETRY_DONE },
		{ KRETRY_EVENT_PERMANENT, KRETRY_STOP_PERMANENT },
		{ KRETRY_EVENT_UNKNOWN, KRETRY_STOP_UNSAFE },
	};
	struct kretry_op op, got;
	size_t i;

	for (i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		op = kt_queue_op(self->id, 5);
		op.event = rows[i / 2].event;
		ASSERT_EQ(i % 2, i % 2 ? kt_batch(self->fd, &op, 1) : kt_step(self->fd, &op));
		EXPECT_EQ(rows[i / 2].verdict, op.verdict);
		EXPECT_EQ(KRETRY_OP_QUEUE, op.flags);
		EXPECT_EQ(0, stat_of(self).queued);
		EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 5, &got));
	}
	kt_sleep(SEC);
	EXPECT_EQ(0, kt_poll(self->fd, 0));
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
}

/* With a delay of nothing it is due at once, and still delivered by read(). */
TEST_F(queue, step_retry_without_delay_is_due_at_once)
{
	struct kretry_op op, got;

	self->policy.backoff.base_ns = 0;
	self->id = kt_create(self->fd, &self->policy);
	op = kt_queue_op(self->id, 3);
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_OP_QUEUE | KRETRY_OP_QUEUED, op.flags);
	EXPECT_TRUE(kt_poll(self->fd, 0) & POLLIN);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(3, got.user_data);
}

/* -------- names -------- */

TEST_F(queue, step_user_data_in_use_eexist_nothing_changed)
{
	struct kretry_op op, before;

	self->policy.clockid = CLOCK_BOOTTIME;
	self->policy.budget.capacity_utok = 5 * KRETRY_UTOK;
	self->policy.budget.initial_utok = 5 * KRETRY_UTOK;
	self->policy.budget.cost_transient_utok = KRETRY_UTOK;
	self->id = kt_create(self->fd, &self->policy);
	ASSERT_EQ(0, kt_queue(self->fd, 1, 7));
	op = kt_queue_op(self->id, 7);
	op.flags |= KRETRY_OP_HINT;
	op.hint_ns = 3;
	op.start_ns = ~0ULL;
	op.deadline_ns = ~0ULL;
	op.verdict = POISON;
	before = op;
	EXPECT_EQ(-EEXIST, kt_step(self->fd, &op));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	EXPECT_EQ(1, kt_batch(self->fd, &op, 1));
	before.verdict = KRETRY_ERROR;
	before.flags |= EEXIST << 8;
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	EXPECT_EQ(0, stat_of(self).queued);
	EXPECT_EQ(0, stat_of(self).charged_utok);
	EXPECT_EQ(0, stat_of(self).events[KRETRY_EVENT_TRANSIENT]);
	EXPECT_EQ(0, kt_queue(self->fd, self->id, 8));
}

TEST_F(queue, batch_user_data_twice_second_eexist_others_queued)
{
	struct kretry_op ops[100], got[101];
	unsigned int i;

	for (i = 0; i < 100; i++)
		ops[i] = kt_queue_op(self->id, i);
	/* In one chunk, and far apart. */
	ops[11].user_data = 10;
	ops[99].user_data = 1;
	ASSERT_EQ(100, kt_batch(self->fd, ops, 100));
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(i == 11 || i == 99 ? KRETRY_ERROR : KRETRY_RETRY, ops[i].verdict);
		EXPECT_EQ(i == 11 || i == 99 ? EEXIST : KRETRY_OP_QUEUED >> 8,
			  KRETRY_OP_ERRNO(ops[i].flags));
	}
	EXPECT_EQ(98, stat_of(self).queued);
	kt_sleep(SEC);
	EXPECT_EQ(98, kt_take(self->fd, got, 101));
	for (i = 0; i < 98; i++)
		EXPECT_EQ(i < 11 ? i : i + 1, got[i].user_data);
}

TEST_F(queue, user_data_free_again_once_delivered_or_cancelled)
{
	struct kretry_op op;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, kt_queue(self->fd, self->id, ~0ULL));
		EXPECT_EQ(-EEXIST, kt_queue(self->fd, self->id, ~0ULL));
		ASSERT_EQ(0, kt_cancel(self->fd, ~0ULL, &op));
		ASSERT_EQ(0, kt_queue(self->fd, self->id, ~0ULL));
		kt_sleep(200 * MSEC);
		/* Due is not delivered. */
		EXPECT_EQ(-EEXIST, kt_queue(self->fd, self->id, ~0ULL));
		ASSERT_EQ(0, kt_take_one(self->fd, &op));
	}
}

/* Each file has names of its own; a name without QUEUE is no name. */
TEST_F(queue, user_data_same_on_other_file_or_without_queue_works)
{
	struct kretry_op op = kt_op(self->id, KRETRY_EVENT_TRANSIENT);
	int other = kt_open();

	ASSERT_EQ(0, kt_queue(self->fd, self->id, 0));
	EXPECT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(0, op.flags);
	EXPECT_EQ(0, kt_queue(other, kt_create(other, &self->policy), 0));
	EXPECT_EQ(1, stat_of(self).queued);
	close(other);
	EXPECT_EQ(1, stat_of(self).queued);
}

/* -------- what cannot be answered -------- */

TEST_F(queue, step_op_read_only_efault_nothing_queued)
{
	struct kretry_op op = kt_queue_op(self->id, 7);

	EXPECT_EQ(-EFAULT, kt_step(self->fd, kt_read_only(&op, sizeof(op))));
	EXPECT_EQ(0, stat_of(self).queued);
	EXPECT_EQ(0, stat_of(self).events[KRETRY_EVENT_TRANSIENT]);
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 7, &op));
	EXPECT_EQ(0, kt_queue(self->fd, self->id, 7));
}

TEST_F(queue, batch_over_the_end_of_memory_only_what_was_told_is_queued)
{
	static const unsigned int there[] = { 1, 15, 16, 17, 40 };
	struct kretry_op *ops, got[64];
	unsigned int i;
	size_t row;

	for (row = 0; row < ARRAY_LEN(there); row++) {
		ops = kt_page_end(there[row] * sizeof(*ops));
		for (i = 0; i < there[row]; i++)
			ops[i] = kt_queue_op(self->id, i);
		EXPECT_EQ((int)there[row], kt_batch(self->fd, ops, 1000));
		EXPECT_EQ(there[row], stat_of(self).queued);
		kt_sleep(SEC);
		EXPECT_EQ((int)there[row], kt_take(self->fd, got, 64));
	}
}

TEST_HARNESS_MAIN
