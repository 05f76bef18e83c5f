// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Policies live as long as their open file, whoever holds it, or until SHUTDOWN. */
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

FIXTURE(lifetime) {
	int fd;
	int policy;
};

FIXTURE_SETUP(lifetime)
{
	struct kretry_policy policy;

	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&policy);
	self->policy = kt_create(self->fd, &policy);
	ASSERT_LT(0, self->policy);
}

FIXTURE_TEARDOWN(lifetime)
{
	close(self->fd);
}

TEST_F(lifetime, dup_shares_the_policies)
{
	int copy = dup(self->fd), id;
	struct kretry_policy policy;

	ASSERT_LE(0, copy);
	kt_policy(&policy);
	id = kt_create(copy, &policy);
	EXPECT_EQ(100 * MSEC, kt_delay(self->fd, id, 0));
	close(self->fd);
	EXPECT_EQ(100 * MSEC, kt_delay(copy, self->policy, 0));
	EXPECT_EQ(100 * MSEC, kt_delay(copy, id, 0));
	close(copy);
}

static int close_policy(void *arg)
{
	FIXTURE_DATA(lifetime) *self = arg;

	CHECK_EQ(100 * MSEC, kt_delay(self->fd, self->policy, 0));
	CHECK_EQ(0, kt_close(self->fd, self->policy));
	close(self->fd);
	return 0;
}

TEST_F(lifetime, fork_shares_the_policies)
{
	EXPECT_EQ(0, kt_child(close_policy, self));
	EXPECT_EQ(-ENOENT, kt_delay(self->fd, self->policy, 0));
	EXPECT_EQ(0, kt_policies(self->fd));
}

static int send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(fd))] = { 0 }, byte = 'x';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : -errno;
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd = -1;

	if (recvmsg(socket, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

TEST_F(lifetime, file_only_in_a_socket_keeps_the_policies)
{
	int pair[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ASSERT_EQ(0, send_fd(pair[0], self->fd));
	close(self->fd);
	EXPECT_EQ(-EWOULDBLOCK, kt_unload());
	self->fd = receive_fd(pair[1]);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(100 * MSEC, kt_delay(self->fd, self->policy, 0));
}

TEST_F(lifetime, reopen_starts_empty)
{
	close(self->fd);
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(0, kt_policies(self->fd));
	EXPECT_EQ(-ENOENT, kt_delay(self->fd, self->policy, 0));
}

TEST_F(lifetime, shutdown_drops_the_policies_file_stays_usable)
{
	struct kretry_policy policy;
	int i, id;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, kt_shutdown(self->fd));
		EXPECT_EQ(-ENOENT, kt_delay(self->fd, self->policy, 0));
		EXPECT_EQ(-ENOENT, kt_close(self->fd, self->policy));
		EXPECT_EQ(0, kt_policies(self->fd));
		kt_policy(&policy);
		id = kt_create(self->fd, &policy);
		ASSERT_LT(0, id);
		EXPECT_NE(self->policy, id);
		EXPECT_EQ(100 * MSEC, kt_delay(self->fd, id, 0));
		self->policy = id;
	}
}

TEST_F(lifetime, shutdown_leaves_other_files_alone)
{
	int other = kt_open();

	ASSERT_LE(0, other);
	EXPECT_EQ(0, kt_shutdown(other));
	EXPECT_EQ(100 * MSEC, kt_delay(self->fd, self->policy, 0));
	close(other);
}

static int step_for_ever(void *arg)
{
	FIXTURE_DATA(lifetime) *self = arg;

	for (;;)
		kt_delay(self->fd, self->policy, 0);
	return 0;
}

TEST_F(lifetime, sharer_killed_policies_stay)
{
	pid_t pid = fork();

	if (!pid)
		_exit(step_for_ever(self));
	kt_sleep(5 * MSEC);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, kt_wait(pid));
	EXPECT_EQ(100 * MSEC, kt_delay(self->fd, self->policy, 0));
}

TEST_HARNESS_MAIN
