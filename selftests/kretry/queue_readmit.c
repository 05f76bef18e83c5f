// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* At its deadline a queued op is admitted as BEGIN would: by breaker and cooling, or not at all. */
#include "harness.h"
#include "queued.h"
#include "shared.h"

#define KEY	7
#define DELAY	(100 * MSEC)

FIXTURE(queue_readmit) {
	struct kt_party me, other;
	int fd;
	struct kretry_policy policy;	/* "readmit": 100 ms, ten tokens, opens after 3 for 10 s */
	uint32_t id, others;
};

FIXTURE_SETUP(queue_readmit)
{
	ASSERT_EQ(0, kt_here(&self->me));
	ASSERT_EQ(0, kt_there(&self->other, 0));
	self->fd = self->me.fd;
	kt_nonblock(self->fd, true);
	kt_policy(&self->policy);
	kt_name(&self->policy, "readmit");
	kt_budget(&self->policy, 10);
	kt_breaker(&self->policy, 3, 10 * SEC, 1);
}

static struct kretry_stat state(FIXTURE_DATA(queue_readmit) *self)
{
	return kt_stat_key(&self->me, self->id, KEY);
}

static struct kretry_stat all(FIXTURE_DATA(queue_readmit) *self)
{
	return kt_stat(&self->me, self->id);
}

/* Whatever was charged is spent, given back, or in the bucket. */
FIXTURE_TEARDOWN(queue_readmit)
{
	EXPECT_EQ(10 * KRETRY_UTOK,
		  state(self).balance_utok + all(self).charged_utok - all(self).refunded_utok);
	kt_leave(&self->other);
	kt_leave(&self->me);
}

static int create(FIXTURE_DATA(queue_readmit) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	CHECK((int)self->id > 0);
	self->others = kt_party_named(&self->other, "readmit", 0);
	CHECK((int)self->others > 0);
	return 0;
}

/* Queue one that has failed: the granted op. */
static struct kretry_op queue_one(FIXTURE_DATA(queue_readmit) *self, uint64_t user_data)
{
	struct kretry_op op = kt_queue_op(self->id, user_data);

	op.key = KEY;
	if (kt_step(self->fd, &op) || !(op.flags & KRETRY_OP_QUEUED))
		op.verdict = KRETRY_ERROR;
	return op;
}

/* Others fail until the breaker is open, without a token being spent. */
static int open_breaker(FIXTURE_DATA(queue_readmit) *self)
{
	struct kretry_op op;
	int i;

	for (i = 0; i < 10 && state(self).state == KRETRY_CLOSED; i++) {
		kt_begin(&self->other, self->others, KEY, &op);
		op.flags = KRETRY_OP_NO_RETRY;
		kt_report(&self->other, &op, KRETRY_EVENT_TRANSIENT);
	}
	return state(self).state == KRETRY_OPEN ? 0 : -EIO;
}

/* The breaker closes again: somebody's probe succeeds. */
static int close_breaker(FIXTURE_DATA(queue_readmit) *self)
{
	struct kretry_op op;

	kt_sleep_open(&self->other, self->others, KEY);
	if (kt_begin(&self->other, self->others, KEY, &op) != KRETRY_GO)
		return -EIO;
	return kt_report(&self->other, &op, KRETRY_EVENT_OK) == KRETRY_DONE ? 0 : -EIO;
}

TEST_F(queue_readmit, breaker_closed_go_with_its_generation)
{
	struct kretry_op op, got;

	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_GO, got.verdict);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(1, got.attempt);
	EXPECT_EQ(9 * KRETRY_UTOK, state(self).balance_utok);
	/* Its result counts: with the failure before there are two in a row. */
	got.flags = KRETRY_OP_NO_RETRY;
	EXPECT_EQ(KRETRY_STOP_HINT, kt_report(&self->me, &got, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(2, state(self).streak);
	EXPECT_EQ(1, all(self).events[KRETRY_EVENT_BEGIN]);
	EXPECT_EQ(1, all(self).go);
}

TEST_F(queue_readmit, breaker_open_stop_that_costs_nothing)
{
	struct kretry_op op, got;
	uint64_t half_open;

	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	half_open = state(self).half_open_ns;
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_STOP_OPEN, got.verdict);
	EXPECT_EQ(0, got.attempt);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(op.start_ns, got.start_ns);
	EXPECT_EQ(half_open + DELAY, got.deadline_ns);
	EXPECT_EQ(10 * KRETRY_UTOK, state(self).balance_utok);
	EXPECT_EQ(1, all(self).stops[KRETRY_STOP_OPEN - KRETRY_STOP_PERMANENT]);
	EXPECT_EQ(0, all(self).queued);
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 1, &got));
}

