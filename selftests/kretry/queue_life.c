// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Queued ops live as long as their policy on their file; what ends them gives their charge back. */
#include "harness.h"
#include "queued.h"
#include "shared.h"

#include <signal.h>
#include <sys/mman.h>

#define MANY	100000U
#define FEW	10000U

FIXTURE(queue_life) {
	struct kt_party me;		/* holds the policy too, and looks */
	struct kretry_policy policy;	/* "life": an hour, a million tokens */
	uint32_t id;
	int fd;				/* here the ops are queued */
	uint32_t queuer;		/* and under this id */
	int *shared;
};

FIXTURE_SETUP(queue_life)
{
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_name(&self->policy, "life");
	kt_budget(&self->policy, 1000000);
	self->policy.backoff.base_ns = 3600 * SEC;
	self->policy.backoff.cap_ns = 3600 * SEC;
	self->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	self->id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, (int)self->id);
	self->fd = kt_open();
	self->queuer = kt_create(self->fd, &self->policy);
	ASSERT_LT(0, (int)self->queuer);
	kt_nonblock(self->fd, true);
}

static struct kretry_stat all(FIXTURE_DATA(queue_life) *self)
{
	return kt_stat(&self->me, self->id);
}

static uint64_t missing(FIXTURE_DATA(queue_life) *self)
{
	return 1000000 * KRETRY_UTOK - kt_stat_key(&self->me, self->id, 0).balance_utok;
}

FIXTURE_TEARDOWN(queue_life)
{
	EXPECT_EQ(all(self).charged_utok - all(self).refunded_utok, missing(self));
	kt_leave(&self->me);
	close(self->fd);
	/* Nothing that waited holds it. */
	EXPECT_EQ(0, kt_unload());
	EXPECT_EQ(0, kt_ensure_loaded());
}

/* In which all ops of a file are gone. Where the clock counts instructions that can be said. */
static uint64_t soon(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) == 1 ? SEC : 30 * SEC;
}

static unsigned int queue(FIXTURE_DATA(queue_life) *self, unsigned int count)
{
	return kt_queue_many(self->fd, self->queuer, 0, count);
}

static void expect_all_gone(struct __test_metadata *_metadata, FIXTURE_DATA(queue_life) *self,
			    unsigned int count)
{
	EXPECT_EQ(0, all(self).queued);
	EXPECT_EQ(count * KRETRY_UTOK, all(self).charged_utok);
	EXPECT_EQ(count * KRETRY_UTOK, all(self).refunded_utok);
	EXPECT_EQ(0, missing(self));
}

TEST_F(queue_life, close_policy_with_ops_ebusy_until_they_are_gone)
{
	struct kretry_op op;

	ASSERT_EQ(2, queue(self, 2));
	EXPECT_EQ(-EBUSY, kt_close(self->fd, self->queuer));
	EXPECT_EQ(2, all(self).queued);
	ASSERT_EQ(0, kt_cancel(self->fd, 0, &op));
	EXPECT_EQ(-EBUSY, kt_close(self->fd, self->queuer));
	/* It can be used as before. */
	EXPECT_EQ(0, kt_queue(self->fd, self->queuer, 7));
	ASSERT_EQ(0, kt_cancel(self->fd, 7, &op));
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &op));
	EXPECT_EQ(0, kt_close(self->fd, self->queuer));
	EXPECT_EQ(-ENOENT, kt_queue(self->fd, self->queuer, 7));
	expect_all_gone(_metadata, self, 3);
}

/* Due is not delivered, and so the policy is not idle. */
TEST_F(queue_life, close_policy_with_due_ops_ebusy_until_read)
{
	struct kretry_policy policy;
	struct kretry_op op;
	uint32_t id;

	kt_policy(&policy);
	policy.backoff.base_ns = 0;
	id = kt_create(self->fd, &policy);
	ASSERT_EQ(0, kt_queue(self->fd, id, 1));
	ASSERT_EQ(0, kt_queue(self->fd, self->queuer, 2));
	EXPECT_EQ(-EBUSY, kt_close(self->fd, id));
	ASSERT_EQ(0, kt_take_one(self->fd, &op));
	EXPECT_EQ(0, kt_close(self->fd, id));
	/* Ops of other policies are no reason. */
	EXPECT_EQ(-EBUSY, kt_close(self->fd, self->queuer));
	EXPECT_EQ(0, kt_cancel(self->fd, 2, &op));
}

