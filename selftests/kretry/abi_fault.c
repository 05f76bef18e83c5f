// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Pointers to memory that cannot be read or written: EFAULT, and nothing has happened. */
#include "harness.h"

#include <sys/mman.h>

FIXTURE(fault) {
	int fd;
	int policy;
};

FIXTURE_SETUP(fault)
{
	struct kretry_policy policy;

	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&policy);
	self->policy = kt_create(self->fd, &policy);
	ASSERT_LT(0, self->policy);
}

FIXTURE_TEARDOWN(fault)
{
	EXPECT_EQ(1, kt_policies(self->fd));
	EXPECT_EQ(100 * MSEC, kt_delay(self->fd, self->policy, 0));
	close(self->fd);
}

static const unsigned long commands[] = {
	KRETRY_IOC_INFO, KRETRY_IOC_POLICY_CREATE, KRETRY_IOC_POLICY_GET, KRETRY_IOC_POLICY_CLOSE,
	KRETRY_IOC_STEP, KRETRY_IOC_STEP_BATCH, KRETRY_IOC_POLICY_OPEN, KRETRY_IOC_POLICY_UNLINK,
	KRETRY_IOC_POLICY_LIST, KRETRY_IOC_STAT, KRETRY_IOC_FORCE, KRETRY_IOC_CANCEL,
};

TEST_F(fault, argument_nowhere_efault)
{
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	ASSERT_NE(MAP_FAILED, hole);
	for (i = 0; i < ARRAY_LEN(commands); i++) {
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, commands[i], NULL));
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, commands[i], (void *)1));
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, commands[i], hole));
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, commands[i], (void *)~0UL));
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, commands[i], (void *)-4096L));
		/* Where a 64-bit kernel keeps its own memory. */
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, commands[i],
					    (void *)(uintptr_t)0xffff888000000000ULL));
	}
}

/* All arguments but the last byte, then all but the last half, lie before a hole. */
static void expect_straddling_fails(struct __test_metadata *_metadata, int fd,
				    unsigned long command, const void *arg, size_t size)
{
	size_t lens[] = { size - 1, size / 2, 4 }, i;
	unsigned char *memory;

	for (i = 0; i < ARRAY_LEN(lens); i++) {
		memory = kt_page_end(lens[i]);
		memcpy(memory, arg, lens[i]);
		EXPECT_EQ(-EFAULT, kt_ioctl(fd, command, memory))
			TH_LOG("command %#lx, %zu of %zu bytes", command, lens[i], size);
		EXPECT_EQ(0, memcmp(memory, arg, lens[i]));
	}
}

TEST_F(fault, argument_over_the_end_of_memory_efault)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
	struct kretry_policy_ref ref = { .size = sizeof(ref), .id = self->policy };
	struct kretry_batch batch = { .size = sizeof(batch), .op_size = sizeof(op) };
	struct kretry_info info = { .size = sizeof(info) };
	struct kretry_stat stat = { .size = sizeof(stat), .policy = self->policy };
	struct kretry_policy_list list = { .size = sizeof(list) };
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 7 };
	struct kretry_policy policy;

#define EXPECT_STRADDLING(command, arg) \
	expect_straddling_fails(_metadata, self->fd, command, &(arg), sizeof(arg))
	EXPECT_STRADDLING(KRETRY_IOC_INFO, info);
	kt_policy(&policy);
	EXPECT_STRADDLING(KRETRY_IOC_POLICY_CREATE, policy);
	policy.id = self->policy;
	EXPECT_STRADDLING(KRETRY_IOC_POLICY_GET, policy);
	EXPECT_STRADDLING(KRETRY_IOC_POLICY_CLOSE, ref);
	EXPECT_STRADDLING(KRETRY_IOC_STEP, op);
	EXPECT_STRADDLING(KRETRY_IOC_STEP_BATCH, batch);
	EXPECT_STRADDLING(KRETRY_IOC_STAT, stat);
	EXPECT_STRADDLING(KRETRY_IOC_POLICY_LIST, list);
	EXPECT_STRADDLING(KRETRY_IOC_CANCEL, cancel);
