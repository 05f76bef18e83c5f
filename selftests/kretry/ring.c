// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The library's scheduler over the module, by each of its methods: sleeping to its deadlines. */
#include "harness.h"

#include <errno.h>
#include <signal.h>

#include "kretry.h"

#define MAX_TASKS	10000

/* What a task does: it fails so often, then it succeeds. */
struct task {
	uint64_t reported_ns;
	unsigned int failures;
	unsigned int attempts;
	unsigned int done;
	unsigned int verdict;
};

/* What all tasks of a test have seen. Shared, for tests that run them in a child. */
struct seen {
	unsigned int early;
	unsigned int attempts;
	unsigned int done;
	uint64_t latest_ns;
	struct task tasks[MAX_TASKS];
};

FIXTURE(ring) {
	struct kretry *k;
	struct kretry_sched *sched;
	struct kretry_policy policy;
	struct seen *seen;
	enum kretry_method method;
};

FIXTURE_VARIANT(ring) {
	enum kretry_method method;
};

FIXTURE_VARIANT_ADD(ring, timeout) { .method = KRETRY_METHOD_TIMEOUT };
FIXTURE_VARIANT_ADD(ring, queue) { .method = KRETRY_METHOD_QUEUE };
/* Where the kernel has no such command, what the library makes of it. */
FIXTURE_VARIANT_ADD(ring, best) { .method = KRETRY_METHOD_BEST };

static struct seen *seen;

FIXTURE_SETUP(ring)
{
	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_MODULE_ONLY));
	ASSERT_EQ(KRETRY_BACKEND_MODULE, kretry_backend(self->k));
	kt_policy(&self->policy);
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, seen);
	self->seen = seen;
	self->method = variant->method;
}

FIXTURE_TEARDOWN(ring)
{
	kretry_sched_exit(self->sched);
	kretry_close(self->k);
}

static void attempt(struct kretry_task *task, void *arg)
{
	const struct kretry_op *op = kretry_task_op(task);
	uint64_t now = kt_now(CLOCK_MONOTONIC);
	struct task *t = arg;
	uint64_t due = t->attempts ? t->reported_ns + op->delay_ns : op->deadline_ns;

	seen->attempts++;
	if (now < due || now < op->deadline_ns)
		seen->early++;
	else if (now - due > seen->latest_ns)
		seen->latest_ns = now - due;
	t->attempts++;
	t->reported_ns = now;
	kretry_task_report(task, t->attempts > t->failures ? KRETRY_EVENT_OK :
			   KRETRY_EVENT_TRANSIENT, 0, 0);
}

static void done(struct kretry_task *task, const struct kretry_op *op, void *arg)
{
	struct task *t = arg;

	(void)task;
	t->verdict = op->verdict;
	t->done++;
	seen->done++;
}

static const struct kretry_task_ops task_ops = { .attempt = attempt, .done = done };

static int start(FIXTURE_DATA(ring) *self, unsigned int index, unsigned int failures)
{
	struct kretry_op op = { .policy = self->policy.id, .user_data = index };

	seen->tasks[index] = (struct task) { .failures = failures };
	return kretry_sched_start(self->sched, &op, &task_ops, &seen->tasks[index], NULL);
}

/* QUEUE wants a handle of this process. */
static int open_here(FIXTURE_DATA(ring) *self)
{
	kretry_close(self->k);
	return kretry_open(&self->k, NULL, KRETRY_MODULE_ONLY);
}

static int init(FIXTURE_DATA(ring) *self, struct io_uring *ring, unsigned int max_tasks)
{
	enum kretry_method want = self->method;
	struct kretry_info info;

	CHECK_EQ(0, kretry_sched_init(&self->sched, self->k, ring, max_tasks));
	CHECK_EQ(0, kretry_info(self->k, &info));
	CHECK_EQ(0, kretry_sched_set_method(self->sched, self->method));
	if (!want)
		want = info.features & KRETRY_FEATURE_URING_WAIT ? KRETRY_METHOD_WAIT :
		       KRETRY_METHOD_TIMEOUT;
	CHECK_EQ(want, kretry_sched_method(self->sched));
	CHECK_EQ(want == KRETRY_METHOD_WAIT, !kretry_sched_reason(self->sched)[0]);
	return 0;
}

static int start_all(FIXTURE_DATA(ring) *self, unsigned int count, unsigned int failures)
{
	unsigned int i;

	CHECK_EQ(0, kretry_policy_create(self->k, &self->policy));
	for (i = 0; i < count; i++)
		CHECK_EQ(0, start(self, i, failures));
	return 0;
}

