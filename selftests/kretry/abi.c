// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* INFO, dispatch of commands, what this build does not have, and what both word sizes see. */
#include "harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define LAST_COMMAND	0x0d

FIXTURE(abi) {
	int fd;
};

FIXTURE_SETUP(abi)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(abi)
{
	close(self->fd);
}

/* A command of io_uring that waits needs a kernel that can cancel it. */
static uint64_t features_of_this_kernel(void)
{
	uint64_t features = KRETRY_FEATURE_NAMED | KRETRY_FEATURE_BUDGET | KRETRY_FEATURE_BREAKER |
			    KRETRY_FEATURE_PACING | KRETRY_FEATURE_COOLING | KRETRY_FEATURE_STAT |
			    KRETRY_FEATURE_QUEUE | KRETRY_FEATURE_URING_STEP;
	unsigned int major, minor;
	struct utsname name;

	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		abort();
	return major * 1000 + minor >= 6007 ? features | KRETRY_FEATURE_URING_WAIT : features;
}

TEST_F(abi, info_any_caller_version_features_and_limits)
{
	struct kretry_info info;

	ASSERT_EQ(0, kt_info(self->fd, &info));
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(KRETRY_ABI_VERSION, info.abi_version);
	EXPECT_EQ(features_of_this_kernel(), info.features);
	EXPECT_LE(1024, info.max_batch);
	EXPECT_EQ(4096, info.max_policies);
	EXPECT_EQ(1024, info.max_keys);
	EXPECT_EQ(131072, info.max_queued);
	EXPECT_EQ(3600 * SEC, info.max_linger_ns);
}

/* A program in an empty root with nothing but the node can still ask what the module has. */
TEST_F(abi, info_only_the_node_visible_works)
{
	char root[] = "/tmp/kretry-abi.XXXXXX";
	struct kretry_info info;
	struct stat st;
	int fd;

	mkdir("/tmp", 01777);
	ASSERT_EQ(0, stat(DEVICE, &st));
	ASSERT_NE(NULL, mkdtemp(root));
	ASSERT_EQ(0, chdir(root));
	ASSERT_EQ(0, mknod("kretry", S_IFCHR | 0600, st.st_rdev));
	ASSERT_EQ(0, chroot("."));
	fd = open("/kretry", O_RDWR);
	ASSERT_LE(0, fd);
	unlink("/kretry");
	ASSERT_EQ(0, kt_info(fd, &info));
	EXPECT_EQ(KRETRY_ABI_VERSION, info.abi_version);
}

TEST_F(abi, command_unknown_number_enotty)
{
	unsigned char memory[4096];
	unsigned int nr;

	memset(memory, POISON, sizeof(memory));
	for (nr = LAST_COMMAND + 1; nr <= 0xff; nr++) {
		EXPECT_EQ(-ENOTTY, kt_ioctl(self->fd, _IO(KRETRY_IOC_MAGIC, nr), memory));
		EXPECT_EQ(-ENOTTY, kt_ioctl(self->fd, _IO(KRETRY_IOC_MAGIC, nr), NULL));
	}
	EXPECT_TRUE(kt_all(memory, sizeof(memory), POISON));
}

TEST_F(abi, command_other_magic_enotty)
{
	struct kretry_info info = { .size = sizeof(info) }, before = info;
	unsigned int magic;

	for (magic = 0; magic <= 0xff; magic++) {
		/* FIOCLEX and its kind are answered before any driver. */
		if (magic == KRETRY_IOC_MAGIC || magic == 'T' || magic == 'f' || magic == 'X' ||
		    magic == 0x00)
			continue;
		EXPECT_EQ(-ENOTTY, kt_ioctl(self->fd, _IO(magic, 0), &info))
			TH_LOG("magic %#x", magic);
	}
	EXPECT_EQ(0, memcmp(&before, &info, sizeof(info)));
}

