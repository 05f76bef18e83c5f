// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The progress as JSON: an object a line, each in one write. */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "run.h"

static void print(json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT);

	if (text)
		fprintf(stderr, "%s\n", text);
	free(text);
	json_decref(json);
}

static json_t *number_if(bool is, uint64_t value)
{
	return is ? json_integer((json_int_t)value) : json_null();
}

static json_t *signal_json(const struct run *r)
{
	int status = r->attempt.status;
	const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;

	return name ? json_sprintf("SIG%s", name) : json_null();
}

static const char *backend_name(const struct run *r)
{
	return kretry_backend(r->k) == KRETRY_BACKEND_MODULE ? "module" : "process";
}

void json_attempt(const struct run *r)
{
	int status = r->attempt.status;
	json_t *json = json_object();

	json_object_set_new(json, "event", json_string("attempt"));
	json_object_set_new(json, "attempt", json_integer((json_int_t)r->attempt.number));
	json_object_set_new(json, "of", number_if(r->limit, r->limit));
	json_object_set_new(json, "status", number_if(WIFEXITED(status),
						      (uint64_t)WEXITSTATUS(status)));
	json_object_set_new(json, "signal", signal_json(r));
	json_object_set_new(json, "timeout", json_boolean(r->attempt.timed_out));
	json_object_set_new(json, "http", number_if(r->hint.http, (uint64_t)r->hint.http));
	json_object_set_new(json, "class", json_string(kretry_event_name(r->attempt.class)));
	json_object_set_new(json, "verdict", json_string(kretry_verdict_name(r->op.verdict)));
	json_object_set_new(json, "delay_ns", number_if(r->op.verdict == KRETRY_RETRY,
							deadline_left(r)));
	json_object_set_new(json, "hint_ns", number_if(r->hint.given, r->hint.ns));
	json_object_set_new(json, "backend", json_string(backend_name(r)));
	print(json);
}

void json_end(const struct run *r, const char *verdict, int status)
{
	json_t *json = json_object();

	json_object_set_new(json, "event", json_string("end"));
	json_object_set_new(json, "attempts", json_integer((json_int_t)r->attempt.number));
	json_object_set_new(json, "verdict", json_string(verdict));
	json_object_set_new(json, "exit", json_integer(status));
	print(json);
}

void json_note(const char *text)
{
	json_t *json = json_object();

	json_object_set_new(json, "event", json_string("note"));
	json_object_set_new(json, "text", json_string(text));
	print(json);
}
