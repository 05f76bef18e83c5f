// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry run on the module: what runs one after the other, or at once, have in common. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kretry.h"
#include "tool.h"

#define LOG	"/tmp/command_run.log"
#define SAID	"/tmp/command_run.said"

/* -------- the commands it runs: this program, which then logs what it does -------- */

static void say(uint64_t number)
{
	int fd = open(LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	dprintf(fd, "%llu\n", (unsigned long long)number);
	close(fd);
}

/* Two processes that SIGTERM does not end, one of them in a session of its own. */
static void stay(void)
{
	signal(SIGTERM, SIG_IGN);
	if (fork() == 0) {
		setsid();
		if (fork())
			_exit(0);
	}
	say((uint64_t)getpid());
	for (;;)
		pause();
}

__attribute__((constructor)) static void be_command(int argc, char **argv)
{
	if (argc < 2)
		return;
	if (!strcmp(argv[1], "fails") || !strcmp(argv[1], "succeeds")) {
		say(kt_now(CLOCK_MONOTONIC));
		_exit(!strcmp(argv[1], "fails") ? 7 : 0);
	}
	if (!strcmp(argv[1], "stays"))
		stay();
}

#define FAILS		"command_run fails"
#define SUCCEEDS	"command_run succeeds"

/* -------- the tests -------- */

FIXTURE(command_run) {
	struct kretry *k;
	char out[65536];	/* what the command last said, stderr too */
	uint64_t logged[64];
	int count;
};

FIXTURE_SETUP(command_run)
{
	unlink(LOG);
	ASSERT_EQ(0, kretry_open(&self->k, NULL, KRETRY_MODULE_ONLY));
}

FIXTURE_TEARDOWN(command_run)
{
	ASSERT_EQ(0, tool_forget_policies(self->k));
	kretry_close(self->k);
}

/* What the commands have logged since the last time. */
static int read_log(uint64_t *numbers)
{
	FILE *file = fopen(LOG, "re");
	unsigned long long number;
	int count = 0;

	if (!file)
		return 0;
	while (count < 64 && fscanf(file, "%llu", &number) == 1)
		numbers[count++] = number;
	fclose(file);
	unlink(LOG);
	return count;
}

#define EXECUTIONS(number) do {						\
	self->count = read_log(self->logged);				\
	EXPECT_EQ(number, self->count);					\
} while (0)

static pid_t start(const char *line)
{
	int std[2] = {
		open("/dev/null", O_RDONLY | O_CLOEXEC),
		open(SAID, O_WRONLY | O_CREAT | O_CLOEXEC, 0644),
	};
	pid_t pid = tool_start(line, std);

	close(std[0]);
	close(std[1]);
	return pid;
}

TEST_F(command_run, runs_after_each_other_share_one_budget)
{
	RUN(0, "policy add shop max_retries=999 strategy=fixed base=1s jitter=none "
	    "budget.capacity=10 --linger 1h");
	RUN(7, "run --policy shop " FAILS);
	SAYS("giving up after 11 attempts: stop-budget: the budget is exhausted");
	EXECUTIONS(11);
	RUN(7, "run --policy shop " FAILS);
	SAYS("giving up after 1 attempt: stop-budget");
	EXECUTIONS(1);
	RUN(7, "run --policy shop --key 5 " FAILS);
	EXECUTIONS(11);
}

TEST_F(command_run, runs_at_once_share_one_budget)
{
	pid_t one, other;

	RUN(0, "policy add shop max_retries=999 strategy=fixed base=1s budget.capacity=10 "
	    "--linger 1h");
	one = start("run --policy shop " FAILS);
	other = start("run --policy shop " FAILS);
	EXPECT_EQ(7, tool_wait(one));
	EXPECT_EQ(7, tool_wait(other));
	EXECUTIONS(12);
}

