// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* WAITs of one key come out one for each slot, host-wide. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>

#define KEY	7
#define WAITS	32
#define PACE	(10 * MSEC)

FIXTURE(uring_paced) {
	struct kt_party me, other;
	struct kretry_policy policy;	/* 100 ms, a retry every 10 ms */
	int id, others;
	struct io_uring ring;
};

FIXTURE_SETUP(uring_paced)
{
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	ASSERT_EQ(0, kt_here(&self->other));
	kt_policy(&self->policy);
	kt_name(&self->policy, "uring_paced");
	kt_budget(&self->policy, 1000);
	self->policy.pacing.pace_ns = PACE;
	self->policy.pacing.horizon_ns = 3600 * SEC;
	self->id = kt_party_create(&self->me, &self->policy);
	self->others = kt_party_create(&self->other, &self->policy);
	ASSERT_LT(0, self->id);
	ASSERT_LT(0, self->others);
	ASSERT_EQ(0, kt_ring(&self->ring, 64, 0));
}

FIXTURE_TEARDOWN(uring_paced)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->other);
	kt_leave(&self->me);
}

/* Those of two files take turns: the key's slots are the host's. */
TEST_F(uring_paced, waits_of_two_files_complete_one_for_each_slot)
{
	struct kretry_op ops[WAITS];
	uint64_t now, first = 0;
	int i;

	for (i = 0; i < WAITS; i++) {
		ops[i] = kt_failed(i % 2 ? self->others : self->id, KEY, i);
		kt_put_wait(&self->ring, i % 2 ? self->other.fd : self->me.fd, &ops[i]);
	}
	for (i = 0; i < WAITS; i++) {
		ASSERT_EQ(0, kt_next(&self->ring, NULL));
		now = kt_now(CLOCK_MONOTONIC);
		if (!i)
			first = now;
		/* The first is a little late, so that the others may seem early by as much. */
		EXPECT_LE(first + i * PACE, now + MSEC);
		EXPECT_GT(first + i * PACE + MSEC, now);
	}
	EXPECT_EQ(0, kt_stat(&self->me, self->id).queued);
	EXPECT_EQ(WAITS * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
}

/* A first attempt that has a slot ahead is a GO with a deadline, and the WAIT sleeps to it. */
TEST_F(uring_paced, first_attempt_waits_for_its_slot)
{
	struct kretry_op op;
	int i;

	ASSERT_EQ(0, kt_party_unlink(&self->me, "uring_paced", 0));
	self->policy.flags = KRETRY_POLICY_PACE_ALL;
	self->id = kt_party_create(&self->me, &self->policy);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(KRETRY_GO, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
	op = kt_op(self->id, KRETRY_EVENT_BEGIN);
	op.key = KEY;
	EXPECT_EQ(0, kt_wait_for(&self->ring, self->me.fd, &op));
	EXPECT_EQ(KRETRY_GO, op.verdict);
	EXPECT_LE(op.start_ns + 29 * MSEC, op.deadline_ns);
	EXPECT_LE(op.deadline_ns, kt_now(CLOCK_MONOTONIC));
	EXPECT_GT(op.deadline_ns + MSEC, kt_now(CLOCK_MONOTONIC));
	EXPECT_EQ(4, kt_stat(&self->me, self->id).go);
}

/* The slot is taken when the wait is due, not before: until then others may have it. */
TEST_F(uring_paced, slot_is_not_taken_before_the_deadline)
{
	struct kretry_op op = kt_failed(self->id, KEY, 1), retry = kt_op(self->others, 0);
	uint64_t next;

	kt_put_wait(&self->ring, self->me.fd, &op);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	next = kt_stat_key(&self->me, self->id, KEY).pace_next_ns;
	EXPECT_LE(next, kt_now(CLOCK_MONOTONIC));
	kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns - 5 * MSEC);
	retry.key = KEY;
	retry.attempt = 1;
	EXPECT_EQ(KRETRY_GO, kt_report(&self->other, &retry, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(0, kt_result(&self->ring, 1));
	EXPECT_LE(retry.deadline_ns + PACE, kt_now(CLOCK_MONOTONIC));
	EXPECT_GT(retry.deadline_ns + PACE + MSEC, kt_now(CLOCK_MONOTONIC));
}

TEST_HARNESS_MAIN
