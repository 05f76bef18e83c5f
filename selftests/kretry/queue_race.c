// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Threads that queue, read, cancel and drop on one file: each op ends once, in one way. */
#include "harness.h"
#include "queued.h"
#include "shared.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#define OPS		1048576U
#define THREADS		2
#define READERS		2
#define BATCH		64U
#define ROUND		(3 * SEC)
#define TOKENS		1000000000ULL
#define GO_HOME		(~0ULL)		/* names from here down tell readers to end */

/* What all add up. */
struct tally {
	uint64_t queued, delivered, stopped, cancelled, wrong, next, rounds;
	int stop;
	unsigned char ended[OPS];	/* how often each op has come back */
};

FIXTURE(queue_race) {
	struct kt_party me;		/* looks from outside */
	struct kretry_policy policy;	/* "race": up to 200 us */
	uint32_t id;
	int fd;				/* of all that race */
	uint32_t racing;		/* the policy's id there */
	struct tally *tally;
};

FIXTURE_SETUP(queue_race)
{
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_name(&self->policy, "race");
	kt_budget(&self->policy, TOKENS);
	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = 200 * USEC;
	self->tally = mmap(NULL, sizeof(*self->tally), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->tally);
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
}

/* Whatever was charged was delivered, or is back. */
FIXTURE_TEARDOWN(queue_race)
{
	struct kretry_stat all = kt_stat(&self->me, self->id);

	EXPECT_EQ(0, all.queued);
	EXPECT_EQ(TOKENS * KRETRY_UTOK, kt_stat_key(&self->me, self->id, 0).balance_utok +
		  all.charged_utok - all.refunded_utok);
	EXPECT_EQ(self->tally->delivered * KRETRY_UTOK, all.charged_utok - all.refunded_utok);
	EXPECT_EQ(0, self->tally->wrong);
	kt_leave(&self->me);
	close(self->fd);
}

#define ADD(where, n)	__atomic_add_fetch((where), (n), __ATOMIC_SEQ_CST)
#define GET(where)	__atomic_load_n((where), __ATOMIC_SEQ_CST)
#define SET(where, n)	__atomic_store_n((where), (n), __ATOMIC_SEQ_CST)

static int create(FIXTURE_DATA(queue_race) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	CHECK((int)self->id > 0);
	self->racing = kt_create(self->fd, &self->policy);
	CHECK((int)self->racing > 0);
	return 0;
}

static void op_back(struct tally *tally, const struct kretry_op *op, uint64_t *how)
{
	ADD(how, 1);
	if (op->user_data < OPS)
		ADD(&tally->ended[op->user_data], 1);
}

/* -------- who takes part -------- */

static void *read_until_told(void *arg)
{
	FIXTURE_DATA(queue_race) *self = arg;
	struct kretry_op ops[7];
	bool told = false;
	int fd = dup(self->fd), got, i;

	while (!told) {
		got = (int)read(fd, ops, sizeof(ops));
		ADD(&self->tally->wrong, got <= 0 || got % sizeof(ops[0]));
		for (i = 0; i < got / (int)sizeof(ops[0]); i++) {
			told |= ops[i].user_data > GO_HOME - READERS;
			ADD(&self->tally->wrong, ops[i].verdict != KRETRY_GO);
			op_back(self->tally, &ops[i], &self->tally->delivered);
		}
	}
	close(fd);
	return NULL;
}

/* One goes home at a time, so that none takes the word that is for another. */
static void send_home(FIXTURE_DATA(queue_race) *self, uint64_t reader)
{
	while (kt_queue(self->fd, self->racing, GO_HOME - reader))
		sched_yield();
	while (kt_waiting(self->fd, self->racing))
		kt_sleep(MSEC);
}

static void *queue_and_cancel(void *arg)
{
	FIXTURE_DATA(queue_race) *self = arg;
	struct tally *tally = self->tally;
	struct kretry_op ops[BATCH], op;
	uint64_t first;
	unsigned int i;
	int ret;

	while ((first = ADD(&tally->next, BATCH)) <= OPS) {
		for (i = 0; i < BATCH; i++)
			ops[i] = kt_queue_op(self->racing, first - BATCH + i);
		ADD(&tally->wrong, kt_batch(self->fd, ops, BATCH) != (int)BATCH);
		for (i = 0; i < BATCH; i++) {
			ADD(&tally->wrong, !(ops[i].flags & KRETRY_OP_QUEUED) ||
			    ops[i].verdict != KRETRY_RETRY);
			ret = kt_cancel(self->fd, first - BATCH + i, &op);
			ADD(&tally->wrong, ret && ret != -ENOENT);
			if (ret)
				continue;
			ADD(&tally->wrong, op.user_data != first - BATCH + i || op.attempt);
			op_back(tally, &op, &tally->cancelled);
		}
	}
	return NULL;
}

