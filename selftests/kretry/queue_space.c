// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* How much can wait: by file and by memory cgroup. Who is refused has lost nothing. */
#include "harness.h"
#include "queued.h"
#include "shared.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define ROOT	"/sys/fs/cgroup"
#define GROUP	ROOT "/kretry-queue"
#define KEY	7

FIXTURE(queue_space) {
	struct kt_party me;
	struct kretry_policy policy;	/* "space": an hour, a thousand tokens */
	uint32_t id;
	int *shared;
};

FIXTURE_SETUP(queue_space)
{
	self->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	kt_policy(&self->policy);
	kt_name(&self->policy, "space");
	kt_budget(&self->policy, 1000);
	self->policy.backoff.base_ns = 3600 * SEC;
	self->policy.backoff.cap_ns = 3600 * SEC;
}

FIXTURE_TEARDOWN(queue_space)
{
	int i;

	for (i = 0; i < 100 && rmdir(GROUP) && errno == EBUSY; i++)
		kt_sleep(10 * MSEC);
}

static int start(FIXTURE_DATA(queue_space) *self)
{
	CHECK_EQ(0, kt_here(&self->me));
	self->id = kt_party_create(&self->me, &self->policy);
	CHECK((int)self->id > 0);
	return 0;
}

static uint64_t balance(FIXTURE_DATA(queue_space) *self)
{
	return kt_stat_key(&self->me, self->id, KEY).balance_utok;
}

static struct kretry_op op_of(FIXTURE_DATA(queue_space) *self, uint64_t user_data)
{
	struct kretry_op op = kt_queue_op(self->id, user_data);

	op.key = KEY;
	return op;
}

/* -------- the limit of a file -------- */

TEST_F(queue_space, file_full_enobufs_nothing_changed)
{
	struct kretry_op op, before, ops[150], got;
	int i, queued = 0;

	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, kt_load("max_queued=100"));
	ASSERT_EQ(0, start(self));
	for (i = 0; i < 150; i++) {
		ops[i] = op_of(self, i);
		/* Who asks for no place is not refused one. */
		ops[i].flags = i % 3 == 2 && i > 100 ? 0 : KRETRY_OP_QUEUE;
	}
	ASSERT_EQ(150, kt_batch(self->me.fd, ops, 150));
	for (i = 0; i < 150; i++) {
		queued += ops[i].flags & KRETRY_OP_QUEUED && ops[i].verdict == KRETRY_RETRY;
		if (i < 100 || !(ops[i].flags & KRETRY_OP_QUEUE)) {
			EXPECT_EQ(KRETRY_RETRY, ops[i].verdict);
			continue;
		}
		before = op_of(self, i);
		before.verdict = KRETRY_ERROR;
		before.flags |= ENOBUFS << 8;
		EXPECT_EQ(0, memcmp(&before, &ops[i], sizeof(before)));
	}
	EXPECT_EQ(100, queued);
	op = op_of(self, 1000);
	before = op;
	EXPECT_EQ(-ENOBUFS, kt_step(self->me.fd, &op));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	EXPECT_EQ(883 * KRETRY_UTOK, balance(self));
	EXPECT_EQ(100, kt_waiting(self->me.fd, self->id));
	/* Room for one, once one is gone. */
	ASSERT_EQ(0, kt_cancel(self->me.fd, 50, &got));
	EXPECT_EQ(0, kt_step(self->me.fd, &op));
	EXPECT_EQ(-ENOBUFS, kt_queue(self->me.fd, self->id, 50));
	EXPECT_EQ(0, kt_shutdown(self->me.fd));
	self->id = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(100, kt_queue_many(self->me.fd, self->id, 0, 150));
	EXPECT_EQ(100, kt_waiting(self->me.fd, self->id));
	kt_leave(&self->me);
	EXPECT_EQ(0, kt_unload());
	EXPECT_EQ(0, kt_load(""));
}

/* What is due is not gone: it counts until it is read. */
TEST_F(queue_space, default_limit_holds_due_ones_count)
{
	static struct kretry_op got[1000];
	struct kretry_info info;

	self->policy.backoff.base_ns = 0;
	kt_budget(&self->policy, 1000000);
	ASSERT_EQ(0, start(self));
	ASSERT_EQ(0, kt_info(self->me.fd, &info));
	EXPECT_EQ(info.max_queued, kt_queue_many(self->me.fd, self->id, 0, info.max_queued + 99));
	EXPECT_EQ((int)info.max_queued, kt_waiting(self->me.fd, self->id));
	EXPECT_EQ(1000, kt_take(self->me.fd, got, 1000));
	EXPECT_EQ(1000, kt_queue_many(self->me.fd, self->id, info.max_queued, 2000));
	kt_leave(&self->me);
}

/* -------- memory -------- */

static int enter_as_user(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	CHECK_EQ(0, kt_write_file(GROUP "/cgroup.procs", pid));
	CHECK_EQ(0, kt_become(1000));
	return 0;
}

static int make_group(const char *limit)
{
	CHECK_EQ(0, kt_write_file(ROOT "/cgroup.subtree_control", "+memory"));
	rmdir(GROUP);
	CHECK_EQ(0, mkdir(GROUP, 0755));
	CHECK_EQ(0, kt_write_file(GROUP "/memory.max", limit));
	return 0;
}

