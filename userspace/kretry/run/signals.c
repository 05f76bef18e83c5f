// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Signals: read from a descriptor, passed on, and as they were for the command. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

static const int taken[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP, SIGCHLD,
};

/* A broken pipe and a full disk are errors here, not the end. */
static const struct { int signal; sighandler_t handler; } changed[] = {
	{ SIGCHLD, SIG_DFL }, { SIGPIPE, SIG_IGN }, { SIGXFSZ, SIG_IGN },
};

_Static_assert(ARRAY_SIZE(changed) == ARRAY_SIZE(((struct run *)0)->old_actions),
	       "no room for all");

/*
 * Where 0, 1 or 2 is closed, a descriptor of ours would take its place. What is put there instead
 * behaves as if it were closed, and is closed for the command.
 */
void standard_fds_occupy(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
			return;
}

/* What was ignored when it started (nohup) stays so. */
static bool is_ignored(int signal)
{
	struct sigaction action;

	return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool signals_take(struct run *r)
{
	struct sigaction action = { 0 };
	sigset_t set;
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(changed); i++) {
		action.sa_handler = changed[i].handler;
		sigaction(changed[i].signal, &action, &r->old_actions[i]);
	}
	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(taken); i++)
		if (!is_ignored(taken[i]))
			sigaddset(&set, taken[i]);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0) {
		fail("signalfd: %m");
		return false;
	}
	watch(r, ON_SIGNAL, fd, POLLIN);
	return true;
}

/* As they were: in the command, and here where nothing has to be seen to any more. */
void signals_return(const struct run *r)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(changed); i++)
		sigaction(changed[i].signal, &r->old_actions[i], NULL);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}

/* The terminal has told its whole foreground group itself. */
static bool command_has_it(const struct run *r, const struct signalfd_siginfo *info)
{
	return !r->attempt.group && info->ssi_code == SI_KERNEL;
}

static void pass_on(const struct run *r, const struct signalfd_siginfo *info)
{
	if (!r->attempt.pid || command_has_it(r, info))
		return;
	if (r->attempt.group)
		kill(-r->attempt.group, (int)info->ssi_signo);
	else
		kill(r->attempt.pid, (int)info->ssi_signo);
}

/* By the signal itself, which the kernel ignores where nobody could continue us. */
static void suspend(struct run *r)
{
	sigset_t set;

	countdown_erase(r);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void interrupt(struct run *r, const struct signalfd_siginfo *info)
{
	bool again = r->interrupt;

	if (!again)
		r->interrupt = (int)info->ssi_signo;
	if (!r->attempt.pid && r->attempt.phase == PHASE_RUNNING)
		return;
	if (again)
		attempt_kill(r);
	else
		attempt_end(r, r->interrupt, !command_has_it(r, info));
}

static void serve_one(struct run *r, const struct signalfd_siginfo *info)
{
	switch (info->ssi_signo) {
	case SIGCHLD:
		break;
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		interrupt(r, info);
		break;
	case SIGTSTP:
		pass_on(r, info);
		suspend(r);
		break;
	default:
		pass_on(r, info);
	}
}

/* Children, and what the command left behind when it ended: as for PID 1. */
static void reap(struct run *r)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != r->attempt.pid)
			continue;
		r->attempt.pid = 0;
		r->attempt.status = status;
	}
}

/* True if there were any. */
bool signals_serve(struct run *r)
{
	struct signalfd_siginfo info;

	if (!is_ready(r, ON_SIGNAL))
		return false;
	while (read(r->polls[ON_SIGNAL].fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		serve_one(r, &info);
	reap(r);
	return true;
}

/* What has come for the command when it had gone already. */
void signals_drop(const struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->polls[ON_SIGNAL].fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
}
