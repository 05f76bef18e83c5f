// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Many threads and processes on one file, and arguments that change or vanish under the call. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#define THREADS		4
#define ROUND		(1500 * MSEC)
#define USER		1000

FIXTURE(race) {
	int fd;
	struct kretry_policy policy;
};

static volatile bool stop;

FIXTURE_SETUP(race)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&self->policy);
}

FIXTURE_TEARDOWN(race)
{
	close(self->fd);
}

/* Run @fn in @count threads for a while. The sum of what they return: of what went wrong. */
static long run_threads(void *(*fn)(void *arg), void *arg, int count)
{
	pthread_t threads[THREADS];
	void *ret;
	long sum = 0;
	int i;

	stop = false;
	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, fn, arg))
			abort();
	kt_sleep(ROUND);
	stop = true;
	for (i = 0; i < count; i++) {
		pthread_join(threads[i], &ret);
		sum += (long)ret;
	}
	return sum;
}

/* -------- one file, many threads -------- */

static long step_and_get(int fd, uint32_t id)
{
	int64_t delay = kt_delay(fd, id, 0);
	struct kretry_policy policy;
	int ret = kt_get(fd, id, &policy);

	return (delay != -ENOENT && delay != 100 * MSEC) ||
	       (ret && ret != -ENOENT) || (!ret && policy.id != id);
}

static void *create_step_close(void *arg)
{
	FIXTURE_DATA(race) *self = arg;
	struct kretry_policy policy = self->policy;
	long wrong = 0;
	uint32_t i;
	int id;

	while (!stop) {
		id = kt_create(self->fd, &policy);
		wrong += id <= 0 || kt_delay(self->fd, id, 0) != 100 * MSEC;
		for (i = 0; i < 4; i++)
			wrong += step_and_get(self->fd, (uint32_t)id - i);
		wrong += kt_close(self->fd, id) != 0;
		wrong += kt_close(self->fd, id) != -ENOENT;
	}
	return (void *)wrong;
}

TEST_F(race, create_step_close_in_many_threads_consistent)
{
	EXPECT_EQ(0, run_threads(create_step_close, self, THREADS));
	EXPECT_EQ(0, kt_policies(self->fd));
}

static void *create_step_shutdown(void *arg)
{
	FIXTURE_DATA(race) *self = arg;
	struct kretry_policy policy = self->policy;
	long wrong = 0;
	int id, i, ret;

	while (!stop) {
		for (i = 0; i < 10; i++) {
			id = kt_create(self->fd, &policy);
			wrong += id <= 0 || step_and_get(self->fd, id);
		}
		ret = kt_close(self->fd, id);
		wrong += ret && ret != -ENOENT;
		wrong += kt_policies(self->fd) < 0;
		wrong += kt_shutdown(self->fd) != 0;
	}
	return (void *)wrong;
}

static int fill_quota(void *arg)
{
	struct kretry_policy policy;
	struct kretry_info info;
	int fd = kt_open();
	unsigned int i;

	(void)arg;
	CHECK_EQ(0, kt_info(fd, &info));
	kt_policy(&policy);
	for (i = 0; i < info.max_policies; i++)
		CHECK(kt_create(fd, &policy) > 0);
	CHECK_EQ(-EDQUOT, kt_create(fd, &policy));
	return 0;
}

TEST_F(race, shutdown_in_many_threads_no_quota_lost)
{
	close(self->fd);
	ASSERT_EQ(0, kt_become(USER));
	self->fd = kt_open();
	EXPECT_EQ(0, run_threads(create_step_shutdown, self, THREADS));
	EXPECT_EQ(0, kt_shutdown(self->fd));
	EXPECT_EQ(0, kt_policies(self->fd));
	EXPECT_EQ(0, kt_child(fill_quota, NULL));
}

/* -------- the file closed under the call -------- */

static bool is_one_of(int ret, int a, int b)
{
	return ret >= 0 || ret == a || ret == b;
}

