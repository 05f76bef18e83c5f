// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The command and the library's calls for named policies, on the module. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "kretry.h"
#include "tool.h"

#define KEY_TEXT	"https://api.example.com:443"

FIXTURE(command) {
	struct kretry *k;
	char out[65536];	/* what the command last said, stderr too */
};

FIXTURE_SETUP(command)
{
	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_MODULE_ONLY));
}

FIXTURE_TEARDOWN(command)
{
	ASSERT_EQ(0, tool_forget_policies(self->k));
	kretry_close(self->k);
}

static int report(struct kretry *k, uint32_t policy, uint64_t key, unsigned int event)
{
	struct kretry_op op = { .policy = policy, .key = key, .event = (uint8_t)event };
	int ret = kretry_step(k, &op);

	return ret < 0 ? ret : op.verdict;
}

TEST_F(command, policy_add_lingers_and_is_found)
{
	struct kretry_policy policy;
	uint32_t id;

	RUN(0, "policy add shop --preset grpc max_retries=2 --linger 1h");
	ASSERT_EQ(0, kretry_policy_open(self->k, "shop", 0, &id));
	ASSERT_EQ(0, kretry_policy_get(self->k, id, &policy));
	EXPECT_EQ(2, policy.max_retries);
	EXPECT_EQ(3600 * SEC, policy.linger_ns);
	EXPECT_EQ(10 * KRETRY_UTOK, policy.budget.capacity_utok);
	RUN(0, "policy add shop --preset grpc max_retries=2 --linger 1h");
	RUN(1, "policy add shop --preset grpc max_retries=3 --linger 1h");
	SAYS("exists with other parameters");
}

TEST_F(command, policy_add_that_would_not_stay_is_refused)
{
	RUN(2, "policy add shop --preset grpc");
	SAYS("--linger 1h");
	RUN(2, "policy add shop --preset grpc --linger 2h");
	SAYS("at most 1h");
	RUN(0, "policy list");
	SAYS_NOT("shop");
}

TEST_F(command, policy_add_hold_keeps_it_until_sigterm)
{
	int std[2] = { open("/dev/null", O_RDWR | O_CLOEXEC), 0 };
	pid_t pid;
	uint32_t id;
	int tries;

	std[1] = std[0];
	pid = tool_start("policy add shop --preset curl --hold", std);
	for (tries = 0; tries < 1000; tries++) {
		if (kretry_policy_open(self->k, "shop", 0, &id) == 0)
			break;
		usleep(10000);
	}
	ASSERT_LT(tries, 1000);
	ASSERT_EQ(0, kretry_policy_close(self->k, id));
	ASSERT_EQ(0, kretry_policy_open(self->k, "shop", 0, &id));
	ASSERT_EQ(0, kretry_policy_close(self->k, id));
	kill(pid, SIGTERM);
	EXPECT_EQ(0, tool_wait(pid));
	EXPECT_EQ(-ENOENT, kretry_policy_open(self->k, "shop", 0, &id));
	close(std[0]);
}

TEST_F(command, policy_apply_creates_all_and_shows_them_the_same)
{
	ASSERT_EQ(0, tool_write_file("/tmp/policies",
				     "[a]\npreset = linkerd\nlinger = 1h\n"
				     "[b]\nbase = 5ms\nglobal = yes\nmode = 0640\n"));
	RUN(0, "policy apply /tmp/policies --linger 30m");
	RUN(0, "policy list");
	SAYS("private");
	SAYS("0640");
	RUN(0, "policy show b");
	SAYS("linger = 30m");
	SAYS("global = yes");
	RUN(0, "policy show a");
	ASSERT_EQ(0, tool_write_file("/tmp/policies", self->out));
	RUN(0, "policy apply /tmp/policies");
	RUN(0, "policy rm a");
	RUN(0, "policy rm b --global");
	RUN(1, "policy rm a");
	SAYS("no policy a");
	RUN(1, "policy show a");
	RUN(0, "policy list --json");
	EXPECT_STREQ("[]\n", self->out);
}

