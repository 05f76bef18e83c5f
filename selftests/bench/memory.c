// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The kernel memory of what waits, and what it costs to charge it to a memory cgroup, where every
 * process of a machine with systemd is. Each kind is measured in a process of its own.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pending.h"

#define ROOT		"/sys/fs/cgroup"
#define GROUP		ROOT "/kretry-bench"
#define STAT_REFRESH	"/proc/sys/vm/stat_refresh"
#define WAITING		100032U

/* Until then the kernel frees what a process has left behind. */
#define SETTLE_S	10

static const struct pending *const kinds[] = { &queue_in_order, &timeouts, &timerfds };

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd >= 0 && write(fd, text, strlen(text)) > 0, path);
	close(fd);
}

static __s64 slab_bytes(void)
{
	FILE *in = fopen("/proc/meminfo", "re");
	char name[64];
	__s64 kib = 0;

	/* What the CPUs have counted for themselves is added up. */
	write_file(STAT_REFRESH, "1");
	while (in && fscanf(in, "%63s %lld%*[^\n]", name, &kib) == 2 && strcmp(name, "Slab:"))
		;
	must(in && !strcmp(name, "Slab:"), "/proc/meminfo");
	fclose(in);
	return kib * 1024;
}

static __s64 charged_bytes(void)
{
	FILE *in = fopen(GROUP "/memory.current", "re");
	__s64 bytes;

	must(in && fscanf(in, "%lld", &bytes) == 1, GROUP "/memory.current");
	fclose(in);
	return bytes;
}

/* The first ones fill what is half empty already. */
static void weigh(FILE *out, const struct pending *kind, bool charged)
{
	__s64 slab, current = 0;
	unsigned int i;

	for (i = 0; i < WAITING / 10; i += BATCH)
		kind->arm(SOON_ID + i);
	slab = slab_bytes();
	if (charged)
		current = charged_bytes();
	for (i = 0; i < WAITING; i += BATCH)
		kind->arm(i);
	fprintf(out, "%s.slab%s %u %lld\n", kind->name, charged ? "+memcg" : "", WAITING,
		slab_bytes() - slab);
	if (charged)
		fprintf(out, "%s.charged+memcg %u %lld\n", kind->name, WAITING,
			charged_bytes() - current);
}

/* @look runs in a process of its own, in the memory cgroup if it is to be charged. */
static void apart(FILE *out, const struct pending *kind, bool charged,
		  void (*look)(FILE *out, const struct pending *kind, bool charged))
{
	int status;
	pid_t pid;

	fflush(out);
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		if (charged)
			write_file(GROUP "/cgroup.procs", "0");
		open_kind(kind);
		look(out, kind, charged);
		fflush(out);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		errx(1, "%s: its process failed", kind->name);
	sleep(SETTLE_S);
}

static void time_charged(FILE *out, const struct pending *kind, bool charged)
{
	(void)charged;
	measure_kind(out, kind, 1000, "+memcg");
}

void run_memory(FILE *out)
{
	unsigned int k;

	write_file(ROOT "/cgroup.subtree_control", "+memory");
	must(!mkdir(GROUP, 0755) || errno == EEXIST, GROUP);
	for (k = 0; k < KINDS; k++) {
		apart(out, kinds[k], false, weigh);
		apart(out, kinds[k], true, weigh);
		apart(out, kinds[k], true, time_charged);
	}
}
