// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Random delays: different in every process, child and batch, and uniform, also at the cap. */
#include "harness.h"

#define PROCESSES	8
#define PER_PROCESS	8

FIXTURE(draws) {
	int fd;
	struct kretry_policy policy;
	struct kretry_op *ops;
	uint64_t *drawn;
	unsigned int max;
};

FIXTURE_SETUP(draws)
{
	struct kretry_info info;

	self->fd = kt_open();
	ASSERT_EQ(0, kt_info(self->fd, &info));
	self->max = info.max_batch;
	self->ops = calloc(self->max, sizeof(*self->ops));
	self->drawn = calloc(2 * self->max, sizeof(*self->drawn));
	ASSERT_NE(NULL, self->ops);
	ASSERT_NE(NULL, self->drawn);
	kt_policy(&self->policy);
	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.base_ns = SEC;
}

FIXTURE_TEARDOWN(draws)
{
	close(self->fd);
	EXPECT_EQ(0, kt_ensure_loaded());
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How many of the numbers are there more than once. Sorts them. */
static unsigned int repeated(uint64_t *numbers, size_t count)
{
	unsigned int repeats = 0;
	size_t i;

	qsort(numbers, count, sizeof(*numbers), compare);
	for (i = 1; i < count; i++)
		repeats += numbers[i] == numbers[i - 1];
	return repeats;
}

static int draw_steps(int fd, int policy, uint32_t attempt, uint64_t *drawn, unsigned int count)
{
	int64_t delay;

	while (count--) {
		delay = kt_delay(fd, policy, attempt);
		if (delay < 0)
			return 1;
		*drawn++ = delay;
	}
	return 0;
}

static int draw_batch(FIXTURE_DATA(draws) *self, int policy, uint32_t attempt, uint64_t *drawn,
		      unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		self->ops[i] = kt_op(policy, KRETRY_EVENT_TRANSIENT);
		self->ops[i].attempt = attempt;
	}
	if (kt_batch(self->fd, self->ops, count) != (int)count)
		return 1;
	for (i = 0; i < count; i++)
		drawn[i] = self->ops[i].delay_ns;
	return 0;
}

/* -------- different -------- */

static int draw_anew(struct kretry_policy *policy, uint64_t *drawn)
{
	int fd = kt_open(), id;

	CHECK(fd >= 0);
	id = kt_create(fd, policy);
	CHECK(id > 0);
	CHECK_EQ(0, draw_steps(fd, id, 0, drawn, PER_PROCESS));
	return 0;
}

TEST_F(draws, each_process_and_module_load_different)
{
	const int runs = 3, per_run = PROCESSES * PER_PROCESS;
	uint64_t *drawn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			       -1, 0);
	pid_t pids[PROCESSES];
	int run, i;

	close(self->fd);
	for (run = 0; run < runs; run++) {
		ASSERT_EQ(0, kt_unload());
		ASSERT_EQ(0, kt_load(""));
		for (i = 0; i < PROCESSES; i++) {
			pids[i] = fork();
			if (!pids[i])
				_exit(draw_anew(&self->policy,
						drawn + run * per_run + i * PER_PROCESS));
		}
		for (i = 0; i < PROCESSES; i++)
			EXPECT_EQ(0, kt_wait(pids[i]));
	}
	EXPECT_EQ(0, repeated(drawn, runs * per_run));
}

TEST_F(draws, each_fork_child_different)
{
	uint64_t *drawn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			       -1, 0);
	int id = kt_create(self->fd, &self->policy), i;
	pid_t pids[PROCESSES];

	ASSERT_EQ(0, draw_steps(self->fd, id, 0, drawn, 4));
	for (i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(draw_steps(self->fd, id, 0, drawn + 4 + 4 * i, 4));
	}
	for (i = 0; i < PROCESSES; i++)
		EXPECT_EQ(0, kt_wait(pids[i]));
	EXPECT_EQ(0, repeated(drawn, 36));
}

/* 2^17 of 2^32 values: two pairs meet by chance, more than twenty once in 10^14 runs. */
TEST_F(draws, batches_within_and_between_different)
{
	int id;

	self->policy.backoff.base_ns = KRETRY_NS_MAX;
	self->policy.backoff.cap_ns = KRETRY_NS_MAX;
	id = kt_create(self->fd, &self->policy);
	ASSERT_EQ(0, draw_batch(self, id, 0, self->drawn, self->max));
	ASSERT_EQ(0, draw_batch(self, id, 0, self->drawn + self->max, self->max));
	EXPECT_GE(20, repeated(self->drawn, 2 * self->max));
}

