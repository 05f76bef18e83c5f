// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two programs that have nothing in common but the device: this one and peer.py, which uses only
 * Python's standard library. They share one budget and one breaker.
 */
#include "harness.h"
#include "shared.h"

#include <errno.h>
#include <signal.h>

#define URL	"HTTP://Shop.Example:80"
/* The first 8 bytes, little-endian, of SHA-256 of "http://shop.example:80". */
#define KEY	0xa6e5f4f52e4c69d4ULL
#define HOME	"/tests/python"

FIXTURE(peer) {
	struct kt_party me;
	int id;
	char said[256];
};

/* As peer.py has it. */
FIXTURE_SETUP(peer)
{
	struct kretry_policy policy;

	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&policy);
	kt_name(&policy, "peers");
	policy.linger_ns = 60 * SEC;
	kt_budget(&policy, 10);
	kt_breaker(&policy, 3, 5 * SEC, 1);
	self->id = kt_party_create(&self->me, &policy);
	ASSERT_LT(0, self->id);
}

FIXTURE_TEARDOWN(peer)
{
	EXPECT_EQ(0, kt_party_unlink(&self->me, "peers", 0));
	kt_leave(&self->me);
}

static void exec_peer(const char *action, const char *argument, int to)
{
	dup2(to, STDOUT_FILENO);
	setenv("PYTHONHOME", HOME, 1);
	execl(HOME "/loader", "loader", "--library-path", HOME, HOME "/python", "-s", "-S",
	      HOME "/peer.py", action, URL, argument, NULL);
	_exit(127);
}

static pid_t start_peer(const char *action, const char *argument, int *from)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return -errno;
	pid = fork();
	if (!pid) {
		close(ends[0]);
		exec_peer(action, argument, ends[1]);
	}
	close(ends[1]);
	*from = ends[0];
	return pid;
}

/* Reads one line without its end. */
static void read_line(int from, char *line, size_t size)
{
	size_t len = 0;

	while (len < size - 1 && read(from, line + len, 1) == 1 && line[len] != '\n')
		len++;
	line[len] = '\0';
}

/* What the peer prints; an empty string if it fails. */
static const char *peer(FIXTURE_DATA(peer) *self, const char *action, const char *argument)
{
	int from;
	pid_t pid = start_peer(action, argument, &from);

	read_line(from, self->said, sizeof(self->said));
	close(from);
	if (kt_wait(pid))
		self->said[0] = '\0';
	return self->said;
}

static int event(FIXTURE_DATA(peer) *self, unsigned int event)
{
	return kt_event(&self->me, self->id, KEY, event);
}

TEST_F(peer, budget_what_one_spends_the_other_does_not_have)
{
	EXPECT_STREQ("closed 10", peer(self, "state", NULL));
	/* Two, not three: as many failures in a row would open the breaker. */
	EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY, 2));
	EXPECT_EQ(KRETRY_DONE, event(self, KRETRY_EVENT_OK));
	EXPECT_STREQ("closed 8", peer(self, "state", NULL));
	EXPECT_EQ(0, kt_force(&self->me, self->id, KRETRY_MODE_METRICS_ONLY));
	EXPECT_STREQ("8", peer(self, "spend", NULL));
	EXPECT_EQ(0, kt_spend(&self->me, self->id, KEY));
	EXPECT_STREQ("0", peer(self, "spend", NULL));
	EXPECT_EQ(10 * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
}

TEST_F(peer, breaker_tripped_by_one_refuses_the_other)
{
	struct kretry_op op;

	EXPECT_STREQ("retry retry stop-open", peer(self, "fail", "3"));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(KRETRY_OPEN, kt_stat_key(&self->me, self->id, KEY).state);
	EXPECT_STREQ("stop-open", peer(self, "begin", NULL));
	kt_sleep_open(&self->me, self->id, KEY);
	ASSERT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_STREQ("half-open 8", peer(self, "state", NULL));
	EXPECT_STREQ("stop-open", peer(self, "begin", NULL));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_STREQ("go", peer(self, "begin", NULL));
}

TEST_F(peer, breaker_tripped_and_closed_by_turns)
{
	EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY, 3));
	EXPECT_STREQ("open 8", peer(self, "state", NULL));
	kt_sleep_open(&self->me, self->id, KEY);
	EXPECT_STREQ("go probe", peer(self, "probe-ok", NULL));
	EXPECT_EQ(KRETRY_CLOSED, kt_stat_key(&self->me, self->id, KEY).state);
	EXPECT_EQ(KRETRY_GO, event(self, KRETRY_EVENT_BEGIN));
}

/* The peer takes the only probe and dies: it is there again at once. */
TEST_F(peer, probe_of_a_killed_peer_back)
{
	struct kretry_op op;
	pid_t pid;
	int from;

	EXPECT_EQ(2, kt_fail(&self->me, self->id, KEY, 3));
	kt_sleep_open(&self->me, self->id, KEY);
	pid = start_peer("hold", NULL, &from);
	read_line(from, self->said, sizeof(self->said));
	EXPECT_STREQ("go probe", self->said);
	EXPECT_EQ(KRETRY_STOP_OPEN, event(self, KRETRY_EVENT_BEGIN));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, kt_wait(pid));
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_STREQ("closed 8", peer(self, "state", NULL));
	close(from);
}

TEST_HARNESS_MAIN
