// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The order of delivery: by deadline, for any number of ops, any buffer and both clocks. */
#include "harness.h"
#include "queued.h"

#include <stdlib.h>

#define MANY	100000U

FIXTURE(queue_order) {
	int fd;
	struct kretry_policy policy;
	struct kretry_op *ops;		/* as they were queued, by user_data */
	struct kretry_op *got;		/* as they were read */
};

FIXTURE_SETUP(queue_order)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_nonblock(self->fd, true);
	kt_policy(&self->policy);
	self->ops = calloc(MANY, sizeof(*self->ops));
	self->got = calloc(MANY, sizeof(*self->got));
	ASSERT_NE(NULL, self->ops);
	ASSERT_NE(NULL, self->got);
}

FIXTURE_TEARDOWN(queue_order)
{
	close(self->fd);
}

/* Queue @count ops, in turn under policy @ids[0] and [1]. The last deadline, 0 on failure. */
static uint64_t queue_all(FIXTURE_DATA(queue_order) *self, const uint32_t ids[2],
			  unsigned int count)
{
	uint64_t last = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		self->ops[i] = kt_queue_op(ids[i % 2], i);
	if (kt_batch(self->fd, self->ops, count > 50000 ? 50000 : count) < 0 ||
	    (count > 50000 && kt_batch(self->fd, self->ops + 50000, count - 50000) < 0))
		return 0;
	for (i = 0; i < count; i++) {
		if (!(self->ops[i].flags & KRETRY_OP_QUEUED))
			return 0;
		last = self->ops[i].deadline_ns > last ? self->ops[i].deadline_ns : last;
	}
	return last;
}

/* Read all that there is, @room ops at a time: how many, or -1 for a short read before the end. */
static int read_all(FIXTURE_DATA(queue_order) *self, unsigned int most, unsigned int room)
{
	unsigned int count = 0, want;
	ssize_t size;

	while (count < most) {
		want = most - count < room ? most - count : room;
		size = read(self->fd, self->got + count, want * sizeof(*self->got));
		if (size < 0)
			return errno == EAGAIN ? (int)count : -1;
		if (size != (ssize_t)(want * sizeof(*self->got)))
			return -1;
		count += want;
	}
	return (int)count;
}

/* Each op that was queued once among those that were read, none before its deadline. */
static unsigned int count_wrong(FIXTURE_DATA(queue_order) *self, unsigned int count)
{
	unsigned int i, wrong = 0;
	uint64_t name;

	for (i = 0; i < count; i++) {
		name = self->got[i].user_data;
		if (name >= count || self->ops[name].event == 0xff ||
		    self->got[i].verdict != KRETRY_GO ||
		    self->got[i].deadline_ns < self->ops[name].deadline_ns) {
			wrong++;
			continue;
		}
		self->ops[name].event = 0xff;
	}
	return wrong;
}

TEST_F(queue_order, thousands_of_random_deadlines_in_their_order)
{
	unsigned int count = 20000, i;
	uint32_t ids[2];
	uint64_t last;

	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = 10 * SEC;
	ids[0] = kt_create(self->fd, &self->policy);
	self->policy.backoff.base_ns = SEC;
	ids[1] = kt_create(self->fd, &self->policy);
	last = queue_all(self, ids, count);
	ASSERT_LT(0, last);
	kt_sleep_until(CLOCK_MONOTONIC, last);
	ASSERT_EQ((int)count, read_all(self, count, 100));
	for (i = 1; i < count; i++)
		ASSERT_LE(self->ops[self->got[i - 1].user_data].deadline_ns,
			  self->ops[self->got[i].user_data].deadline_ns)
			TH_LOG("op %u", i);
	EXPECT_EQ(0, count_wrong(self, count));
	EXPECT_EQ(-1, read(self->fd, self->got, sizeof(*self->got)));
	EXPECT_EQ(EAGAIN, errno);
}