#undef EXPECT_STRADDLING
}

/* The tail that a longer struct claims must be there too. */
TEST_F(fault, argument_claiming_more_than_there_is_efault)
{
	static const struct {
		unsigned long command;
		uint32_t size;
	} rows[] = {
		{ KRETRY_IOC_INFO, sizeof(struct kretry_info) },
		{ KRETRY_IOC_POLICY_CREATE, sizeof(struct kretry_policy) },
		{ KRETRY_IOC_POLICY_GET, sizeof(struct kretry_policy) },
		{ KRETRY_IOC_POLICY_CLOSE, sizeof(struct kretry_policy_ref) },
		{ KRETRY_IOC_STEP_BATCH, sizeof(struct kretry_batch) },
		{ KRETRY_IOC_CANCEL, sizeof(struct kretry_cancel) },
	};
	unsigned char *memory;
	uint32_t size;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		memory = kt_page_end(rows[i].size);
		memset(memory, 0, rows[i].size);
		if (rows[i].command == KRETRY_IOC_POLICY_CREATE)
			kt_policy((struct kretry_policy *)memory);
		if (rows[i].command == KRETRY_IOC_POLICY_GET ||
		    rows[i].command == KRETRY_IOC_POLICY_CLOSE)
			memcpy(memory + 4, &self->policy, 4);
		size = rows[i].size + 8;
		memcpy(memory, &size, sizeof(size));
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, rows[i].command, memory))
			TH_LOG("command %#lx", rows[i].command);
	}
}

TEST_F(fault, output_into_read_only_memory_efault)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
	struct kretry_info info = { .size = sizeof(info) };
	struct kretry_stat stat = { .size = sizeof(stat), .policy = self->policy };
	struct kretry_policy policy;

#define EXPECT_READ_ONLY(command, arg) \
	EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, command, kt_read_only(&(arg), sizeof(arg))))
	EXPECT_READ_ONLY(KRETRY_IOC_INFO, info);
	kt_policy(&policy);
	EXPECT_READ_ONLY(KRETRY_IOC_POLICY_CREATE, policy);
	policy.id = self->policy;
	EXPECT_READ_ONLY(KRETRY_IOC_POLICY_GET, policy);
	EXPECT_READ_ONLY(KRETRY_IOC_STEP, op);
	EXPECT_READ_ONLY(KRETRY_IOC_STAT, stat);
#undef EXPECT_READ_ONLY
}

/* Each page of two is read-only in turn, and so each part of a struct that lies over their edge. */
static void expect_cancel_fails(struct __test_metadata *_metadata, int fd, size_t before_edge,
				size_t size, unsigned int read_only)
{
	struct kretry_cancel cancel = { .size = (uint32_t)size, .user_data = 7 };
	unsigned char *memory = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, memory);
	memcpy(memory + 4096 - before_edge, &cancel, sizeof(cancel));
	ASSERT_EQ(0, mprotect(memory + read_only * 4096, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, kt_ioctl(fd, KRETRY_IOC_CANCEL, memory + 4096 - before_edge))
		TH_LOG("%zu of %zu bytes, then the rest, page %u read-only", before_edge, size,
		       read_only);
	munmap(memory, 2 * 4096);
}

/* An op that cannot be told is not taken: it is still there, with its grant. */
TEST_F(fault, cancel_that_cannot_answer_op_stays)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 7 };
	unsigned int read_only;

	op.flags = KRETRY_OP_QUEUE;
	op.user_data = 7;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	for (read_only = 0; read_only < 2; read_only++) {
		expect_cancel_fails(_metadata, self->fd, 4, sizeof(cancel), read_only);
		expect_cancel_fails(_metadata, self->fd, 16, sizeof(cancel), read_only);
		expect_cancel_fails(_metadata, self->fd, 48, sizeof(cancel), read_only);
		expect_cancel_fails(_metadata, self->fd, 80, 160, read_only);
	}
	EXPECT_EQ(0, kt_ioctl(self->fd, KRETRY_IOC_CANCEL, &cancel));
	EXPECT_EQ(7, cancel.op.user_data);
	EXPECT_EQ(0, cancel.op.attempt);
}