static void *use_number(void *arg)
{
	FIXTURE_DATA(race) *self = arg;
	struct kretry_policy policy = self->policy;
	struct kretry_op ops[64];
	long wrong = 0;
	int i, id;

	while (!stop) {
		id = kt_create(self->fd, &policy);
		/* A file that stays for long holds all policies there may be. */
		wrong += !is_one_of(id, -EBADF, -EDQUOT);
		for (i = 0; i < 64; i++)
			ops[i] = kt_op(id, KRETRY_EVENT_TRANSIENT);
		wrong += !is_one_of(kt_step(self->fd, &ops[0]), -EBADF, -ENOENT);
		wrong += !is_one_of(kt_batch(self->fd, ops, 64), -EBADF, -EBADF);
	}
	return (void *)wrong;
}

static void *close_and_open(void *arg)
{
	FIXTURE_DATA(race) *self = arg;
	long wrong = 0;
	int fresh;

	while (!stop) {
		fresh = kt_open();
		wrong += fresh < 0;
		wrong += dup2(fresh, self->fd) != self->fd;
		close(fresh);
	}
	return (void *)wrong;
}

static void *use_or_close(void *arg)
{
	static int turn;

	if (__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED))
		return use_number(arg);
	return close_and_open(arg);
}

TEST_F(race, file_replaced_under_the_calls_no_harm)
{
	EXPECT_EQ(0, run_threads(use_or_close, self, THREADS));
}

/* -------- arguments that change under the call -------- */

static union {
	struct kretry_policy policy;
	struct kretry_op ops[128];
	unsigned char bytes[8192];
} shared __attribute__((aligned(4096)));

static void *scribble(void *arg)
{
	unsigned int seed = 1;
	size_t len = *(size_t *)arg;

	while (!stop) {
		shared.bytes[(size_t)rand_r(&seed) % len] ^= 1U << rand_r(&seed) % 8;
		if (rand_r(&seed) % 16 == 0)
			kt_policy(&shared.policy);
	}
	return NULL;
}

/* Whatever was read of it, a policy that was taken is one that can be given again. */
TEST_F(race, policy_changing_under_create_never_invalid)
{
	size_t len = sizeof(shared.policy);
	unsigned int made = 0, tries = 0;
	struct kretry_policy got;
	uint64_t end = kt_now(CLOCK_MONOTONIC) + ROUND;
	pthread_t thread;
	int id;

	stop = false;
	kt_policy(&shared.policy);
	ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &len));
	for (; kt_now(CLOCK_MONOTONIC) < end; tries++) {
		/* The id that it says may be scribbled over too: find it by trying. */
		if (kt_ioctl(self->fd, KRETRY_IOC_POLICY_CREATE, &shared.policy))
			continue;
		made++;
		id = (int)shared.policy.id;
		if (kt_get(self->fd, id, &got))
			continue;
		EXPECT_LT(0, kt_create(self->fd, &got));
		EXPECT_EQ(0, kt_shutdown(self->fd));
	}
	stop = true;
	pthread_join(thread, NULL);
	EXPECT_LT(0, made);
	EXPECT_LT(made, tries);
}

static bool is_verdict(unsigned int verdict)
{
	return (verdict >= KRETRY_GO && verdict <= KRETRY_ERROR) ||
	       (verdict >= KRETRY_STOP_PERMANENT && verdict <= KRETRY_STOP_PACED);
}

TEST_F(race, ops_changing_under_the_batch_always_answered)
{
	int id = kt_create(self->fd, &self->policy), batches = 0;
	size_t len = sizeof(shared.ops), i;
	uint64_t end = kt_now(CLOCK_MONOTONIC) + ROUND;
	pthread_t thread;

	stop = false;
	memset(&shared, 0, sizeof(shared));
	ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &len));
	for (; kt_now(CLOCK_MONOTONIC) < end; batches++) {
		for (i = 0; i < 128; i++)
			shared.ops[i] = kt_op(id, KRETRY_EVENT_TRANSIENT);
		ASSERT_EQ(128, kt_batch(self->fd, shared.ops, 128));
		kt_step(self->fd, &shared.ops[0]);
	}
	stop = true;
	pthread_join(thread, NULL);
	for (i = 0; i < 128; i++)
		shared.ops[i] = kt_op(id, KRETRY_EVENT_TRANSIENT);
	ASSERT_EQ(128, kt_batch(self->fd, shared.ops, 128));
	for (i = 0; i < 128; i++)
		EXPECT_TRUE(is_verdict(shared.ops[i].verdict));
	EXPECT_LT(10, batches);
}

