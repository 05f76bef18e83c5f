// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Memory that turns read-only after the kernel has found it writable: what its caller could not be
 * told has not happened, and what was told has.
 */
#include "harness.h"
#include "queued.h"
#include "shared.h"

#include <pthread.h>
#include <sys/mman.h>

#define PAGE	4096
#define BEFORE	5		/* ops before the edge of the page that turns */
#define COUNT	16U
#define ROUND	(3 * SEC)
#define TOKENS	1000000000ULL

FIXTURE(queue_memory) {
	struct kt_party me;		/* looks from outside */
	struct kretry_policy policy;	/* "memory" */
	uint32_t id;
	int fd;
	uint32_t queuer;		/* the policy's id there */
	char *memory, *alias;		/* two pages, of which the second turns, and the same */
	pthread_t thread;
	bool stop;
	uint64_t delivered;
};

static void *turn_read_only_and_back(void *arg)
{
	FIXTURE_DATA(queue_memory) *self = arg;
	char *page = self->memory + PAGE;

	while (!__atomic_load_n(&self->stop, __ATOMIC_SEQ_CST)) {
		mprotect(page, PAGE, PROT_READ);
		mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

FIXTURE_SETUP(queue_memory)
{
	int file = memfd_create("queue_memory", MFD_CLOEXEC);

	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_name(&self->policy, "memory");
	kt_budget(&self->policy, TOKENS);
	ASSERT_EQ(0, ftruncate(file, 2 * PAGE));
	self->memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, self->memory);
	self->alias = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, self->alias);
	close(file);
	self->fd = kt_open();
	kt_nonblock(self->fd, true);
}

/* Whatever was charged was delivered, or is back. */
FIXTURE_TEARDOWN(queue_memory)
{
	struct kretry_stat all = kt_stat(&self->me, self->id);

	EXPECT_EQ(0, all.queued);
	EXPECT_EQ(TOKENS * KRETRY_UTOK, kt_stat_key(&self->me, self->id, 0).balance_utok +
		  all.charged_utok - all.refunded_utok);
	EXPECT_EQ(self->delivered * KRETRY_UTOK, all.charged_utok - all.refunded_utok);
	kt_leave(&self->me);
	close(self->fd);
}

static int start(FIXTURE_DATA(queue_memory) *self, uint64_t delay_ns)
{
	self->policy.backoff.base_ns = delay_ns;
	self->policy.backoff.cap_ns = delay_ns;
	self->id = kt_party_create(&self->me, &self->policy);
	CHECK((int)self->id > 0);
	self->queuer = kt_create(self->fd, &self->policy);
	CHECK((int)self->queuer > 0);
	return pthread_create(&self->thread, NULL, turn_read_only_and_back, self);
}

static void finish(FIXTURE_DATA(queue_memory) *self)
{
	__atomic_store_n(&self->stop, true, __ATOMIC_SEQ_CST);
	pthread_join(self->thread, NULL);
}

/* The first @told of @count ops are queued, the others are not; there are none after this. */
static unsigned int count_wrong(FIXTURE_DATA(queue_memory) *self, uint64_t first, int told,
				unsigned int count)
{
	unsigned int i, wrong = 0;
	struct kretry_op op;
	int ret;

	for (i = 0; i < count; i++) {
		ret = kt_cancel(self->fd, first + i, &op);
		wrong += ret != ((int)i < told ? 0 : -ENOENT);
	}
	return wrong;
}

TEST_F(queue_memory, batch_array_turning_read_only_only_what_was_told_is_queued)
{
	size_t at = PAGE - BEFORE * sizeof(struct kretry_op);
	struct kretry_op *ops = (struct kretry_op *)(self->alias + at);
	uint64_t end = kt_now(CLOCK_MONOTONIC) + ROUND, first = 0, told = 0, decided;
	unsigned int i;
	int ret;

	ASSERT_EQ(0, start(self, 3600 * SEC));
	for (; kt_now(CLOCK_MONOTONIC) < end; first += COUNT) {
		for (i = 0; i < COUNT; i++)
			ops[i] = kt_queue_op(self->queuer, first + i);
		ret = kt_batch(self->fd, (struct kretry_op *)(self->memory + at), COUNT);
		ASSERT_TRUE(ret >= BEFORE && ret <= (int)COUNT)
			TH_LOG("%d", ret);
		ASSERT_EQ(0, count_wrong(self, first, ret, COUNT))
			TH_LOG("told of %d", ret);
		told += (uint64_t)ret;
	}
	finish(self);
	decided = kt_stat(&self->me, self->id).events[KRETRY_EVENT_TRANSIENT];
	TH_LOG("%llu told, %llu decided", (unsigned long long)told, (unsigned long long)decided);
	/* It happened after the decision, too. */
	EXPECT_LT(told, decided);
	EXPECT_LT(told, first);
}

