// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What an operation costs, in instructions. It runs in a VM whose clock counts them: one
 * instruction is one nanosecond. Each line of the raw result is one operation, with the operations
 * in a sample and then what each sample took:
 *
 *	NAME OPERATIONS INSTRUCTIONS INSTRUCTIONS ...
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define SAMPLES		61
#define WARM_UP		3

/* Until then the kernel is busy with what a boot leaves behind. */
#define SETTLE_S	120

/* The profiler on the host reads it from the guest's memory, which is far faster than a port. */
char profile_symbols[16 << 20];

__u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

void must(int ok, const char *what)
{
	if (!ok)
		err(1, "%s", what);
}

#define FULL(s)		{ .strategy = (s), .jitter = KRETRY_JITTER_FULL, \
			  .base_ns = BASE_NS, .cap_ns = CAP_NS }
#define NONE(s)		{ .strategy = (s), .base_ns = BASE_NS, .cap_ns = CAP_NS }
#define EXPONENTIAL(j, times, ppm) { .strategy = KRETRY_EXPONENTIAL, .jitter = (j), \
			  .multiplier_ppm = (times), .jitter_ppm = (ppm), \
			  .base_ns = BASE_NS, .cap_ns = CAP_NS }
#define TABLE		{ .strategy = KRETRY_TABLE, .jitter = KRETRY_JITTER_FULL, .table_len = 4, \
			  .cap_ns = CAP_NS, .table_ns = { BASE_NS, BASE_NS, BASE_NS, BASE_NS } }
#define HEADLINE	EXPONENTIAL(KRETRY_JITTER_FULL, 2000000, 0)
#define STEP(n, e, ...)	{ .name = "step." n, .run = run_step, .event = KRETRY_EVENT_##e, \
			  .backoff = __VA_ARGS__ }
#define SHARED(n, e, s)	{ .name = "step." n, .run = run_step, .event = KRETRY_EVENT_##e, \
			  .backoff = HEADLINE, .shared = &(s) }
#define BATCH(n, e, ...) { .name = "step_batch." #n, .run = run_batch, .batch = (n), \
			  .event = KRETRY_EVENT_##e, .backoff = __VA_ARGS__ }

static struct bench benches[] = {
	{ .name = "empty", .run = run_empty },
	{ .name = "getppid", .run = run_getppid },
	{ .name = "ioctl.unknown", .run = run_ioctl_unknown },
	{ .name = "ioctl.zero", .run = run_ioctl_zero },
	{ .name = "io_uring.nop", .run = run_uring_nop },
	{ .name = "clock_gettime", .run = run_clock_gettime },
	{ .name = "getrandom", .run = run_getrandom },
	{ .name = "replaced", .run = run_replaced },
	STEP("failure", TRANSIENT, HEADLINE),
	STEP("begin", BEGIN, HEADLINE),
	STEP("ok", OK, HEADLINE),
	STEP("cancelled", CANCELLED, HEADLINE),
	STEP("permanent", PERMANENT, HEADLINE),
	{ .name = "step.hint", .run = run_step, .event = KRETRY_EVENT_THROTTLED,
	  .flags = KRETRY_OP_HINT, .hint_ns = 1000000000, .backoff = HEADLINE },
	STEP("fixed", TRANSIENT, FULL(KRETRY_FIXED)),
	STEP("linear", TRANSIENT, FULL(KRETRY_LINEAR)),
	STEP("exponential_1.5", TRANSIENT, EXPONENTIAL(KRETRY_JITTER_FULL, 1500000, 0)),
	STEP("decorrelated", TRANSIENT, NONE(KRETRY_DECORRELATED)),
	STEP("slotted", TRANSIENT, NONE(KRETRY_SLOTTED)),
	STEP("table", TRANSIENT, TABLE),
	STEP("jitter_none", TRANSIENT, EXPONENTIAL(KRETRY_JITTER_NONE, 2000000, 0)),
	STEP("jitter_equal", TRANSIENT, EXPONENTIAL(KRETRY_JITTER_EQUAL, 2000000, 0)),
	STEP("jitter_proportional", TRANSIENT,
	     EXPONENTIAL(KRETRY_JITTER_PROPORTIONAL, 2000000, 200000)),
	STEP("jitter_additive", TRANSIENT, EXPONENTIAL(KRETRY_JITTER_ADDITIVE, 2000000, 200000)),
	{ .name = "step.no_policy", .run = run_step_no_policy },
	{ .name = "begin_ok", .run = run_pair, .backoff = HEADLINE },
	SHARED("shared", TRANSIENT, windowed),
	SHARED("shared_plain", TRANSIENT, plain),
	SHARED("shared_begin", BEGIN, windowed),
	SHARED("shared_ok", OK, windowed),
	{ .name = "begin_ok.shared", .run = run_pair, .backoff = HEADLINE, .shared = &windowed },
	{ .name = "step_batch.shared", .run = run_batch, .batch = 64, .backoff = HEADLINE,
	  .event = KRETRY_EVENT_TRANSIENT, .shared = &windowed },
	{ .name = "step_batch.mixed", .run = run_batch, .batch = 64, .backoff = HEADLINE,
	  .shared = &windowed },
	BATCH(1, TRANSIENT, HEADLINE),
	BATCH(8, TRANSIENT, HEADLINE),
	BATCH(64, TRANSIENT, HEADLINE),
	BATCH(1024, TRANSIENT, HEADLINE),
};

