// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The io_uring commands of a 32-bit program, and of a 64-bit one, without a library in between. */
#include "harness.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define ENTRIES	8

/* A ring as the kernel has it. */
struct raw {
	int fd;
	struct io_uring_params params;
	size_t size;
	char *rings;
	struct io_uring_sqe *sqes;
};

FIXTURE(uring_abi) {
	int fd;
	int policy;	/* 100 ms */
	bool waits;
	struct raw ring;
};

static int raw_open(struct raw *raw)
{
	struct io_uring_params *p = &raw->params;

	memset(raw, 0, sizeof(*raw));
	raw->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, p);
	CHECK(raw->fd >= 0);
	raw->size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	raw->rings = mmap(NULL, raw->size, PROT_READ | PROT_WRITE, MAP_SHARED, raw->fd,
			  IORING_OFF_SQ_RING);
	raw->sqes = mmap(NULL, ENTRIES * sizeof(*raw->sqes), PROT_READ | PROT_WRITE, MAP_SHARED,
			 raw->fd, IORING_OFF_SQES);
	CHECK(raw->rings != MAP_FAILED && raw->sqes != MAP_FAILED);
	return 0;
}

/* What is mapped of it keeps it too. */
static void raw_close(struct raw *raw)
{
	munmap(raw->sqes, ENTRIES * sizeof(*raw->sqes));
	munmap(raw->rings, raw->size);
	close(raw->fd);
}

FIXTURE_SETUP(uring_abi)
{
	struct kretry_policy policy;
	struct kretry_info info;

	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, kt_info(self->fd, &info));
	self->waits = info.features & KRETRY_FEATURE_URING_WAIT;
	kt_policy(&policy);
	self->policy = kt_create(self->fd, &policy);
	ASSERT_LT(0, self->policy);
	ASSERT_EQ(0, raw_open(&self->ring));
}

FIXTURE_TEARDOWN(uring_abi)
{
	raw_close(&self->ring);
	close(self->fd);
}

static void submit(FIXTURE_DATA(uring_abi) *self, unsigned int command, const void *argument,
		   unsigned int size, uint64_t user_data)
{
	struct raw *raw = &self->ring;
	struct kretry_uring payload = {
		.ops = (uintptr_t)argument, .count = 1, .op_size = (__u16)size,
	};
	uint32_t *tail = (uint32_t *)(raw->rings + raw->params.sq_off.tail);
	uint32_t *array = (uint32_t *)(raw->rings + raw->params.sq_off.array);
	uint32_t at = *tail % ENTRIES;
	struct io_uring_sqe *sqe = &raw->sqes[at];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = self->fd;
	sqe->off = command;
	sqe->user_data = user_data;
	memcpy((char *)sqe + 48, &payload, sizeof(payload));
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, raw->fd, 1, 0, 0, NULL, 0) != 1)
		abort();
}

static int complete(FIXTURE_DATA(uring_abi) *self, uint64_t *user_data)
{
	struct raw *raw = &self->ring;
	uint32_t *head = (uint32_t *)(raw->rings + raw->params.cq_off.head);
	uint32_t *tail = (uint32_t *)(raw->rings + raw->params.cq_off.tail);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(raw->rings + raw->params.cq_off.cqes);
	struct io_uring_cqe cqe;

	while (*head == __atomic_load_n(tail, __ATOMIC_ACQUIRE))
		if (syscall(SYS_io_uring_enter, raw->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			return -errno;
	cqe = cqes[*head % raw->params.cq_entries];
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	*user_data = cqe.user_data;
	return cqe.res;
}

static int run(FIXTURE_DATA(uring_abi) *self, unsigned int command, const void *argument,
	       unsigned int size)
{
	uint64_t user_data;

	submit(self, command, argument, size, 1);
	return complete(self, &user_data);
}

static struct kretry_op failed(int policy, uint64_t user_data)
{
	struct kretry_op op = kt_op(policy, KRETRY_EVENT_TRANSIENT);

	op.user_data = user_data;
	return op;
}

TEST_F(uring_abi, step_answered)
{
	struct kretry_op op = failed(self->policy, 7);

	EXPECT_EQ(1, run(self, KRETRY_IOC_STEP, &op, sizeof(op)));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(op.start_ns + 100 * MSEC, op.deadline_ns);
}

TEST_F(uring_abi, step_at_the_end_of_memory_efault)
{
	EXPECT_EQ(-EFAULT, run(self, KRETRY_IOC_STEP, NULL, sizeof(struct kretry_op)));
	EXPECT_EQ(-EFAULT, run(self, KRETRY_IOC_STEP, (void *)-64, sizeof(struct kretry_op)));
	EXPECT_EQ(-EINVAL, run(self, KRETRY_IOC_STEP, NULL, sizeof(struct kretry_op) - 4));
}

TEST_F(uring_abi, queued_op_cancelled)
{
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 7 };
	struct kretry_op op = failed(self->policy, 7);

	op.flags = KRETRY_OP_QUEUE;
	EXPECT_EQ(1, run(self, KRETRY_IOC_STEP, &op, sizeof(op)));
	EXPECT_EQ(0, run(self, KRETRY_IOC_CANCEL, &cancel, sizeof(cancel)));
	EXPECT_EQ(7, cancel.op.user_data);
	EXPECT_EQ(op.start_ns, cancel.op.start_ns);
	EXPECT_EQ(-ENOENT, run(self, KRETRY_IOC_CANCEL, &cancel, sizeof(cancel)));
}

TEST_F(uring_abi, wait_completes_at_the_deadline)
{
	struct kretry_op op = failed(self->policy, 7);

	if (!self->waits)
		SKIP(return, "no WAIT on this kernel");
	EXPECT_EQ(0, run(self, KRETRY_IOC_WAIT, &op, sizeof(op)));
	EXPECT_EQ(op.start_ns + 100 * MSEC, op.deadline_ns);
	EXPECT_LE(op.deadline_ns, kt_now(CLOCK_MONOTONIC));
	EXPECT_GT(op.deadline_ns + MSEC, kt_now(CLOCK_MONOTONIC));
}

TEST_F(uring_abi, wait_cancelled)
{
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = 7 };
	struct kretry_op op = failed(self->policy, 7);
	uint64_t user_data;
	int i, res;

	if (!self->waits)
		SKIP(return, "no WAIT on this kernel");
	submit(self, KRETRY_IOC_WAIT, &op, sizeof(op), 1);
	submit(self, KRETRY_IOC_CANCEL, &cancel, sizeof(cancel), 2);
	for (i = 0; i < 2; i++) {
		res = complete(self, &user_data);
		EXPECT_EQ(user_data == 1 ? -ECANCELED : 0, res);
	}
	EXPECT_EQ(0, cancel.op.attempt);
}

/* What is pending when the ring goes costs nothing. */
TEST_F(uring_abi, wait_pending_at_the_end_gone)
{
	struct kretry_op op = failed(self->policy, 7);

	if (!self->waits)
		SKIP(return, "no WAIT on this kernel");
	submit(self, KRETRY_IOC_WAIT, &op, sizeof(op), 1);
	EXPECT_EQ(-EBUSY, kt_close(self->fd, self->policy));
	raw_close(&self->ring);
	kt_sleep(10 * MSEC);
	EXPECT_EQ(0, kt_close(self->fd, self->policy));
	ASSERT_EQ(0, raw_open(&self->ring));
}

TEST_HARNESS_MAIN