/* A STOP that could not be written stays due, not put off to when it advises to come back. */
TEST_F(queue_readmit, stop_that_cannot_be_written_delivered_once_it_can)
{
	struct kretry_op op, got, nowhere = { 0 };
	void *read_only = kt_read_only(&nowhere, sizeof(nowhere));

	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	EXPECT_EQ(-1, read(self->fd, read_only, sizeof(op)));
	EXPECT_EQ(EFAULT, errno);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_STOP_OPEN, got.verdict);
	EXPECT_EQ(1, all(self).stops[KRETRY_STOP_OPEN - KRETRY_STOP_PERMANENT]);
}

/* Half-open it takes the probe, which is its holder's to report. */
TEST_F(queue_readmit, breaker_half_open_probe_taken_and_reported)
{
	struct kretry_op op, got;

	self->policy.backoff.base_ns = 11 * SEC;
	self->policy.backoff.cap_ns = 11 * SEC;
	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	EXPECT_EQ(0, state(self).leases);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_GO, got.verdict);
	EXPECT_EQ(KRETRY_OP_QUEUE | KRETRY_OP_PROBE, got.flags);
	EXPECT_EQ(1, state(self).leases);
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&self->other, self->others, KEY, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(-EBUSY, kt_close(self->fd, self->id));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &got, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	EXPECT_EQ(0, all(self).probes_lost);
}

TEST_F(queue_readmit, breaker_half_open_without_a_probe_left_stop)
{
	struct kretry_op op, got, probe;

	self->policy.backoff.base_ns = 11 * SEC;
	self->policy.backoff.cap_ns = 11 * SEC;
	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns - SEC / 2);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &probe));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_STOP_OPEN, got.verdict);
	EXPECT_EQ(0, got.attempt);
	EXPECT_EQ(10 * KRETRY_UTOK, state(self).balance_utok);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->other, &probe, KRETRY_EVENT_OK));
}

/* -------- WAIT_OPEN -------- */

/* Charged once, it waits through two openings, and is delivered after the second. */
TEST_F(queue_readmit, wait_open_waits_on_charged_once)
{
	struct kretry_op got;
	uint64_t half_open = 0;
	int i;

	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	ASSERT_EQ(0, create(self));
	queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	for (i = 0; i < 2; i++) {
		half_open = state(self).half_open_ns;
		kt_sleep_until(CLOCK_MONOTONIC, half_open - SEC);
		EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
		EXPECT_EQ(1, all(self).queued);
		if (i)
			break;
		kt_sleep_until(CLOCK_MONOTONIC, half_open);
		ASSERT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &got));
		got.flags = KRETRY_OP_NO_RETRY;
		kt_report(&self->other, &got, KRETRY_EVENT_TRANSIENT);
		ASSERT_EQ(KRETRY_OPEN, state(self).state);
	}
	EXPECT_EQ(9 * KRETRY_UTOK, state(self).balance_utok);
	kt_nonblock(self->fd, false);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_GO, got.verdict);
	EXPECT_EQ(1, got.attempt);
	EXPECT_EQ(KRETRY_OP_QUEUE | KRETRY_OP_PROBE, got.flags);
	EXPECT_LE(half_open + DELAY, got.deadline_ns);
	EXPECT_GT(half_open + DELAY + 5 * MSEC, got.deadline_ns);
	EXPECT_EQ(9 * KRETRY_UTOK, state(self).balance_utok);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &got, KRETRY_EVENT_OK));
}

