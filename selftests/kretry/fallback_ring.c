// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The library's scheduler where io_uring is forbidden, as in containers, where its commands or the
 * module are: the same schedule, and a line that says why.
 */
#include "harness.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "kretry.h"

#define RETRIES		10
#define SYSCTL		"/proc/sys/kernel/io_uring_disabled"

/* When each attempt started, since the first. Shared with the child that ran them. */
struct times {
	uint64_t start_ns[RETRIES + 1];
	unsigned int attempts, dones;
	char reason[512];
};

FIXTURE(fallback_ring) {
	struct times *usual, *times;
};

static int run(struct times *times, const char *path);

/* The schedule as it is with all there is. */
FIXTURE_SETUP(fallback_ring)
{
	self->usual = mmap(NULL, 2 * sizeof(*self->usual), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->usual);
	self->times = self->usual + 1;
	ASSERT_EQ(0, run(self->usual, NULL));
}

FIXTURE_TEARDOWN_PARENT(fallback_ring)
{
	EXPECT_EQ(0, kt_ensure_loaded());
	if (access(SYSCTL, F_OK) == 0)
		EXPECT_EQ(0, kt_write_file(SYSCTL, "0"));
}

static void attempt(struct kretry_task *task, void *arg)
{
	struct times *times = arg;

	times->start_ns[times->attempts] = kt_now(CLOCK_MONOTONIC) - times->start_ns[0];
	times->attempts++;
	if (times->attempts == 1)
		times->start_ns[0] = kt_now(CLOCK_MONOTONIC);
	kretry_task_report(task, times->attempts <= RETRIES ? KRETRY_EVENT_TRANSIENT :
			   KRETRY_EVENT_OK, 0, 0);
}

static void done(struct kretry_task *task, const struct kretry_op *op, void *arg)
{
	struct times *times = arg;

	(void)task;
	times->dones += op->verdict == KRETRY_DONE;
}

static const struct kretry_task_ops ops = { .attempt = attempt, .done = done };

static int run(struct times *times, const char *path)
{
	struct kretry_policy policy;
	struct kretry_sched *s;
	struct kretry_op op;
	struct kretry *k;

	CHECK_EQ(0, kretry_open(&k, path, 0));
	kt_exponential(&policy, 10 * MSEC, 300 * MSEC);
	CHECK_EQ(0, kretry_policy_create(k, &policy));
	CHECK_EQ(0, kretry_sched_init(&s, k, NULL, 1));
	op = kt_op(policy.id, 0);
	CHECK_EQ(0, kretry_sched_start(s, &op, &ops, times, NULL));
	CHECK_EQ(0, kretry_sched_run(s, NULL, NULL, NULL));
	snprintf(times->reason, sizeof(times->reason), "%s", kretry_sched_reason(s));
	kretry_sched_exit(s);
	kretry_close(k);
	CHECK_EQ(RETRIES + 1, times->attempts);
	CHECK_EQ(1, times->dones);
	return 0;
}

/* The same attempts at the same times, within 5 ms, none too early; and @reason is given. */
static int check(const struct times *times, const struct times *usual, const char *reason)
{
	uint64_t due = 0, delay = 10 * MSEC;
	int i;

	for (i = 1; i <= RETRIES; i++) {
		due += delay;
		delay = 2 * delay < 300 * MSEC ? 2 * delay : 300 * MSEC;
		CHECK(times->start_ns[i] >= due && usual->start_ns[i] >= due);
		CHECK(times->start_ns[i] < usual->start_ns[i] + 5 * MSEC);
		CHECK(usual->start_ns[i] < times->start_ns[i] + 5 * MSEC);
	}
	if (strstr(times->reason, reason) && !strchr(times->reason, '\n'))
		return 0;
	fprintf(stderr, "# the reason is: %s\n", times->reason);
	return 1;
}

/* What Docker's default profile does to io_uring. */
static int forbid_io_uring(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, __NR_io_uring_setup, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, __NR_io_uring_register, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_LEN(filter), .filter = filter };

	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_EQ(0, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	return 0;
}

/* A schedule of the usual kind, under @prepare, in a process of its own. */
static int run_apart(struct times *times, int (*prepare)(int arg), int arg)
{
	pid_t pid = fork();

	if (!pid)
		_exit(prepare(arg) || run(times, NULL));
	return kt_wait(pid);
}

TEST_F(fallback_ring, seccomp_forbids_io_uring_same_schedule)
{
	ASSERT_EQ(0, run_apart(self->times, forbid_io_uring, EPERM));
	EXPECT_EQ(0, check(self->times, self->usual, "io_uring_setup: Operation not permitted: a "
			   "security policy, as of a container (seccomp), forbids it"));
}

TEST_F(fallback_ring, seccomp_hides_io_uring_same_schedule)
{
	ASSERT_EQ(0, run_apart(self->times, forbid_io_uring, ENOSYS));
	EXPECT_EQ(0, check(self->times, self->usual, "io_uring_setup: Function not implemented: "));
}

/* Newer kernels have a switch for it; the others are asked again by a filter. */
static int disable_io_uring(int value)
{
	char text[16];

	if (access(SYSCTL, F_OK))
		return forbid_io_uring(EPERM);
	snprintf(text, sizeof(text), "%d", value);
	return kt_write_file(SYSCTL, text);
}

TEST_F(fallback_ring, sysctl_disables_io_uring_same_schedule)
{
	bool is_there = !access(SYSCTL, F_OK);

	ASSERT_EQ(0, run_apart(self->times, disable_io_uring, 2));
	EXPECT_EQ(0, check(self->times, self->usual,
			   is_there ? "io_uring_setup: kernel.io_uring_disabled is 2" :
			   "io_uring_setup: Operation not permitted"));
}

static int leave_devices(int arg)
{
	char root[] = "/tmp/kretry-fallback.XXXXXX";

	(void)arg;
	CHECK(mkdtemp(root));
	CHECK_EQ(0, chroot(root));
	CHECK_EQ(0, chdir("/"));
	return 0;
}

TEST_F(fallback_ring, node_absent_same_schedule)
{
	ASSERT_EQ(0, run_apart(self->times, leave_devices, 0));
	EXPECT_EQ(0, check(self->times, self->usual, "the process decides, not the module: "
			   DEVICE ": No such file or directory: load the module"));
}

static int leave_all(int arg)
{
	return leave_devices(arg) || forbid_io_uring(arg);
}

TEST_F(fallback_ring, neither_node_nor_io_uring_same_schedule)
{
	ASSERT_EQ(0, run_apart(self->times, leave_all, EPERM));
	EXPECT_EQ(0, check(self->times, self->usual, "io_uring_setup: Operation not permitted"));
}

TEST_F(fallback_ring, module_unloaded_same_schedule)
{
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, run(self->times, NULL));
	EXPECT_EQ(0, check(self->times, self->usual, "the process decides, not the module: "));
}

TEST_HARNESS_MAIN