/* A name whose id cannot be told is not left behind either. */
TEST_F(fault, create_named_that_cannot_answer_leaves_no_name)
{
	struct kretry_policy_ref ref = { .size = sizeof(ref), .name = "fault" };
	struct kretry_policy policy;

	kt_policy(&policy);
	memcpy(policy.name, "fault", 5);
	policy.linger_ns = SEC;
	EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, KRETRY_IOC_POLICY_CREATE,
				    kt_read_only(&policy, sizeof(policy))));
	EXPECT_EQ(-ENOENT, kt_ioctl(self->fd, KRETRY_IOC_POLICY_OPEN, &ref));
}

/* A policy whose id cannot be told is not left behind, however often. */
TEST_F(fault, create_that_cannot_answer_leaves_no_quota_used)
{
	struct kretry_policy policy, *read_only;
	struct kretry_info info;
	unsigned int i;

	ASSERT_EQ(0, kt_info(self->fd, &info));
	kt_policy(&policy);
	read_only = kt_read_only(&policy, sizeof(policy));
	for (i = 0; i <= info.max_policies; i++)
		ASSERT_EQ(-EFAULT, kt_ioctl(self->fd, KRETRY_IOC_POLICY_CREATE, read_only));
	policy.id = kt_create(self->fd, &policy);
	ASSERT_LT(0, (int)policy.id);
	EXPECT_EQ(0, kt_close(self->fd, policy.id));
}

/* There is nothing to say about a policy that is gone. */
TEST_F(fault, close_struct_in_read_only_memory_works)
{
	struct kretry_policy_ref ref = { .size = sizeof(ref) };
	struct kretry_policy policy;

	kt_policy(&policy);
	ref.id = kt_create(self->fd, &policy);
	EXPECT_EQ(0, kt_ioctl(self->fd, KRETRY_IOC_POLICY_CLOSE, kt_read_only(&ref, sizeof(ref))));
	EXPECT_EQ(-ENOENT, kt_delay(self->fd, ref.id, 0));
}

TEST_F(fault, batch_struct_in_read_only_memory_works)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
	struct kretry_batch batch = {
		.size = sizeof(batch), .count = 1, .op_size = sizeof(op), .ops = (uintptr_t)&op,
	};

	EXPECT_EQ(1, kt_ioctl(self->fd, KRETRY_IOC_STEP_BATCH,
			      kt_read_only(&batch, sizeof(batch))));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
}

TEST_F(fault, batch_array_nowhere_efault)
{
	static const uint64_t pointers[] = {
		0, 1, 64, 0xffff888000000000ULL, 0x0000600000000000ULL, 0x8000000000000000ULL,
		0xfffffffffffffff8ULL, ~0ULL,
	};
	struct kretry_batch batch = { .size = sizeof(batch), .op_size = sizeof(struct kretry_op) };
	size_t i;

	for (i = 0; i < ARRAY_LEN(pointers); i++) {
		batch.ops = pointers[i];
		batch.count = 1;
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, KRETRY_IOC_STEP_BATCH, &batch));
		batch.count = 1000;
		EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, KRETRY_IOC_STEP_BATCH, &batch));
		batch.count = 0;
		EXPECT_EQ(0, kt_ioctl(self->fd, KRETRY_IOC_STEP_BATCH, &batch));
	}
}

/* 32-bit programs may leave garbage above their 32 bits only if the ABI says so: it does not. */
TEST_F(fault, batch_pointer_with_high_bits_efault)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT), before = op;
	struct kretry_batch batch = {
		.size = sizeof(batch), .count = 1, .op_size = sizeof(op),
		.ops = (uintptr_t)&op | 0x8000000000000000ULL,
	};

	EXPECT_EQ(-EFAULT, kt_ioctl(self->fd, KRETRY_IOC_STEP_BATCH, &batch));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_HARNESS_MAIN
