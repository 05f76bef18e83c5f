// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Policies per user: bounded, charged to who opened the file and to the owners of the user
 * namespaces above, and given back whatever way they go.
 */
#include "harness.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>

#define ALICE	1000
#define BOB	1001
#define RANGE	2000	/* first uid of the namespace that Alice owns */

FIXTURE(quota) {
	unsigned int max;
};

FIXTURE_SETUP(quota)
{
	struct kretry_info info;
	int fd = kt_open();

	ASSERT_EQ(0, kt_info(fd, &info));
	close(fd);
	self->max = info.max_policies;
	ASSERT_EQ((int64_t)self->max, kt_read_number("/sys/module/kretry/parameters/max_policies"));
}

FIXTURE_TEARDOWN(quota)
{
}

/* How many policies @fd takes, up to @most; what ends it is in @err. */
static unsigned int create_many(int fd, unsigned int most, int *err)
{
	struct kretry_policy policy;
	unsigned int made = 0;

	kt_policy(&policy);
	*err = 0;
	while (made < most) {
		*err = kt_create(fd, &policy);
		if (*err < 0)
			break;
		*err = 0;
		made++;
	}
	return made;
}

static int open_as(uid_t uid)
{
	int fd;

	if (setresuid(-1, uid, -1))
		return -errno;
	fd = kt_open();
	if (setresuid(-1, 0, -1))
		return -errno;
	return fd;
}

TEST_F(quota, one_more_than_the_limit_edquot_nothing_changed)
{
	int fd = open_as(ALICE), err;
	struct kretry_policy policy, before;

	ASSERT_LE(0, fd);
	EXPECT_EQ(self->max, create_many(fd, self->max + 1, &err));
	EXPECT_EQ(-EDQUOT, err);
	kt_policy(&policy);
	before = policy;
	EXPECT_EQ(-EDQUOT, kt_create(fd, &policy));
	EXPECT_EQ(0, memcmp(&before, &policy, sizeof(policy)));
	EXPECT_EQ((int)self->max, kt_policies(fd));
	EXPECT_EQ(100 * MSEC, kt_delay(fd, 1, 0));
	EXPECT_EQ(100 * MSEC, kt_delay(fd, self->max, 0));
}

TEST_F(quota, counts_all_files_of_the_user_and_no_other_user)
{
	int first = open_as(ALICE), second = open_as(ALICE), bob = open_as(BOB);
	int root = kt_open(), err;

	ASSERT_EQ(self->max - 1, create_many(first, self->max - 1, &err));
	EXPECT_EQ(1, create_many(second, 2, &err));
	EXPECT_EQ(-EDQUOT, err);
	EXPECT_EQ(10, create_many(bob, 10, &err));
	EXPECT_EQ(10, create_many(root, 10, &err));
}

TEST_F(quota, returns_with_close_policy_shutdown_and_close_file)
{
	int first = open_as(ALICE), second = open_as(ALICE), err;

	ASSERT_EQ(self->max, create_many(first, self->max, &err));
	EXPECT_EQ(0, kt_close(first, 5));
	EXPECT_EQ(1, create_many(second, 2, &err));
	EXPECT_EQ(-EDQUOT, err);
	EXPECT_EQ(0, kt_shutdown(second));
	EXPECT_EQ(1, create_many(first, 2, &err));
	EXPECT_EQ(-EDQUOT, err);
	close(first);
	EXPECT_EQ(self->max, create_many(second, self->max + 1, &err));
	EXPECT_EQ(-EDQUOT, err);
}

static void hold_all(unsigned int max, int ready)
{
	int fd, err;

	if (kt_become(ALICE))
		_exit(1);
	fd = kt_open();
	if (create_many(fd, max, &err) != max || write(ready, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

TEST_F(quota, returns_when_the_process_is_killed)
{
	int ready[2], err, fd;
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	if (!pid)
		hold_all(self->max, ready[1]);
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	fd = open_as(ALICE);
	EXPECT_EQ(0, create_many(fd, 1, &err));
	EXPECT_EQ(-EDQUOT, err);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, kt_wait(pid));
	EXPECT_EQ(self->max, create_many(fd, self->max, &err));
}

static int create_one_as_alice(void *arg)
{
	int err;

	(void)arg;
	CHECK_EQ(0, kt_become(ALICE));
	CHECK_EQ(0, create_many(kt_open(), 1, &err));
	CHECK_EQ(-EDQUOT, err);
	return 0;
}

/* Root takes them, but through a file that Alice opened. */
TEST_F(quota, charged_to_who_opened_the_file)
{
	int alice = open_as(ALICE), err;

	ASSERT_EQ(self->max, create_many(alice, self->max, &err));
	EXPECT_EQ(0, kt_child(create_one_as_alice, NULL));
	EXPECT_EQ(10, create_many(kt_open(), 10, &err));
}

/* -------- user namespaces -------- */

static char await(int fd)
{
	char byte = 0;

	return read(fd, &byte, 1) == 1 ? byte : 0;
}

static int map_ids(pid_t pid)
{
	char path[64], map[64];
	int ret;

	snprintf(map, sizeof(map), "0 %d 10\n", RANGE);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	ret = kt_write_file(path, map);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	return kt_write_file(path, map);
}

/* As Alice enter a namespace of her own, then take half as its user 3, the rest as its user 4. */
static int fill_from_namespace(unsigned int max, int to_parent, int from_parent)
{
	int fd, err;

	CHECK_EQ(0, kt_become(ALICE));
	CHECK_EQ(0, unshare(CLONE_NEWUSER));
	CHECK_EQ(1, write(to_parent, "u", 1));
	CHECK_EQ('m', await(from_parent));
	CHECK_EQ(0, setresuid(0, 0, 0));
	CHECK_EQ(0, setresuid(-1, 3, 0));
	fd = kt_open();
	CHECK(fd >= 0);
	CHECK_EQ(max / 2, create_many(fd, max / 2, &err));
	CHECK_EQ(0, setresuid(-1, 0, 0));
	CHECK_EQ(0, setresuid(-1, 4, 0));
	fd = kt_open();
	CHECK(fd >= 0);
	CHECK_EQ(max - max / 2, create_many(fd, max, &err));
	CHECK_EQ(-EDQUOT, err);
	CHECK_EQ(1, write(to_parent, "f", 1));
	CHECK_EQ('e', await(from_parent));
	return 0;
}

TEST_F(quota, users_of_a_namespace_count_against_its_owner)
{
	int down[2], up[2], err;
	pid_t pid;

	ASSERT_EQ(0, pipe(down));
	ASSERT_EQ(0, pipe(up));
	pid = fork();
	if (!pid)
		_exit(fill_from_namespace(self->max, up[1], down[0]));
	close(up[1]);
	ASSERT_EQ('u', await(up[0]));
	ASSERT_EQ(0, map_ids(pid));
	ASSERT_EQ(1, write(down[1], "m", 1));
	ASSERT_EQ('f', await(up[0]));
	EXPECT_EQ(0, create_many(open_as(ALICE), 1, &err));
	EXPECT_EQ(-EDQUOT, err);
	EXPECT_EQ(self->max - self->max / 2, create_many(open_as(RANGE + 3), self->max, &err));
	EXPECT_EQ(10, create_many(open_as(BOB), 10, &err));
	ASSERT_EQ(1, write(down[1], "e", 1));
	EXPECT_EQ(0, kt_wait(pid));
	EXPECT_EQ(self->max, create_many(open_as(ALICE), self->max, &err));
}

TEST_HARNESS_MAIN
