/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef KRETRY_BENCH_H
#define KRETRY_BENCH_H

#include <stdbool.h>
#include <stdio.h>

#include <liburing.h>
#include <linux/kretry.h>

/* Calls of one sample; short beside the 4 ms between two timer interrupts, so most see none. */
#define SINGLES		256U
#define BATCH_MAX	1024U

#define BASE_NS		100000000ULL
#define CAP_NS		20000000000ULL
/* Retries granted before: small enough that the exponential is not at its cap. */
#define ATTEMPT		3

/* A batch of mixed events is of this many keys. */
#define KEYS		8U

/* What the keys of a named policy share. */
struct shared {
	struct kretry_budget budget;
	struct kretry_breaker breaker;
};

struct bench {
	const char *name;
	void (*run)(const struct bench *bench);
	struct kretry_backoff backoff;
	const struct shared *shared;
	unsigned int policy;
	unsigned int batch;
	__u8 event;			/* of a batch without one they are mixed */
	__u8 flags;
	__u64 hint_ns;
};

extern struct kretry_op ops[BATCH_MAX], single;
extern struct io_uring ring;
extern int kretry_fd, random_fd;

/* shared.c */
extern const struct shared plain, windowed;
unsigned int create_policy(const struct kretry_backoff *backoff, const struct shared *shared,
			   const char *name, int fd);
void succeed(const struct bench *bench);
unsigned int key_bytes(void);

/* pending.c: beside many who wait */
void run_pending(FILE *out);
bool profile_pending(const char *name);

/* memory.c: what that takes of memory */
void run_memory(FILE *out);

/* smp.c: the same on two CPUs */
void run_smp(const char *path);

/* late.c: how late one is woken there */
void run_late(FILE *out);

/* bench.c */
void must(int ok, const char *what);
__u64 now_ns(void);

/* The profiler on the host waits for this address. */
void profile_from_here(void);

/* calls.c */
void prepare_op(const struct bench *bench, struct kretry_op *op, unsigned int i);

void run_empty(const struct bench *bench);
void run_getppid(const struct bench *bench);
void run_ioctl_unknown(const struct bench *bench);
void run_ioctl_zero(const struct bench *bench);
void run_uring_nop(const struct bench *bench);
void run_clock_gettime(const struct bench *bench);
void run_getrandom(const struct bench *bench);
void run_replaced(const struct bench *bench);
void run_step(const struct bench *bench);
void run_pair(const struct bench *bench);
void run_step_no_policy(const struct bench *bench);
void run_batch(const struct bench *bench);

#endif /* KRETRY_BENCH_H */
