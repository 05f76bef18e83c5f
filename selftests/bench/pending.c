// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What it costs to wait beside many who do. The results are named KIND.ACT@PENDING; while one is
 * measured as many operations wait as it says, at most some batches more or less.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pending.h"

#define SAMPLES		31
#define WARM_UP		3
#define PROFILE_PENDING	1000

struct io_uring pending_ring;

static const struct pending *const kinds[] = {
	&queue_in_order, &queue_shuffled, &timeouts, &timerfds,
};

static const unsigned int counts[] = { 1000, 100000, 1000000 };

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define COUNTS (sizeof(counts) / sizeof(counts[0]))

/* Of the kind that is being measured: ids from oldest to next wait. */
static __u64 oldest, next;

void spin(__u64 ns)
{
	__u64 rounds = ns / 2;

	/* Two instructions a round. */
	__asm__ volatile("1: sub $1, %0\n\tjne 1b" : "+r"(rounds) : : "cc");
}

__u64 shuffle(__u64 id)
{
	id += 0x9e3779b97f4a7c15;
	id = (id ^ id >> 30) * 0xbf58476d1ce4e5b9;
	id = (id ^ id >> 27) * 0x94d049bb133111eb;
	return id ^ id >> 31;
}

__u64 deadline_in(__u64 from_ns, __u64 to_ns)
{
	static __u64 draws;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec + from_ns +
	       shuffle(draws++) % (to_ns - from_ns + 1);
}

__u64 submit_batch(unsigned int count)
{
	__u64 start = now_ns(), taken;
	struct io_uring_cqe *cqe;
	unsigned int i;

	must(io_uring_submit(&pending_ring) > 0, "io_uring_submit");
	taken = now_ns() - start;
	for (i = 0; i < count; i++) {
		if (io_uring_peek_cqe(&pending_ring, &cqe))
			errx(1, "only %u of %u commands were answered", i, count);
		if (cqe->res < 0)
			errx(1, "command %u of %u: %s", i, count, strerror(-cqe->res));
		io_uring_cqe_seen(&pending_ring, cqe);
	}
	return taken;
}

/* -------- acts, each with what it takes to have as many waiting afterwards -------- */

static __u64 arm(const struct pending *kind)
{
	next += BATCH;
	return kind->arm(next - BATCH);
}

static __u64 cancel(const struct pending *kind)
{
	oldest += BATCH;
	return kind->cancel(oldest - BATCH);
}

static __u64 arm_and_cancel(const struct pending *kind)
{
	__u64 taken = arm(kind);

	cancel(kind);
	return taken;
}

static __u64 cancel_and_arm(const struct pending *kind)
{
	__u64 taken = cancel(kind);

	arm(kind);
	return taken;
}

static __u64 cancel_batch_and_arm(const struct pending *kind)
{
	__u64 taken;

	taken = kind->cancel_batch(oldest);
	oldest += BATCH;
	arm(kind);
	return taken;
}

/* What was armed last was found first, or the other way round: these are neither. */
static __u64 cancel_middle_and_arm(const struct pending *kind)
{
	static unsigned int batches;
	__u64 id = oldest + (next - oldest) / 2 + batches++ % 4 * BATCH;
	__u64 taken = kind->cancel_batch(id);

	kind->arm(id);
	return taken;
}

static __u64 spin_for(__u64 ns)
{
	__u64 start = now_ns();

	spin(ns);
	return now_ns() - start;
}

/* The price of an expiry is that of its interrupts, which make a spin longer, and of the read. */
static __u64 expire(const struct pending *kind)
{
	__u64 start;

	kind->arm_soon();
	start = now_ns();
	spin(SOON_SPIN_NS);
	kind->read();
	return now_ns() - start;
}

static __u64 read_only(const struct pending *kind)
{
	kind->arm_soon();
	spin(SOON_SPIN_NS);
	return kind->read();
}

static void trip_once(const struct pending *kind)
{
	static __u64 id = TRIP_ID + BATCH;

	kind->start(id++);
	spin(TRIP_SPIN_NS);
	kind->finish();
}

/* Decided, waited for and told, one after the other. */
static __u64 trip(const struct pending *kind)
{
	__u64 start = now_ns();
	unsigned int i;

	for (i = 0; i < TRIPS; i++)
		trip_once(kind);
	return now_ns() - start;
}

struct act {
	const char *name;
	__u64 (*run)(const struct pending *kind);
	unsigned int operations;
	unsigned int samples;
	__u64 spun_ns;
	bool in_batches;
};

#define ACT(n, f, ...)	{ .name = (n), .run = (f), .operations = BATCH, .samples = SAMPLES, \
			  __VA_ARGS__ }

