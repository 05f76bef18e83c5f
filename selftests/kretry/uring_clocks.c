// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* WAIT in a time namespace: on its clocks, from whatever thread of the ring it is issued. */
#include "harness.h"
#include "rings.h"

#include <errno.h>

#define DAY	86400LL
#define BACK	10LL

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

FIXTURE(uring_clocks) {
	int fd;
	int64_t offset;
	unsigned int ring_flags, sqe_flags;
};

FIXTURE_VARIANT(uring_clocks) {
	int64_t offset;
	unsigned int ring_flags, sqe_flags;
};

FIXTURE_VARIANT_ADD(uring_clocks, ahead) { .offset = DAY };
FIXTURE_VARIANT_ADD(uring_clocks, behind) { .offset = -BACK };
FIXTURE_VARIANT_ADD(uring_clocks, ahead_sqpoll) {
	.offset = DAY, .ring_flags = IORING_SETUP_SQPOLL,
};

FIXTURE_VARIANT_ADD(uring_clocks, behind_sqpoll) {
	.offset = -BACK, .ring_flags = IORING_SETUP_SQPOLL,
};

FIXTURE_VARIANT_ADD(uring_clocks, ahead_async) { .offset = DAY, .sqe_flags = IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(uring_clocks, behind_async) { .offset = -BACK, .sqe_flags = IOSQE_ASYNC };

FIXTURE_SETUP(uring_clocks)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	if (!kt_ring_waits(self->fd))
		SKIP(return, "no WAIT on this kernel");
	self->offset = variant->offset;
	self->ring_flags = variant->ring_flags;
	self->sqe_flags = variant->sqe_flags;
	/* A clock cannot be set back to before it started. */
	kt_sleep_until(CLOCK_MONOTONIC, (BACK + 2) * SEC);
}

FIXTURE_TEARDOWN(uring_clocks)
{
	close(self->fd);
}

/* When the wait was over, its ring said: it then asks for another attempt. */
static int check_clock(FIXTURE_DATA(uring_clocks) *self, struct io_uring *ring, clockid_t clock,
		       uint64_t max_elapsed, int want)
{
	struct kretry_policy policy;
	struct kretry_op op, after;
	uint64_t before = kt_now(clock);

	kt_policy(&policy);
	policy.clockid = clock;
	policy.max_elapsed_ns = max_elapsed;
	op = kt_failed(kt_create(self->fd, &policy), 1, 1);
	op.start_ns = max_elapsed ? before - 50 * MSEC : 0;
	after = kt_op(op.policy, KRETRY_EVENT_BEGIN);
	kt_put_wait(ring, self->fd, &op)->flags = self->sqe_flags | IOSQE_IO_LINK;
	kt_put_step(ring, self->fd, &after, 1)->flags = self->sqe_flags;
	CHECK_EQ(want, kt_result(ring, 1));
	if (want)
		return kt_result(ring, 0) != -ECANCELED;
	CHECK_EQ(1, kt_result(ring, 0));
	CHECK(op.deadline_ns >= before + 100 * MSEC);
	CHECK(op.deadline_ns < before + 110 * MSEC);
	CHECK(after.start_ns >= op.deadline_ns);
	CHECK(after.start_ns < op.deadline_ns + MSEC);
	return 0;
}

static int ns_wait(void *arg)
{
	FIXTURE_DATA(uring_clocks) *self = arg;
	struct io_uring ring;
	size_t i;

	CHECK_EQ(0, kt_ring(&ring, 4, self->ring_flags));
	for (i = 0; i < ARRAY_LEN(clocks); i++) {
		CHECK_EQ(0, check_clock(self, &ring, clocks[i], 0, 0));
		/* Begun 50 ms ago on the clock of the namespace. */
		CHECK_EQ(0, check_clock(self, &ring, clocks[i], 200 * MSEC, 0));
		CHECK_EQ(0, check_clock(self, &ring, clocks[i], 149 * MSEC,
					-KRETRY_ERRNO_STOP_ELAPSED));
	}
	return 0;
}

TEST_F(uring_clocks, namespace_wait_on_its_clock)
{
	EXPECT_EQ(0, kt_in_time_namespace(self->offset, ns_wait, self));
}

/* What CANCEL returns is on the clock of who cancels. */
static int ns_cancel(void *arg)
{
	FIXTURE_DATA(uring_clocks) *self = arg;
	struct kretry_cancel cancel;
	struct kretry_policy policy;
	struct io_uring ring;
	struct kretry_op op;

	CHECK_EQ(0, kt_ring(&ring, 4, self->ring_flags));
	kt_policy(&policy);
	op = kt_failed(kt_create(self->fd, &policy), 1, 1);
	kt_put_wait(&ring, self->fd, &op)->flags = self->sqe_flags;
	CHECK_EQ(1, io_uring_submit(&ring));
	kt_sleep(20 * MSEC);
	CHECK_EQ(0, kt_cancel(self->fd, 1, &cancel));
	CHECK_EQ(-ECANCELED, kt_result(&ring, 1));
	CHECK_EQ(op.start_ns, cancel.op.start_ns);
	CHECK(op.start_ns <= kt_now(CLOCK_MONOTONIC));
	CHECK(op.start_ns + SEC > kt_now(CLOCK_MONOTONIC));
	return 0;
}

TEST_F(uring_clocks, namespace_cancelled_op_on_its_clock)
{
	EXPECT_EQ(0, kt_in_time_namespace(self->offset, ns_cancel, self));
}

TEST_HARNESS_MAIN
