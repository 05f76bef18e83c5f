// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The library where the module cannot be used: it decides in the process, and says why. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "kretry.h"

FIXTURE(fallback) {
	struct kretry *k;
	struct stat node;
	char root[32];
};

FIXTURE_SETUP(fallback)
{
	ASSERT_EQ(0, stat(DEVICE, &self->node));
	strcpy(self->root, "/tmp/kretry-fallback.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->root));
}

FIXTURE_TEARDOWN_PARENT(fallback)
{
	EXPECT_EQ(0, kt_ensure_loaded());
	EXPECT_EQ(0, chmod(DEVICE, 0666));
}

/* The process decides, for the reason given, and decides well; asking for the module is refused. */
static int check_process_decides(const char *path, const char *reason, int error)
{
	struct kretry_policy policy;
	struct kretry_info info;
	struct kretry_op op;
	struct kretry *k;

	CHECK_EQ(error, kretry_open(&k, path, KRETRY_MODULE_ONLY));
	CHECK_EQ(0, kretry_open(&k, path, 0));
	CHECK_EQ(KRETRY_BACKEND_PROCESS, kretry_backend(k));
	CHECK_EQ(-EBADF, kretry_fd(k));
	if (!strstr(kretry_backend_reason(k), reason)) {
		fprintf(stderr, "# the reason is: %s\n", kretry_backend_reason(k));
		return 1;
	}
	CHECK(strstr(kretry_backend_reason(k), path ? path : KRETRY_DEVICE));
	CHECK_EQ(0, kretry_info(k, &info));
	CHECK_EQ(KRETRY_ABI_VERSION, info.abi_version);
	kt_exponential(&policy, 100 * MSEC, SEC);
	CHECK_EQ(0, kretry_policy_create(k, &policy));
	op = kt_op(policy.id, KRETRY_EVENT_TRANSIENT);
	op.attempt = 2;
	CHECK_EQ(0, kretry_step(k, &op));
	CHECK_EQ(KRETRY_RETRY, op.verdict);
	CHECK_EQ(400 * MSEC, op.delay_ns);
	kretry_close(k);
	return 0;
}

TEST_F(fallback, node_absent_process_decides)
{
	ASSERT_EQ(0, chroot(self->root));
	ASSERT_EQ(0, chdir("/"));
	EXPECT_EQ(0, check_process_decides(NULL, "No such file or directory", -ENOENT));
}

TEST_F(fallback, module_unloaded_process_decides)
{
	ASSERT_EQ(0, kt_unload());
	EXPECT_EQ(0, check_process_decides(NULL, "load the module", -ENOENT));
}

TEST_F(fallback, node_without_a_module_process_decides)
{
	char path[64];
	struct kretry *k;
	int ret;

	snprintf(path, sizeof(path), "%s/kretry", self->root);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0666, self->node.st_rdev));
	ASSERT_EQ(0, kretry_open(&k, path, KRETRY_MODULE_ONLY));
	kretry_close(k);
	ASSERT_EQ(0, kt_unload());
	ret = kretry_open(&k, path, KRETRY_MODULE_ONLY);
	EXPECT_TRUE(ret == -ENODEV || ret == -ENXIO);
	EXPECT_EQ(0, check_process_decides(path, "load the module", ret));
}

TEST_F(fallback, node_not_permitted_process_decides)
{
	ASSERT_EQ(0, chmod(DEVICE, 0600));
	ASSERT_EQ(0, kt_become(1000));
	EXPECT_EQ(0, check_process_decides(NULL, "Permission denied", -EACCES));
}

TEST_F(fallback, directory_not_permitted_process_decides)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/kretry", self->root);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0666, self->node.st_rdev));
	ASSERT_EQ(0, chmod(self->root, 0700));
	ASSERT_EQ(0, kt_become(1000));
	EXPECT_EQ(0, check_process_decides(path, "Permission denied", -EACCES));
}

TEST_F(fallback, another_device_process_decides)
{
	EXPECT_EQ(0, check_process_decides("/dev/null", "another device", -ENOTTY));
}

