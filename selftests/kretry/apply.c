// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry policy apply --hold as a service: it says when it is ready, reloads, and lets go. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kretry.h"
#include "tool.h"

#define DIR	"/tmp/kretry.d"
#define LOG	"/tmp/apply.log"
#define SOCKET	"/tmp/notify"

FIXTURE(apply) {
	struct kretry *k;
	int notify;		/* what it tells its manager comes here */
	pid_t pid;
	char out[65536];
};

static int listen_at(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + strlen(name);

	memcpy(address.sun_path, name, strlen(name));
	if (*name == '@')
		address.sun_path[0] = '\0';
	else
		unlink(name);
	setenv("NOTIFY_SOCKET", name, 1);
	return bind(fd, (struct sockaddr *)&address, len) < 0 ? -1 : fd;
}

FIXTURE_SETUP(apply)
{
	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_MODULE_ONLY));
	mkdir(DIR, 0755);
	self->notify = listen_at(SOCKET);
	ASSERT_LE(0, self->notify);
}

FIXTURE_TEARDOWN(apply)
{
	static const char *const names[] = { "a", "b", "c" };
	unsigned int i;

	if (self->pid > 0) {
		kill(self->pid, SIGKILL);
		waitpid(self->pid, NULL, 0);
	}
	for (i = 0; i < ARRAY_LEN(names); i++) {
		kretry_policy_unlink(self->k, names[i], 0);
		kretry_policy_unlink(self->k, names[i], KRETRY_OPEN_GLOBAL);
	}
	kretry_close(self->k);
	unlink(DIR "/1.conf");
	unlink(DIR "/2.conf");
	rmdir(DIR);
}