/* In time order while they fall due, not only when all have. */
TEST_F(queue_order, read_as_they_fall_due_in_order_and_on_time)
{
	unsigned int count = 3000, i;
	uint64_t late, latest = 0;
	uint32_t ids[2];

	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = 3 * SEC;
	ids[0] = kt_create(self->fd, &self->policy);
	ids[1] = ids[0];
	ASSERT_LT(0, queue_all(self, ids, count));
	kt_nonblock(self->fd, false);
	for (i = 0; i < count; i++) {
		ASSERT_EQ(sizeof(*self->got), read(self->fd, self->got + i, sizeof(*self->got)));
		late = kt_now(CLOCK_MONOTONIC) - self->ops[self->got[i].user_data].deadline_ns;
		ASSERT_GT(SEC, late);
		latest = late > latest ? late : latest;
		if (i)
			ASSERT_LE(self->ops[self->got[i - 1].user_data].deadline_ns,
				  self->ops[self->got[i].user_data].deadline_ns);
	}
	EXPECT_EQ(0, count_wrong(self, count));
	TH_LOG("at most %llu us late", (unsigned long long)(latest / USEC));
	EXPECT_GT(5 * MSEC, latest);
}

/* The clocks are apart when the machine has slept; whoever has been due for longer goes first. */
TEST_F(queue_order, both_clocks_longest_due_first)
{
	uint64_t shift = kt_now(CLOCK_BOOTTIME) - kt_now(CLOCK_MONOTONIC);
	unsigned int count = 10000, i;
	uint64_t last, due, before = 0;
	uint32_t ids[2];

	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = 5 * SEC;
	ids[0] = kt_create(self->fd, &self->policy);
	self->policy.clockid = CLOCK_BOOTTIME;
	ids[1] = kt_create(self->fd, &self->policy);
	last = queue_all(self, ids, count);
	ASSERT_LT(0, last);
	kt_sleep_until(CLOCK_BOOTTIME, last + 10 * SEC);
	ASSERT_EQ((int)count, read_all(self, count, 37));
	for (i = 0; i < count; i++) {
		due = self->ops[self->got[i].user_data].deadline_ns;
		due -= self->got[i].policy == ids[1] ? shift : 0;
		/* How long is told by two clocks, which are read one after the other. */
		ASSERT_LE(before, due + MSEC)
			TH_LOG("op %u", i);
		before = due > before ? due : before;
	}
	EXPECT_EQ(0, count_wrong(self, count));
}

/* The same deadline: first come, first served. */
TEST_F(queue_order, same_deadline_in_the_order_of_arrival)
{
	struct kretry_op op;
	unsigned int i;
	uint32_t id;

	self->policy.backoff.base_ns = 0;
	id = kt_create(self->fd, &self->policy);
	/* One chunk has one time. */
	for (i = 0; i < 16; i++) {
		self->ops[i] = kt_queue_op(id, 1000 - i * 37 % 16);
		self->ops[i].key = i;
	}
	ASSERT_EQ(16, kt_batch(self->fd, self->ops, 16));
	for (i = 1; i < 16; i++)
		ASSERT_EQ(self->ops[0].deadline_ns, self->ops[i].deadline_ns);
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(sizeof(op), read(self->fd, &op, sizeof(op)));
		EXPECT_EQ(i, op.key);
	}
}

static void read_a_hundred_thousand(struct __test_metadata *_metadata,
				    FIXTURE_DATA(queue_order) *self, unsigned int room)
{
	uint64_t last, start;
	unsigned int i;
	uint32_t ids[2];

	self->policy.backoff.base_ns = 100 * SEC;
	self->policy.backoff.cap_ns = 100 * SEC;
	ids[0] = kt_create(self->fd, &self->policy);
	ids[1] = ids[0];
	last = queue_all(self, ids, MANY);
	ASSERT_LT(0, last);
	EXPECT_EQ((int)MANY, kt_waiting(self->fd, ids[0]));
	kt_sleep_until(CLOCK_MONOTONIC, last);
	start = kt_now(CLOCK_MONOTONIC);
	ASSERT_EQ((int)MANY, read_all(self, MANY, room));
	TH_LOG("%llu ms", (unsigned long long)((kt_now(CLOCK_MONOTONIC) - start) / MSEC));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(i, self->got[i].user_data);
	EXPECT_EQ(0, count_wrong(self, MANY));
	EXPECT_EQ(0, kt_waiting(self->fd, ids[0]));
	EXPECT_EQ(-1, read(self->fd, self->got, sizeof(*self->got)));
	EXPECT_EQ(EAGAIN, errno);
}

TEST_F(queue_order, hundred_thousand_due_together_read_by_large_buffers)
{
	read_a_hundred_thousand(_metadata, self, MANY);
}

TEST_F(queue_order, hundred_thousand_due_together_read_by_small_buffers)
{
	read_a_hundred_thousand(_metadata, self, 3);
}

TEST_HARNESS_MAIN