/* A batch of one is a batch, and many of them are as different as one of many. */
TEST_F(draws, batches_of_one_and_steps_different)
{
	int id, i;

	self->policy.backoff.base_ns = KRETRY_NS_MAX;
	self->policy.backoff.cap_ns = KRETRY_NS_MAX;
	id = kt_create(self->fd, &self->policy);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, draw_batch(self, id, 0, self->drawn + i, 1));
	ASSERT_EQ(0, draw_steps(self->fd, id, 0, self->drawn + 100, 100));
	EXPECT_EQ(0, repeated(self->drawn, 200));
}

/* -------- uniform -------- */

/* Pearson's sum over equal bins of [0, end). */
static double chi_square(const uint64_t *drawn, size_t count, uint64_t end, unsigned int bins)
{
	double expected = (double)count / bins, sum = 0;
	unsigned int *seen = calloc(bins, sizeof(*seen)), bin;
	size_t i;

	for (i = 0; i < count; i++)
		seen[drawn[i] / ((end + bins - 1) / bins)]++;
	for (bin = 0; bin < bins; bin++)
		sum += (seen[bin] - expected) * (seen[bin] - expected) / expected;
	free(seen);
	return sum;
}

/*
 * With 99 degrees of freedom a uniform source passes 190 once in 10^7 runs, and goes below 40 once
 * in 10^8; with 31 they are 95 and 4.
 */
TEST_F(draws, batch_at_the_cap_uniform)
{
	double sum;
	int id;

	self->policy.backoff.base_ns = self->policy.backoff.cap_ns;
	id = kt_create(self->fd, &self->policy);
	ASSERT_EQ(0, draw_batch(self, id, 50, self->drawn, 50000));
	ASSERT_EQ(0, draw_batch(self, id, 50, self->drawn + 50000, 50000));
	sum = chi_square(self->drawn, 100000, 10 * SEC + 1, 100);
	TH_LOG("chi-square %.1f", sum);
	EXPECT_TRUE(sum > 40 && sum < 190);
}

TEST_F(draws, step_at_the_cap_uniform)
{
	double sum;
	int id;

	self->policy.backoff.base_ns = self->policy.backoff.cap_ns;
	id = kt_create(self->fd, &self->policy);
	ASSERT_EQ(0, draw_steps(self->fd, id, 0xffffffff, self->drawn, 20000));
	sum = chi_square(self->drawn, 20000, 10 * SEC + 1, 32);
	TH_LOG("chi-square %.1f", sum);
	EXPECT_TRUE(sum > 4 && sum < 95);
}

/* A clamped draw would put half of them at the cap. */
TEST_F(draws, proportional_at_the_cap_not_piled_up)
{
	unsigned int i, at_cap = 0;
	int id;

	kt_exponential(&self->policy, 100 * MSEC, 500 * MSEC);
	self->policy.backoff.jitter = KRETRY_JITTER_PROPORTIONAL;
	self->policy.backoff.jitter_ppm = KRETRY_PPM / 2;
	id = kt_create(self->fd, &self->policy);
	ASSERT_EQ(0, draw_batch(self, id, 10, self->drawn, 60000));
	for (i = 0; i < 60000; i++) {
		ASSERT_GE(500 * MSEC, self->drawn[i]);
		at_cap += self->drawn[i] == 500 * MSEC;
	}
	EXPECT_GT(60, at_cap);
	for (i = 0; i < 60000; i++)
		self->drawn[i] = self->drawn[i] < 500 * MSEC ? self->drawn[i] : 500 * MSEC - 1;
	EXPECT_GT(190, chi_square(self->drawn, 60000, 500 * MSEC, 100));
}

TEST_F(draws, thousand_callers_at_the_cap_not_in_one_second)
{
	unsigned int seen[61] = { 0 }, i;
	int id;

	kt_exponential(&self->policy, 100 * MSEC, 60 * SEC);
	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	id = kt_create(self->fd, &self->policy);
	ASSERT_EQ(0, draw_steps(self->fd, id, 50, self->drawn, 1000));
	for (i = 0; i < 1000; i++)
		seen[self->drawn[i] / SEC]++;
	for (i = 0; i < 60; i++)
		EXPECT_GE(40, seen[i]);
}

TEST_HARNESS_MAIN