static pid_t start(const char *line)
{
	int std[2];
	pid_t pid;

	std[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	std[1] = open(LOG, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid = tool_start(line, std);
	close(std[0]);
	close(std[1]);
	return pid;
}

static void read_log(char *out, size_t size)
{
	int fd = open(LOG, O_RDONLY | O_CLOEXEC);
	ssize_t got = read(fd, out, size - 1);

	out[got < 0 ? 0 : got] = '\0';
	close(fd);
}

/* The next of what it tells its manager, of which each is one datagram. */
static bool told(int fd, const char *start)
{
	char text[256];
	ssize_t got = recv(fd, text, sizeof(text) - 1, 0);

	text[got < 0 ? 0 : got] = '\0';
	if (!strncmp(text, start, strlen(start)))
		return true;
	fprintf(stderr, "# it said \"%s\", not \"%s\"\n", text, start);
	return false;
}

#define TOLD(text)	ASSERT_TRUE(told(self->notify, text))

#define RELOAD() do {							\
	ASSERT_EQ(0, kill(self->pid, SIGHUP));				\
	TOLD("RELOADING=1\nMONOTONIC_USEC=");				\
} while (0)

/* How many have the policy open; -1 if there is no such name. */
static int openers(struct kretry *k, const char *name)
{
	struct kretry_policy_entry *entries;
	unsigned int count, i;
	int found = -1;

	if (kretry_policy_list(k, &entries, &count))
		return -2;
	for (i = 0; i < count; i++)
		if (!strcmp((char *)entries[i].name, name))
			found = (int)entries[i].openers;
	free(entries);
	return found;
}

static uint32_t retries(struct kretry *k, const char *name)
{
	struct kretry_policy policy;
	uint32_t id;

	if (kretry_policy_open(k, name, 0, &id) || kretry_policy_get(k, id, &policy) ||
	    kretry_policy_close(k, id))
		return 0;
	return policy.max_retries;
}

TEST_F(apply, hold_is_ready_when_all_are_there_and_sigterm_ends)
{
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\nmax_retries = 1\n"));
	ASSERT_EQ(0, tool_write_file(DIR "/2.conf", "[b]\nglobal = yes\n"));
	self->pid = start("policy apply --hold " DIR);
	TOLD("READY=1\nSTATUS=2 policies");
	EXPECT_EQ(1, openers(self->k, "a"));
	EXPECT_EQ(1, openers(self->k, "b"));
	kill(self->pid, SIGTERM);
	TOLD("STOPPING=1");
	EXPECT_EQ(0, tool_wait(self->pid));
	self->pid = 0;
	EXPECT_EQ(-1, openers(self->k, "a"));
	EXPECT_EQ(-1, openers(self->k, "b"));
}

TEST_F(apply, hold_with_abstract_socket_and_without_a_directory_is_ready)
{
	int fd = listen_at("@kretry-apply");

	ASSERT_LE(0, fd);
	self->pid = start("policy apply --hold /nonexistent/kretry.d");
	ASSERT_TRUE(told(fd, "READY=1\nSTATUS=0 policies"));
	kill(self->pid, SIGINT);
	EXPECT_EQ(0, tool_wait(self->pid));
	self->pid = 0;
	close(fd);
}

/* What stays the same is not touched: a retry that was charged stays charged. */
TEST_F(apply, reload_creates_new_keeps_same_drops_gone)
{
	struct kretry_op op = { .event = KRETRY_EVENT_TRANSIENT };

	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\nbudget.capacity = 1\n[b]\n"));
	self->pid = start("policy apply --hold " DIR);
	TOLD("READY=1\nSTATUS=2 policies");
	ASSERT_EQ(0, kretry_policy_open(self->k, "a", 0, &op.policy));
	ASSERT_EQ(0, kretry_step(self->k, &op));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	ASSERT_EQ(0, kretry_policy_close(self->k, op.policy));
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\nbudget.capacity = 1\n[c]\n"));
	RELOAD();
	TOLD("READY=1\nSTATUS=2 policies");
	EXPECT_EQ(1, openers(self->k, "a"));
	EXPECT_EQ(-1, openers(self->k, "b"));
	EXPECT_EQ(1, openers(self->k, "c"));
	ASSERT_EQ(0, kretry_policy_open(self->k, "a", 0, &op.policy));
	op = (struct kretry_op){ .policy = op.policy, .event = KRETRY_EVENT_TRANSIENT };
	ASSERT_EQ(0, kretry_step(self->k, &op));
	EXPECT_EQ(KRETRY_STOP_BUDGET, op.verdict);
	read_log(self->out, sizeof(self->out));
	EXPECT_STREQ("", self->out);
}

TEST_F(apply, reload_of_wrong_files_changes_nothing)
{
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\n"));
	self->pid = start("policy apply --hold " DIR);
	TOLD("READY=1\nSTATUS=1 policies");
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[b]\n"));
	ASSERT_EQ(0, tool_write_file(DIR "/2.conf", "[c]\nbase = 5\n"));
	RELOAD();
	TOLD("READY=1\nSTATUS=1 policies");
	EXPECT_EQ(1, openers(self->k, "a"));
	EXPECT_EQ(-1, openers(self->k, "b"));
	EXPECT_EQ(-1, openers(self->k, "c"));
	ASSERT_EQ(0, tool_write_file(DIR "/2.conf", "[c]\nlinger = 2h\n"));
	RELOAD();
	TOLD("READY=1\nSTATUS=1 policies");
	EXPECT_EQ(1, openers(self->k, "a"));
	EXPECT_EQ(-1, openers(self->k, "b"));
	read_log(self->out, sizeof(self->out));
	SAYS("kretry: " DIR "/2.conf:2: base: ");
	SAYS("c: linger is at most 1h");
}

TEST_F(apply, reload_of_changed_parameters_keeps_the_old_and_says_so)
{
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\nmax_retries = 1\n"));
	self->pid = start("policy apply --hold " DIR);
	TOLD("READY=1");
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\nmax_retries = 2\n[b]\n"));
	RELOAD();
	TOLD("READY=1\nSTATUS=2 policies");
	EXPECT_EQ(1, retries(self->k, "a"));
	EXPECT_EQ(1, openers(self->k, "a"));
	EXPECT_EQ(1, openers(self->k, "b"));
	read_log(self->out, sizeof(self->out));
	SAYS("kretry: a: exists with other parameters, which it keeps");
	/* When the name is free, the next reload takes it. */
	ASSERT_EQ(0, kretry_policy_unlink(self->k, "a", 0));
	RELOAD();
	TOLD("READY=1\nSTATUS=2 policies");
	EXPECT_EQ(2, retries(self->k, "a"));
	EXPECT_EQ(1, openers(self->k, "a"));
}

TEST_F(apply, reload_with_replace_creates_anew_users_keep_the_old)
{
	struct kretry_policy policy;
	uint32_t id;

	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\nmax_retries = 1\n"));
	self->pid = start("policy apply --hold --replace " DIR);
	TOLD("READY=1");
	ASSERT_EQ(0, kretry_policy_open(self->k, "a", 0, &id));
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\nmax_retries = 2\n"));
	RELOAD();
	TOLD("READY=1\nSTATUS=1 policies");
	EXPECT_EQ(2, retries(self->k, "a"));
	EXPECT_EQ(1, openers(self->k, "a"));
	ASSERT_EQ(0, kretry_policy_get(self->k, id, &policy));
	EXPECT_EQ(1, policy.max_retries);
	read_log(self->out, sizeof(self->out));
	EXPECT_STREQ("", self->out);
}

/* As after a restart with a changed file, while the old policy lingers. */
TEST_F(apply, hold_of_a_name_with_other_parameters_holds_what_is_there)
{
	RUN(0, "policy add a max_retries=1 --linger 1h");
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\nmax_retries = 2\n[b]\n"));
	RUN(1, "policy apply " DIR " --linger 1h");
	SAYS("a: exists with other parameters");
	self->pid = start("policy apply --hold " DIR);
	TOLD("READY=1\nSTATUS=2 policies");
	EXPECT_EQ(1, openers(self->k, "a"));
	EXPECT_EQ(1, retries(self->k, "a"));
	RUN(0, "policy apply --replace --linger 1h " DIR);
	EXPECT_EQ(2, retries(self->k, "a"));
}

TEST_F(apply, hold_of_what_may_not_be_is_refused_and_leaves_nothing)
{
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\n[b]\nlinger = 2h\n"));
	RUN(2, "policy apply --hold " DIR);
	SAYS("b: linger is at most 1h");
	EXPECT_EQ(-1, openers(self->k, "a"));
	ASSERT_EQ(0, tool_write_file(DIR "/1.conf", "[a]\n[b]\nbase = 5\n"));
	RUN(2, "policy apply --hold " DIR);
	EXPECT_EQ(-1, openers(self->k, "a"));
}

TEST_HARNESS_MAIN
