// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

/* A process that is already dying gets this long before it counts as left behind. */
#define GRACE_MS 200
/* A killed process that is still there after this long is stuck in the kernel. */
#define KILL_MS 10000

struct child {
	pid_t pid;
	int pidfd;
	int output;
};

long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
	struct timespec span = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&span, NULL);
}

__attribute__((noreturn)) static void become(char *const *argv, int output)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setsid();
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	if (chdir("/tests") == 0)
		execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static void spawn(char *const *argv, struct child *child)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		bail_out("cannot create a pipe");
	child->pid = fork();
	if (child->pid < 0)
		bail_out("cannot fork");
	if (child->pid == 0)
		become(argv, ends[1]);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	child->output = ends[0];
	child->pidfd = syscall(SYS_pidfd_open, child->pid, 0);
	if (child->pidfd < 0)
		bail_out("pidfd_open failed");
}

/* False once no writer is left. */
static bool read_output(int fd, bool live, struct text *output)
{
	char data[4096];
	ssize_t len;

	while ((len = read(fd, data, sizeof(data))) > 0) {
		if (live)
			write_all(STDOUT_FILENO, data, len);
		text_add(output, data, len);
	}
	return len < 0;
}

/* True when the program ended before the deadline. */
static bool pump(const struct child *child, bool live, long long deadline, struct text *output)
{
	struct pollfd fds[2] = {
		{ .fd = child->output, .events = POLLIN },
		{ .fd = child->pidfd, .events = POLLIN },
	};
	long long left;

	for (;;) {
		left = deadline - now_ms();
		if (left <= 0)
			return false;
		poll(fds, 2, left > INT_MAX ? INT_MAX : (int)left);
		if (fds[0].revents && !read_output(child->output, live, output))
			fds[0].fd = -1;
		if (fds[1].revents)
			return true;
	}
}

/* Reaps for at most ms; true when no process is left. */
static bool reap_all(long ms)
{
	long long deadline = now_ms() + ms;
	pid_t pid;

	for (;;) {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return true;
		if (now_ms() >= deadline)
			return false;
		sleep_ms(5);
	}
}

static void name_if_ours(const char *pid, struct text *diag)
{
	char path[300], stat[512], *name, *end;
	int fd, len, parent;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[len > 0 ? len : 0] = '\0';
	name = strchr(stat, '(');
	end = strrchr(stat, ')');
	if (!name || !end || sscanf(end, ") %*c %d", &parent) != 1 || parent != 1)
		return;
	*end = '\0';
	text_printf(diag, "left a process behind: %s\n", name + 1);
}

static void name_processes_left(struct text *diag)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (!proc)
		return;
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			name_if_ours(entry->d_name, diag);
	closedir(proc);
}

/* As process 1 we inherit every orphan, so whatever is left belongs to the program just run. */
static void end_processes_left(struct outcome *outcome)
{
	if (reap_all(GRACE_MS))
		return;
	outcome->failed = true;
	name_processes_left(&outcome->diag);
	kill(-1, SIGKILL);
	if (!reap_all(KILL_MS))
		bail_out("a process left behind cannot be killed");
}

static void end_program(const struct child *child, struct outcome *outcome)
{
	struct pollfd ended = { .fd = child->pidfd, .events = POLLIN };

	kill(-1, SIGKILL);
	if (poll(&ended, 1, KILL_MS) != 1)
		bail_out("a program that timed out cannot be killed");
	outcome->timed_out = true;
}

void run_command(const struct command *command, struct outcome *outcome)
{
	long long deadline = now_ms() + command->timeout_s * 1000LL;
	struct child child;

	memset(outcome, 0, sizeof(*outcome));
	spawn(command->argv, &child);
	if (!pump(&child, command->live, deadline, &outcome->output))
		end_program(&child, outcome);
	waitpid(child.pid, &outcome->status, 0);
	end_processes_left(outcome);
	read_output(child.output, command->live, &outcome->output);
	close(child.output);
	close(child.pidfd);
	if (outcome->timed_out)
		fail(outcome, "timed out after %ld s of guest time", command->timeout_s);
}

void outcome_free(struct outcome *outcome)
{
	text_free(&outcome->output);
	text_free(&outcome->diag);
}
