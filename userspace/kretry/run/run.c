// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry run: an operation's life, of which each attempt is a command's. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* -------- decisions -------- */

/* False if none can be had, which is told. */
static bool ask(struct run *r, enum kretry_event event)
{
	int ret;

	r->op.event = (uint8_t)event;
	ret = kretry_step(r->k, &r->op);
	if (ret < 0)
		complain(r, "no decision: %s", strerror(-ret));
	return ret >= 0;
}

uint64_t deadline_left(const struct run *r)
{
	uint64_t now = kretry_now((clockid_t)r->policy.clockid);

	return r->op.deadline_ns > now ? r->op.deadline_ns - now : 0;
}

/* Sleep to the deadline, and serve signals meanwhile. False: interrupted, or kretry failed. */
static bool await_deadline(struct run *r)
{
	uint64_t left = deadline_left(r);
	bool ok = true;

	if (left)
		ok = deadline_set(r, r->op.deadline_ns);
	while (ok && left && !r->interrupt) {
		if (countdown_wanted(r))
			alarm_set(r, countdown_draw(r, left));
		ok = loop_wait(r);
		signals_serve(r);
		if (is_ready(r, ON_ALARM))
			timer_clear(r, ON_ALARM);
		if (is_ready(r, ON_DEADLINE))
			timer_clear(r, ON_DEADLINE);
		left = deadline_left(r);
	}
	alarm_set(r, 0);
	countdown_erase(r);
	return ok && !r->interrupt;
}

/*
 * The deadline of the last answer, and admission, which may take a while too: there may be a slot
 * to wait for, or a breaker. False where there is to be no attempt, for a STOP, a signal or a
 * failure; the verdict says which.
 */
static bool admitted(struct run *r)
{
	for (;;) {
		if (!await_deadline(r)) {
			r->op.verdict = r->interrupt ? KRETRY_VERDICT_NONE : KRETRY_ERROR;
			return false;
		}
		if (r->op.verdict == KRETRY_GO)
			return true;
		if (!ask(r, KRETRY_EVENT_BEGIN)) {
			r->op.verdict = KRETRY_ERROR;
			return false;
		}
		if (kretry_is_stop(r->op.verdict))
			return false;
	}
}

/* The policy may say that all is idempotent, and the caller that this is not. */
static bool is_unsafe(const struct run *r)
{
	return r->set.once_only && r->attempt.class == KRETRY_EVENT_UNKNOWN &&
	       r->policy.flags & KRETRY_POLICY_ASSUME_IDEMPOTENT;
}

static bool report(struct run *r)
{
	if (r->attempt.class != KRETRY_EVENT_OK && r->attempt.class != KRETRY_EVENT_CANCELLED) {
		if (r->nested || r->input.lost || is_unsafe(r))
			r->op.flags |= KRETRY_OP_NO_RETRY;
		if (r->hint.given) {
			r->op.flags |= KRETRY_OP_HINT;
			r->op.hint_ns = r->hint.ns < KRETRY_NS_MAX ? r->hint.ns : KRETRY_NS_MAX;
		}
	}
	if (!ask(r, r->attempt.class))
		return false;
	if (is_unsafe(r) && r->op.verdict == KRETRY_STOP_HINT)
		r->op.verdict = KRETRY_STOP_UNSAFE;
	return true;
}

/* -------- statuses -------- */

bool is_hint_too_long(const struct run *r)
{
	uint64_t most = r->policy.max_elapsed_ns, now = kretry_now((clockid_t)r->policy.clockid);

	if (!r->hint.given || r->nested || r->input.lost)
		return false;
	if (r->op.verdict == KRETRY_STOP_HINT)
		return true;
	return r->op.verdict == KRETRY_STOP_ELAPSED && now > r->op.start_ns &&
	       (now - r->op.start_ns > most || r->hint.ns > most - (now - r->op.start_ns));
}

/* A server's error that the command took for success is none all the same. */
static int last_status(const struct run *r)
{
	int code = exit_code(r->attempt.status);

	if (r->attempt.timed_out)
		return EXIT_TIMEOUT;
	if (r->attempt.class == KRETRY_EVENT_OK || code)
		return code;
	return EXIT_FAILED;
}

static int end_by_signal(struct run *r)
{
	int status = EXIT_SIGNAL + r->interrupt;

	note(r, "interrupted by SIG%s", sigabbrev_np(r->interrupt));
	if (r->set.json && !r->set.quiet)
		json_end(r, "interrupted", status);
	return status;
}

