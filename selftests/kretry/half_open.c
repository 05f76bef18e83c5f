// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A thousand callers at the instant when an open breaker becomes half-open. */
#include "harness.h"
#include "shared.h"

#include <pthread.h>
#include <sys/mman.h>

#define KEY	7
#define PROCESSES	8
#define THREADS		125

FIXTURE(half_open) {
	struct kt_party me;
	int id;
};

FIXTURE_SETUP(half_open)
{
	ASSERT_EQ(0, kt_here(&self->me));
}

FIXTURE_TEARDOWN(half_open)
{
	kt_leave(&self->me);
}

struct crowd {
	uint64_t at;
	unsigned int go, refused, without_time;
};

static struct crowd *crowd;
static struct kt_party crowd_party;
static int crowd_id;

static void *ask_at_the_instant(void *arg)
{
	struct kretry_op op;
	int verdict;

	(void)arg;
	kt_sleep_until(CLOCK_MONOTONIC, crowd->at);
	verdict = kt_begin(&crowd_party, crowd_id, KEY, &op);
	__atomic_add_fetch(&crowd->go, verdict == KRETRY_GO, __ATOMIC_RELAXED);
	__atomic_add_fetch(&crowd->refused, verdict == KRETRY_STOP_OPEN, __ATOMIC_RELAXED);
	__atomic_add_fetch(&crowd->without_time, op.deadline_ns < crowd->at, __ATOMIC_RELAXED);
	return NULL;
}

static int ask_in_threads(void *arg)
{
	pthread_t threads[THREADS];
	pthread_attr_t attr;
	int i;

	(void)arg;
	CHECK_EQ(0, kt_here(&crowd_party));
	crowd_id = kt_party_named(&crowd_party, "half_open", 0);
	CHECK(crowd_id > 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(0, pthread_create(&threads[i], &attr, ask_at_the_instant, NULL));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Nobody leaves, and gives a lease back, before all have asked. */
	while (__atomic_load_n(&crowd->go, __ATOMIC_RELAXED) +
	       __atomic_load_n(&crowd->refused, __ATOMIC_RELAXED) < PROCESSES * THREADS)
		kt_sleep(MSEC);
	return 0;
}

static void ask_all(struct __test_metadata *_metadata, FIXTURE_DATA(half_open) *self,
		    unsigned int probes)
{
	struct kretry_policy policy;
	pid_t pids[PROCESSES];
	int i;

	kt_policy(&policy);
	kt_name(&policy, "half_open");
	kt_breaker(&policy, 1, 5 * SEC, probes);
	self->id = kt_party_create(&self->me, &policy);
	ASSERT_LT(0, self->id);
	kt_fail(&self->me, self->id, KEY, 1);
	crowd = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	crowd->at = kt_stat_key(&self->me, self->id, KEY).half_open_ns;
	for (i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(ask_in_threads(NULL));
	}
	for (i = 0; i < PROCESSES; i++)
		EXPECT_EQ(0, kt_wait(pids[i]));
	EXPECT_EQ(probes, crowd->go);
	EXPECT_EQ(PROCESSES * THREADS - probes, crowd->refused);
	EXPECT_EQ(0, crowd->without_time);
	EXPECT_EQ(probes, kt_stat(&self->me, self->id).probes_lost);
}

TEST_F(half_open, thousand_threads_at_the_instant_one_admitted)
{
	ask_all(_metadata, self, 1);
}

TEST_F(half_open, thousand_threads_at_the_instant_three_admitted)
{
	ask_all(_metadata, self, 3);
}

TEST_HARNESS_MAIN