/* Of two ids of one policy on one file each has its own ops. */
TEST_F(queue_life, close_other_id_of_the_same_policy_works)
{
	uint32_t second = kt_create(self->fd, &self->policy);
	struct kretry_op op;

	ASSERT_NE(second, self->queuer);
	ASSERT_EQ(0, kt_queue(self->fd, self->queuer, 1));
	ASSERT_EQ(0, kt_queue(self->fd, second, 2));
	EXPECT_EQ(-EBUSY, kt_close(self->fd, second));
	ASSERT_EQ(0, kt_cancel(self->fd, 2, &op));
	EXPECT_EQ(second, op.policy);
	EXPECT_EQ(0, kt_close(self->fd, second));
	ASSERT_EQ(0, kt_cancel(self->fd, 1, &op));
	expect_all_gone(_metadata, self, 2);
}

TEST_F(queue_life, shutdown_drops_all_and_gives_every_charge_back)
{
	struct kretry_op op;
	uint64_t start;

	ASSERT_EQ(MANY, queue(self, MANY));
	EXPECT_EQ(MANY, all(self).queued);
	EXPECT_EQ(MANY * KRETRY_UTOK, missing(self));
	start = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(0, kt_shutdown(self->fd));
	EXPECT_GT(soon(), kt_now(CLOCK_MONOTONIC) - start);
	expect_all_gone(_metadata, self, MANY);
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 0, &op));
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &op));
	/* The file is as good as new. */
	self->queuer = kt_create(self->fd, &self->policy);
	EXPECT_EQ(0, kt_queue(self->fd, self->queuer, 0));
	EXPECT_EQ(0, kt_cancel(self->fd, 0, &op));
}

TEST_F(queue_life, shutdown_leaves_ops_of_other_files)
{
	ASSERT_EQ(3, queue(self, 3));
	ASSERT_EQ(0, kt_queue(self->me.fd, self->id, 0));
	EXPECT_EQ(0, kt_shutdown(self->fd));
	EXPECT_EQ(1, all(self).queued);
	EXPECT_EQ(KRETRY_UTOK, missing(self));
}

TEST_F(queue_life, last_close_drops_all_not_the_first_of_two)
{
	int copy = dup(self->fd);

	ASSERT_EQ(FEW, queue(self, FEW));
	close(copy);
	EXPECT_EQ(FEW, all(self).queued);
	EXPECT_EQ(FEW * KRETRY_UTOK, missing(self));
	close(self->fd);
	expect_all_gone(_metadata, self, FEW);
	self->fd = kt_open();
}

/* -------- processes -------- */

static int open_queue_and(FIXTURE_DATA(queue_life) *self, unsigned int count)
{
	close(self->fd);
	self->fd = kt_open();
	self->queuer = kt_create(self->fd, &self->policy);
	CHECK_EQ(count, queue(self, count));
	__atomic_store_n(&self->shared[0], 1, __ATOMIC_SEQ_CST);
	return 0;
}

static pid_t start(FIXTURE_DATA(queue_life) *self, unsigned int count, bool stays)
{
	pid_t pid;

	self->shared[0] = 0;
	pid = fork();
	if (!pid) {
		if (open_queue_and(self, count))
			_exit(1);
		while (stays)
			pause();
		_exit(0);
	}
	while (!__atomic_load_n(&self->shared[0], __ATOMIC_SEQ_CST))
		kt_sleep(MSEC);
	return pid;
}

