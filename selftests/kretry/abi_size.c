// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Structs that say their own size: shorter, exact and longer ones, and what is written of them. */
#include "harness.h"

#define PAGE		4096
#define GUARD		64

/* A command whose argument starts with its size, and a valid argument for it. */
struct command {
	const char *name;
	unsigned long number;
	size_t size;
	bool writes_size;
	void (*fill)(int fd, void *arg);
};

static void fill_nothing(int fd, void *arg)
{
	(void)fd;
	(void)arg;
}

static void fill_create(int fd, void *arg)
{
	(void)fd;
	kt_policy(arg);
}

static void fill_get(int fd, void *arg)
{
	struct kretry_policy policy;

	kt_policy(&policy);
	memset(arg, 0, sizeof(policy));
	((struct kretry_policy *)arg)->id = kt_create(fd, &policy);
}

static void fill_close(int fd, void *arg)
{
	struct kretry_policy policy;

	kt_policy(&policy);
	memset(arg, 0, sizeof(struct kretry_policy_ref));
	((struct kretry_policy_ref *)arg)->id = kt_create(fd, &policy);
}

static void fill_batch(int fd, void *arg)
{
	(void)fd;
	memset(arg, 0, sizeof(struct kretry_batch));
	((struct kretry_batch *)arg)->op_size = sizeof(struct kretry_op);
}

/* A policy with a name, which OPEN and UNLINK find. */
static void fill_name(int fd, void *arg)
{
	struct kretry_policy policy;

	kt_policy(&policy);
	memcpy(policy.name, "size", 4);
	kt_create(fd, &policy);
	memset(arg, 0, sizeof(struct kretry_policy_ref));
	memcpy(((struct kretry_policy_ref *)arg)->name, "size", 4);
}

static void fill_list(int fd, void *arg)
{
	(void)fd;
	memset(arg, 0, sizeof(struct kretry_policy_list));
	((struct kretry_policy_list *)arg)->entry_size = sizeof(struct kretry_policy_entry);
}

/* One whose breaker can be looked at and forced. */
static uint32_t create_breaker(int fd)
{
	struct kretry_policy policy;

	kt_policy(&policy);
	policy.breaker.probes = 1;
	policy.breaker.open_ns = SEC;
	policy.breaker.open_cap_ns = SEC;
	policy.breaker.probe_timeout_ns = SEC;
	return kt_create(fd, &policy);
}

static void fill_stat(int fd, void *arg)
{
	memset(arg, 0, sizeof(struct kretry_stat));
	((struct kretry_stat *)arg)->policy = create_breaker(fd);
}

static void fill_force(int fd, void *arg)
{
	memset(arg, 0, sizeof(struct kretry_force));
	((struct kretry_force *)arg)->policy = create_breaker(fd);
}

/* One op that waits, which CANCEL finds, unless it does already. */
static void fill_cancel(int fd, void *arg)
{
	struct kretry_policy policy;
	struct kretry_op op;

	kt_policy(&policy);
	policy.backoff.base_ns = 10 * SEC;
	op = kt_op(kt_create(fd, &policy), KRETRY_EVENT_TRANSIENT);
	op.flags = KRETRY_OP_QUEUE;
	op.user_data = 7;
	kt_step(fd, &op);
	memset(arg, 0, sizeof(struct kretry_cancel));
	((struct kretry_cancel *)arg)->user_data = 7;
}

static const struct command commands[] = {
	{ "info", KRETRY_IOC_INFO, 40, true, fill_nothing },
	{ "create", KRETRY_IOC_POLICY_CREATE, 944, true, fill_create },
	{ "get", KRETRY_IOC_POLICY_GET, 944, true, fill_get },
	{ "close", KRETRY_IOC_POLICY_CLOSE, 80, false, fill_close },
	{ "batch", KRETRY_IOC_STEP_BATCH, 24, false, fill_batch },
	{ "open", KRETRY_IOC_POLICY_OPEN, 80, true, fill_name },
	{ "unlink", KRETRY_IOC_POLICY_UNLINK, 80, false, fill_name },
	{ "list", KRETRY_IOC_POLICY_LIST, 24, true, fill_list },
	{ "stat", KRETRY_IOC_STAT, 368, true, fill_stat },
	{ "cancel", KRETRY_IOC_CANCEL, 80, true, fill_cancel },
	{ "force", KRETRY_IOC_FORCE, 24, false, fill_force },
};

FIXTURE(sizes) {
	int fd;
	unsigned char arg[PAGE + GUARD], before[PAGE + GUARD];
};

FIXTURE_SETUP(sizes)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(sizes)
{
	close(self->fd);
}

/* A valid argument that claims @size bytes, zero up to there and poison beyond. */
static void prepare(FIXTURE_DATA(sizes) *self, const struct command *command, uint32_t size)
{
	memset(self->arg, POISON, sizeof(self->arg));
	if (size > command->size && size <= sizeof(self->arg))
		memset(self->arg + command->size, 0, size - command->size);
	command->fill(self->fd, self->arg);
	memcpy(self->arg, &size, sizeof(size));
	memcpy(self->before, self->arg, sizeof(self->arg));
}

static bool unchanged(FIXTURE_DATA(sizes) *self)
{
	return !memcmp(self->before, self->arg, sizeof(self->arg));
}

