// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * WAITs and those who take them back meet at the deadline: each wait completes exactly once, as one
 * or the other, and every token is where the completions say it is.
 */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define KEY	7
#define PAIRS	100000
#define BATCH	64
#define TOKENS	100000000ULL

FIXTURE(uring_race) {
	struct kt_party me;		/* watches */
	struct kt_party waiter;
	struct kretry_policy policy;	/* up to 1.5 ms */
	int id, waits_on;
	struct io_uring ring;
	uint64_t issued;		/* names below it have been issued */
	uint64_t taken_back;		/* by the other thread */
	uint64_t wrong;
	bool stop;
};

FIXTURE_SETUP(uring_race)
{
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	ASSERT_EQ(0, kt_here(&self->waiter));
	kt_policy(&self->policy);
	kt_name(&self->policy, "uring_race");
	kt_budget(&self->policy, TOKENS);
	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = 1500 * USEC;
	self->id = kt_party_create(&self->me, &self->policy);
	self->waits_on = kt_party_create(&self->waiter, &self->policy);
	ASSERT_LT(0, self->id);
	ASSERT_LT(0, self->waits_on);
	ASSERT_EQ(0, kt_ring(&self->ring, BATCH, 0));
}

FIXTURE_TEARDOWN(uring_race)
{
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->waiter);
	kt_leave(&self->me);
}

static struct kretry_op ops[BATCH];

static bool stopped(FIXTURE_DATA(uring_race) *self)
{
	return __atomic_load_n(&self->stop, __ATOMIC_ACQUIRE);
}

/* What was charged has been delivered or has come back, once. */
static int check_tokens(FIXTURE_DATA(uring_race) *self, uint64_t waits, uint64_t gone)
{
	struct kretry_stat stat = kt_stat(&self->me, self->id);

	CHECK_EQ(0, stat.queued);
	CHECK_EQ(gone, stat.go);
	CHECK_EQ(waits * KRETRY_UTOK, stat.charged_utok);
	CHECK_EQ((waits - gone) * KRETRY_UTOK, stat.refunded_utok);
	CHECK_EQ((TOKENS - gone) * KRETRY_UTOK,
		 kt_stat_key(&self->me, self->id, KEY).balance_utok);
	return 0;
}

static void issue_batch(FIXTURE_DATA(uring_race) *self, uint64_t first, unsigned int sqe_flags)
{
	int i;

	for (i = 0; i < BATCH; i++) {
		ops[i] = kt_failed(self->waits_on, KEY, first + i);
		kt_put_wait(&self->ring, self->waiter.fd, &ops[i])->flags = sqe_flags;
	}
	if (io_uring_submit(&self->ring) != BATCH)
		abort();
}

/* One batch, each completed once: how many with 0. */
static int complete_batch(FIXTURE_DATA(uring_race) *self, uint64_t first)
{
	uint64_t seen = 0, user_data, now;
	int i, res, gone = 0;

	for (i = 0; i < BATCH; i++) {
		res = kt_next(&self->ring, &user_data);
		now = kt_now(CLOCK_MONOTONIC);
		user_data -= first;
		if (user_data >= BATCH || seen & 1ULL << user_data ||
		    (res && res != -ECANCELED) || (!res && now < ops[user_data].deadline_ns)) {
			self->wrong++;
			continue;
		}
		seen |= 1ULL << user_data;
		gone += !res;
	}
	return gone;
}

/* -------- CANCEL -------- */

/* Go through the names as they are issued. */
static void *cancel_by_ioctl(void *arg)
{
	FIXTURE_DATA(uring_race) *self = arg;
	struct kretry_cancel cancel;
	uint64_t name = 0;
	int ret;

	while (!stopped(self)) {
		if (name == __atomic_load_n(&self->issued, __ATOMIC_ACQUIRE))
			continue;
		ret = kt_cancel(self->waiter.fd, name++, &cancel);
		self->taken_back += !ret;
		self->wrong += ret && ret != -ENOENT;
		self->wrong += !ret && (cancel.op.user_data != name - 1 || cancel.op.attempt);
	}
	return NULL;
}

static void *cancel_by_command(void *arg)
{
	FIXTURE_DATA(uring_race) *self = arg;
	struct kretry_cancel cancels[8];
	struct io_uring ring;
	uint64_t name = 0;
	size_t i;
	int ret;

	if (kt_ring(&ring, ARRAY_LEN(cancels), 0))
		abort();
	while (!stopped(self)) {
		if (name == __atomic_load_n(&self->issued, __ATOMIC_ACQUIRE))
			continue;
		for (i = 0; i < ARRAY_LEN(cancels); i++) {
			cancels[i].size = sizeof(cancels[i]);
			cancels[i].flags = 0;
			cancels[i].user_data = name++;
			kt_put_cancel(&ring, self->waiter.fd, &cancels[i]);
		}
		for (i = 0; i < ARRAY_LEN(cancels); i++) {
			ret = kt_next(&ring, NULL);
			self->taken_back += !ret;
			self->wrong += ret && ret != -ENOENT;
		}
	}
	io_uring_queue_exit(&ring);
	return NULL;
}