TEST_F(command_run, breaker_opened_by_one_refuses_the_next_until_a_probe_closes_it)
{
	RUN(0, "policy add shop base=1ms breaker.consecutive=2 breaker.open=10s --linger 1h");
	RUN(7, "run --policy shop " FAILS);
	SAYS("giving up after 2 attempts: stop-open: the circuit breaker is open");
	EXECUTIONS(2);
	RUN(122, "run --policy shop " SUCCEEDS);
	SAYS("not run: stop-open: the circuit breaker is open: try again in ");
	RUN(122, "run --json --policy shop " SUCCEEDS);
	SAYS("{\"event\":\"end\",\"attempts\":0,\"verdict\":\"stop-open\",\"exit\":122}\n");
	EXECUTIONS(0);
	sleep(11);
	RUN(7, "run --policy shop " FAILS);
	EXECUTIONS(1);
	RUN(122, "run --policy shop " SUCCEEDS);
	sleep(11);
	RUN(0, "run --policy shop " SUCCEEDS);
	RUN(0, "stat shop --key 0");
	SAYS("breaker            closed\n");
	EXECUTIONS(1);
}

/* A probe that cannot be executed, or is interrupted, is given back. */
TEST_F(command_run, probe_that_comes_to_nothing_is_given_back)
{
	RUN(0, "policy add shop base=1ms breaker.consecutive=1 breaker.open=10s "
	    "breaker.probe_timeout=1h --linger 1h");
	RUN(7, "run --policy shop " FAILS);
	sleep(11);
	RUN(127, "run --policy shop no-such-command");
	RUN(0, "run --policy shop " SUCCEEDS);
	EXECUTIONS(2);
}

TEST_F(command_run, policy_of_a_directory_is_created_and_shared)
{
	ASSERT_EQ(0, tool_write_file("/tmp/conf/a.conf", "[other]\nbase = 1s\n"));
	ASSERT_EQ(0, tool_write_file("/tmp/conf/b.conf", "[shop]\nbase = 1ms\njitter = none\n"
				     "max_retries = 99\nbudget.capacity = 3\n"));
	RUN(7, "run --policy shop --config /tmp/conf " FAILS);
	EXECUTIONS(4);
	RUN(0, "policy show shop");
	SAYS("linger = 1h\n");
	RUN(7, "run --policy shop --config /tmp/conf " FAILS);
	SAYS("stop-budget");
	EXECUTIONS(1);
	RUN(125, "run --policy shops --config /tmp/conf " SUCCEEDS);
	SAYS("no policy shops: write a section [shops] into /tmp/conf/");
	EXECUTIONS(0);
}

TEST_F(command_run, wait_open_retry_sleeps_until_the_breaker_lets_it_through)
{
	uint64_t before = kt_now(CLOCK_MONOTONIC);

	RUN(0, "policy add shop base=1ms max_retries=3 breaker.consecutive=2 breaker.open=1m "
	    "breaker.wait_open=yes --linger 1h");
	RUN(7, "run --policy shop " FAILS);
	EXECUTIONS(4);
	EXPECT_LE(before + 120 * SEC, self->logged[3]);
	EXPECT_GE(before + 125 * SEC, self->logged[3]);
}

TEST_F(command_run, pacing_spaces_attempts_of_two_runs)
{
	pid_t one, other;
	int i;

	RUN(0, "policy add shop base=1ms max_retries=4 pacing.every=10s pacing.all=yes "
	    "--linger 1h");
	one = start("run --policy shop " FAILS);
	other = start("run --policy shop " FAILS);
	EXPECT_EQ(7, tool_wait(one));
	EXPECT_EQ(7, tool_wait(other));
	EXECUTIONS(10);
	/* Each is logged a little after its slot. */
	for (i = 1; i < self->count; i++)
		EXPECT_LE(self->logged[i - 1] + 10 * SEC, self->logged[i] + 50 * MSEC);
	EXPECT_GE(self->logged[0] + 91 * SEC, self->logged[9]);
}