/* Killed with many: gone at once, with all they had. */
static void expect_dies(struct __test_metadata *_metadata, FIXTURE_DATA(queue_life) *self,
			unsigned int count)
{
	pid_t pid = start(self, count, true);
	uint64_t killed;

	EXPECT_EQ(count, all(self).queued);
	killed = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(128 + SIGKILL, kt_wait(pid));
	EXPECT_GT(soon(), kt_now(CLOCK_MONOTONIC) - killed);
	expect_all_gone(_metadata, self, count);
}

TEST_F(queue_life, process_killed_with_ten_thousand_all_gone)
{
	expect_dies(_metadata, self, FEW);
}

TEST_F(queue_life, process_killed_with_a_hundred_thousand_all_gone)
{
	expect_dies(_metadata, self, MANY);
}

TEST_F(queue_life, process_exits_all_gone)
{
	EXPECT_EQ(0, kt_wait(start(self, FEW, false)));
	expect_all_gone(_metadata, self, FEW);
}

/* Killed while it queues: what it was not told of is not left behind either. */
TEST_F(queue_life, process_killed_while_it_queues_all_gone)
{
	uint64_t charged;
	pid_t pid;
	int i;

	for (i = 0; i < 20; i++) {
		pid = start(self, 1, false);
		EXPECT_EQ(0, kt_wait(pid));
		pid = fork();
		if (!pid)
			_exit(open_queue_and(self, MANY));
		kt_sleep(3 * MSEC + i * 1300 * USEC);
		kill(pid, SIGKILL);
		EXPECT_EQ(128 + SIGKILL, kt_wait(pid));
		charged = all(self).charged_utok;
		EXPECT_EQ(charged, all(self).refunded_utok);
		EXPECT_EQ(0, all(self).queued);
		EXPECT_EQ(0, missing(self));
	}
	EXPECT_LT(1000 * KRETRY_UTOK, charged);
}

static int read_in_child(void *arg)
{
	FIXTURE_DATA(queue_life) *self = arg;
	struct kretry_op op;

	CHECK_EQ(0, kt_cancel(self->fd, 3, &op));
	CHECK_EQ(3, op.user_data);
	CHECK_EQ(0, kt_queue(self->fd, self->queuer, 1000000));
	return 0;
}

/* A fork shares the file: what the child queued stays when it is gone. */
TEST_F(queue_life, fork_shares_the_queue)
{
	struct kretry_op op;

	ASSERT_EQ(10, queue(self, 10));
	EXPECT_EQ(0, kt_child(read_in_child, self));
	EXPECT_EQ(10, all(self).queued);
	EXPECT_EQ(-ENOENT, kt_cancel(self->fd, 3, &op));
	EXPECT_EQ(0, kt_cancel(self->fd, 1000000, &op));
}

/* An exec closes the file, and that is its end; one that is kept open goes on. */
TEST_F(queue_life, exec_drops_all_where_the_file_is_closed_by_it)
{
	struct kt_party party;

	/* The party's own file survives its exec. */
	ASSERT_EQ(5, queue(self, 5));
	ASSERT_EQ(0, kt_there_with(&party, self->fd));
	close(self->fd);
	EXPECT_EQ(5, all(self).queued);
	EXPECT_EQ(0, kt_party_exec(&party));
	EXPECT_EQ(5, all(self).queued);
	EXPECT_EQ(0, kt_party_close(&party));
	expect_all_gone(_metadata, self, 5);
	kt_leave(&party);
	self->fd = kt_open();
	self->queuer = kt_create(self->fd, &self->policy);
	ASSERT_EQ(5, queue(self, 5));
	EXPECT_EQ(5, all(self).queued);
}

static int exec_true(void *arg)
{
	FIXTURE_DATA(queue_life) *self = arg;

	CHECK_EQ(0, open_queue_and(self, FEW));
	execl("/proc/self/exe", "queue_life", "--nothing", NULL);
	return 1;
}

TEST_F(queue_life, exec_with_close_on_exec_all_gone)
{
	EXPECT_EQ(0, kt_child(exec_true, self));
	expect_all_gone(_metadata, self, FEW);
}

int main(int argc, char **argv)
{
	kt_party_main(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--nothing"))
		return 0;
	return test_harness_run(argc, argv);
}
