// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Sleeping to a deadline on the caller's ring. */

#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

/* The initial time namespace has this inode number in /proc/PID/ns on every kernel. */
#define INITIAL_TIME_NS	0xEFFFFFFAU

/*
 * io_uring before Linux 7 takes absolute times for the host's, whatever the caller's time
 * namespace is. A relative sleep is right everywhere. Where /proc cannot tell, assume the worst.
 */
static bool in_time_namespace(void)
{
	struct stat st;

	if (stat("/proc/self/ns/time", &st) == 0)
		return st.st_ino != INITIAL_TIME_NS;
	/* The directory without the file: a kernel without time namespaces. */
	return errno != ENOENT || stat("/proc/self/ns", &st) != 0;
}

/*
 * Asked once for each process, as unshare(CLONE_NEWTIME) moves the children only. (A process that
 * moves itself by setns(2) has to do so before its first sleep.)
 */
static bool sleeps_are_relative(void)
{
	static atomic_uint_fast64_t known;	/* pid and answer; a pid is never 0 */
	u64 pid = (u64)getpid();
	u64 was = atomic_load_explicit(&known, memory_order_relaxed);

	if (was >> 1 != pid) {
		was = pid << 1 | in_time_namespace();
		atomic_store_explicit(&known, was, memory_order_relaxed);
	}
	return was & 1;
}

void prep_sleep(struct io_uring_sqe *sqe, struct __kernel_timespec *ts, clockid_t clockid,
		u64 deadline_ns, unsigned int flags)
{
	if (clockid == CLOCK_BOOTTIME)
		flags |= IORING_TIMEOUT_BOOTTIME;
	if (sleeps_are_relative())
		deadline_ns = kretry_sat_sub(deadline_ns, kretry_now(clockid));
	else
		flags |= IORING_TIMEOUT_ABS;
	ts->tv_sec = (long long)(deadline_ns / 1000000000ULL);
	ts->tv_nsec = (long long)(deadline_ns % 1000000000ULL);
	io_uring_prep_timeout(sqe, ts, 0, flags);
}

void kretry_prep_sleep(struct io_uring_sqe *sqe, struct __kernel_timespec *ts, clockid_t clockid,
		       uint64_t deadline_ns)
{
	prep_sleep(sqe, ts, clockid, deadline_ns, 0);
}
