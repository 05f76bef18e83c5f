// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The library's steps and waits on a caller's ring, over the module: by its commands or, where the
 * kernel has none that can be cancelled, by what stands in for them.
 */
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "kretry.h"

#define WAIT_DATA	11
#define LINK_DATA	22
#define CANCEL_DATA	33
#define KEY		1

FIXTURE(library_wait) {
	struct kretry *k;
	struct io_uring ring;
	struct kretry_policy policy;
	struct kretry_wait w;
	bool by_kernel;		/* WAIT is a command here */
};

FIXTURE_VARIANT(library_wait) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(library_wait, plain) { .flags = 0 };
FIXTURE_VARIANT_ADD(library_wait, sqpoll) { .flags = IORING_SETUP_SQPOLL };
FIXTURE_VARIANT_ADD(library_wait, deferred) {
	.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

FIXTURE_SETUP(library_wait)
{
	struct kretry_info info;

	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_MODULE_ONLY));
	ASSERT_EQ(0, kretry_info(self->k, &info));
	self->by_kernel = info.features & KRETRY_FEATURE_URING_WAIT;
	ASSERT_TRUE(info.features & KRETRY_FEATURE_URING_STEP);
	ASSERT_EQ(self->by_kernel, !kretry_uring_reason(self->k)[0]);
	ASSERT_EQ(0, io_uring_queue_init(8, &self->ring, variant->flags));
	kt_policy(&self->policy);
}

FIXTURE_TEARDOWN(library_wait)
{
	io_uring_queue_exit(&self->ring);
	kretry_close(self->k);
}

static int create(FIXTURE_DATA(library_wait) *self)
{
	return kretry_policy_create(self->k, &self->policy);
}

static void budget(FIXTURE_DATA(library_wait) *self, uint64_t tokens)
{
	self->policy.budget.capacity_utok = tokens * KRETRY_UTOK;
	self->policy.budget.initial_utok = tokens * KRETRY_UTOK;
	self->policy.budget.cost_transient_utok = KRETRY_UTOK;
}

static void breaker(FIXTURE_DATA(library_wait) *self, uint64_t open_ns)
{
	self->policy.breaker.consecutive = 2;
	self->policy.breaker.probes = 1;
	self->policy.breaker.open_ns = open_ns;
	self->policy.breaker.open_cap_ns = open_ns;
	self->policy.breaker.probe_timeout_ns = 3600 * SEC;
}

static uint64_t balance(FIXTURE_DATA(library_wait) *self)
{
	struct kretry_stat stat = {
		.policy = self->policy.id, .flags = KRETRY_SCOPE_KEY, .key = KEY,
	};

	return kretry_stat(self->k, &stat) ? ~0ULL : stat.balance_utok;
}

static void fresh(FIXTURE_DATA(library_wait) *self, unsigned int event)
{
	memset(&self->w, 0, sizeof(self->w));
	self->w.op = kt_op(self->policy.id, event);
	self->w.op.key = KEY;
	self->w.op.user_data = 5;
	self->w.user_data = WAIT_DATA;
}

static struct io_uring_sqe *get_sqe(FIXTURE_DATA(library_wait) *self)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);

	memset(sqe, POISON, sizeof(*sqe));
	return sqe;
}

static void link_nop(FIXTURE_DATA(library_wait) *self, struct io_uring_sqe *first)
{
	struct io_uring_sqe *sqe = get_sqe(self);

	first->flags |= IOSQE_IO_LINK;
	io_uring_prep_nop(sqe);
	sqe->user_data = LINK_DATA;
}

/* Prepare the wait, with a request linked behind it if @linked; submit both. */
static int submit(FIXTURE_DATA(library_wait) *self, bool linked)
{
	struct io_uring_sqe *sqe = get_sqe(self);
	int ret = kretry_prep_wait(sqe, self->k, &self->w);

	CHECK_EQ(WAIT_DATA, sqe->user_data);
	if (linked)
		link_nop(self, sqe);
	CHECK(io_uring_submit(&self->ring) > 0);
	return ret;
}

/* The res of the completion with that user_data, which has to be the next one. */
static int next_res(FIXTURE_DATA(library_wait) *self, uint64_t user_data)
{
	struct io_uring_cqe *cqe;
	int res;

	if (io_uring_wait_cqe(&self->ring, &cqe) || cqe->user_data != user_data)
		return -EPROTO;
	res = cqe->res;
	io_uring_cqe_seen(&self->ring, cqe);
	return res;
}

static int result(FIXTURE_DATA(library_wait) *self)
{
	return kretry_wait_result(&self->w, next_res(self, WAIT_DATA));
}

/* The result, however often it has to be prepared again. */
static int final_result(FIXTURE_DATA(library_wait) *self)
{
	int ret;

	while ((ret = result(self)) == -EAGAIN)
		if (submit(self, false))
			return -EPROTO;
	return ret;
}

/* A failure of another op. */
static int fail(FIXTURE_DATA(library_wait) *self)
{
	struct kretry_op op = kt_op(self->policy.id, KRETRY_EVENT_TRANSIENT);

	op.key = KEY;
	CHECK_EQ(0, kretry_step(self->k, &op));
	return 0;
}