/* The probe is out with somebody else: wait for it, at the op's own delay, not in a hot loop. */
TEST_F(queue_readmit, wait_open_without_a_free_probe_waits_on)
{
	struct kretry_op got, probe;
	uint64_t before, begins;

	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	ASSERT_EQ(0, create(self));
	queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	kt_sleep_open(&self->other, self->others, KEY);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &probe));
	before = all(self).events[KRETRY_EVENT_BEGIN];
	for (begins = 0; begins < 20; begins++) {
		kt_sleep(DELAY);
		EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
	}
	EXPECT_LE(before + 10, all(self).events[KRETRY_EVENT_BEGIN]);
	EXPECT_GE(before + 21, all(self).events[KRETRY_EVENT_BEGIN]);
	ASSERT_EQ(KRETRY_DONE, kt_report(&self->other, &probe, KRETRY_EVENT_OK));
	kt_sleep(2 * DELAY);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_GO, got.verdict);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(9 * KRETRY_UTOK, state(self).balance_utok);
}

TEST_F(queue_readmit, wait_open_past_max_elapsed_stop_that_costs_nothing)
{
	struct kretry_op op, got;

	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	self->policy.max_elapsed_ns = 5 * SEC;
	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_STOP_ELAPSED, got.verdict);
	EXPECT_EQ(0, got.deadline_ns);
	EXPECT_EQ(0, got.attempt);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(10 * KRETRY_UTOK, state(self).balance_utok);
	EXPECT_EQ(1, all(self).stops[KRETRY_STOP_ELAPSED - KRETRY_STOP_PERMANENT]);
}

/* Taken back while it waits for the breaker: the one charge, once. */
TEST_F(queue_readmit, wait_open_cancelled_while_it_waits_on)
{
	struct kretry_op op, got;

	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns + SEC);
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &got));
	EXPECT_EQ(0, got.attempt);
	EXPECT_EQ(KRETRY_OP_QUEUE, got.flags);
	EXPECT_EQ(KRETRY_UTOK, all(self).refunded_utok);
	EXPECT_EQ(0, close_breaker(self));
	kt_sleep(20 * SEC);
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &got));
}

/* -------- cooling -------- */

TEST_F(queue_readmit, cooling_stop_that_costs_nothing)
{
	struct kretry_op op, got, hint;
	uint64_t until;

	self->policy.flags = KRETRY_POLICY_HINT_SHARED;
	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &hint));
	hint.flags = KRETRY_OP_HINT;
	hint.hint_ns = 5 * SEC;
	hint.attempt = 0xfffffffe;
	kt_report(&self->other, &hint, KRETRY_EVENT_THROTTLED);
	until = state(self).cooling_ns;
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	ASSERT_EQ(0, kt_take_one(self->fd, &got));
	EXPECT_EQ(KRETRY_STOP_COOLING, got.verdict);
	EXPECT_EQ(until, got.deadline_ns);
	EXPECT_EQ(0, got.attempt);
	EXPECT_EQ(KRETRY_UTOK, all(self).refunded_utok);
}

/* -------- probes that go astray -------- */

/* Given at delivery, it is its process's: the breaker has it back when that is gone. */
TEST_F(queue_readmit, probe_of_a_reader_that_exits_comes_back)
{
	struct kretry_op op, got;
	pid_t pid;

	self->policy.backoff.base_ns = 11 * SEC;
	self->policy.backoff.cap_ns = 11 * SEC;
	ASSERT_EQ(0, create(self));
	op = queue_one(self, 1);
	ASSERT_EQ(0, open_breaker(self));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	pid = fork();
	if (!pid)
		_exit(kt_take_one(self->fd, &got) || !(got.flags & KRETRY_OP_PROBE));
	EXPECT_EQ(0, kt_wait(pid));
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->other, self->others, KEY, &got));
	EXPECT_TRUE(got.flags & KRETRY_OP_PROBE);
	EXPECT_EQ(1, all(self).probes_lost);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->other, &got, KRETRY_EVENT_OK));
}

TEST_HARNESS_MAIN