/* Parent and child take turns, by memory alone: nothing else may ask for more at the limit. */
static void await(FIXTURE_DATA(queue_space) *self, int turn)
{
	int i;

	for (i = 0; i < 100000 && __atomic_load_n(&self->shared[2], __ATOMIC_SEQ_CST) < turn; i++)
		kt_sleep(MSEC);
}

static void pass(FIXTURE_DATA(queue_space) *self, int turn)
{
	__atomic_store_n(&self->shared[2], turn, __ATOMIC_SEQ_CST);
}

/* Others in a batch, and reports, go on. */
static int step_at_the_limit(FIXTURE_DATA(queue_space) *self, struct kretry_op *ops)
{
	int i;

	for (i = 0; i < 64; i++) {
		ops[i] = op_of(self, 1000000 + i);
		ops[i].flags = i % 2 ? KRETRY_OP_QUEUE : 0;
		ops[i].event = i % 4 == 3 ? KRETRY_EVENT_OK : KRETRY_EVENT_TRANSIENT;
	}
	CHECK_EQ(64, kt_batch(self->me.fd, ops, 64));
	for (i = 0; i < 64; i += 2)
		CHECK_EQ(KRETRY_RETRY, ops[i].verdict);
	for (i = 3; i < 64; i += 4)
		CHECK_EQ(KRETRY_DONE, ops[i].verdict);
	ops[0] = op_of(self, 5);
	CHECK_EQ(KRETRY_DONE, kt_report(&self->me, &ops[0], KRETRY_EVENT_OK));
	return 0;
}

/* Everything that it needs is in memory beforehand, so that only the module asks for more. */
static int exhaust(FIXTURE_DATA(queue_space) *self)
{
	static struct kretry_op ops[64], got, before;
	int i, most;

	CHECK_EQ(0, start(self));
	CHECK_EQ(0, mlockall(MCL_CURRENT));
	CHECK_EQ(0, enter_as_user());
	for (i = 0; !self->shared[1]; i++) {
		ops[0] = op_of(self, i);
		before = ops[0];
		self->shared[1] = kt_step(self->me.fd, &ops[0]);
	}
	most = i - 1;
	self->shared[0] = most;
	CHECK_EQ(0, memcmp(&before, &ops[0], sizeof(before)));
	pass(self, 1);
	await(self, 2);
	CHECK_EQ(0, step_at_the_limit(self, ops));
	/* Given back, there is room again: for about as many. */
	for (i = 0; i < most; i++)
		CHECK_EQ(0, kt_cancel(self->me.fd, i, &got));
	for (i = 0; i < most * 3 / 4; i++) {
		ops[0] = op_of(self, i);
		CHECK_EQ(0, kt_step(self->me.fd, &ops[0]));
	}
	return 0;
}

TEST_F(queue_space, memory_cgroup_at_its_limit_enomem_and_the_rest_goes_on)
{
	uint64_t most;
	pid_t pid;

	ASSERT_EQ(0, make_group("4M"));
	kt_budget(&self->policy, 100000);
	ASSERT_EQ(0, start(self));
	pid = fork();
	if (!pid)
		_exit(exhaust(self));
	await(self, 1);
	EXPECT_EQ(-ENOMEM, self->shared[1]);
	EXPECT_LT(2000, self->shared[0]);
	EXPECT_GT(40000, self->shared[0]);
	most = (uint64_t)self->shared[0];
	EXPECT_EQ(most, kt_stat(&self->me, self->id).queued);
	EXPECT_EQ((100000 - most) * KRETRY_UTOK, balance(self));
	pass(self, 2);
	EXPECT_EQ(0, kt_wait(pid));
	EXPECT_EQ(0, kt_stat(&self->me, self->id).queued);
	EXPECT_EQ(kt_stat(&self->me, self->id).charged_utok -
		  kt_stat(&self->me, self->id).refunded_utok, 100000 * KRETRY_UTOK - balance(self));
	kt_leave(&self->me);
}

/* The kernel flushes its counters every two seconds or when asked. */
static int charge_and_drop(void *arg)
{
	FIXTURE_DATA(queue_space) *self = arg;
	int64_t before, after;

	CHECK_EQ(0, enter_as_user());
	CHECK_EQ(0, start(self));
	before = kt_slab_bytes(GROUP);
	CHECK_EQ(50000, kt_queue_many(self->me.fd, self->id, 0, 50000));
	kt_sleep(3 * SEC);
	after = kt_slab_bytes(GROUP);
	self->shared[0] = (int)((after - before) / 50000);
	CHECK_EQ(0, kt_shutdown(self->me.fd));
	kt_sleep(3 * SEC);
	self->shared[1] = (int)((kt_slab_bytes(GROUP) - before) / 50000);
	return 0;
}

TEST_F(queue_space, memory_charged_to_the_caller_until_dropped)
{
	ASSERT_EQ(0, make_group("max"));
	kt_budget(&self->policy, 100000);
	EXPECT_EQ(0, kt_child(charge_and_drop, self));
	TH_LOG("%d bytes an op, %d after", self->shared[0], self->shared[1]);
	EXPECT_LE(96, self->shared[0]);
	EXPECT_GE(128, self->shared[0]);
	EXPECT_GE(16, self->shared[1]);
}

TEST_HARNESS_MAIN
