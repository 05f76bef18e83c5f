// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* INFO, dispatch of commands, what this build does not have, and what both word sizes see. */
#include "harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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

TEST_F(abi, info_any_caller_version_features_and_limits)
{
	struct kretry_info info;

	ASSERT_EQ(0, kt_info(self->fd, &info));
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(KRETRY_ABI_VERSION, info.abi_version);
	EXPECT_EQ(KRETRY_FEATURE_NAMED | KRETRY_FEATURE_BUDGET | KRETRY_FEATURE_BREAKER |
		  KRETRY_FEATURE_PACING | KRETRY_FEATURE_COOLING | KRETRY_FEATURE_STAT,
		  info.features);
	EXPECT_LE(1024, info.max_batch);
	EXPECT_EQ(4096, info.max_policies);
	EXPECT_EQ(1024, info.max_keys);
	EXPECT_EQ(0, info.max_queued);
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

TEST_F(abi, command_not_in_this_build_eopnotsupp)
{
	static const unsigned long commands[] = { KRETRY_IOC_WAIT, KRETRY_IOC_CANCEL };
	unsigned char memory[4096] = { 0 };
	uint32_t size = 64;
	size_t i;

	memcpy(memory, &size, sizeof(size));
	for (i = 0; i < ARRAY_LEN(commands); i++) {
		EXPECT_EQ(-EOPNOTSUPP, kt_ioctl(self->fd, commands[i], memory));
		EXPECT_EQ(-EOPNOTSUPP, kt_ioctl(self->fd, commands[i], NULL));
	}
	EXPECT_EQ(0, memcmp(memory, &size, sizeof(size)));
	EXPECT_TRUE(kt_all(memory + 4, sizeof(memory) - 4, 0));
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

TEST_F(abi, step_queue_flag_not_in_this_build_eopnotsupp)
{
	struct kretry_policy policy;
	struct kretry_op op, before;

	kt_policy(&policy);
	op = kt_op(kt_create(self->fd, &policy), KRETRY_EVENT_TRANSIENT);
	op.flags = KRETRY_OP_QUEUE;
	before = op;
	EXPECT_EQ(-EOPNOTSUPP, kt_step(self->fd, &op));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(abi, read_without_a_queue_eopnotsupp)
{
	unsigned char memory[sizeof(struct kretry_op)];

	memset(memory, POISON, sizeof(memory));
	EXPECT_EQ(-1, read(self->fd, memory, sizeof(memory)));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_TRUE(kt_all(memory, sizeof(memory), POISON));
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