static const struct act acts[] = {
	ACT("arm", arm_and_cancel),
	ACT("cancel", cancel_and_arm),
	ACT("cancel_batch", cancel_batch_and_arm, .in_batches = true),
	ACT("expire_read", expire, .spun_ns = SOON_SPIN_NS),
	ACT("read", read_only),
	{ "trip", trip, TRIPS, SAMPLES, TRIPS * TRIP_SPIN_NS, false },
	/* One: it can take very long. */
	{ "cancel_middle", cancel_middle_and_arm, BATCH, 1, 0, true },
};

#define ACTS (sizeof(acts) / sizeof(acts[0]))

static int compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

static bool can(const struct pending *kind, const struct act *act)
{
	return (act->run != trip || kind->start) && (!act->in_batches || kind->cancel_batch);
}

/* What of a sample was only spun away. */
static __u64 spin_price(__u64 ns)
{
	__u64 samples[SAMPLES];
	unsigned int s;

	for (s = 0; s < SAMPLES; s++)
		samples[s] = spin_for(ns);
	qsort(samples, SAMPLES, sizeof(samples[0]), compare);
	return samples[SAMPLES / 2];
}

static void measure(FILE *out, const struct pending *kind, const struct act *act,
		    unsigned int count, const char *suffix)
{
	__u64 spun = act->spun_ns ? spin_price(act->spun_ns) : 0, taken;
	unsigned int s;

	for (s = 0; s < WARM_UP && act->samples > WARM_UP; s++)
		act->run(kind);
	fprintf(out, "%s.%s@%u%s %u", kind->name, act->name, count, suffix, act->operations);
	for (s = 0; s < act->samples; s++) {
		taken = act->run(kind);
		fprintf(out, " %llu", taken > spun ? taken - spun : 0);
	}
	fprintf(out, "\n");
}

/* More and more wait: what it takes when memory for them has still to be found. */
static void fill(FILE *out, const struct pending *kind, unsigned int count, const char *suffix)
{
	__u64 taken = 0, first = next;

	while (next - oldest < count)
		taken += arm(kind);
	if (out)
		fprintf(out, "%s.%s@%u%s %llu %llu\n", kind->name, "fill", count, suffix,
			next - first, taken);
}

void measure_kind(FILE *out, const struct pending *kind, unsigned int count, const char *suffix)
{
	unsigned int a;

	fill(out, kind, count, suffix);
	for (a = 0; a < ACTS; a++)
		if (can(kind, &acts[a]))
			measure(out, kind, &acts[a], count, suffix);
}

void open_kind(const struct pending *kind)
{
	oldest = 0;
	next = 0;
	must(!io_uring_queue_init(4 * BATCH, &pending_ring, 0), "io_uring");
	kind->open();
}

void run_pending(FILE *out)
{
	const struct pending *kind;
	unsigned int k, n;

	for (k = 0; k < KINDS; k++) {
		kind = kinds[k];
		open_kind(kind);
		for (n = 0; n < COUNTS; n++)
			measure_kind(out, kind, counts[n], "");
		kind->close();
		io_uring_queue_exit(&pending_ring);
	}
}

/* -------- one act under the profiler, which looks at its second system call -------- */

static void profile_act(const struct pending *kind, const char *act)
{
	unsigned int i, rounds = 4;

	for (i = 0; !strcmp(act, "trip") && i < rounds; i++)
		trip_once(kind);
	for (i = 0; !strcmp(act, "read") && i < rounds; i++)
		kind->arm_soon();
	spin(2 * SOON_SPIN_NS);
	profile_from_here();
	for (i = 0; i < rounds; i++)
		if (!strcmp(act, "arm"))
			arm(kind);
		else if (!strcmp(act, "read"))
			kind->read();
		else if (!strcmp(act, "cancel"))
			cancel(kind);
		else if (!strcmp(act, "trip"))
			kind->start(TRIP_ID + i);
}

bool profile_pending(const char *name)
{
	const char *dot = strchr(name, '.'), *at = strchr(name, '@');
	char act[32] = "";
	unsigned int k;

	for (k = 0; dot && k < KINDS; k++) {
		if (strncmp(kinds[k]->name, name, dot - name) || kinds[k]->name[dot - name])
			continue;
		memcpy(act, dot + 1, strcspn(dot + 1, "@") % sizeof(act));
		open_kind(kinds[k]);
		fill(NULL, kinds[k], at ? atoi(at + 1) : PROFILE_PENDING, "");
		profile_act(kinds[k], act);
		return true;
	}
	return false;
}