/* Each task had its failures and one success, is done once, and none was early. */
static int check_all(unsigned int count, unsigned int failures)
{
	unsigned int i;

	CHECK_EQ(0, seen->early);
	CHECK_EQ(count, seen->done);
	CHECK_EQ(count * (failures + 1), seen->attempts);
	for (i = 0; i < count; i++) {
		CHECK_EQ(1, seen->tasks[i].done);
		CHECK_EQ(KRETRY_DONE, seen->tasks[i].verdict);
		CHECK_EQ(failures + 1, seen->tasks[i].attempts);
	}
	return 0;
}

#define run(self)	kretry_sched_run((self)->sched, NULL, NULL, NULL)

TEST_F(ring, hundred_tasks_twenty_retries_each_never_early)
{
	self->policy.backoff.jitter = KRETRY_JITTER_FULL;
	self->policy.backoff.floor_ns = MSEC;
	self->policy.backoff.base_ns = 20 * MSEC;
	ASSERT_EQ(0, init(self, NULL, 100));
	ASSERT_EQ(0, start_all(self, 100, 20));
	ASSERT_EQ(0, run(self));
	EXPECT_EQ(0, check_all(100, 20));
	EXPECT_GT(100 * MSEC, seen->latest_ns);
}

TEST_F(ring, hour_long_schedule_takes_an_hour)
{
	const uint64_t want = 100 * MSEC * ((1ULL << 15) - 1);
	uint64_t start = kt_now(CLOCK_MONOTONIC), took;

	kt_exponential(&self->policy, 100 * MSEC, KRETRY_NS_MAX);
	ASSERT_EQ(0, init(self, NULL, 1));
	ASSERT_EQ(0, start_all(self, 1, 15));
	ASSERT_EQ(0, run(self));
	took = kt_now(CLOCK_MONOTONIC) - start;
	EXPECT_EQ(0, check_all(1, 15));
	EXPECT_LE(want, took);
	EXPECT_GT(want + 15 * 10 * MSEC, took);
}

/* Nobody looks at the ring until all of them are due, and then it holds 16 completions. */
TEST_F(ring, ten_thousand_due_at_once_on_sixteen_completions_none_lost)
{
	struct io_uring_params params = { .flags = IORING_SETUP_CQSIZE, .cq_entries = 16 };
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init_params(8, &ring, &params));
	self->policy.backoff.base_ns = 2 * SEC;
	ASSERT_EQ(0, init(self, &ring, MAX_TASKS));
	ASSERT_EQ(0, start_all(self, MAX_TASKS, 2));
	kretry_sched_poll(self->sched);
	kretry_sched_poll(self->sched);
	io_uring_submit(&ring);
	kt_sleep(4 * SEC);
	EXPECT_EQ(MAX_TASKS, seen->attempts);
	ASSERT_EQ(0, run(self));
	EXPECT_EQ(0, check_all(MAX_TASKS, 2));
	kretry_sched_exit(self->sched);
	self->sched = NULL;
	io_uring_queue_exit(&ring);
}

/* -------- memory that was on the stack -------- */

static int __attribute__((noinline)) start_from_deep(FIXTURE_DATA(ring) *self, unsigned int index)
{
	char depth[1024];
	int ret;

	memset(depth, 0x5a, sizeof(depth));
	ret = start(self, index, 1);
	kretry_sched_poll(self->sched);
	__asm__ volatile("" : : "r"(depth) : "memory");
	return ret;
}

static void __attribute__((noinline)) overwrite_stack(void)
{
	char stack[4096];

	memset(stack, 0xff, sizeof(stack));
	__asm__ volatile("" : : "r"(stack) : "memory");
}

static int start_and_overwrite(FIXTURE_DATA(ring) *self, struct io_uring *ring, int rounds)
{
	int round, i;

	self->policy.backoff.base_ns = MSEC;
	CHECK_EQ(0, kretry_policy_create(self->k, &self->policy));
	CHECK_EQ(0, init(self, ring, 100));
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 100; i++) {
			CHECK_EQ(0, start_from_deep(self, i));
			overwrite_stack();
		}
		CHECK_EQ(0, run(self));
		CHECK_EQ(0, check_all(100, 1));
		seen->done = 0;
		seen->attempts = 0;
	}
	CHECK(seen->latest_ns < 100 * MSEC);
	return 0;
}

TEST_F(ring, submitted_after_the_stack_is_gone_fires_on_time)
{
	EXPECT_EQ(0, start_and_overwrite(self, NULL, 100));
}

TEST_F(ring, submitted_after_the_stack_is_gone_with_sqpoll_fires_on_time)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 1 };
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init_params(64, &ring, &params));
	EXPECT_EQ(0, start_and_overwrite(self, &ring, 100));
	kretry_sched_exit(self->sched);
	self->sched = NULL;
	io_uring_queue_exit(&ring);
}