/* The kernel has taken the wait: its op is written. With SQPOLL that takes a while. */
static void await_issue(FIXTURE_DATA(library_wait) *self)
{
	while (__atomic_load_n(&self->w.op.event, __ATOMIC_ACQUIRE))
		kt_sleep(100 * USEC);
}

/* -------- granted -------- */

TEST_F(library_wait, retry_completes_at_its_deadline_and_a_link_goes_on)
{
	uint64_t begin = kt_now(CLOCK_MONOTONIC), now;

	ASSERT_EQ(0, create(self));
	fresh(self, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(0, submit(self, true));
	EXPECT_EQ(0, result(self));
	now = kt_now(CLOCK_MONOTONIC);
	EXPECT_LE(begin + 100 * MSEC, now);
	EXPECT_GT(begin + 5 * SEC, now);
	EXPECT_EQ(0, next_res(self, LINK_DATA));
	EXPECT_EQ(KRETRY_GO, self->w.op.verdict);
	EXPECT_EQ(1, self->w.op.attempt);
	EXPECT_EQ(5, self->w.op.user_data);
	EXPECT_EQ(100 * MSEC, self->w.op.delay_ns);
	EXPECT_TRUE(self->w.op.deadline_ns >= begin + 100 * MSEC &&
		    self->w.op.deadline_ns <= now);
	self->w.op.event = KRETRY_EVENT_OK;
	EXPECT_EQ(0, kretry_step(self->k, &self->w.op));
	EXPECT_EQ(KRETRY_DONE, self->w.op.verdict);
}

TEST_F(library_wait, begin_completes_at_once)
{
	self->policy.backoff.base_ns = SEC;
	ASSERT_EQ(0, create(self));
	fresh(self, KRETRY_EVENT_BEGIN);
	ASSERT_EQ(0, submit(self, true));
	EXPECT_EQ(0, result(self));
	EXPECT_EQ(0, next_res(self, LINK_DATA));
	EXPECT_EQ(0, self->w.op.attempt);
	EXPECT_NE(0, self->w.op.start_ns);
}

TEST_F(library_wait, device_in_the_rings_files_is_the_same)
{
	int fd = kretry_fd(self->k);
	struct io_uring_sqe *sqe;

	ASSERT_EQ(0, create(self));
	ASSERT_EQ(0, io_uring_register_files(&self->ring, &fd, 1));
	fresh(self, KRETRY_EVENT_TRANSIENT);
	sqe = get_sqe(self);
	ASSERT_EQ(0, kretry_prep_wait(sqe, self->k, &self->w));
	EXPECT_EQ(self->by_kernel, sqe->opcode == IORING_OP_URING_CMD);
	if (sqe->opcode == IORING_OP_URING_CMD) {
		sqe->fd = 0;
		sqe->flags |= IOSQE_FIXED_FILE;
	}
	io_uring_submit(&self->ring);
	EXPECT_EQ(0, result(self));
	EXPECT_EQ(1, self->w.op.attempt);
}

TEST_F(library_wait, paced_waits_complete_in_their_slots)
{
	uint64_t begin = kt_now(CLOCK_MONOTONIC);
	int i;

	self->policy.backoff.base_ns = MSEC;
	self->policy.pacing.pace_ns = 50 * MSEC;
	self->policy.pacing.horizon_ns = SEC;
	ASSERT_EQ(0, create(self));
	for (i = 0; i < 4; i++) {
		fresh(self, KRETRY_EVENT_TRANSIENT);
		ASSERT_EQ(0, submit(self, false));
		ASSERT_EQ(0, final_result(self));
	}
	EXPECT_LE(begin + 150 * MSEC, kt_now(CLOCK_MONOTONIC));
}

TEST_F(library_wait, wait_open_comes_as_the_probe_whose_success_closes)
{
	struct kretry_stat stat = { 0 };
	uint64_t begin;

	self->policy.backoff.base_ns = 20 * MSEC;
	self->policy.flags = KRETRY_POLICY_WAIT_OPEN;
	breaker(self, 200 * MSEC);
	ASSERT_EQ(0, create(self));
	fresh(self, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(0, submit(self, false));
	await_issue(self);
	begin = kt_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, fail(self));
	ASSERT_EQ(0, final_result(self));
	EXPECT_LE(begin + 200 * MSEC, kt_now(CLOCK_MONOTONIC));
	stat.policy = self->policy.id;
	ASSERT_EQ(0, kretry_stat(self->k, &stat));
	EXPECT_EQ(1, stat.leases);
	self->w.op.event = KRETRY_EVENT_OK;
	EXPECT_EQ(0, kretry_step(self->k, &self->w.op));
	stat = (struct kretry_stat){
		.policy = self->policy.id, .flags = KRETRY_SCOPE_KEY, .key = KEY,
	};
	ASSERT_EQ(0, kretry_stat(self->k, &stat));
	EXPECT_EQ(KRETRY_CLOSED, stat.state);
}

/* -------- stopped -------- */

static int check_stop(FIXTURE_DATA(library_wait) *self, unsigned int event,
		      unsigned int verdict, int error)
{
	fresh(self, event);
	CHECK_EQ(0, submit(self, true));
	CHECK_EQ(-error, result(self));
	CHECK_EQ(-ECANCELED, next_res(self, LINK_DATA));
	CHECK_EQ(verdict, self->w.op.verdict);
	CHECK_EQ(0, self->w.op.attempt);
	return 0;
}

TEST_F(library_wait, stop_at_once_has_its_errno_and_breaks_a_link)
{
	self->policy.max_elapsed_ns = 50 * MSEC;
	ASSERT_EQ(0, create(self));
	EXPECT_EQ(0, check_stop(self, KRETRY_EVENT_PERMANENT, KRETRY_STOP_PERMANENT,
				KRETRY_ERRNO_STOP_PERMANENT));
	EXPECT_EQ(0, check_stop(self, KRETRY_EVENT_UNKNOWN, KRETRY_STOP_UNSAFE,
				KRETRY_ERRNO_STOP_UNSAFE));
	EXPECT_EQ(0, check_stop(self, KRETRY_EVENT_TRANSIENT, KRETRY_STOP_ELAPSED,
				KRETRY_ERRNO_STOP_ELAPSED));
	self->policy.max_retries = 0;
	ASSERT_EQ(0, create(self));
	EXPECT_EQ(0, check_stop(self, KRETRY_EVENT_TRANSIENT, KRETRY_STOP_LIMIT,
				KRETRY_ERRNO_STOP_LIMIT));
}

/* What a wait in the kernel was charged comes back; what STEP has granted is spent. */
static uint64_t returned(FIXTURE_DATA(library_wait) *self)
{
	return self->by_kernel ? KRETRY_UTOK : 0;
}

TEST_F(library_wait, stop_at_the_deadline_gives_the_attempt_back_and_breaks_a_link)
{
	breaker(self, 3600 * SEC);
	budget(self, 2);
	ASSERT_EQ(0, create(self));
	fresh(self, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(0, submit(self, true));
	await_issue(self);
	ASSERT_EQ(0, fail(self));
	EXPECT_EQ(KRETRY_UTOK, balance(self));
	EXPECT_EQ(-KRETRY_ERRNO_STOP_OPEN, result(self));
	EXPECT_EQ(-ECANCELED, next_res(self, LINK_DATA));
	EXPECT_EQ(KRETRY_STOP_OPEN, self->w.op.verdict);
	EXPECT_EQ(0, self->w.op.attempt);
	EXPECT_EQ(KRETRY_UTOK + returned(self), balance(self));
}

/* -------- cancelled -------- */

static int start_long(FIXTURE_DATA(library_wait) *self)
{
	fresh(self, KRETRY_EVENT_TRANSIENT);
	CHECK_EQ(0, submit(self, true));
	await_issue(self);
	kt_sleep(10 * MSEC);
	CHECK_EQ(0, balance(self));
	return 0;
}

static int check_cancelled(FIXTURE_DATA(library_wait) *self)
{
	CHECK_EQ(-ECANCELED, result(self));
	CHECK_EQ(-ECANCELED, next_res(self, LINK_DATA));
	CHECK_EQ(KRETRY_VERDICT_NONE, self->w.op.verdict);
	CHECK_EQ(0, self->w.op.attempt);
	CHECK_EQ(returned(self), balance(self));
	return 0;
}

TEST_F(library_wait, cancel_at_once_completes_it_as_cancelled)
{
	budget(self, 1);
	self->policy.backoff.base_ns = self->policy.backoff.cap_ns;
	ASSERT_EQ(0, create(self));
	ASSERT_EQ(0, start_long(self));
	EXPECT_EQ(0, kretry_wait_cancel(self->k, &self->ring, &self->w));
	EXPECT_EQ(0, check_cancelled(self));
	EXPECT_EQ(-ENOENT, kretry_wait_cancel(self->k, &self->ring, &self->w));
}

TEST_F(library_wait, cancel_by_a_request_completes_it_as_cancelled)
{
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	int i, wait = 1, link = 1, cancel = 1;

	budget(self, 1);
	self->policy.backoff.base_ns = self->policy.backoff.cap_ns;
	ASSERT_EQ(0, create(self));
	ASSERT_EQ(0, start_long(self));
	sqe = get_sqe(self);
	kretry_prep_wait_cancel(sqe, self->k, &self->w);
	sqe->user_data = CANCEL_DATA;
	io_uring_submit(&self->ring);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, io_uring_wait_cqe(&self->ring, &cqe));
		*(cqe->user_data == WAIT_DATA ? &wait :
		  cqe->user_data == LINK_DATA ? &link : &cancel) = cqe->res;
		io_uring_cqe_seen(&self->ring, cqe);
	}
	EXPECT_EQ(0, cancel);
	EXPECT_EQ(-ECANCELED, link);
	EXPECT_EQ(-ECANCELED, kretry_wait_result(&self->w, wait));
	EXPECT_EQ(0, self->w.op.attempt);
	EXPECT_EQ(returned(self), balance(self));
}

TEST_HARNESS_MAIN