TEST_F(command_run, deadline_is_never_early_and_not_late)
{
	static const char *const lines[] = {
		"run --attempts 30 --factor 1 --delay 100ms --jitter none " FAILS,
		"run --attempts 30 --factor 1 --delay 100ms --jitter none --set clock=boottime "
			FAILS,
		"run --attempts 30 --factor 1 --delay 100ms --jitter none --device /none " FAILS,
	};
	size_t line;
	int i;

	for (line = 0; line < ARRAY_LEN(lines); line++) {
		RUN(7, lines[line]);
		EXECUTIONS(30);
		for (i = 1; i < self->count; i++) {
			EXPECT_LE(self->logged[i - 1] + 100 * MSEC, self->logged[i]);
			EXPECT_GE(self->logged[i - 1] + 120 * MSEC, self->logged[i]);
		}
	}
}

TEST_F(command_run, hour_is_slept_through)
{
	RUN(0, "run --attempts 3 --delay 1h --max-delay 1h --jitter none command_run succeeds");
	RUN(7, "run --attempts 3 --delay 1h --max-delay 1h --jitter none " FAILS);
	EXECUTIONS(4);
	EXPECT_LE(self->logged[1] + 7200 * SEC, self->logged[3]);
	EXPECT_GE(self->logged[1] + 7201 * SEC, self->logged[3]);
}

TEST_F(command_run, timeout_leaves_no_descendant)
{
	uint64_t before = kt_now(CLOCK_MONOTONIC);
	int i;

	RUN(124, "run --attempts 2 --delay 1s --jitter none --timeout 2s --grace 3s "
	    "command_run stays");
	SAYS("attempt 1 of 2: timed out after 2s (unknown); next in 1s");
	EXPECT_LE(before + 11 * SEC, kt_now(CLOCK_MONOTONIC));
	EXPECT_GE(before + 12 * SEC, kt_now(CLOCK_MONOTONIC));
	EXECUTIONS(4);
	for (i = 0; i < self->count; i++) {
		EXPECT_EQ(-1, kill((pid_t)self->logged[i], 0));
		EXPECT_EQ(ESRCH, errno);
	}
}

TEST_F(command_run, nested_run_makes_one_attempt)
{
	RUN(7, "run --attempts 3 --delay 1ms kretry run --attempts 3 --delay 1ms " FAILS);
	EXECUTIONS(3);
	RUN(7, "run --attempts 3 --delay 1ms kretry run --nested --attempts 3 --delay 1ms " FAILS);
	EXECUTIONS(9);
	RUN(7, "run --attempts 1 kretry run --attempts 3 --delay 1ms " FAILS);
	EXECUTIONS(3);
}

TEST_F(command_run, backend_is_told_with_the_reason)
{
	RUN(0, "run -v " SUCCEEDS);
	SAYS("kretry: decided by the module\n");
	RUN(0, "run -v --device /dev/none " SUCCEEDS);
	SAYS("kretry: decided in this process: /dev/none: No such file or directory: ");
	RUN(0, "run -v --device /dev/null " SUCCEEDS);
	SAYS("kretry: decided in this process: /dev/null: it is another device: ");
	RUN(7, "run --json --attempts 1 " FAILS);
	SAYS("\"backend\":\"module\"}\n");
	EXECUTIONS(4);
}

/* The one that it has started goes with it; not the other, in a session of its own. */
TEST_F(command_run, killed_run_leaves_no_command_and_no_probe)
{
	pid_t pid, gone, other;

	RUN(0, "policy add shop base=1ms breaker.consecutive=1 breaker.open=10s "
	    "breaker.probe_timeout=1h --linger 1h");
	RUN(7, "run --policy shop " FAILS);
	sleep(11);
	unlink(LOG);
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	pid = start("run --policy shop command_run stays");
	sleep(1);
	EXECUTIONS(2);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	gone = waitpid(-1, NULL, 0);
	other = (pid_t)(self->logged[0] + self->logged[1]) - gone;
	EXPECT_TRUE((pid_t)self->logged[0] == gone || (pid_t)self->logged[1] == gone);
	EXPECT_EQ(0, waitpid(other, NULL, WNOHANG));
	kill(other, SIGKILL);
	EXPECT_EQ(other, waitpid(other, NULL, 0));
	RUN(0, "run --policy shop " SUCCEEDS);
	EXECUTIONS(1);
}

TEST_HARNESS_MAIN