TEST_F(abi, command_direction_and_size_bits_ignored)
{
	static const unsigned int sizes[] = { 0, 4, 40, 64, 4096, 16383 };
	struct kretry_info info;
	unsigned int dir;
	size_t i;

	for (dir = 0; dir < 4; dir++) {
		for (i = 0; i < ARRAY_LEN(sizes); i++) {
			memset(&info, POISON, sizeof(info));
			info.size = sizeof(info);
			EXPECT_EQ(0, kt_ioctl(self->fd, _IOC(dir, KRETRY_IOC_MAGIC, 0, sizes[i]),
					      &info));
			EXPECT_EQ(KRETRY_ABI_VERSION, info.abi_version);
			EXPECT_EQ(-ENOTTY, kt_ioctl(self->fd, _IOC(dir, KRETRY_IOC_MAGIC,
								   LAST_COMMAND + 1, sizes[i]),
						    &info));
		}
	}
}

/* WAIT is there for io_uring only. */
TEST_F(abi, wait_as_an_ioctl_eopnotsupp)
{
	struct kretry_policy policy;
	struct kretry_op op, before;

	kt_policy(&policy);
	op = kt_op(kt_create(self->fd, &policy), KRETRY_EVENT_TRANSIENT);
	before = op;
	EXPECT_EQ(-EOPNOTSUPP, kt_ioctl(self->fd, KRETRY_IOC_WAIT, &op));
	EXPECT_EQ(-EOPNOTSUPP, kt_ioctl(self->fd, KRETRY_IOC_WAIT, NULL));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(abi, create_part_not_in_this_build_eopnotsupp)
{
	struct kretry_policy policy, before;
	int i;

	for (i = 0; i < 2; i++) {
		kt_policy(&policy);
		policy.budget.capacity_utok = KRETRY_UTOK;
		policy.budget.max_retrying = i == 0;
		policy.budget.retrying_ppm = i == 1;
		before = policy;
		EXPECT_EQ(-EOPNOTSUPP, kt_create(self->fd, &policy))
			TH_LOG("row %d", i);
		EXPECT_EQ(0, memcmp(&before, &policy, sizeof(policy)));
	}
	EXPECT_EQ(0, kt_policies(self->fd));
}

TEST_F(abi, read_nothing_queued_eagain)
{
	unsigned char memory[sizeof(struct kretry_op)];

	memset(memory, POISON, sizeof(memory));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-1, read(self->fd, memory, sizeof(memory)));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_TRUE(kt_all(memory, sizeof(memory), POISON));
}

/* Nor at an offset, nor to be written. */
TEST_F(abi, file_cannot_be_sought_or_written)
{
	struct kretry_op op = { 0 };

	EXPECT_EQ(-1, lseek(self->fd, 0, SEEK_SET));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(-1, pread(self->fd, &op, sizeof(op), 0));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(-1, write(self->fd, &op, sizeof(op)));
	EXPECT_EQ(EINVAL, errno);
}

/* -------- the same answers for 32-bit and 64-bit callers -------- */

static void print_bytes(const char *what, int ret, const void *memory, size_t len)
{
	const unsigned char *bytes = memory;
	size_t i;

	printf("%s %d", what, ret);
	for (i = 0; i < len; i++)
		printf("%s%02x", i % 32 ? "" : " ", bytes[i]);
	putchar('\n');
}

/* The times of day cannot be the same in two runs, what is derived from them can. */
static void print_op(const char *what, int ret, struct kretry_op *op)
{
	if (!ret && op->verdict == KRETRY_RETRY)
		op->deadline_ns = op->deadline_ns >= op->start_ns + op->delay_ns;
	else if (!ret && op->verdict == KRETRY_GO)
		op->deadline_ns = op->deadline_ns >= op->start_ns;
	op->start_ns = op->start_ns != 0;
	op->policy = 0;
	print_bytes(what, ret, op, sizeof(*op));
}

