// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The text format that Prometheus scrapes. A metric's samples must come together. */

#include <inttypes.h>
#include <stddef.h>

#include "command.h"

static const struct metric {
	const char	*name;
	const char	*type;
	const char	*help;
	size_t		offset;		/* in struct kretry_stat */
	bool		wide;		/* 64 bits, else 32 */
	bool		tokens;
	bool		of_key;
} metrics[] = {
#define FIELD(field)	offsetof(struct kretry_stat, field)
#define COUNTER(name, field, tokens, help)                                                         \
	{ "kretry_" name "_total", "counter", help, FIELD(field), true, tokens, false }
#define GAUGE(name, field, help)                                                                   \
	{ "kretry_" name, "gauge", help, FIELD(field), false, false, false }
#define OF_KEY(name, field, help)                                                                  \
	{ "kretry_key_" name, "gauge", help, FIELD(field), false, false, true }
	COUNTER("charged_tokens", charged_utok, true, "Tokens taken from budgets by retries."),
	COUNTER("returned_tokens", refunded_utok, true, "Tokens given back to budgets."),
	COUNTER("breaker_opened", opened, false, "Times a breaker opened."),
	COUNTER("breaker_transitions", transitions, false, "Changes of a breaker's state."),
	COUNTER("probes_lost", probes_lost, false, "Probes that were never reported."),
	COUNTER("keys_evicted", evicted, false, "Keys forgotten to make room."),
	GAUGE("keys", keys, "Keys that have state."),
	GAUGE("probes", leases, "Probes under way."),
	GAUGE("queued", queued, "Operations queued."),
	GAUGE("mode", mode,
	      "Of the breakers: 0 automatic, 1 forced open, 2 forced closed, 3 metrics only."),
	{ "kretry_key_balance_tokens", "gauge", "Tokens of the key's budget.", FIELD(balance_utok),
	  true, true, true },
	OF_KEY("state", state, "Its breaker: 0 closed, 1 open, 2 half-open."),
	OF_KEY("streak", streak, "Failures in a row."),
	OF_KEY("window_calls", window_calls, "Results in the window."),
	OF_KEY("window_failures", window_failures, "Failures in the window."),
};

/* A backslash of an escaped byte of the name is to be one for the reader too. */
static void print_labels(const struct sample *sample)
{
	char name[SHOWN_NAME];
	const char *c;

	fputs("{policy=\"", stdout);
	for (c = shown_name(sample->entry.name, name); *c; c++) {
		if (*c == '\\' || *c == '"')
			putchar('\\');
		putchar(*c);
	}
	printf("\",scope=\"%s\"",
	       sample->entry.open_flags & KRETRY_OPEN_GLOBAL ? "global" : "private");
}

static void print_head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_metric(const struct metric *m, const struct sample *samples, unsigned int count)
{
	const struct kretry_stat *stat;
	char text[UNIT_TEXT];
	uint64_t value;
	unsigned int i;

	print_head(m->name, m->type, m->help);
	for (i = 0; i < count; i++) {
		stat = m->of_key ? &samples[i].key : &samples[i].stat;
		value = m->wide ? *(const uint64_t *)((const char *)stat + m->offset) :
				       *(const uint32_t *)((const char *)stat + m->offset);
		fputs(m->name, stdout);
		print_labels(&samples[i]);
		if (m->of_key)
			printf(",key=\"0x%016" PRIx64 "\"", (uint64_t)stat->key);
		if (m->tokens)
			printf("} %s\n", format_millionths(value, text));
		else
			printf("} %" PRIu64 "\n", value);
	}
}

static void print_labelled(const struct sample *sample, const char *metric, const char *label,
			   const char *value, uint64_t number)
{
	fputs(metric, stdout);
	print_labels(sample);
	printf(",%s=\"%s\"} %" PRIu64 "\n", label, value, number);
}

static void print_events(const struct sample *samples, unsigned int count)
{
	unsigned int i, event;

	print_head("kretry_events_total", "counter", "Events reported.");
	for (i = 0; i < count; i++)
		for (event = KRETRY_EVENT_BEGIN; event <= KRETRY_EVENT_PERMANENT; event++)
			print_labelled(&samples[i], "kretry_events_total", "event",
				       kretry_event_name(event), samples[i].stat.events[event]);
}

static void print_verdicts(const struct sample *samples, unsigned int count)
{
	const char *metric = "kretry_verdicts_total";
	unsigned int i, stop;

	print_head(metric, "counter", "Verdicts given.");
	for (i = 0; i < count; i++) {
		print_labelled(&samples[i], metric, "verdict", "go", samples[i].stat.go);
		print_labelled(&samples[i], metric, "verdict", "retry", samples[i].stat.retry);
		print_labelled(&samples[i], metric, "verdict", "done", samples[i].stat.done);
		for (stop = KRETRY_STOP_PERMANENT; stop <= KRETRY_STOP_PACED; stop++)
			print_labelled(&samples[i], metric, "verdict", kretry_verdict_name(stop),
				       samples[i].stat.stops[stop - KRETRY_STOP_PERMANENT]);
	}
}

void print_prometheus(const struct sample *samples, unsigned int count, bool with_key)
{
	unsigned int i;

	print_events(samples, count);
	print_verdicts(samples, count);
	for (i = 0; i < ARRAY_SIZE(metrics); i++)
		if (with_key || !metrics[i].of_key)
			print_metric(&metrics[i], samples, count);
}