static void start(pthread_t *threads, int count, void *(*fn)(void *arg), void *arg)
{
	while (count--)
		if (pthread_create(&threads[count], NULL, fn, arg))
			abort();
}

static void join(pthread_t *threads, int count)
{
	while (count--)
		pthread_join(threads[count], NULL);
}

/* -------- delivered or cancelled -------- */

/* A million, each cancelled at about its deadline, while others read. */
TEST_F(queue_race, cancel_around_the_deadline_each_op_ends_once)
{
	pthread_t threads[THREADS], readers[READERS];
	struct tally *tally = self->tally;
	int i;

	ASSERT_EQ(0, create(self));
	start(readers, READERS, read_until_told, self);
	start(threads, THREADS, queue_and_cancel, self);
	join(threads, THREADS);
	for (i = 0; i < READERS; i++)
		send_home(self, i);
	join(readers, READERS);
	TH_LOG("%llu delivered, %llu cancelled", (unsigned long long)tally->delivered,
	       (unsigned long long)tally->cancelled);
	EXPECT_TRUE(kt_all(tally->ended, OPS, 1));
	EXPECT_EQ(OPS + READERS, tally->delivered + tally->cancelled);
	EXPECT_LT(OPS / 100, tally->delivered);
	EXPECT_LT(OPS / 100, tally->cancelled);
	EXPECT_EQ(tally->cancelled * KRETRY_UTOK, kt_stat(&self->me, self->id).refunded_utok);
	EXPECT_EQ((OPS + READERS) * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
}

/* Blocked readers, one op at a time: whichever sleeps or is about to, one of them gets it. */
TEST_F(queue_race, one_op_at_a_time_never_slept_through)
{
	unsigned int i, rounds = 20000;
	pthread_t readers[READERS];
	uint64_t start_ns;

	ASSERT_EQ(0, create(self));
	start(readers, READERS, read_until_told, self);
	for (i = 0; i < rounds; i++) {
		start_ns = kt_now(CLOCK_MONOTONIC);
		ASSERT_EQ(0, kt_queue(self->fd, self->racing, i));
		while (!GET(&self->tally->ended[i])) {
			sched_yield();
			ASSERT_GT(30 * SEC, kt_now(CLOCK_MONOTONIC) - start_ns)
				TH_LOG("op %u", i);
		}
	}
	for (i = 0; i < READERS; i++)
		send_home(self, i);
	join(readers, READERS);
	EXPECT_TRUE(kt_all(self->tally->ended, rounds, 1));
}

/* -------- or dropped -------- */

static void *step_for_a_while(void *arg)
{
	FIXTURE_DATA(queue_race) *self = arg;
	struct tally *tally = self->tally;
	struct kretry_op ops[BATCH], op;
	unsigned int i;
	uint32_t id;
	int ret;

	while (!GET(&tally->stop)) {
		id = GET(&self->racing);
		for (i = 0; i < BATCH; i++)
			ops[i] = kt_queue_op(id, OPS + ADD(&tally->next, 1));
		ADD(&tally->wrong, kt_batch(self->fd, ops, BATCH) != (int)BATCH);
		for (i = 0; i < BATCH; i++) {
			if (ops[i].verdict == KRETRY_ERROR)
				ADD(&tally->wrong, KRETRY_OP_ERRNO(ops[i].flags) != ENOENT);
			else
				ADD(&tally->queued, 1);
			if (i % 4)
				continue;
			ret = kt_cancel(self->fd, ops[i].user_data, &op);
			ADD(&tally->wrong, ret && ret != -ENOENT);
			ADD(&tally->cancelled, !ret);
		}
	}
	return NULL;
}

static void *read_for_a_while(void *arg)
{
	FIXTURE_DATA(queue_race) *self = arg;
	struct kretry_op ops[20];
	int got;

	while (!GET(&self->tally->stop)) {
		got = (int)read(self->fd, ops, sizeof(ops));
		ADD(&self->tally->wrong, got < 0 ? errno != EAGAIN : got % sizeof(ops[0]));
		if (got > 0)
			ADD(&self->tally->delivered, got / sizeof(ops[0]));
		else
			sched_yield();
	}
	return NULL;
}

static void *shut_down_for_a_while(void *arg)
{
	FIXTURE_DATA(queue_race) *self = arg;
	struct kretry_policy policy = self->policy;

	while (!GET(&self->tally->stop)) {
		kt_sleep(300 * USEC);
		ADD(&self->tally->wrong, kt_shutdown(self->fd) != 0);
		SET(&self->racing, (uint32_t)kt_create(self->fd, &policy));
		ADD(&self->tally->rounds, 1);
	}
	return NULL;
}

TEST_F(queue_race, shutdown_against_step_read_and_cancel_nothing_lost)
{
	pthread_t threads[THREADS + 2];

	ASSERT_EQ(0, create(self));
	kt_nonblock(self->fd, true);
	start(threads, THREADS, step_for_a_while, self);
	start(threads + THREADS, 1, read_for_a_while, self);
	start(threads + THREADS + 1, 1, shut_down_for_a_while, self);
	kt_sleep(ROUND);
	SET(&self->tally->stop, 1);
	join(threads, THREADS + 2);
	EXPECT_EQ(0, kt_shutdown(self->fd));
	TH_LOG("%llu queued, %llu delivered, %llu cancelled, %llu shutdowns",
	       (unsigned long long)self->tally->queued, (unsigned long long)self->tally->delivered,
	       (unsigned long long)self->tally->cancelled,
	       (unsigned long long)self->tally->rounds);
	EXPECT_LT(100, self->tally->queued);
	EXPECT_LT(10, self->tally->delivered);
	EXPECT_LT(10, self->tally->cancelled);
	EXPECT_LT(100, self->tally->rounds);
}

/* Who has been told that it waits can take it back, whatever the closer was told. */
static void *queue_or_enoent(void *arg)
{
	FIXTURE_DATA(queue_race) *self = arg;
	struct tally *tally = self->tally;
	struct kretry_op op;
	uint64_t name;
	int ret;

	while (!GET(&tally->stop)) {
		name = OPS + ADD(&tally->next, 1);
		ret = kt_queue(self->fd, GET(&self->racing), name);
		ADD(&tally->wrong, ret && ret != -ENOENT);
		if (ret)
			continue;
		ADD(&tally->queued, 1);
		ADD(&tally->wrong, kt_cancel(self->fd, name, &op) != 0);
	}
	return NULL;
}

static void *close_for_a_while(void *arg)
{
	FIXTURE_DATA(queue_race) *self = arg;
	struct kretry_policy policy = self->policy;
	int ret;

	while (!GET(&self->tally->stop)) {
		ret = kt_close(self->fd, self->racing);
		ADD(&self->tally->wrong, ret && ret != -EBUSY);
		ADD(&self->tally->stopped, ret == -EBUSY);
		if (ret)
			continue;
		SET(&self->racing, (uint32_t)kt_create(self->fd, &policy));
		ADD(&self->tally->rounds, 1);
	}
	return NULL;
}

TEST_F(queue_race, close_policy_against_step_queued_or_enoent)
{
	pthread_t threads[THREADS + 1];

	self->policy.backoff.base_ns = 3600 * SEC;
	self->policy.backoff.floor_ns = 1800 * SEC;
	self->policy.backoff.cap_ns = 3600 * SEC;
	ASSERT_EQ(0, create(self));
	start(threads, THREADS, queue_or_enoent, self);
	start(threads + THREADS, 1, close_for_a_while, self);
	kt_sleep(ROUND);
	SET(&self->tally->stop, 1);
	join(threads, THREADS + 1);
	TH_LOG("%llu queued, %llu closed, %llu busy", (unsigned long long)self->tally->queued,
	       (unsigned long long)self->tally->rounds, (unsigned long long)self->tally->stopped);
	EXPECT_LT(1000, self->tally->queued);
	EXPECT_LT(100, self->tally->rounds);
	EXPECT_LT(10, self->tally->stopped);
}

TEST_HARNESS_MAIN