TEST_F(queue_memory, step_op_turning_read_only_not_queued_if_not_told)
{
	struct kretry_op *op = (struct kretry_op *)(self->alias + PAGE);
	uint64_t end = kt_now(CLOCK_MONOTONIC) + ROUND, name = 0, told = 0, decided;
	int ret;

	ASSERT_EQ(0, start(self, 3600 * SEC));
	for (; kt_now(CLOCK_MONOTONIC) < end; name++) {
		*op = kt_queue_op(self->queuer, name);
		ret = kt_step(self->fd, (struct kretry_op *)(self->memory + PAGE));
		ASSERT_TRUE(!ret || ret == -EFAULT);
		ASSERT_EQ(0, count_wrong(self, name, !ret, 1));
		told += !ret;
	}
	finish(self);
	decided = kt_stat(&self->me, self->id).events[KRETRY_EVENT_TRANSIENT];
	TH_LOG("%llu told, %llu decided", (unsigned long long)told, (unsigned long long)decided);
	EXPECT_LT(told, decided);
	EXPECT_LT(0, told);
}

/* What could not be read stays, and is read once. */
TEST_F(queue_memory, buffer_turning_read_only_under_the_read_each_op_once)
{
	static unsigned char seen[50000];
	unsigned int i, count = sizeof(seen), got = 0, faults = 0;
	const size_t op = sizeof(struct kretry_op);
	size_t at;
	ssize_t size;

	ASSERT_EQ(0, start(self, 0));
	ASSERT_EQ(count, kt_queue_many(self->fd, self->queuer, 0, count));
	while (got < count) {
		/* In turn at the edge of the page and behind it. */
		at = got % 2 ? PAGE : PAGE - BEFORE * op;
		size = read(self->fd, self->memory + at, 30 * op);
		ASSERT_TRUE(size > 0 ? size % op == 0 : errno == EFAULT);
		faults += size < (ssize_t)(30 * op);
		for (i = 0; size > 0 && i < size / op; i++, got++)
			seen[((struct kretry_op *)(self->memory + at))[i].user_data]++;
	}
	finish(self);
	self->delivered = count;
	EXPECT_LT(10, faults);
	EXPECT_TRUE(kt_all(seen, count, 1));
}

/* A STOP that was taken has given its charge back, and does not do so again when cancelled. */
TEST_F(queue_memory, stop_that_could_not_be_read_cancelled_charge_back_once)
{
	const size_t op = sizeof(struct kretry_op), at = PAGE - BEFORE * op;
	const struct kretry_op *ops = (const struct kretry_op *)(self->memory + at);
	uint64_t end = kt_now(CLOCK_MONOTONIC) + ROUND, first = 0, told = 0;
	unsigned int i;
	ssize_t size;

	self->policy.pacing.pace_ns = 3600 * SEC;
	self->policy.pacing.horizon_ns = 0;
	ASSERT_EQ(0, start(self, 0));
	for (; kt_now(CLOCK_MONOTONIC) < end; first += COUNT) {
		ASSERT_EQ(COUNT, kt_queue_many(self->fd, self->queuer, first, COUNT));
		size = read(self->fd, self->memory + at, COUNT * op);
		ASSERT_TRUE(size >= (ssize_t)(BEFORE * op) && size % op == 0);
		for (i = 0; i < size / op; i++)
			self->delivered += ops[i].verdict == KRETRY_GO;
		ASSERT_EQ(0, count_wrong(self, first + size / op, COUNT, COUNT - size / op));
		told += size / op;
	}
	finish(self);
	EXPECT_EQ(1, self->delivered);
	EXPECT_LT(told, first);
	/* Some of those that were not told had been decided. */
	EXPECT_LT(told, kt_stat(&self->me, self->id).events[KRETRY_EVENT_BEGIN]);
}

TEST_HARNESS_MAIN