#define BENCHES (sizeof(benches) / sizeof(benches[0]))

static __u64 samples[BENCHES][SAMPLES];

/* What a sample starts from is put there outside of it. */
static void prepare(const struct bench *bench)
{
	unsigned int i;

	if (bench->shared)
		succeed(bench);
	for (i = 0; bench->batch && i < BATCH_MAX; i++)
		prepare_op(bench, &ops[i], i);
}

static __u64 take_sample(const struct bench *bench)
{
	__u64 start;

	prepare(bench);
	start = now_ns();
	bench->run(bench);
	return now_ns() - start;
}

static __u8 verdict_after(__u8 event)
{
	switch (event) {
	case KRETRY_EVENT_BEGIN:
		return KRETRY_GO;
	case KRETRY_EVENT_OK:
	case KRETRY_EVENT_CANCELLED:
		return KRETRY_DONE;
	case KRETRY_EVENT_PERMANENT:
		return KRETRY_STOP_PERMANENT;
	default:
		return KRETRY_RETRY;
	}
}

/* Ops that were all refused would be fast. */
static void check_ops(const struct bench *bench)
{
	struct kretry_op before;
	unsigned int i;

	if (bench->run == run_step && single.verdict != verdict_after(bench->event))
		errx(1, "%s: the verdict is %u", bench->name, single.verdict);
	for (i = 0; bench->batch && i < BATCH_MAX; i++) {
		prepare_op(bench, &before, i);
		if (ops[i].verdict != verdict_after(before.event))
			errx(1, "%s: the verdict of op %u is %u", bench->name, i, ops[i].verdict);
	}
}

/* Each operation has the file to itself, as a program with one policy does. */
static void measure(struct bench *bench, __u64 *out)
{
	unsigned int i;

	must(!ioctl(kretry_fd, KRETRY_IOC_SHUTDOWN, 0), "SHUTDOWN");
	if (bench->backoff.strategy)
		bench->policy = create_policy(&bench->backoff, bench->shared, bench->name,
					      kretry_fd);
	for (i = 0; i < WARM_UP; i++)
		take_sample(bench);
	for (i = 0; i < SAMPLES; i++)
		out[i] = take_sample(bench);
	check_ops(bench);
}

static void settle(void)
{
	static const char unlimited[] = "-1";
	struct sched_param param = { .sched_priority = 50 };
	int fd = open("/proc/sys/kernel/sched_rt_runtime_us", O_WRONLY | O_CLOEXEC);

	must(fd >= 0 && write(fd, unlimited, strlen(unlimited)) > 0, "sched_rt_runtime_us");
	close(fd);
	must(!sched_setscheduler(0, SCHED_FIFO, &param), "SCHED_FIFO");
	sleep(SETTLE_S);
}

static void print(const char *path)
{
	FILE *out = fopen(path, "we");
	struct utsname name;
	unsigned int i, s;

	must(out && !uname(&name), path);
	fprintf(out, "# kernel %s\n", name.release);
	fprintf(out, "# key_bytes %u\n", key_bytes());
	for (i = 0; i < BENCHES; i++) {
		fprintf(out, "%s %u", benches[i].name, benches[i].batch ? BATCH_MAX : SINGLES);
		for (s = 0; s < SAMPLES; s++)
			fprintf(out, " %llu", samples[i][s]);
		fprintf(out, "\n");
	}
	run_memory(out);
	run_pending(out);
	fprintf(out, "# end\n");
	must(!fclose(out), path);
}

static void read_symbols(void)
{
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;
	size_t len;

	must(fd >= 0, "/proc/kallsyms");
	for (len = 0; n > 0 && len < sizeof(profile_symbols) - 1; len += n) {
		n = read(fd, profile_symbols + len, sizeof(profile_symbols) - 1 - len);
		must(n >= 0, "/proc/kallsyms");
	}
	close(fd);
}

__attribute__((noinline, noclone)) void profile_from_here(void)
{
	__asm__ volatile("" : : : "memory");
}

static void profile(const char *name)
{
	unsigned int i;

	read_symbols();
	if (profile_pending(name))
		return;
	for (i = 0; i < BENCHES && strcmp(benches[i].name, name); i++)
		;
	if (i == BENCHES)
		errx(2, "there is no operation %s", name);
	measure(&benches[i], samples[i]);
	prepare(&benches[i]);
	profile_from_here();
	benches[i].run(&benches[i]);
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc != 2 && (argc != 3 || (strcmp(argv[1], "--profile") && strcmp(argv[1], "--smp"))))
		errx(2, "usage: bench FILE | --profile OPERATION | --smp FILE");
	if (argc == 3 && !strcmp(argv[1], "--smp")) {
		run_smp(argv[2]);
		return 0;
	}
	kretry_fd = open("/dev/kretry", O_RDWR | O_CLOEXEC);
	must(kretry_fd >= 0, "/dev/kretry");
	random_fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	must(random_fd >= 0, "/dev/urandom");
	errno = -io_uring_queue_init(8, &ring, 0);
	must(!errno, "io_uring");

	settle();
	if (argc == 3) {
		profile(argv[2]);
		return 0;
	}
	for (i = 0; i < BENCHES; i++)
		measure(&benches[i], samples[i]);
	print(argv[1]);
	return 0;
}