/* Queued, taken back, queued again and read when it is due. */
static void transcribe_queue(int fd, int id)
{
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 7 };
	struct kretry_op op = kt_op(id, KRETRY_EVENT_THROTTLED);
	int ret;

	op.flags = KRETRY_OP_QUEUE;
	op.user_data = 7;
	print_op("queue", kt_step(fd, &op), &op);
	ret = kt_ioctl(fd, KRETRY_IOC_CANCEL, &cancel);
	print_op("cancel", ret, &cancel.op);
	printf("cancel %u\n", cancel.size);
	cancel.op.event = KRETRY_EVENT_THROTTLED;
	cancel.op.policy = id;
	cancel.op.start_ns = 0;
	print_op("queue", kt_step(fd, &cancel.op), &cancel.op);
	ret = (int)read(fd, &op, sizeof(op));
	print_op("read", ret == sizeof(op) ? 0 : ret, &op);
}

static void transcribe_policy(int fd, struct kretry_policy *policy)
{
	static const uint32_t attempts[] = { 0, 1, 2, 5, 63, 64, 65536, 0x80000000u, 0xfffffffeu };
	struct kretry_op op;
	int id = kt_create(fd, policy);
	unsigned int event;
	size_t i;

	printf("create %d\n", id > 0);
	for (event = 0; event < 10; event++) {
		for (i = 0; i < ARRAY_LEN(attempts); i++) {
			op = kt_op(id, event);
			op.attempt = attempts[i];
			op.policy = id;
			print_op("step", kt_step(fd, &op), &op);
		}
	}
	transcribe_queue(fd, id);
	print_bytes("get", kt_get(fd, id, policy), &policy->flags, sizeof(*policy) - 8);
	printf("close %d\n", kt_close(fd, id));
}

static int transcribe(void)
{
	struct kretry_policy policy;
	struct kretry_info info;
	int fd = kt_open();
	unsigned int i;

	if (fd < 0)
		return 1;
	print_bytes("info", kt_info(fd, &info), &info, sizeof(info));
	kt_policy(&policy);
	transcribe_policy(fd, &policy);
	kt_exponential(&policy, 3 * MSEC, 77 * SEC);
	policy.max_retries = 64;
	transcribe_policy(fd, &policy);
	kt_policy(&policy);
	policy.clockid = CLOCK_BOOTTIME;
	policy.backoff.strategy = KRETRY_LINEAR;
	policy.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT;
	transcribe_policy(fd, &policy);
	policy.backoff.strategy = KRETRY_TABLE;
	policy.backoff.base_ns = 0;
	policy.backoff.table_len = KRETRY_TABLE_MAX;
	for (i = 0; i < KRETRY_TABLE_MAX; i++)
		policy.backoff.table_ns[i] = (i + 1) * MSEC;
	transcribe_policy(fd, &policy);
	policy.backoff.cap_ns = KRETRY_NS_MAX + 1;
	print_bytes("create", kt_create(fd, &policy), &policy, sizeof(policy));
	return 0;
}

static void exec_transcript(const char *program, int to)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);

	if (len < 0)
		_exit(1);
	path[len] = '\0';
	strcpy(strrchr(path, '/') + 1, program);
	dup2(to, STDOUT_FILENO);
	execl(path, program, "--transcript", NULL);
	_exit(1);
}

/* What @program of this folder says with --transcript: its length, 0 if it failed. */
static size_t read_transcript(const char *program, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got;
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return 0;
	pid = fork();
	if (!pid)
		exec_transcript(program, ends[1]);
	close(ends[1]);
	while (len < size && (got = read(ends[0], text + len, size - len)) > 0)
		len += got;
	close(ends[0]);
	return kt_wait(pid) ? 0 : len;
}

TEST_F(abi, transcript_32_bit_and_64_bit_callers_same)
{
	static char wide[1 << 18], narrow[1 << 18];
	size_t len = read_transcript("abi", wide, sizeof(wide));

	/* 4 policies of 90 steps. */
	ASSERT_LT(4 * 90 * 128, len);
	ASSERT_EQ(len, read_transcript("abi32", narrow, sizeof(narrow)));
	EXPECT_EQ(0, memcmp(wide, narrow, len));
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--transcript"))
		return transcribe();
	return test_harness_run(argc, argv);
}