TEST_F(sizes, size_below_first_version_einval_nothing_written)
{
	const struct command *command;
	uint32_t size;
	int policies;

	for (command = commands; command < commands + ARRAY_LEN(commands); command++) {
		for (size = 0; size < command->size; size++) {
			prepare(self, command, size);
			policies = kt_policies(self->fd);
			EXPECT_EQ(-EINVAL, kt_ioctl(self->fd, command->number, self->arg))
				TH_LOG("%s of %u bytes", command->name, size);
			EXPECT_TRUE(unchanged(self));
			EXPECT_EQ(policies, kt_policies(self->fd));
			kt_shutdown(self->fd);
		}
	}
}

static void expect_works(struct __test_metadata *_metadata, FIXTURE_DATA(sizes) *self,
			 const struct command *command, uint32_t size)
{
	uint32_t written;

	prepare(self, command, size);
	EXPECT_EQ(0, kt_ioctl(self->fd, command->number, self->arg))
		TH_LOG("%s of %u bytes", command->name, size);
	memcpy(&written, self->arg, sizeof(written));
	EXPECT_EQ(command->writes_size ? command->size : size, written)
		TH_LOG("%s of %u bytes", command->name, size);
	EXPECT_TRUE(kt_all(self->arg + command->size, size - command->size, 0));
	EXPECT_TRUE(kt_all(self->arg + size, sizeof(self->arg) - size, POISON));
}

TEST_F(sizes, size_exact_works_nothing_written_beyond)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++)
		expect_works(_metadata, self, &commands[i], commands[i].size);
}

TEST_F(sizes, size_longer_with_zero_tail_works)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++) {
		expect_works(_metadata, self, &commands[i], commands[i].size + 1);
		expect_works(_metadata, self, &commands[i], commands[i].size + 8);
		expect_works(_metadata, self, &commands[i], PAGE - 1);
		expect_works(_metadata, self, &commands[i], PAGE);
	}
}

static void expect_e2big(struct __test_metadata *_metadata, FIXTURE_DATA(sizes) *self,
			 const struct command *command)
{
	int policies = kt_policies(self->fd);

	EXPECT_EQ(-E2BIG, kt_ioctl(self->fd, command->number, self->arg))
		TH_LOG("%s", command->name);
	EXPECT_TRUE(unchanged(self));
	EXPECT_EQ(policies, kt_policies(self->fd));
	kt_shutdown(self->fd);
}

TEST_F(sizes, size_longer_with_any_byte_of_tail_set_e2big)
{
	const struct command *command;
	size_t byte;

	for (command = commands; command < commands + ARRAY_LEN(commands); command++) {
		for (byte = command->size; byte < command->size + 8; byte++) {
			prepare(self, command, command->size + 8);
			self->arg[byte] = 1;
			self->before[byte] = 1;
			expect_e2big(_metadata, self, command);
		}
		prepare(self, command, PAGE);
		self->arg[PAGE - 1] = 0x80;
		self->before[PAGE - 1] = 0x80;
		expect_e2big(_metadata, self, command);
	}
}

TEST_F(sizes, size_above_a_page_e2big)
{
	static const uint32_t sizes[] = { PAGE + 1, PAGE + 8, 65536, 0x7fffffff, 0xffffffff };
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(commands); i++) {
		for (j = 0; j < ARRAY_LEN(sizes); j++) {
			prepare(self, &commands[i], sizes[j]);
			expect_e2big(_metadata, self, &commands[i]);
		}
	}
}

/* The size is judged before the rest is read. */
TEST_F(sizes, size_wrong_at_the_end_of_memory_no_efault)
{
	static const struct {
		uint32_t size;
		int want;
	} rows[] = { { 0, -EINVAL }, { 4, -EINVAL }, { PAGE + 1, -E2BIG }, { 0xffffffff, -E2BIG } };
	uint32_t *size = kt_page_end(sizeof(*size));
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(commands); i++) {
		for (j = 0; j < ARRAY_LEN(rows); j++) {
			*size = rows[j].size;
			EXPECT_EQ(rows[j].want, kt_ioctl(self->fd, commands[i].number, size));
			EXPECT_EQ(rows[j].size, *size);
		}
	}
}

TEST_F(sizes, size_exact_at_the_end_of_memory_works)
{
	unsigned char *arg;
	uint32_t size;
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++) {
		size = commands[i].size;
		arg = kt_page_end(size);
		commands[i].fill(self->fd, arg);
		memcpy(arg, &size, sizeof(size));
		EXPECT_EQ(0, kt_ioctl(self->fd, commands[i].number, arg))
			TH_LOG("%s", commands[i].name);
	}
}

/* GET writes a whole policy over whatever was there. */
TEST_F(sizes, get_over_poison_same_as_over_zeroes)
{
	struct kretry_policy policy, clean, poisoned;
	int id;

	kt_exponential(&policy, MSEC, SEC);
	id = kt_create(self->fd, &policy);
	ASSERT_LT(0, id);
	memset(&clean, 0, sizeof(clean));
	clean.size = sizeof(clean);
	clean.id = id;
	ASSERT_EQ(0, kt_ioctl(self->fd, KRETRY_IOC_POLICY_GET, &clean));
	ASSERT_EQ(0, kt_get(self->fd, id, &poisoned));
	EXPECT_EQ(0, memcmp(&clean, &poisoned, sizeof(clean)));
}

/* STEP has no size: always 64 bytes, of which none beyond is touched. */
TEST_F(sizes, step_at_the_end_of_memory_works)
{
	struct kretry_op *op = kt_page_end(sizeof(*op));
	struct kretry_policy policy;

	kt_policy(&policy);
	*op = kt_op(kt_create(self->fd, &policy), KRETRY_EVENT_TRANSIENT);
	EXPECT_EQ(0, kt_step(self->fd, op));
	EXPECT_EQ(KRETRY_RETRY, op->verdict);
}

TEST_HARNESS_MAIN
