// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The same work on one CPU and on two: a process on each, which has the file for itself and shares
 * the named policy with the other. What the machine itself has to give is told by a system call
 * that shares nothing. Each line of the raw result is one case, with the calls that all its
 * processes together made in each round. The cases take turns, so that what disturbs the machine
 * disturbs them alike.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS		21
#define ROUND_NS	250000000ULL
#define CPUS		2

/* What starts and what is counted, in memory that the processes share. */
struct arena {
	volatile __u64 start_ns;
	volatile unsigned int ready;
	__u64 calls[CPUS];
};

struct smp_case {
	const char *name;
	unsigned int processes;
	unsigned int keys;		/* 0: not STEP but getppid, which shares nothing */
};

static const struct smp_case cases[] = {
	{ "smp.getppid_one_cpu", 1, 0 },
	{ "smp.getppid_two_cpus", 2, 0 },
	{ "smp.one_cpu", 1, 1 },
	{ "smp.two_keys", 2, 2 },
	{ "smp.one_key", 2, 1 },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

static const struct kretry_backoff backoff = {
	.strategy = KRETRY_EXPONENTIAL, .jitter = KRETRY_JITTER_FULL,
	.multiplier_ppm = 2000000, .base_ns = BASE_NS, .cap_ns = CAP_NS,
};

static void pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

/* A failure with its retry, and now and then the success that ends it. */
static __u64 step_until(int fd, unsigned int policy, __u64 key, __u64 end_ns)
{
	struct kretry_op op = { .policy = policy, .key = key };
	__u64 steps = 0;

	while (steps % 64 || now_ns() < end_ns) {
		op.event = steps % 4 == 3 ? KRETRY_EVENT_OK : KRETRY_EVENT_TRANSIENT;
		must(!ioctl(fd, KRETRY_IOC_STEP, &op), "STEP");
		steps++;
	}
	return steps;
}

static __u64 getppid_until(__u64 end_ns)
{
	__u64 calls = 0;

	for (; calls % 64 || now_ns() < end_ns; calls++)
		syscall(SYS_getppid);
	return calls;
}

static void __attribute__((noreturn)) work(const struct smp_case *c, struct arena *arena,
					   unsigned int cpu)
{
	int fd = open("/dev/kretry", O_RDWR | O_CLOEXEC);
	unsigned int policy;
	__u64 end_ns;

	must(fd >= 0, "/dev/kretry");
	pin(cpu);
	policy = create_policy(&backoff, &plain, c->name, fd);
	__atomic_add_fetch(&arena->ready, 1, __ATOMIC_SEQ_CST);
	while (!arena->start_ns)
		;
	end_ns = arena->start_ns + ROUND_NS;
	if (c->keys)
		arena->calls[cpu] = step_until(fd, policy, 1 + cpu % c->keys, end_ns);
	else
		arena->calls[cpu] = getppid_until(end_ns);
	_exit(0);
}

static __u64 run_round(const struct smp_case *c)
{
	struct arena *arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int cpu;
	__u64 calls = 0;
	int status;

	must(arena != MAP_FAILED, "mmap");
	for (cpu = 0; cpu < c->processes; cpu++) {
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (!pid)
			work(c, arena, cpu);
	}
	while (arena->ready < c->processes)
		usleep(1000);
	arena->start_ns = now_ns();
	for (cpu = 0; cpu < c->processes; cpu++) {
		must(wait(&status) > 0, "wait");
		if (status)
			errx(1, "%s: a process failed", c->name);
	}
	for (cpu = 0; cpu < c->processes; cpu++)
		calls += arena->calls[cpu];
	munmap(arena, sizeof(*arena));
	return calls;
}

void run_smp(const char *path)
{
	static __u64 calls[CASES][ROUNDS];
	FILE *out = fopen(path, "we");
	unsigned int i, round;

	must(!!out, path);
	if (sysconf(_SC_NPROCESSORS_ONLN) < CPUS)
		errx(1, "this takes %u CPUs", CPUS);
	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < CASES; i++)
			calls[i][round] = run_round(&cases[i]);
	for (i = 0; i < CASES; i++) {
		fprintf(out, "%s", cases[i].name);
		for (round = 0; round < ROUNDS; round++)
			fprintf(out, " %llu", calls[i][round]);
		fprintf(out, "\n");
	}
	run_late(out);
	fprintf(out, "# end\n");
	must(!fclose(out), path);
}