/* -------- stopped, cancelled, elsewhere in time -------- */

static int run_one(FIXTURE_DATA(ring) *self, uint64_t delay, uint64_t late)
{
	uint64_t start = kt_now(CLOCK_MONOTONIC), took;

	CHECK_EQ(0, init(self, NULL, 1));
	self->policy.backoff.base_ns = delay;
	CHECK_EQ(0, start_all(self, 1, 1));
	CHECK_EQ(0, run(self));
	took = kt_now(CLOCK_MONOTONIC) - start;
	CHECK_EQ(0, check_all(1, 1));
	CHECK(took >= delay && took <= delay + late);
	return 0;
}

TEST_F(ring, stopped_across_a_deadline_fires_once_when_continued)
{
	pid_t pid = fork();

	if (!pid)
		_exit(open_here(self) || run_one(self, 500 * MSEC, 10 * SEC));
	kt_sleep(100 * MSEC);
	EXPECT_EQ(1, seen->attempts);
	EXPECT_EQ(0, kill(pid, SIGSTOP));
	kt_sleep(2 * SEC);
	EXPECT_EQ(1, seen->attempts);
	EXPECT_EQ(0, kill(pid, SIGCONT));
	EXPECT_EQ(0, kt_wait(pid));
	EXPECT_EQ(0, check_all(1, 1));
	EXPECT_LT(SEC, seen->latest_ns);
}

/* Take completions until @t is done or @ns have passed. */
static void dispatch_for(FIXTURE_DATA(ring) *self, const struct task *t, uint64_t ns)
{
	struct io_uring *ring = kretry_sched_ring(self->sched);
	uint64_t end = kt_now(CLOCK_MONOTONIC) + ns, now;
	struct __kernel_timespec left = { 0 };
	struct io_uring_cqe *cqe;

	while (!t->done && (now = kt_now(CLOCK_MONOTONIC)) < end) {
		left.tv_nsec = end - now;
		if (io_uring_wait_cqe_timeout(ring, &cqe, &left))
			continue;
		kretry_sched_cqe(self->sched, cqe);
		io_uring_cqe_seen(ring, cqe);
	}
}

/* Cancelled before, at and after the deadline: done is called once, and nothing after it. */
TEST_F(ring, cancelled_around_the_deadline_exactly_one_end)
{
	struct kretry_task *task;
	struct kretry_op op = { 0 };
	struct task *t = &seen->tasks[0];
	int i, cancelled = 0;

	self->policy.backoff.base_ns = MSEC;
	ASSERT_EQ(0, kretry_policy_create(self->k, &self->policy));
	ASSERT_EQ(0, init(self, NULL, 4));
	op.policy = self->policy.id;
	for (i = 0; i < 2000; i++) {
		*t = (struct task) { .failures = 1 };
		while (kretry_sched_start(self->sched, &op, &task_ops, t, &task))
			kretry_sched_poll(self->sched);
		kretry_sched_poll(self->sched);
		io_uring_submit(kretry_sched_ring(self->sched));
		dispatch_for(self, t, 500 * USEC + i % 100 * 10 * USEC);
		if (!t->done) {
			EXPECT_EQ(0, kretry_task_cancel(task));
			cancelled++;
		}
		ASSERT_EQ(1, t->done);
	}
	EXPECT_EQ(0, run(self));
	EXPECT_EQ(2000, seen->done);
	EXPECT_EQ(0, seen->early);
	EXPECT_TRUE(cancelled > 100 && cancelled < 1900)
		TH_LOG("%d cancelled", cancelled);
}

static int run_anew(void *arg)
{
	FIXTURE_DATA(ring) *self = arg;

	return open_here(self) || run_one(self, 3 * SEC, 50 * MSEC);
}

TEST_F(ring, time_namespace_a_day_ahead_sleeps_the_delay)
{
	EXPECT_EQ(0, kt_in_time_namespace(86400, run_anew, self));
}

TEST_F(ring, time_namespace_an_hour_behind_sleeps_the_delay)
{
	/* A clock cannot be set back to before it started. */
	if (kt_now(CLOCK_MONOTONIC) < 3660 * SEC)
		kt_sleep_until(CLOCK_MONOTONIC, 3660 * SEC);
	EXPECT_EQ(0, kt_in_time_namespace(-3600, run_anew, self));
}

TEST_F(ring, time_of_day_jumps_during_a_sleep_fires_on_time)
{
	pid_t pid = fork();

	if (!pid)
		_exit(kt_jump_time_of_day());
	EXPECT_EQ(0, run_one(self, 6 * SEC, 50 * MSEC));
	EXPECT_EQ(0, kt_wait(pid));
}

TEST_HARNESS_MAIN
