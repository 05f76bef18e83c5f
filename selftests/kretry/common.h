/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the tests of the module share: calls that return -errno, policies to start from, memory with
 * edges, children and clocks.
 */
#ifndef KRETRY_SELFTEST_COMMON_H
#define KRETRY_SELFTEST_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/kretry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#define DEVICE		"/dev/kretry"
#define MODULE_FILE	"/kretry.ko"
#define MODULE_NAME	"kretry"

#define USEC		1000ULL
#define MSEC		1000000ULL
#define SEC		1000000000ULL

#define POISON		0xa5

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

/*
 * For functions that run in a child, where the harness's assertions cannot be used: they return 0
 * or, after a line that says why, 1.
 */
#define CHECK(cond) do {						\
	if (!(cond)) {							\
		fprintf(stderr, "# %s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
		return 1;						\
	}								\
} while (0)

#define CHECK_EQ(want, got) do {					\
	long long want_ = (long long)(want), got_ = (long long)(got);	\
									\
	if (want_ != got_) {						\
		fprintf(stderr, "# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, \
			got_, want_);					\
		return 1;						\
	}								\
} while (0)

/* -------- the device: results are those of the call, or -errno -------- */

int kt_open(void);
int kt_ioctl(int fd, unsigned long command, const void *arg);
int kt_info(int fd, struct kretry_info *info);
int kt_create(int fd, struct kretry_policy *policy);	/* the id */
int kt_get(int fd, uint32_t id, struct kretry_policy *policy);
int kt_close(int fd, uint32_t id);
int kt_step(int fd, struct kretry_op *op);
int kt_batch(int fd, struct kretry_op *ops, unsigned int count);
int kt_shutdown(int fd);

/* Policies that /proc says this open file has. */
int kt_policies(int fd);

/* -------- policies and ops -------- */

/* Fixed 100 ms under a cap of 10 s, no jitter, no limits, on CLOCK_MONOTONIC. */
void kt_policy(struct kretry_policy *policy);

/* The same with exponential delays from @base_ns by 2.0. */
void kt_exponential(struct kretry_policy *policy, uint64_t base_ns, uint64_t cap_ns);

/* A new op with its first event. */
struct kretry_op kt_op(uint32_t policy, unsigned int event);

/* Step a failure of class TRANSIENT after @attempt retries, return its delay or -errno. */
int64_t kt_delay(int fd, uint32_t policy, uint32_t attempt);

/* -------- memory -------- */

/* @len bytes, poisoned, that end where a page without access begins. */
void *kt_page_end(size_t len);

/* Copy @len bytes to a page that can then only be read. */
void *kt_read_only(const void *from, size_t len);

/* Whether @len bytes all are @value. */
bool kt_all(const void *memory, size_t len, unsigned char value);

/* -------- processes -------- */

/* Run @fn in a child. Its return value, or 128 + the signal that ended it. */
int kt_child(int (*fn)(void *arg), void *arg);
int kt_wait(pid_t pid);

/* Become the unprivileged user @uid for good. */
int kt_become(uid_t uid);

/*
 * Run @fn where the clocks are ahead by so many seconds, CLOCK_BOOTTIME by another 7.0000005: so no
 * clock can be taken for the other.
 */
int kt_in_time_namespace(int64_t seconds, int (*fn)(void *arg), void *arg);

int kt_write_file(const char *path, const char *text);
int64_t kt_read_number(const char *path);

/* Bytes of the slab charged to the memory cgroup at @path. */
int64_t kt_slab_bytes(const char *path);

/* -------- the module -------- */

int kt_load(const char *parameters);
int kt_unload(void);	/* -EWOULDBLOCK while it is in use */

/* Load it where it is not, so that a failed test does not fail those after it. */
int kt_ensure_loaded(void);

/* -------- clocks -------- */

uint64_t kt_now(clockid_t clock);
void kt_sleep_until(clockid_t clock, uint64_t deadline_ns);

/* In 2 s the time of day is a day ahead, 3 s later one behind, and 2 s later as it was. */
int kt_jump_time_of_day(void);

static inline void kt_sleep(uint64_t ns)
{
	kt_sleep_until(CLOCK_MONOTONIC, kt_now(CLOCK_MONOTONIC) + ns);
}

#endif /* KRETRY_SELFTEST_COMMON_H */
