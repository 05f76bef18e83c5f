// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Tests that go wrong, each in one way: the harness has to notice every one of them. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(99);
	close(fd);
}

FIXTURE(clock) {
	int unused;
};

FIXTURE_SETUP(clock)
{
}

FIXTURE_TEARDOWN(clock)
{
}

/*
 * Random bytes and the clock go to the console: two virtual boots have to agree on them. Not to
 * the nanosecond: when QEMU's threads race at the guest's idling, an idle hour gains a few
 * instructions.
 */
TEST_F_TIMEOUT(clock, passes_and_prints, 7200)
{
	uint64_t random;
	struct timespec now, nap = { 3600, 0 };
	FILE *console = fopen("/dev/console", "w");

	ASSERT_NE(NULL, console);
	ASSERT_EQ(sizeof(random), getrandom(&random, sizeof(random), 0));
	if (!strcmp(getenv("KRETRY_VM_MODE"), "virtual"))
		ASSERT_EQ(0, nanosleep(&nap, NULL));
	clock_gettime(CLOCK_MONOTONIC, &now);
	fprintf(console, "# random %016llx at %lld.%03ld\n", (unsigned long long)random,
		(long long)now.tv_sec, now.tv_nsec / 1000000);
	fclose(console);
}

TEST(skips_off_the_list)
{
	SKIP(return, "because it wants to");
}

TEST(skips_on_the_list)
{
	SKIP(return, "because it may");
}

TEST(fails_an_expectation)
{
	EXPECT_EQ(1, 2);
}

TEST(exits_the_program)
{
	kill(getppid(), SIGKILL);
}

TEST(hides_behind_a_false_result)
{
	FILE *parent = fopen("/dev/stdout", "w");

	fprintf(parent, "ok 1 a result that is none\n");
	fclose(parent);
}

TEST(leaves_a_child_behind)
{
	if (fork() == 0) {
		setsid();
		pause();
	}
}

TEST(writes_a_warning_to_the_log)
{
	write_file("/dev/kmsg", "WARNING: CPU: 0 PID: 1 at nowhere\n");
}

TEST_SIGNAL(sleeps_past_its_timeout, SIGKILL)
{
	alarm(0);
	for (;;)
		pause();
}

FIXTURE(lethal) {
	int unused;
};

FIXTURE_SETUP(lethal)
{
}

FIXTURE_TEARDOWN(lethal)
{
}

TEST_F(lethal, panics)
{
	write_file("/proc/sysrq-trigger", "c");
}

/* At the highest priority on the only CPU, so that not even process 1 runs again. */
TEST_F(lethal, hangs)
{
	struct sched_param highest = { .sched_priority = 99 };

	write_file("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &highest));
	for (;;)
		;
}

TEST_F(lethal, powers_off_early)
{
	reboot(RB_POWER_OFF);
}

TEST_HARNESS_MAIN