static int race_cancel(FIXTURE_DATA(uring_race) *self, void *(*cancel)(void *arg),
		       unsigned int sqe_flags)
{
	uint64_t waits, gone = 0;
	pthread_t thread;

	CHECK_EQ(0, pthread_create(&thread, NULL, cancel, self));
	for (waits = 0; waits < PAIRS; waits += BATCH) {
		issue_batch(self, waits, sqe_flags);
		__atomic_store_n(&self->issued, waits + BATCH, __ATOMIC_RELEASE);
		gone += complete_batch(self, waits);
	}
	__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK_EQ(0, self->wrong);
	printf("# %llu waits, %llu of them taken back\n", (unsigned long long)waits,
	       (unsigned long long)self->taken_back);
	CHECK_EQ(waits - gone, self->taken_back);
	/* They met. */
	CHECK(gone > waits / 100 && self->taken_back > waits / 100);
	return check_tokens(self, waits, gone);
}

TEST_F(uring_race, cancel_by_ioctl_at_the_deadline)
{
	EXPECT_EQ(0, race_cancel(self, cancel_by_ioctl, 0));
}

TEST_F(uring_race, cancel_by_command_at_the_deadline)
{
	EXPECT_EQ(0, race_cancel(self, cancel_by_command, 0));
}

/* -------- the ring goes -------- */

static void wait_until_none(FIXTURE_DATA(uring_race) *self)
{
	while (kt_stat(&self->me, self->id).queued)
		kt_sleep(MSEC);
}

TEST_F(uring_race, ring_closed_at_the_deadline)
{
	uint64_t waits = 0, gone;
	struct kretry_stat stat;
	unsigned int seed = 1;
	int i;

	for (i = 0; i < 600; i++, waits += BATCH) {
		issue_batch(self, waits, 0);
		kt_sleep(rand_r(&seed) % 1500 * USEC);
		io_uring_queue_exit(&self->ring);
		ASSERT_EQ(0, kt_ring(&self->ring, BATCH, 0));
	}
	wait_until_none(self);
	stat = kt_stat(&self->me, self->id);
	gone = (stat.charged_utok - stat.refunded_utok) / KRETRY_UTOK;
	EXPECT_EQ(0, check_tokens(self, waits, gone));
	EXPECT_LT(waits / 100, gone);
	EXPECT_GT(waits - waits / 100, gone);
}

/* -------- SHUTDOWN -------- */

/* The file is emptied again and again, and holds the policy anew. */
static void *shut_down(void *arg)
{
	FIXTURE_DATA(uring_race) *self = arg;
	unsigned int seed = 2;

	while (!stopped(self)) {
		kt_sleep(rand_r(&seed) % 1000 * USEC);
		self->wrong += kt_shutdown(self->waiter.fd) != 0;
		__atomic_store_n(&self->waits_on, kt_party_create(&self->waiter, &self->policy),
				 __ATOMIC_RELEASE);
	}
	return NULL;
}

static int race_shutdown(FIXTURE_DATA(uring_race) *self, unsigned int ring_flags,
			 unsigned int sqe_flags)
{
	uint64_t end = kt_now(CLOCK_MONOTONIC) + 3 * SEC, gone = 0, taken = 0, waits = 0;
	pthread_t thread;
	int i, res;

	io_uring_queue_exit(&self->ring);
	CHECK_EQ(0, kt_ring(&self->ring, BATCH, ring_flags));
	CHECK_EQ(0, pthread_create(&thread, NULL, shut_down, self));
	for (; kt_now(CLOCK_MONOTONIC) < end; waits += BATCH) {
		issue_batch(self, waits, sqe_flags);
		for (i = 0; i < BATCH; i++) {
			res = kt_next(&self->ring, NULL);
			gone += !res;
			taken += res == -ECANCELED;
			self->wrong += res && res != -ECANCELED && res != -ENOENT;
		}
	}
	__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	printf("# %llu waits, %llu gone, %llu taken back\n", (unsigned long long)waits,
	       (unsigned long long)gone, (unsigned long long)taken);
	CHECK_EQ(0, self->wrong);
	CHECK_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	CHECK(gone && taken);
	return check_tokens(self, gone + taken, gone);
}

TEST_F(uring_race, shutdown_against_issue)
{
	EXPECT_EQ(0, race_shutdown(self, 0, 0));
}

TEST_F(uring_race, shutdown_against_issue_by_workers)
{
	EXPECT_EQ(0, race_shutdown(self, 0, IOSQE_ASYNC));
}

TEST_F(uring_race, shutdown_against_issue_by_sqpoll)
{
	EXPECT_EQ(0, race_shutdown(self, IORING_SETUP_SQPOLL, 0));
}

TEST_HARNESS_MAIN
