// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The Python module on the real one: each test is a function of pymodule.py. */
#include "harness.h"
#include "common.h"

#include <stdlib.h>
#include <unistd.h>

#define HOME	"/tests/python"

static int python(const char *test)
{
	pid_t pid = fork();

	if (pid)
		return kt_wait(pid);
	setenv("PYTHONHOME", HOME, 1);
	execl(HOME "/loader", "loader", "--library-path", HOME, HOME "/python", "-B", "-s", "-S",
	      HOME "/pymodule.py", test, NULL);
	_exit(127);
}

TEST(calls_each_what_it_says)
{
	EXPECT_EQ(0, python("calls"));
}

TEST(failed_call_errno_and_nothing_changed)
{
	EXPECT_EQ(0, python("errnos"));
}

TEST(node_denied_reason_and_process_decides)
{
	EXPECT_EQ(0, python("denied"));
}

TEST(textbook_samples_wait_1_2_4_8)
{
	EXPECT_EQ(0, python("textbook"));
}

TEST(loop_budget_exhausted_stops)
{
	EXPECT_EQ(0, python("budget"));
}

TEST(loop_breaker_open_refused_before_the_call)
{
	EXPECT_EQ(0, python("breaker"));
}

TEST(loop_left_probe_back)
{
	EXPECT_EQ(0, python("probe_of_a_loop_left"));
}

TEST(loop_paced_waits_for_its_slot)
{
	EXPECT_EQ(0, python("pacing"));
}

TEST(asyncio_thousand_in_order_one_descriptor)
{
	EXPECT_EQ(0, python("asyncio_thousand"));
}

TEST(asyncio_cancelled_token_back)
{
	EXPECT_EQ(0, python("asyncio_cancelled"));
}

TEST(asyncio_open_breaker_and_pacing_admitted_by_the_kernel)
{
	EXPECT_EQ(0, python("asyncio_breaker_and_pacing"));
}

TEST(asyncio_child_of_fork_leaves_the_queue_alone)
{
	EXPECT_EQ(0, python("asyncio_after_fork"));
}

TEST_HARNESS_MAIN