static void *take_away(void *arg)
{
	char *memory = arg;

	while (!stop) {
		mprotect(memory + 4096, 4096, PROT_READ);
		mprotect(memory + 4096, 4096, PROT_NONE);
		madvise(memory, 4 * 4096, MADV_DONTNEED);
		mprotect(memory + 4096, 4096, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

TEST_F(race, memory_vanishing_under_the_batch_counted_right)
{
	const int page = 4096 / sizeof(struct kretry_op), all = 4 * page;
	uint64_t end = kt_now(CLOCK_MONOTONIC) + ROUND;
	struct kretry_op *ops;
	pthread_t thread;
	int ret;

	ops = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, ops);
	stop = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, take_away, ops));
	while (kt_now(CLOCK_MONOTONIC) < end) {
		ret = kt_batch(self->fd, ops, all);
		ASSERT_TRUE(ret >= page && ret <= all)
			TH_LOG("%d", ret);
	}
	stop = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(all, kt_batch(self->fd, ops, all));
	ASSERT_EQ(0, mprotect(&ops[page], 4096, PROT_NONE));
	EXPECT_EQ(page, kt_batch(self->fd, ops, all));
}

/* -------- processes -------- */

static int batch_for_ever(void *arg)
{
	FIXTURE_DATA(race) *self = arg;
	struct kretry_op ops[1000];
	int i, id;

	for (;;) {
		id = kt_create(self->fd, &self->policy);
		for (i = 0; i < 1000; i++)
			ops[i] = kt_op(id, KRETRY_EVENT_TRANSIENT);
		if (id <= 0 || kt_batch(self->fd, ops, 1000) != 1000 || kt_close(self->fd, id))
			return 1;
	}
}

TEST_F(race, killed_at_any_moment_others_go_on)
{
	int id = kt_create(self->fd, &self->policy), i, j;
	pid_t pids[4];

	for (i = 0; i < 50; i++) {
		for (j = 0; j < 4; j++) {
			pids[j] = fork();
			if (!pids[j])
				_exit(batch_for_ever(self));
		}
		kt_sleep(5 * MSEC + i * 333 * USEC);
		for (j = 0; j < 4; j++) {
			kill(pids[j], SIGKILL);
			EXPECT_EQ(128 + SIGKILL, kt_wait(pids[j]));
		}
		ASSERT_EQ(100 * MSEC, kt_delay(self->fd, id, 0));
	}
	EXPECT_EQ(0, kt_shutdown(self->fd));
	EXPECT_EQ(0, kt_policies(self->fd));
}

static int take_what_there_is(void *arg)
{
	struct kretry_policy policy;
	int *made = arg, fd, ret;

	CHECK_EQ(0, kt_become(USER));
	fd = kt_open();
	kt_policy(&policy);
	while ((ret = kt_create(fd, &policy)) > 0)
		__atomic_add_fetch(made, 1, __ATOMIC_RELAXED);
	CHECK_EQ(-EDQUOT, ret);
	pause();
	return 0;
}

/* Four processes of one user take all they can get: together it is exactly the quota. */
TEST_F(race, quota_taken_by_many_processes_exact)
{
	int *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), i;
	struct kretry_info info;
	pid_t pids[4];

	ASSERT_EQ(0, kt_info(self->fd, &info));
	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(take_what_there_is(made));
	}
	kt_sleep(3 * SEC);
	EXPECT_EQ((int)info.max_policies, __atomic_load_n(made, __ATOMIC_RELAXED));
	for (i = 0; i < 4; i++) {
		kill(pids[i], SIGKILL);
		EXPECT_EQ(128 + SIGKILL, kt_wait(pids[i]));
	}
	ASSERT_EQ(0, kt_become(USER));
	EXPECT_EQ(0, kt_child(fill_quota, NULL));
}

TEST_HARNESS_MAIN
