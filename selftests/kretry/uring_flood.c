// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A hundred thousand due in one instant: each is told once, however small the rings are. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>

#define KEY	7
#define FLOOD	100000
#define SMALL	64

FIXTURE(uring_flood) {
	struct kt_party me;
	int id;			/* who fails while the key cools is due a second after that */
	uint64_t due;
	struct io_uring ring;
};

static bool seen[FLOOD];
static struct kretry_op ops[SMALL];

FIXTURE_SETUP(uring_flood)
{
	struct kretry_policy policy;
	struct kretry_op op;

	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&policy);
	kt_budget(&policy, FLOOD + 1);
	policy.flags = KRETRY_POLICY_HINT_SHARED;
	policy.backoff.base_ns = SEC;
	self->id = kt_party_create(&self->me, &policy);
	ASSERT_LT(0, self->id);
	op = kt_failed(self->id, KEY, 0);
	op.flags = KRETRY_OP_HINT;
	op.hint_ns = 60 * SEC;
	ASSERT_EQ(0, kt_step(self->me.fd, &op));
	self->due = kt_stat_key(&self->me, self->id, KEY).cooling_ns + SEC;
	ASSERT_EQ(0, kt_ring(&self->ring, SMALL, 0));
}

FIXTURE_TEARDOWN(uring_flood)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->me);
}

static int check_deadlines(FIXTURE_DATA(uring_flood) *self, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		CHECK_EQ(KRETRY_RETRY, ops[i].verdict);
		CHECK_EQ(self->due, ops[i].deadline_ns);
	}
	return 0;
}

static int check_none_left(FIXTURE_DATA(uring_flood) *self)
{
	CHECK_EQ(FLOOD, kt_stat(&self->me, self->id).go);
	CHECK_EQ(0, kt_stat(&self->me, self->id).queued);
	CHECK_EQ(0, kt_stat_key(&self->me, self->id, KEY).balance_utok);
	return 0;
}

static bool see(uint64_t user_data)
{
	if (user_data >= FLOOD || seen[user_data])
		return false;
	seen[user_data] = true;
	return true;
}

TEST_F(uring_flood, waits_due_at_once_each_completes_once)
{
	uint64_t user_data, last;
	int i, count, issued;

	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	for (issued = 0; issued < FLOOD; issued += count) {
		count = FLOOD - issued < SMALL ? FLOOD - issued : SMALL;
		for (i = 0; i < count; i++) {
			ops[i] = kt_failed(self->id, KEY, issued + i);
			kt_put_wait(&self->ring, self->me.fd, &ops[i]);
		}
		ASSERT_EQ(count, io_uring_submit(&self->ring));
		ASSERT_EQ(0, check_deadlines(self, count));
	}
	ASSERT_GT(self->due, kt_now(CLOCK_MONOTONIC));
	/* The completion queue holds twice the ring's entries, the kernel keeps the rest for us. */
	kt_sleep_until(CLOCK_MONOTONIC, self->due - MSEC);
	EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	kt_sleep(10 * MSEC);
	for (i = 0; i < FLOOD; i++) {
		ASSERT_EQ(0, kt_next(&self->ring, &user_data));
		ASSERT_TRUE(see(user_data));
	}
	last = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	EXPECT_GT(self->due + 10 * SEC, last);
	EXPECT_EQ(0, check_none_left(self));
}

TEST_F(uring_flood, queued_ops_due_at_once_each_read_once)
{
	struct io_uring_sqe *sqe;
	int i, count, issued, res;

	for (issued = 0; issued < FLOOD; issued += count) {
		count = FLOOD - issued < SMALL ? FLOOD - issued : SMALL;
		for (i = 0; i < count; i++) {
			ops[i] = kt_failed(self->id, KEY, issued + i);
			ops[i].flags = KRETRY_OP_QUEUE;
		}
		kt_put_step(&self->ring, self->me.fd, ops, count);
		ASSERT_EQ(count, kt_next(&self->ring, NULL));
		ASSERT_EQ(0, check_deadlines(self, count));
	}
	ASSERT_GT(self->due, kt_now(CLOCK_MONOTONIC));
	for (issued = 0; issued < FLOOD; issued += count) {
		sqe = io_uring_get_sqe(&self->ring);
		io_uring_prep_read(sqe, self->me.fd, ops, sizeof(ops), 0);
		res = kt_next(&self->ring, NULL);
		ASSERT_LT(0, res);
		ASSERT_LE(self->due, kt_now(CLOCK_MONOTONIC));
		count = res / (int)sizeof(*ops);
		for (i = 0; i < count; i++)
			ASSERT_TRUE(see(ops[i].user_data));
	}
	EXPECT_EQ(0, check_none_left(self));
}

TEST_HARNESS_MAIN