TEST_F(command, policy_apply_wrong_file_creates_nothing)
{
	ASSERT_EQ(0, tool_write_file("/tmp/policies", "[a]\nlinger = 1h\n[b]\nbase = 5\n"));
	RUN(2, "policy apply /tmp/policies");
	SAYS("/tmp/policies:4: base: ");
	RUN(0, "policy list --json");
	EXPECT_STREQ("[]\n", self->out);
}

TEST_F(command, stat_shows_what_was_counted)
{
	uint64_t key = kretry_key(KEY_TEXT);
	uint32_t id;

	RUN(0, "policy add shop --linger 1h budget.capacity=2 breaker.consecutive=9 "
	    "breaker.open=5s");
	ASSERT_EQ(0, kretry_policy_open(self->k, "shop", 0, &id));
	EXPECT_EQ(KRETRY_RETRY, report(self->k, id, key, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_RETRY, report(self->k, id, key, KRETRY_EVENT_THROTTLED));
	EXPECT_EQ(KRETRY_STOP_BUDGET, report(self->k, id, key, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_DONE, report(self->k, id, 7, KRETRY_EVENT_OK));
	RUN(0, "stat shop");
	SAYS("throttled          1\n");
	SAYS("-> stop-budget     1\n");
	SAYS("tokens charged     2\n");
	SAYS("keys               2\n");
	RUN(0, "stat --key " KEY_TEXT);
	SAYS("key 0xe8c663403a33d074\n");
	SAYS("balance            0\n");
	SAYS("failures in a row  2\n");
	RUN(0, "stat --json --key 7");
	SAYS("\"stop-budget\": 1");
	SAYS("\"balance_utok\": 2000000");
	RUN(0, "stat --prometheus --key " KEY_TEXT);
	SAYS("kretry_events_total{policy=\"shop\",scope=\"private\",event=\"transient\"} 2\n");
	SAYS("kretry_charged_tokens_total{policy=\"shop\",scope=\"private\"} 2\n");
	SAYS("kretry_key_state{policy=\"shop\",scope=\"private\",key=\"0xe8c663403a33d074\"} 0\n");
	RUN(1, "stat shops");
	SAYS("no policy shops");
}

TEST_F(command, force_opens_and_closes_for_others)
{
	uint32_t id;

	RUN(0, "policy add shop breaker.consecutive=2 breaker.open=1h --linger 1h");
	ASSERT_EQ(0, kretry_policy_open(self->k, "shop", 0, &id));
	RUN(0, "force shop open --key 5");
	EXPECT_EQ(KRETRY_STOP_OPEN, report(self->k, id, 5, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(KRETRY_GO, report(self->k, id, 6, KRETRY_EVENT_BEGIN));
	RUN(0, "force shop open");
	EXPECT_EQ(KRETRY_STOP_OPEN, report(self->k, id, 6, KRETRY_EVENT_BEGIN));
	RUN(0, "stat shop");
	SAYS("mode               open\n");
	RUN(0, "force shop auto");
	EXPECT_EQ(KRETRY_GO, report(self->k, id, 6, KRETRY_EVENT_BEGIN));
	report(self->k, id, 6, KRETRY_EVENT_TRANSIENT);
	report(self->k, id, 6, KRETRY_EVENT_TRANSIENT);
	EXPECT_EQ(KRETRY_STOP_OPEN, report(self->k, id, 6, KRETRY_EVENT_BEGIN));
	RUN(0, "stat shop --key 6");
	SAYS("breaker            open\n");
	SAYS("half-open in");
	RUN(0, "force shop closed --key 6");
	EXPECT_EQ(KRETRY_GO, report(self->k, id, 6, KRETRY_EVENT_BEGIN));
	RUN(0, "policy add plain --linger 1h");
	RUN(1, "force plain open");
	SAYS("has no breaker");
}

TEST_F(command, next_shares_the_budget_of_a_named_policy)
{
	uint32_t id;

	RUN(0, "policy add shop strategy=fixed base=3s jitter=none budget.capacity=2 --linger 1h");
	RUN(0, "next shop --key 1");
	SAYS("verdict  retry\n");
	SAYS("delay    3s\n");
	ASSERT_EQ(0, kretry_policy_open(self->k, "shop", 0, &id));
	EXPECT_EQ(KRETRY_RETRY, report(self->k, id, 1, KRETRY_EVENT_TRANSIENT));
	RUN(3, "next shop --key 1");
	SAYS("verdict  stop-budget\n");
	RUN(0, "next --preset curl --json");
	SAYS("\"backend\": \"module\"");
	SAYS("\"delay_ns\": 1000000000");
	RUN(1, "next shops");
	SAYS("no policy shops");
}

TEST_F(command, names_of_others_are_escaped)
{
	struct kretry_policy policy;

	kretry_policy_init(&policy);
	strcpy((char *)policy.name, "\033[2J\"\\\n\302\233m");
	ASSERT_EQ(0, kretry_policy_create(self->k, &policy));
	RUN(0, "policy list");
	SAYS("\\x1b[2J\"\\x5c\\x0a\\xc2\\x9bm");
	RUN(0, "stat --json");
	SAYS("\"\\\\x1b[2J\\\"\\\\x5c\\\\x0a\\\\xc2\\\\x9bm\"");
	RUN(0, "stat --prometheus");
	SAYS("policy=\"\\\\x1b[2J\\\"\\\\x5c\\\\x0a\\\\xc2\\\\x9bm\"");
}

TEST_F(command, top_without_a_terminal_prints_one_table)
{
	uint32_t id;

	RUN(0, "policy add shop --preset curl --linger 1h");
	ASSERT_EQ(0, kretry_policy_open(self->k, "shop", 0, &id));
	RUN(0, "top --interval 100ms");
	SAYS("POLICY");
	SAYS("\nshop  ");
	SAYS_NOT("\033");
}

static int open_terminal(int *slave)
{
	char name[64];
	int master;

	mkdir("/dev/pts", 0755);
	if (access("/dev/pts/ptmx", F_OK) < 0 &&
	    mount("devpts", "/dev/pts", "devpts", 0, "mode=0600,ptmxmode=0666") < 0)
		return -1;
	master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)))
		return -1;
	*slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return *slave < 0 ? -1 : master;
}

/* It draws again and again, and leaves the terminal as it was when q is typed. */
TEST_F(command, top_on_a_terminal_until_q)
{
	struct termios before, after;
	int slave, master = open_terminal(&slave), std[2];
	size_t have = 0;
	ssize_t got;
	pid_t pid;

	ASSERT_LE(0, master);
	ASSERT_EQ(0, tcgetattr(slave, &before));
	RUN(0, "policy add shop --preset curl --linger 1h");
	std[0] = slave;
	std[1] = slave;
	pid = tool_start("top --interval 50ms", std);
	while (have < 2000 && (got = read(master, self->out + have, 512)) > 0)
		have += (size_t)got;
	ASSERT_EQ(1, write(master, "q", 1));
	fcntl(master, F_SETFL, O_NONBLOCK);
	EXPECT_EQ(0, tool_wait(pid));
	while ((got = read(master, self->out + have, 512)) > 0)
		have += (size_t)got;
	self->out[have] = '\0';
	SAYS("\033[?1049h");
	SAYS("shop");
	SAYS("q quits");
	SAYS("\033[?1049l");
	ASSERT_EQ(0, tcgetattr(slave, &after));
	EXPECT_EQ(before.c_lflag, after.c_lflag);
	close(slave);
	close(master);
}

TEST_HARNESS_MAIN
