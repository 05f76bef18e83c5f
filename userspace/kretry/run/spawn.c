// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The command's process, and whether it could be executed. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

struct child {
	int	in;
	int	out[2];
	int	hint;
	int	failed;		/* the pipe that execve() closes */
	pid_t	parent;
	bool	own_group;
};

static bool put(int from, int to)
{
	return from < 0 || dup2(from, to) == to;
}

/* Descriptor N of the command is its own: nothing of ours may lie there. */
static bool arrange_fds(const struct run *r, struct child *c)
{
	if (r->set.hint_fd >= 0) {
		c->failed = fcntl(c->failed, F_DUPFD_CLOEXEC, r->set.hint_fd + 1);
		if (c->failed < 0)
			return false;
	}
	return put(c->in, 0) && put(c->out[0], 1) && put(c->out[1], 2) &&
	       (c->hint < 0 || put(c->hint, r->set.hint_fd));
}

static void become(const struct run *r, struct child *c)
{
	int failed = c->failed, error;

	if (c->own_group)
		setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != c->parent)
		_exit(EXIT_OWN);
	environment_set(r);
	if (arrange_fds(r, c)) {
		failed = c->failed;
		signals_return(r);
		execvp(r->set.command[0], r->set.command);
	}
	error = errno;
	if (write(failed, &error, sizeof(error)) < 0)
		_exit(EXIT_OWN);
	_exit(EXIT_NO_EXEC);
}

/* Returns when it is executed, or what errno has said. */
static int await_exec(int from)
{
	int error = 0;
	ssize_t got;

	do {
		got = read(from, &error, sizeof(error));
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(error) ? error : 0;
}

/* Only in the terminal's foreground group, which is ours, could it read from it. */
static bool wants_own_group(void)
{
	return !isatty(STDIN_FILENO);
}

static void started(struct run *r, const struct child *c, pid_t pid, int from)
{
	if (c->own_group) {
		setpgid(pid, pid);
		r->attempt.group = pid;
	}
	r->attempt.pid = pid;
	r->attempt.exec_error = await_exec(from);
	if (!r->attempt.exec_error)
		return;
	waitpid(pid, NULL, 0);
	r->attempt.pid = 0;
}

bool spawn(struct run *r, int in, const int out[2], int hint)
{
	struct child c = {
		.in = in, .out = { out[0], out[1] }, .hint = hint,
		.parent = getpid(), .own_group = wants_own_group(),
	};
	int pipes[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0) {
		complain(r, "pipe: %m");
		return false;
	}
	c.failed = pipes[1];
	pid = fork();
	if (!pid)
		become(r, &c);
	if (pid < 0)
		complain(r, "fork: %m");
	close(pipes[1]);
	if (pid > 0)
		started(r, &c, pid, pipes[0]);
	close(pipes[0]);
	return pid > 0;
}
