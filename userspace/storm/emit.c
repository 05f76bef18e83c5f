// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The raw data, one line each, fields separated by ';', times in ns relative to T0:
 *   storm;VERSION;clients;capacity;bin_ns;outage_ns;service_ns
 *   lacks;METHOD;reason                               there are no runs by it
 *   run;ROW;METHOD;SEED;label;backend;reset;up;window_ns;host_wide;capacity_utok;
 *       deposit_request_utok;refill_utok_per_s;open_ns;pace_ns
 *                                                     reset, up: when these were really done
 * and up to its end, of this run:
 *   method;client;METHOD                              what its scheduler said it was sleeping by
 *   client;client;call;attempt;start;deadline;delay;end;answer;probe;begun
 *   server;client;call;attempt;arrival;answer
 *   stop;client;call;time;verdict                     a call was given up
 *   end;lines
 * and at last
 *   done;runs
 */
#include "storm.h"

#include <inttypes.h>

const char *storm_answer_name(enum storm_answer answer)
{
	static const char *const names[] = {
		[STORM_NO_ANSWER]	= "none",
		[STORM_SERVED]		= "served",
		[STORM_THROTTLED]	= "throttled",
		[STORM_HELD]		= "held",
		[STORM_RESET]		= "reset",
		[STORM_REFUSED]		= "refused",
		[STORM_GAVE_UP]		= "gave-up",
	};

	return names[answer];
}

static int64_t since_t0(const struct storm_run *run, uint64_t time_ns)
{
	return (int64_t)(time_ns - run->t0_ns);
}

static void emit_client(FILE *out, const struct storm_run *run, const struct storm_record *r)
{
	const struct storm_request *q = &r->request;

	if (r->answer == STORM_GAVE_UP) {
		fprintf(out, "stop;%u;%u;%" PRId64 ";%s\n", q->client, q->call,
			since_t0(run, r->time_ns), kretry_verdict_name(r->verdict));
		return;
	}
	fprintf(out, "client;%u;%u;%u;%" PRId64 ";%" PRId64 ";%" PRIu64, q->client, q->call,
		q->attempt, since_t0(run, r->time_ns), since_t0(run, r->deadline_ns), r->delay_ns);
	fprintf(out, ";%" PRId64 ";%s;%u;%u\n", since_t0(run, r->end_ns),
		storm_answer_name(r->answer), r->probe, r->begun);
}

static void emit_server(FILE *out, const struct storm_run *run, const struct storm_record *r)
{
	const struct storm_request *q = &r->request;

	fprintf(out, "server;%u;%u;%u;%" PRId64 ";%s\n", q->client, q->call, q->attempt,
		since_t0(run, r->time_ns), storm_answer_name(r->answer));
}

void storm_emit_head(FILE *out)
{
	fprintf(out, "storm;3;%u;%u;%llu;%llu;%llu\n", STORM_CLIENTS, STORM_CAPACITY, STORM_BIN_NS,
		STORM_OUTAGE_NS, STORM_SERVICE_NS);
}

void storm_emit_lack(FILE *out, enum kretry_method method, const char *reason)
{
	fprintf(out, "lacks;%s;%s\n", storm_method_name(method), reason);
}

/* Of the policy what is needed to say what it must never allow. */
static void emit_head(FILE *out, const struct storm_run *run)
{
	const struct kretry_policy *p = &run->row->policy;

	fprintf(out, "run;%s;%s;%" PRIu64 ";%s;%s;%" PRId64 ";%" PRId64 ";%" PRIu64,
		run->row->name, storm_method_name(run->method), run->seed, run->row->label,
		run->backend == KRETRY_BACKEND_MODULE ? "module" : "process",
		since_t0(run, run->reset_ns), since_t0(run, run->up_ns), run->window_ns);
	fprintf(out, ";%d;%llu;%llu;%llu;%llu;%llu\n", run->row->host_wide,
		p->budget.capacity_utok, p->budget.deposit_request_utok,
		p->budget.refill_utok_per_s, p->breaker.open_ns, p->pacing.pace_ns);
}

void storm_emit_run(FILE *out, const struct storm_run *run)
{
	size_t i, lines = run->server.count + STORM_CLIENTS;
	unsigned int id;

	emit_head(out, run);
	for (id = 0; id < STORM_CLIENTS; id++) {
		fprintf(out, "method;%u;%s\n", id, storm_method_name(run->clients[id].method));
		for (i = 0; i < run->clients[id].count; i++)
			emit_client(out, run, &run->clients[id].records[i]);
		lines += run->clients[id].count;
	}
	for (i = 0; i < run->server.count; i++)
		emit_server(out, run, &run->server.records[i]);
	fprintf(out, "end;%zu\n", lines);
}

void storm_emit_tail(FILE *out, unsigned int runs)
{
	fprintf(out, "done;%u\n", runs);
}
