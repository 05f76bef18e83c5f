// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a user makes the module keep is charged to the user's memory cgroup. */
#include "harness.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ROOT	"/sys/fs/cgroup"
#define GROUP	ROOT "/kretry-memcg"
#define USER	1000

FIXTURE(memcg) {
	unsigned int max;
	int *shared;
};

FIXTURE_SETUP(memcg)
{
	struct kretry_info info;
	int fd = kt_open();

	ASSERT_EQ(0, kt_info(fd, &info));
	close(fd);
	self->max = info.max_policies;
	self->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	self->shared[0] = 0;
	if (kt_write_file(ROOT "/cgroup.subtree_control", "+memory"))
		SKIP(return, "this kernel has no memory cgroup");
	rmdir(GROUP);
	ASSERT_EQ(0, mkdir(GROUP, 0755));
}

FIXTURE_TEARDOWN(memcg)
{
	int i;

	for (i = 0; i < 100 && rmdir(GROUP) && errno == EBUSY; i++)
		kt_sleep(10 * MSEC);
}

static int enter_as_user(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	CHECK_EQ(0, kt_write_file(GROUP "/cgroup.procs", pid));
	CHECK_EQ(0, kt_become(USER));
	return 0;
}

/* The kernel flushes its counters every two seconds or when asked. */
static int charge(void *arg)
{
	FIXTURE_DATA(memcg) *self = arg;
	struct kretry_policy policy;
	int64_t before, after;
	unsigned int i;
	int fd;

	CHECK_EQ(0, enter_as_user());
	fd = kt_open();
	CHECK(fd >= 0);
	kt_policy(&policy);
	before = kt_slab_bytes(GROUP);
	CHECK(before >= 0);
	for (i = 0; i < self->max; i++)
		CHECK(kt_create(fd, &policy) > 0);
	kt_sleep(3 * SEC);
	after = kt_slab_bytes(GROUP);
	CHECK(after - before >= (int64_t)(self->max * sizeof(policy)));
	CHECK_EQ(0, kt_shutdown(fd));
	kt_sleep(3 * SEC);
	CHECK(kt_slab_bytes(GROUP) - before < (int64_t)(self->max * sizeof(policy) / 4));
	return 0;
}

TEST_F(memcg, policies_charged_to_the_caller_until_dropped)
{
	EXPECT_EQ(0, kt_child(charge, self));
}

/* Everything the loop needs is in memory beforehand, so that only the module asks for more. */
static int exhaust(void *arg)
{
	FIXTURE_DATA(memcg) *self = arg;
	struct kretry_policy policy;
	int fd, ret;

	CHECK_EQ(0, mlockall(MCL_CURRENT));
	CHECK_EQ(0, enter_as_user());
	fd = kt_open();
	CHECK(fd >= 0);
	kt_policy(&policy);
	do {
		ret = kt_create(fd, &policy);
		self->shared[0] += ret > 0;
	} while (ret > 0);
	self->shared[1] = ret;
	self->shared[2] = (int)kt_delay(fd, 1, 0);
	_exit(0);
}

TEST_F(memcg, at_the_limit_enomem_and_what_was_there_still_works)
{
	ASSERT_EQ(0, kt_write_file(GROUP "/memory.max", "3M"));
	EXPECT_EQ(0, kt_child(exhaust, self));
	EXPECT_EQ(-ENOMEM, self->shared[1]);
	EXPECT_LT(100, self->shared[0]);
	EXPECT_GT((int)self->max, self->shared[0]);
	EXPECT_EQ((int)(100 * MSEC), self->shared[2]);
}

TEST_HARNESS_MAIN
