// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Programs with WAITs end at any moment, and submissions change while they are read. */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define KEY	7
#define BATCH	64
#define TOKENS	100000000ULL
#define CHILDREN	200

FIXTURE(uring_race_exit) {
	struct kt_party me;
	struct kretry_policy policy;	/* up to 2 ms */
	int id;
	bool stop;
};

FIXTURE_SETUP(uring_race_exit)
{
	ASSERT_EQ(0, kt_ensure_loaded());
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	kt_policy(&self->policy);
	kt_name(&self->policy, "uring_race_exit");
	kt_budget(&self->policy, TOKENS);
	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = 2 * MSEC;
	self->id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, self->id);
}

FIXTURE_TEARDOWN(uring_race_exit)
{
	kt_leave(&self->me);
}

/* -------- ends -------- */

/* WAITs for ever, in rounds of some; @seed says on what kind of ring and how it ends. */
static int wait_for_ever(FIXTURE_DATA(uring_race_exit) *self, unsigned int seed)
{
	static const unsigned int flags[] = {
		0, IORING_SETUP_SQPOLL, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	};
	unsigned int rounds = seed % 4 ? ~0U : seed % 7, i;
	static struct kretry_op ops[BATCH];
	struct io_uring ring;
	uint64_t name = 0;
	int fd = kt_open(), id = kt_create(fd, &self->policy);

	CHECK_EQ(0, kt_ring(&ring, BATCH, flags[seed % ARRAY_LEN(flags)]));
	while (rounds--) {
		for (i = 0; i < BATCH; i++) {
			ops[i] = kt_failed(id, KEY, name++);
			kt_put_wait(&ring, fd, &ops[i])->flags = seed % 5 ? 0 : IOSQE_ASYNC;
		}
		io_uring_submit(&ring);
		for (i = 0; rounds && i < BATCH; i++)
			CHECK_EQ(0, kt_next(&ring, NULL));
	}
	return 0;
}

TEST_F(uring_race_exit, processes_end_at_any_moment_tokens_right)
{
	struct kretry_stat stat;
	unsigned int i, seed = 3;
	uint64_t gone;
	pid_t pid;
	int ret;

	for (i = 0; i < CHILDREN; i++) {
		fflush(NULL);
		pid = fork();
		if (!pid)
			_exit(wait_for_ever(self, i));
		kt_sleep(2 * MSEC + rand_r(&seed) % 20 * MSEC);
		kill(pid, SIGKILL);
		ret = kt_wait(pid);
		EXPECT_TRUE(ret == 128 + SIGKILL || (ret == 0 && i % 4 == 0))
			TH_LOG("child %u ended with %d", i, ret);
	}
	while (kt_stat(&self->me, self->id).queued)
		kt_sleep(MSEC);
	stat = kt_stat(&self->me, self->id);
	gone = (stat.charged_utok - stat.refunded_utok) / KRETRY_UTOK;
	EXPECT_EQ((TOKENS - gone) * KRETRY_UTOK,
		  kt_stat_key(&self->me, self->id, KEY).balance_utok);
	EXPECT_EQ(gone, stat.go);
	EXPECT_LT(CHILDREN, gone);
	EXPECT_LT(CHILDREN, stat.refunded_utok / KRETRY_UTOK);
	kt_leave(&self->me);
	while (kt_unload() == -EWOULDBLOCK)
		kt_sleep(MSEC);
	ASSERT_EQ(0, kt_load(""));
	ASSERT_EQ(0, kt_here(&self->me));
}

/* -------- payloads that change -------- */

static struct kretry_op arena[2][1024];

struct scribbler {
	FIXTURE_DATA(uring_race_exit) *self;
	struct io_uring *ring;
	void *constant;
};

/* All pointers stay in memory that may be written: what else might be hit is this program. */
static void scribble_one(struct scribbler *s, unsigned int *seed)
{
	static const unsigned int counts[] = { 0, 1, 1, 1, 2, 64, 65, 1000, 65537, ~0U };
	static const unsigned int sizes[] = { 64, 64, 64, 63, 0, 128 };
	struct io_uring_sqe *sqe = &s->ring->sq.sqes[rand_r(seed) % BATCH];
	volatile struct kretry_uring *payload = (void *)((char *)sqe + 48);
	void *pointers[] = { arena[0], arena[1], arena[0], s->constant, NULL, (void *)-64 };

	switch (rand_r(seed) % 4) {
	case 0:
		payload->ops = (uintptr_t)pointers[rand_r(seed) % ARRAY_LEN(pointers)];
		break;
	case 1:
		payload->count = counts[rand_r(seed) % ARRAY_LEN(counts)];
		break;
	case 2:
		payload->op_size = (__u16)sizes[rand_r(seed) % ARRAY_LEN(sizes)];
		break;
	default:
		payload->flags = rand_r(seed) % 8 == 0;
	}
}

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	unsigned int seed = 4;

	while (!__atomic_load_n(&s->self->stop, __ATOMIC_ACQUIRE))
		scribble_one(s, &seed);
	return NULL;
}

static bool sane(int res)
{
	switch (res) {
	case -EINVAL:
	case -EFAULT:
	case -EMSGSIZE:
	case -EEXIST:
		return true;
	default:
		return res >= 0 && res <= 1000;
	}
}

static int submit_scribbled(FIXTURE_DATA(uring_race_exit) *self, struct io_uring *ring, int id,
			    unsigned int sqe_flags)
{
	unsigned int i, answered = 0;
	int res;

	for (i = 0; i < 1024; i++) {
		arena[0][i] = kt_failed(id, KEY, i);
		arena[1][i] = kt_failed(id, KEY, 2000 + i);
	}
	for (i = 0; i < BATCH; i++) {
		if (i % 2)
			kt_put_step(ring, self->me.fd, arena[i % 4 / 2], 1)->flags = sqe_flags;
		else
			kt_put_wait(ring, self->me.fd, &arena[0][i])->flags = sqe_flags;
	}
	for (i = 0; i < BATCH; i++) {
		res = kt_next(ring, NULL);
		if (!sane(res))
			fprintf(stderr, "# result %d\n", res);
		CHECK(sane(res));
		answered += res >= 0;
	}
	return answered ? 0 : -1;
}

TEST_F(uring_race_exit, payload_changes_while_it_is_read_results_sane)
{
	struct scribbler s = { .self = self };
	struct kretry_op op = kt_failed(self->id, KEY, 1);
	unsigned int rounds = 0, nothing = 0, sqe_flags;
	uint64_t end = kt_now(CLOCK_MONOTONIC) + 3 * SEC;
	struct io_uring ring;
	pthread_t thread;
	int ret;

	ASSERT_EQ(0, kt_ring(&ring, BATCH, 0));
	s.ring = &ring;
	s.constant = kt_read_only(&op, sizeof(op));
	ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &s));
	for (; kt_now(CLOCK_MONOTONIC) < end; rounds++) {
		sqe_flags = rounds % 3 ? 0 : IOSQE_ASYNC;
		ret = submit_scribbled(self, &ring, self->id, sqe_flags);
		ASSERT_GE(0, ret);
		nothing += ret < 0;
	}
	__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	EXPECT_LT(10, rounds);
	EXPECT_GT(rounds / 2, nothing);
	EXPECT_EQ(0, memcmp(&op, s.constant, sizeof(op)));
	EXPECT_EQ(0, kt_stat(&self->me, self->id).queued);
	io_uring_queue_exit(&ring);
}

TEST_HARNESS_MAIN
