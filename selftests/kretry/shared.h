/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the tests of host-wide shared state share: parties that open the device, here or in a
 * process of their own, and policies with a name, a budget or a breaker.
 */
#ifndef KRETRY_SELFTEST_SHARED_H
#define KRETRY_SELFTEST_SHARED_H

#include "common.h"

/* Who runs the calls: this process, or another that does what it is told. */
struct kt_party {
	int fd;		/* here: the device */
	pid_t pid;	/* there: the process, 0 for here */
	int socket;
};

/* -------- parties: results are those of the call, or -errno -------- */

/* A party in this process. */
int kt_here(struct kt_party *party);

/* One in a process of its own, as user @uid, with the device open. */
int kt_there(struct kt_party *party, uid_t uid);

/* One in a process of its own that goes on with the open file @fd of this one. */
int kt_there_with(struct kt_party *party, int fd);

/* Run an ioctl of a struct of @size bytes. */
int kt_call(struct kt_party *party, unsigned long command, void *arg, size_t size);

/* The process closes its file descriptor; it opens the device anew; it execs and goes on. */
int kt_party_close(struct kt_party *party);
int kt_party_open(struct kt_party *party);
int kt_party_exec(struct kt_party *party);

/* The party ends: here its file is closed, there its process exits or is killed. */
void kt_leave(struct kt_party *party);
void kt_kill(struct kt_party *party);

/* To be called first in the main() of a program that uses kt_party_exec(). */
void kt_party_main(int argc, char **argv);

/* -------- policies -------- */

void kt_name(struct kretry_policy *policy, const char *name);

/* A budget of @tokens, full, of which every retry costs one. */
void kt_budget(struct kretry_policy *policy, uint64_t tokens);

/* A breaker that opens after @consecutive failures and has @probes; probes time out after 10 s. */
void kt_breaker(struct kretry_policy *policy, unsigned int consecutive, uint64_t open_ns,
		unsigned int probes);

int kt_party_create(struct kt_party *party, const struct kretry_policy *policy);	/* the id */
int kt_party_named(struct kt_party *party, const char *name, uint32_t open_flags);	/* the id */
int kt_party_unlink(struct kt_party *party, const char *name, uint32_t open_flags);
int kt_party_forget(struct kt_party *party, uint32_t id);

/* How many names the caller may see; @entry is the one called @name, zero if it is not there. */
int kt_list(int fd, const char *name, struct kretry_policy_entry *entry);

/* -------- ops -------- */

/* Report @event of @op: the verdict, or -errno. */
int kt_report(struct kt_party *party, struct kretry_op *op, unsigned int event);

/* Report @event of a new op of @key: the verdict, or -errno. */
int kt_event(struct kt_party *party, uint32_t policy, uint64_t key, unsigned int event);

/* BEGIN of a new op: the verdict, or -errno, and the op. */
int kt_begin(struct kt_party *party, uint32_t policy, uint64_t key, struct kretry_op *op);

/* @count ops that begin and fail. How many of the failures were granted a retry. */
int kt_fail(struct kt_party *party, uint32_t policy, uint64_t key, unsigned int count);

/* Retries granted to failures of @key until the budget refuses. */
int kt_spend(struct kt_party *party, uint32_t policy, uint64_t key);

/* The same event of @count new ops, in batches. How many got @verdict, or -errno. */
int64_t kt_many(struct kt_party *party, uint32_t policy, uint64_t key, unsigned int event,
		unsigned int count, unsigned int verdict);

/* -------- state -------- */

/* All zero where the call fails, so that a comparison does too. */
struct kretry_stat kt_stat(struct kt_party *party, uint32_t policy);
struct kretry_stat kt_stat_key(struct kt_party *party, uint32_t policy, uint64_t key);

int kt_force(struct kt_party *party, uint32_t policy, unsigned int mode);
int kt_force_key(struct kt_party *party, uint32_t policy, uint64_t key, unsigned int mode);

/* Sleep until the open breaker of @key lets a probe pass. */
void kt_sleep_open(struct kt_party *party, uint32_t policy, uint64_t key);

#endif /* KRETRY_SELFTEST_SHARED_H */
