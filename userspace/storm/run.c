// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One run: start the processes, let them go at the same time, wait for the end of the window.
 */
#include "storm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES	(STORM_CLIENTS + 1)
#define SERVER		STORM_CLIENTS		/* its place in the table of processes */

#define READY_MS	60000
#define STALL_NS	(300 * NS_PER_S)

struct pipes {
	int ready[2];
	int start[2];
};

void storm_ready(const struct storm_run *run)
{
	char byte = 0;
	ssize_t ret;

	if (write(run->ready_fd, &byte, 1) != 1)
		storm_die("cannot report to the parent: %s", strerror(errno));
	do
		ret = read(run->start_fd, &byte, 1);
	while (ret < 0 && errno == EINTR);
	close(run->ready_fd);
	close(run->start_fd);
}

static pid_t start_process(struct storm_run *run, const struct pipes *pipes, unsigned int place)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(pipes->ready[0]);
	close(pipes->start[1]);
	if (place == SERVER)
		storm_server(run);
	storm_client(run, place);
}

static void stop(pid_t *pids)
{
	unsigned int i;

	for (i = 0; i < PROCESSES; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGTERM);
	for (i = 0; i < PROCESSES; i++)
		if (pids[i] > 0)
			waitpid(pids[i], NULL, 0);
}

/* No process ends by itself: one that does has failed. If it was not killed it has said why. */
static void check_alive(pid_t *pids)
{
	unsigned int i;
	int status;

	for (i = 0; i < PROCESSES; i++) {
		if (!waitpid(pids[i], &status, WNOHANG))
			continue;
		pids[i] = 0;
		stop(pids);
		if (!WIFSIGNALED(status))
			exit(1);
		storm_die("%s was killed by signal %d", i == SERVER ? "the server" : "a client",
			  WTERMSIG(status));
	}
}

static void wait_ready(const struct pipes *pipes, pid_t *pids)
{
	struct pollfd poll_fd = { .fd = pipes->ready[0], .events = POLLIN };
	unsigned int left = PROCESSES;
	char bytes[PROCESSES];
	ssize_t got;

	while (left) {
		if (poll(&poll_fd, 1, READY_MS) <= 0)
			storm_die("the processes did not start within %u s", READY_MS / 1000);
		got = read(pipes->ready[0], bytes, left);
		if (got > 0)
			left -= (unsigned int)got;
		check_alive(pids);
	}
}

static void wait_end(const struct storm_run *run, pid_t *pids)
{
	const struct timespec step = { .tv_nsec = (long)STORM_BIN_NS };
	uint64_t now, t0;

	do {
		nanosleep(&step, NULL);
		check_alive(pids);
		now = kretry_now(CLOCK_MONOTONIC);
		t0 = __atomic_load_n(&run->t0_ns, __ATOMIC_ACQUIRE);
		if (!t0 && now > run->start_ns + STALL_NS)
			storm_die("the clients did not all call within %llu s",
				  STALL_NS / NS_PER_S);
	} while (!t0 || now < t0 + run->window_ns);
}

static void check_logs(const struct storm_run *run)
{
	bool lost = run->server.lost;
	unsigned int i;

	for (i = 0; i < STORM_CLIENTS; i++)
		lost |= run->clients[i].lost;
	if (lost)
		storm_die("more requests than there is room for: take a shorter --window");
}

void storm_run(struct storm_run *run)
{
	pid_t pids[PROCESSES] = { 0 };
	struct pipes pipes;
	unsigned int i;

	if (pipe(pipes.ready) || pipe(pipes.start))
		storm_die("cannot make a pipe: %s", strerror(errno));
	run->ready_fd = pipes.ready[1];
	run->start_fd = pipes.start[0];
	for (i = PROCESSES; i-- > 0;) {
		pids[i] = start_process(run, &pipes, i);
		if (pids[i] < 0)
			storm_die("cannot start a process: %s", strerror(errno));
	}
	close(pipes.ready[1]);
	close(pipes.start[0]);
	wait_ready(&pipes, pids);
	close(pipes.ready[0]);
	run->start_ns = (kretry_now(CLOCK_MONOTONIC) / STORM_BIN_NS + 1) * STORM_BIN_NS;
	close(pipes.start[1]);
	wait_end(run, pids);
	stop(pids);
	check_logs(run);
}
