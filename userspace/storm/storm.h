/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The storm: many clients, one small server, one outage. What its processes share.
 */
#ifndef STORM_H
#define STORM_H

#include <kretry.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define NS_PER_MS		1000000ULL
#define NS_PER_S		1000000000ULL

#define STORM_CLIENTS		32
#define STORM_CAPACITY		4U			/* requests served in one bin */
#define STORM_BIN_NS		(250 * NS_PER_MS)
#define STORM_SERVICE_NS	(20 * NS_PER_MS)
#define STORM_OUTAGE_NS		(1500 * NS_PER_MS)
#define STORM_THINK_NS		(4 * NS_PER_S)		/* mean of an exponential distribution */
#define STORM_WARM_NS		(4 * NS_PER_S)		/* usual traffic before the stall */

#define STORM_MAX_ROWS		16
#define STORM_CLIENT_RECORDS	2048
#define STORM_SERVER_RECORDS	(16 * STORM_CLIENT_RECORDS)

/* One kind of retry policy, to be tried against the outage. */
struct storm_row {
	const char *name;		/* for --rows and the data */
	const char *label;		/* for a person; no ';' */
	bool host_wide;			/* one named policy for all clients, else one for each */
	struct kretry_policy policy;
};

const struct storm_row *storm_rows(size_t *count);

enum storm_answer {
	STORM_NO_ANSWER,	/* never sent, never recorded */
	STORM_SERVED,		/* server: within its capacity; client: success */
	STORM_THROTTLED,	/* the same on both sides: over the capacity */
	STORM_HELD,		/* server: taken and never answered */
	STORM_RESET,		/* client: reset after the request was sent */
	STORM_REFUSED,		/* client: nobody listens */
	STORM_GAVE_UP		/* client: a verdict said stop; no request */
};

const char *storm_answer_name(enum storm_answer answer);

/* What is sent: the answer is one byte, an enum storm_answer. */
struct storm_request {
	uint32_t client;
	uint32_t call;
	uint32_t attempt;
	uint32_t reserved;
};

struct storm_record {
	uint64_t time_ns;	/* client: the attempt's start; server: the request's arrival */
	uint64_t deadline_ns;	/* client: what the policy said; server: 0 */
	uint64_t delay_ns;	/* likewise: of the retry that this is */
	uint64_t end_ns;	/* client: the answer was there; server: 0 */
	struct storm_request request;
	uint8_t answer;
	uint8_t verdict;	/* with STORM_GAVE_UP */
	uint8_t probe;
	uint32_t begun;		/* client: attempts the policy has admitted by BEGIN so far */
};

/* Written by one process, read by the parent when that process is gone. */
struct storm_log {
	size_t count;
	size_t size;
	bool lost;
	uint8_t method;		/* client: what its scheduler says it sleeps by */
	struct storm_record *records;
};

struct storm_run {
	const struct storm_row *row;
	enum kretry_method method;	/* never BEST */
	uint64_t seed;
	uint64_t window_ns;
	unsigned int open_flags;	/* of kretry_open() */
	int ready_fd;			/* each process writes one byte to it when it is ready */
	int start_fd;			/* at its end when all are to start */

	/* written once by one process, read by others later */
	uint16_t port;
	uint64_t start_ns;
	uint64_t t0_ns;			/* the outage begins, at the edge of a bin */
	uint64_t reset_ns;		/* the last held call has been reset */
	uint64_t up_ns;			/* listening again */
	uint8_t backend;		/* enum kretry_backend */

	struct storm_log server;
	struct storm_log clients[STORM_CLIENTS];
};

/* The policy one client registers. Each run has names of its own: nothing lingers into the next. */
void storm_run_policy(const struct storm_run *run, struct kretry_policy *policy);

void storm_server(struct storm_run *run) __attribute__((noreturn));
void storm_client(struct storm_run *run, unsigned int id) __attribute__((noreturn));

/* Do one run: @run has all up to open_flags, in memory shared with children. */
void storm_run(struct storm_run *run);

void storm_log(struct storm_log *log, const struct storm_record *record);
void storm_ready(const struct storm_run *run);
/*
 * The methods of waiting. storm_method() returns which one @wanted is here, or -EOPNOTSUPP with a
 * reason for a person.
 */
#define STORM_METHODS		(KRETRY_METHOD_WAIT + 1)
#define STORM_REASON_MAX	512

const char *storm_method_name(enum kretry_method method);
int storm_method(unsigned int open_flags, enum kretry_method wanted, char *reason);

void storm_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void storm_check(int ret, const char *what);

/* The raw data: text lines, times in ns relative to the start of the outage. */
void storm_emit_head(FILE *out);
void storm_emit_lack(FILE *out, enum kretry_method method, const char *reason);
void storm_emit_run(FILE *out, const struct storm_run *run);
void storm_emit_tail(FILE *out, unsigned int runs);

#endif /* STORM_H */
