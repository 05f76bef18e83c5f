// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Loading and unloading: never while in use, always when not, and as often as one likes. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

FIXTURE(module) {
	int fd;
};

FIXTURE_SETUP(module)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(module)
{
	EXPECT_EQ(0, kt_ensure_loaded());
}

TEST_F(module, unload_while_open_refused_then_works)
{
	EXPECT_EQ(-EWOULDBLOCK, kt_unload());
	EXPECT_LE(0, kt_policies(self->fd));
	close(self->fd);
	ASSERT_EQ(0, kt_unload());
	EXPECT_EQ(-ENOENT, kt_open());
	ASSERT_EQ(0, kt_load(""));
	self->fd = kt_open();
	EXPECT_LE(0, self->fd);
	close(self->fd);
}

TEST_F(module, unload_while_only_a_dup_lives_refused)
{
	int copy = dup(self->fd);

	close(self->fd);
	EXPECT_EQ(-EWOULDBLOCK, kt_unload());
	close(copy);
	EXPECT_EQ(0, kt_unload());
}

static int hold(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return 0;
}

TEST_F(module, unload_while_a_child_has_it_refused_until_it_is_killed)
{
	pid_t pid = fork();

	if (!pid)
		_exit(hold(NULL));
	close(self->fd);
	EXPECT_EQ(-EWOULDBLOCK, kt_unload());
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, kt_wait(pid));
	EXPECT_EQ(0, kt_unload());
}

TEST_F(module, unload_with_policies_just_dropped_works)
{
	struct kretry_policy policy;
	int i, round;

	kt_policy(&policy);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 500; i++)
			ASSERT_LT(0, kt_create(self->fd, &policy));
		close(self->fd);
		ASSERT_EQ(0, kt_unload());
		ASSERT_EQ(0, kt_load(""));
		self->fd = kt_open();
		ASSERT_LE(0, self->fd);
	}
	close(self->fd);
}

TEST_F(module, load_twice_eexist)
{
	EXPECT_EQ(-EEXIST, kt_load(""));
	EXPECT_EQ(0, kt_policies(self->fd));
}

TEST_F(module, bad_parameter_refused_next_load_works)
{
	static const char * const parameters[] = {
		"max_policies=0", "max_policies=-1", "max_policies=many", "max_policies=4294967296",
		"max_queued=-1", "max_queued=many", "max_queued=4294967296",
		"mode=0", "mode=0777", "mode=01666", "mode=-1", "mode=65536", "mode=rw",
	};
	size_t i;

	close(self->fd);
	for (i = 0; i < ARRAY_LEN(parameters); i++) {
		ASSERT_EQ(0, kt_unload());
		EXPECT_GT(0, kt_load(parameters[i]))
			TH_LOG("%s", parameters[i]);
		EXPECT_EQ(-ENOENT, kt_open());
		ASSERT_EQ(0, kt_load(""));
	}
}

TEST_F(module, parameter_max_policies_bounds_and_shows_in_info)
{
	struct kretry_policy policy;
	struct kretry_info info;
	int i;

	close(self->fd);
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, kt_load("max_policies=7"));
	self->fd = kt_open();
	ASSERT_EQ(0, kt_info(self->fd, &info));
	EXPECT_EQ(7, info.max_policies);
	kt_policy(&policy);
	for (i = 0; i < 7; i++)
		EXPECT_LT(0, kt_create(self->fd, &policy));
	EXPECT_EQ(-EDQUOT, kt_create(self->fd, &policy));
	close(self->fd);
	EXPECT_EQ(0, kt_unload());
}

/* Waiting ops are no reason to stay, once their file is gone. */
TEST_F(module, unload_with_ops_just_dropped_works)
{
	struct kretry_policy policy;
	struct kretry_op op;
	int i, round;

	for (round = 0; round < 20; round++) {
		kt_policy(&policy);
		policy.clockid = round % 2 ? CLOCK_MONOTONIC : CLOCK_BOOTTIME;
		policy.backoff.base_ns = round % 3 * 10 * MSEC;
		policy.id = kt_create(self->fd, &policy);
		for (i = 0; i < 500; i++) {
			op = kt_op(policy.id, KRETRY_EVENT_TRANSIENT);
			op.flags = KRETRY_OP_QUEUE;
			op.user_data = i;
			ASSERT_EQ(0, kt_step(self->fd, &op));
		}
		EXPECT_EQ(-EWOULDBLOCK, kt_unload());
		close(self->fd);
		ASSERT_EQ(0, kt_unload());
		ASSERT_EQ(0, kt_load(""));
		self->fd = kt_open();
		ASSERT_LE(0, self->fd);
	}
	close(self->fd);
}

/* How many ops @fd queues before it refuses one, and with what. */
static int queue_many(int fd, int most, int *err)
{
	struct kretry_policy policy;
	struct kretry_op op;
	int queued;

	kt_policy(&policy);
	policy.id = kt_create(fd, &policy);
	for (queued = 0; queued < most; queued++) {
		op = kt_op(policy.id, KRETRY_EVENT_TRANSIENT);
		op.flags = KRETRY_OP_QUEUE;
		op.user_data = queued;
		*err = kt_step(fd, &op);
		if (*err)
			break;
	}
	return queued;
}

TEST_F(module, parameter_max_queued_bounds_each_file_and_shows_in_info)
{
	static const struct {
		const char *parameter;
		int max;
	} rows[] = { { "max_queued=7", 7 }, { "max_queued=1", 1 }, { "max_queued=0", 0 } };
	struct kretry_info info;
	int other, err;
	size_t i;

	close(self->fd);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		ASSERT_EQ(0, kt_unload());
		ASSERT_EQ(0, kt_load(rows[i].parameter));
		self->fd = kt_open();
		other = kt_open();
		ASSERT_EQ(0, kt_info(self->fd, &info));
		EXPECT_EQ(rows[i].max, info.max_queued);
		EXPECT_EQ(rows[i].max, queue_many(self->fd, 100, &err));
		EXPECT_EQ(-ENOBUFS, err);
		EXPECT_EQ(rows[i].max, queue_many(other, 100, &err));
		EXPECT_EQ(-ENOBUFS, err);
		close(self->fd);
		close(other);
	}
	EXPECT_EQ(0, kt_unload());
}

static int open_as_user(void *arg)
{
	(void)arg;
	CHECK_EQ(0, kt_become(1000));
	CHECK_EQ(-EACCES, kt_open());
	return 0;
}

TEST_F(module, parameter_mode_is_the_mode_of_the_node)
{
	static const struct {
		const char *parameter;
		mode_t mode;
	} rows[] = {
		{ "mode=0600", 0600 }, { "mode=0660", 0660 }, { "mode=0664", 0664 }, { "", 0666 },
	};
	struct stat st;
	size_t i;

	close(self->fd);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		ASSERT_EQ(0, kt_unload());
		ASSERT_EQ(0, kt_load(rows[i].parameter));
		ASSERT_EQ(0, stat(DEVICE, &st));
		EXPECT_EQ(rows[i].mode, st.st_mode & 07777);
		if (rows[i].mode != 0666)
			EXPECT_EQ(0, kt_child(open_as_user, NULL));
	}
}

TEST_F(module, load_unload_hundred_times_works)
{
	int i;

	close(self->fd);
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, kt_unload());
		ASSERT_EQ(0, kt_load(""));
	}
}

TEST_HARNESS_MAIN