/* Without jitter both backends take a schedule to the same nanosecond. */
TEST_F(fallback, both_backends_same_schedule)
{
	static const unsigned int flags[] = { KRETRY_MODULE_ONLY, KRETRY_PROCESS_ONLY };
	struct kretry_op ops[2];
	struct kretry_policy policy;
	struct kretry *k[2];
	int i, n;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, kretry_open(&k[i], NULL, flags[i]));
		kt_exponential(&policy, 7 * MSEC, 3 * SEC);
		policy.backoff.multiplier_ppm = 1700000;
		policy.max_retries = 20;
		ASSERT_EQ(0, kretry_policy_create(k[i], &policy));
		ops[i] = kt_op(policy.id, 0);
	}
	for (n = 0; n < 25; n++) {
		for (i = 0; i < 2; i++) {
			ops[i].event = KRETRY_EVENT_THROTTLED;
			ASSERT_EQ(0, kretry_step(k[i], &ops[i]));
		}
		EXPECT_EQ(ops[0].verdict, ops[1].verdict);
		EXPECT_EQ(ops[0].delay_ns, ops[1].delay_ns);
		EXPECT_EQ(ops[0].attempt, ops[1].attempt);
	}
	EXPECT_EQ(KRETRY_STOP_LIMIT, ops[1].verdict);
}

/* -------- draws of the process -------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int draw(struct kretry *k, uint32_t policy, uint64_t *drawn)
{
	struct kretry_op op;
	int i;

	for (i = 0; i < 4; i++) {
		op = kt_op(policy, KRETRY_EVENT_TRANSIENT);
		CHECK_EQ(0, kretry_step(k, &op));
		drawn[i] = op.delay_ns;
	}
	return 0;
}

TEST_F(fallback, draws_of_fork_children_all_different)
{
	uint64_t *drawn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			       -1, 0);
	struct kretry_policy policy;
	pid_t pids[8];
	int i;

	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_PROCESS_ONLY));
	kt_policy(&policy);
	policy.backoff.jitter = KRETRY_JITTER_FULL;
	policy.backoff.base_ns = policy.backoff.cap_ns;
	ASSERT_EQ(0, kretry_policy_create(self->k, &policy));
	ASSERT_EQ(0, draw(self->k, policy.id, drawn));
	for (i = 0; i < 8; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(draw(self->k, policy.id, drawn + 4 + 4 * i));
	}
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, kt_wait(pids[i]));
	qsort(drawn, 36, sizeof(*drawn), compare);
	for (i = 1; i < 36; i++)
		EXPECT_NE(drawn[i - 1], drawn[i]);
}

/* -------- the scheduler without the module -------- */

struct job {
	int attempts, done, early;
};

static void attempt(struct kretry_task *task, void *arg)
{
	struct job *job = arg;

	job->early += kretry_now(CLOCK_MONOTONIC) < kretry_task_op(task)->deadline_ns;
	kretry_task_report(task, ++job->attempts < 10 ? KRETRY_EVENT_TRANSIENT : KRETRY_EVENT_OK,
			   0, 0);
}

static void done(struct kretry_task *task, const struct kretry_op *op, void *arg)
{
	struct job *job = arg;

	(void)task;
	job->done += op->verdict == KRETRY_DONE;
}

TEST_F(fallback, scheduler_never_early)
{
	static const struct kretry_task_ops ops = { .attempt = attempt, .done = done };
	struct job jobs[50] = { 0 };
	struct kretry_sched *sched;
	struct kretry_policy policy;
	struct kretry_op op;
	int i;

	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_PROCESS_ONLY));
	kt_policy(&policy);
	policy.backoff.jitter = KRETRY_JITTER_FULL;
	policy.backoff.base_ns = 20 * MSEC;
	ASSERT_EQ(0, kretry_policy_create(self->k, &policy));
	ASSERT_EQ(0, kretry_sched_init(&sched, self->k, NULL, 50));
	op = kt_op(policy.id, 0);
	for (i = 0; i < 50; i++)
		ASSERT_EQ(0, kretry_sched_start(sched, &op, &ops, &jobs[i], NULL));
	ASSERT_EQ(0, kretry_sched_run(sched, NULL, NULL, NULL));
	for (i = 0; i < 50; i++) {
		EXPECT_EQ(10, jobs[i].attempts);
		EXPECT_EQ(1, jobs[i].done);
		EXPECT_EQ(0, jobs[i].early);
	}
	kretry_sched_exit(sched);
}

TEST_HARNESS_MAIN