static int not_executed(struct run *r)
{
	int error = r->attempt.exec_error;
	int status = error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NO_EXEC;

	ask(r, KRETRY_EVENT_CANCELLED);
	complain(r, "%s: %s", r->set.command[0], strerror(error));
	if (r->set.json && !r->set.quiet)
		json_end(r, "error", status);
	return status;
}

static int refused(struct run *r)
{
	int status;

	if (r->interrupt)
		return end_by_signal(r);
	if (r->op.verdict == KRETRY_ERROR)
		return EXIT_OWN;
	if (!r->attempt.number) {
		progress_refused(r);
		return EXIT_REFUSED;
	}
	status = last_status(r);
	progress_end(r, status);
	return status;
}

/* -------- attempts -------- */

static void tell_hint(struct run *r)
{
	char text[UNIT_TEXT];

	if (r->hint.given)
		note(r, "the server asks to wait %s", shown_duration(r->hint.ns, text));
}

/* What came of one that has ended; a signal to kretry says nothing about the command's success. */
static void judge(struct run *r)
{
	if (!r->attempt.timed_out)
		hint_read(r);
	r->attempt.class = classify(r);
	if (r->interrupt && r->attempt.class != KRETRY_EVENT_OK)
		r->attempt.class = KRETRY_EVENT_CANCELLED;
	tell_hint(r);
}

/* One attempt and its report. True if there is to be another; else @status is what it ends with. */
static bool try(struct run *r, int *status)
{
	*status = EXIT_OWN;
	if (!admitted(r)) {
		*status = refused(r);
		return false;
	}
	if (!attempt_run(r))
		return false;
	if (r->attempt.exec_error) {
		*status = not_executed(r);
		return false;
	}
	judge(r);
	*status = last_status(r);
	if (!report(r))
		return false;
	if (r->attempt.class == KRETRY_EVENT_CANCELLED && r->interrupt) {
		*status = end_by_signal(r);
		return false;
	}
	progress_attempt(r);
	r->last_class = r->attempt.class;
	if (r->op.verdict == KRETRY_RETRY)
		return true;
	if (is_hint_too_long(r))
		*status = EXIT_HINT;
	progress_end(r, *status);
	return false;
}

/* -------- all of it -------- */

static void tell_backend(struct run *r)
{
	if (kretry_backend(r->k) == KRETRY_BACKEND_MODULE)
		note(r, "decided by the module");
	else
		note(r, "decided in this process: %s", kretry_backend_reason(r->k));
	if (r->nested)
		note(r, "%s is set: an outer layer retries, so this one does not",
		     KRETRY_ATTEMPT_ENV);
}

static int prepare(struct run *r)
{
	int ret = choose_policy(r);
	unsigned int i;

	if (ret)
		return ret;
	for (i = 0; i < EVENTS; i++)
		unwatch(r, (enum event)i);
	r->nested = !r->set.nested_too && kretry_is_nested(NULL);
	r->limit = r->policy.max_retries == KRETRY_NO_LIMIT ? 0 : r->policy.max_retries + 1ULL;
	if (r->nested)
		r->limit = 1;
	r->op.policy = r->policy.id;
	r->op.key = r->set.key;
	r->op.flags = r->set.once_only ? 0 : KRETRY_OP_IDEMPOTENT;
	r->hint.from = -1;
	r->output.from[0] = -1;
	r->output.from[1] = -1;
	ret = kretry_idempotency_key(r->key);
	if (ret < 0)
		fail("getrandom: %s", strerror(-ret));
	if (ret < 0 || !input_init(r) || !signals_take(r))
		return EXIT_OWN;
	descendants_adopt(r);
	return 0;
}

static void clean_up(struct run *r)
{
	spool_clear(&r->input.kept);
	spool_clear(&r->output.kept[0]);
	spool_clear(&r->output.kept[1]);
	free(r->input.chunk);
	free(r->output.chunk);
	free(r->hint.text);
	free(r->strangers);
	kretry_close(r->k);
}

static int run_all(struct run *r)
{
	int status = prepare(r);

	if (status)
		return status;
	tell_backend(r);
	while (try(r, &status))
		;
	/* Who reads may be slow, and a signal has to end us then. */
	if (!r->interrupt && r->set.output_mode != OUTPUT_PASS) {
		signals_drop(r);
		signals_return(r);
		status = output_print(r, status, r->attempt.class == KRETRY_EVENT_OK);
	}
	return status;
}

int verb_run(const struct options *o)
{
	struct run r = { .o = o };
	int status;

	spool_init(&r.input.kept);
	spool_init(&r.output.kept[0]);
	spool_init(&r.output.kept[1]);
	standard_fds_occupy();
	status = settings_take(&r.set, o);
	if (!status)
		status = run_all(&r);
	clean_up(&r);
	return status;
}
