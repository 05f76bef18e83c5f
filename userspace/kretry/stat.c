// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry stat: counters as text or JSON. */

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "command.h"

const char help_stat[] =
	"[NAME...]\n"
	"show counters, and a key's state\n"
	"\n"
	"Of the policies named, or all that may be looked at. With --key also the state of one key: a\n"
	"number, or an origin like https://api.example.com:443. --prometheus is the text that\n"
	"Prometheus scrapes. Looking at a policy opens it for a moment, so that it lingers anew.\n";

static void print_count(const char *name, uint64_t value)
{
	if (value)
		printf("  %-18s %" PRIu64 "\n", name, value);
}

static void print_tokens(const char *name, uint64_t utok)
{
	char text[UNIT_TEXT];

	if (utok)
		printf("  %-18s %s\n", name, format_millionths(utok, text));
}

static void print_until(const char *name, uint64_t at, uint64_t now)
{
	char text[UNIT_TEXT];

	if (at > now)
		printf("  %-18s %s\n", name, format_duration((at - now) / 1000000 * 1000000, text));
}

static void print_key(const struct kretry_stat *s, clockid_t clock)
{
	uint64_t now = kretry_now(clock);
	char text[UNIT_TEXT];

	printf("  key 0x%016" PRIx64 "%s\n", (uint64_t)s->key,
	       s->keys ? "" : " (not used so far)");
	printf("  %-18s %s\n", "breaker", state_name(s->state));
	printf("  %-18s %s\n", "mode", mode_name(s->mode));
	printf("  %-18s %s\n", "balance", format_millionths(s->balance_utok, text));
	print_count("failures in a row", s->streak);
	print_count("calls in window", s->window_calls);
	print_count("failures in window", s->window_failures);
	print_count("probes under way", s->leases);
	print_until("half-open in", s->half_open_ns, now);
	print_until("cooling for", s->cooling_ns, now);
	print_until("next slot in", s->pace_next_ns, now);
}

static void print_sample(const struct sample *sample, bool with_key)
{
	const struct kretry_stat *s = &sample->stat;
	char name[SHOWN_NAME];
	unsigned int i;

	printf("%s%s\n", shown_name(sample->entry.name, name),
	       sample->entry.open_flags & KRETRY_OPEN_GLOBAL ? " (global)" : "");
	for (i = KRETRY_EVENT_BEGIN; i <= KRETRY_EVENT_PERMANENT; i++)
		print_count(kretry_event_name(i), s->events[i]);
	print_count("-> go", s->go);
	print_count("-> retry", s->retry);
	print_count("-> done", s->done);
	for (i = KRETRY_STOP_PERMANENT; i <= KRETRY_STOP_PACED; i++) {
		snprintf(name, sizeof(name), "-> %s", kretry_verdict_name(i));
		print_count(name, s->stops[i - KRETRY_STOP_PERMANENT]);
	}
	print_tokens("tokens charged", s->charged_utok);
	print_tokens("tokens returned", s->refunded_utok);
	print_count("breaker opened", s->opened);
	print_count("transitions", s->transitions);
	print_count("probes lost", s->probes_lost);
	print_count("probes under way", s->leases);
	print_count("keys", s->keys);
	print_count("keys evicted", s->evicted);
	print_count("queued", s->queued);
	if (s->mode)
		printf("  %-18s %s\n", "mode", mode_name(s->mode));
	if (with_key)
		print_key(&sample->key, sample->clock);
}

/* -------- JSON -------- */

static void set_number(json_t *json, const char *name, uint64_t value)
{
	json_object_set_new(json, name, json_integer((json_int_t)value));
}

static json_t *key_json(const struct kretry_stat *s)
{
	json_t *json = json_object();
	char key[24];

	snprintf(key, sizeof(key), "0x%016" PRIx64, (uint64_t)s->key);
	json_object_set_new(json, "key", json_string(key));
	json_object_set_new(json, "known", json_boolean(s->keys));
	json_object_set_new(json, "state", json_string(state_name(s->state)));
	json_object_set_new(json, "mode", json_string(mode_name(s->mode)));
	set_number(json, "balance_utok", s->balance_utok);
	set_number(json, "streak", s->streak);
	set_number(json, "window_calls", s->window_calls);
	set_number(json, "window_failures", s->window_failures);
	set_number(json, "leases", s->leases);
	set_number(json, "half_open_ns", s->half_open_ns);
	set_number(json, "cooling_ns", s->cooling_ns);
	set_number(json, "pace_next_ns", s->pace_next_ns);
	return json;
}

static json_t *verdicts_json(const struct kretry_stat *s)
{
	json_t *json = json_object();
	unsigned int i;

	set_number(json, "go", s->go);
	set_number(json, "retry", s->retry);
	set_number(json, "done", s->done);
	for (i = KRETRY_STOP_PERMANENT; i <= KRETRY_STOP_PACED; i++)
		set_number(json, kretry_verdict_name(i), s->stops[i - KRETRY_STOP_PERMANENT]);
	return json;
}

static json_t *sample_json(const struct sample *sample, bool with_key)
{
	const struct kretry_stat *s = &sample->stat;
	json_t *json = json_object(), *events = json_object();
	char name[SHOWN_NAME];
	unsigned int i;

	for (i = KRETRY_EVENT_BEGIN; i <= KRETRY_EVENT_PERMANENT; i++)
		set_number(events, kretry_event_name(i), s->events[i]);
	json_object_set_new(json, "name", json_string(shown_name(sample->entry.name, name)));
	json_object_set_new(json, "global",
			    json_boolean(sample->entry.open_flags & KRETRY_OPEN_GLOBAL));
	json_object_set_new(json, "mode", json_string(mode_name(s->mode)));
	json_object_set_new(json, "events", events);
	json_object_set_new(json, "verdicts", verdicts_json(s));
	set_number(json, "charged_utok", s->charged_utok);
	set_number(json, "refunded_utok", s->refunded_utok);
	set_number(json, "opened", s->opened);
	set_number(json, "transitions", s->transitions);
	set_number(json, "probes_lost", s->probes_lost);
	set_number(json, "keys", s->keys);
	set_number(json, "evicted", s->evicted);
	set_number(json, "leases", s->leases);
	set_number(json, "queued", s->queued);
	if (with_key)
		json_object_set_new(json, "key", key_json(&sample->key));
	return json;
}

static void print_samples_json(const struct sample *samples, unsigned int count, bool with_key)
{
	json_t *json = json_array();
	unsigned int i;

	for (i = 0; i < count; i++)
		json_array_append_new(json, sample_json(&samples[i], with_key));
	print_json(json);
}

int verb_stat(const struct options *o)
{
	bool with_key = o->value[OPT_KEY];
	struct sample *samples;
	unsigned int count, i;
	struct kretry *k;
	int ret;

	if (o->value[OPT_JSON] && o->value[OPT_PROMETHEUS])
		return usage_error("--json or --prometheus, not both");
	ret = open_module(o, &k);
	if (ret)
		return ret;
	ret = take_samples(k, o, &samples, &count);
	kretry_close(k);
	if (ret)
		return ret;
	if (o->value[OPT_JSON])
		print_samples_json(samples, count, with_key);
	else if (o->value[OPT_PROMETHEUS])
		print_prometheus(samples, count, with_key);
	else
		for (i = 0; i < count; i++)
			print_sample(&samples[i], with_key);
	free(samples);
	return 0;
}
