// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One attempt: from the command's start until it, or all that comes from it, has ended. */

#include <errno.h>
#include <unistd.h>

#include "run.h"

/* Some processes die slowly, and those that come meanwhile have to be found too. */
#define KILL_AGAIN_NS	(20 * NS_PER_MS)

/* -------- its end -------- */

/* What is stopped would not see a signal. */
static void continue_all(const struct run *r)
{
	if (r->attempt.group)
		kill(-r->attempt.group, SIGCONT);
	else
		descendants_signal(r, SIGCONT);
}

/* A signal to kretry: @pass if the command has not got it itself. */
void attempt_end(struct run *r, int signal, bool pass)
{
	if (pass && r->attempt.group)
		kill(-r->attempt.group, signal);
	else if (pass)
		descendants_signal(r, signal);
	continue_all(r);
	if (r->attempt.phase != PHASE_RUNNING)
		return;
	r->attempt.phase = PHASE_ENDING;
	if (r->set.grace_ns)
		alarm_set(r, r->set.grace_ns);
	else
		attempt_kill(r);
}

void attempt_kill(struct run *r)
{
	bool reached = descendants_signal(r, SIGKILL);

	/* All that is left is not ours to kill: such as what runs as another user. */
	r->attempt.phase = reached || r->attempt.pid ? PHASE_KILLING : PHASE_RUNNING;
	alarm_set(r, reached ? KILL_AGAIN_NS : NS_PER_S);
}

static void time_out(struct run *r)
{
	r->attempt.timed_out = true;
	r->attempt.phase = PHASE_ENDING;
	descendants_signal(r, SIGTERM);
	descendants_signal(r, SIGCONT);
	r->attempt.told_rest = true;
	if (r->set.grace_ns)
		alarm_set(r, r->set.grace_ns);
	else
		attempt_kill(r);
}

static void serve_alarm(struct run *r)
{
	if (!is_ready(r, ON_ALARM))
		return;
	timer_clear(r, ON_ALARM);
	if (r->attempt.phase == PHASE_RUNNING)
		time_out(r);
	else
		attempt_kill(r);
}

/* The command has ended after a signal: what it has left behind, elsewhere, is asked to end too. */
static void tell_rest(struct run *r)
{
	if (r->attempt.told_rest)
		return;
	r->attempt.told_rest = true;
	descendants_signal(r, SIGTERM);
	descendants_signal(r, SIGCONT);
}

static bool is_over(struct run *r)
{
	if (r->attempt.pid)
		return false;
	if (r->attempt.phase == PHASE_RUNNING)
		return true;
	if (!descendants_left(r))
		return true;
	tell_rest(r);
	return false;
}

/* -------- its course -------- */

static bool follow(struct run *r)
{
	while (!is_over(r)) {
		input_arrange(r);
		if (!loop_wait(r))
			return false;
		signals_serve(r);
		serve_alarm(r);
		input_serve(r);
		output_serve(r);
		hint_serve(r);
	}
	return true;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

static bool start(struct run *r)
{
	int in, out[2] = { -1, -1 }, hint = -1;
	bool ok;

	in = input_begin(r);
	if (in < -1)
		return false;
	ok = output_begin(r, out) && hint_begin(r, &hint) && spawn(r, in, out, hint);
	close_one(in);
	close_one(out[0]);
	close_one(out[1]);
	close_one(hint);
	return ok;
}

/* False if kretry failed, which is told. */
bool attempt_run(struct run *r)
{
	bool ok;

	r->attempt = (struct attempt) { .number = r->attempt.number + 1 };
	ok = start(r);
	if (ok && r->attempt.pid && r->set.timeout_ns)
		ok = alarm_set(r, r->set.timeout_ns);
	if (ok)
		ok = follow(r);
	if (!ok && r->attempt.pid) {
		attempt_kill(r);
		follow(r);
	}
	alarm_set(r, 0);
	r->attempt.phase = PHASE_RUNNING;
	input_end(r);
	output_end(r);
	hint_end(r);
	return ok;
}
