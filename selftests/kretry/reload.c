// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The module coming and going while others open it. */
#include "harness.h"

#include <errno.h>
#include <signal.h>

#define OPENERS	2
#define SPAN	(20 * SEC)

FIXTURE(reload) {
	pid_t pids[OPENERS];
};

FIXTURE_SETUP(reload)
{
}

FIXTURE_TEARDOWN(reload)
{
	EXPECT_EQ(0, kt_ensure_loaded());
}

/* A pause now and then lets the module go between two opens. */
static int open_for_ever(void *arg)
{
	struct kretry_policy policy;
	unsigned int round;
	int fd;

	(void)arg;
	kt_policy(&policy);
	for (round = 0;; round++) {
		if (round % 4 == 0)
			kt_sleep(round % 50 * 20 * USEC);
		fd = kt_open();
		if (fd < 0)
			continue;
		policy.id = kt_create(fd, &policy);
		if (kt_delay(fd, policy.id, 0) != 100 * MSEC)
			return 1;
		close(fd);
	}
}

TEST_F(reload, opens_racing_with_load_and_unload_no_harm)
{
	uint64_t end = kt_now(CLOCK_MONOTONIC) + SPAN;
	int unloads = 0, refused = 0, ret, i;
	bool loaded = true;

	for (i = 0; i < OPENERS; i++) {
		self->pids[i] = fork();
		if (!self->pids[i])
			_exit(open_for_ever(NULL));
	}
	while (unloads < 1000 && kt_now(CLOCK_MONOTONIC) < end) {
		ret = loaded ? kt_unload() : kt_load("");
		ASSERT_TRUE(!ret || (loaded && ret == -EWOULDBLOCK))
			TH_LOG("%s: %d", loaded ? "unload" : "load", ret);
		refused += ret != 0;
		unloads += loaded && !ret;
		loaded ^= !ret;
	}
	for (i = 0; i < OPENERS; i++) {
		EXPECT_EQ(0, kill(self->pids[i], SIGKILL));
		EXPECT_EQ(128 + SIGKILL, kt_wait(self->pids[i]));
	}
	TH_LOG("%d unloads, %d refused", unloads, refused);
	EXPECT_LE(5, unloads);
	EXPECT_LE(5, refused);
}

TEST_HARNESS_MAIN
