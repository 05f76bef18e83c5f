// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * All processes that come from the command, in whatever group or session: as this process is a
 * subreaper, those whose parent has gone become its children.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

struct process {
	pid_t	pid;
	pid_t	parent;
	bool	dead;		/* just not waited for by its parent */
};

struct table {
	struct process	*processes;
	size_t		count;
	size_t		room;
};

/* -------- /proc -------- */

/* The name, in parentheses, may have any byte in it. */
static bool parse_stat(const char *text, struct process *process)
{
	const char *rest = strrchr(text, ')');
	long threads;
	char state;

	static const char fields[] =
		" %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld";

	if (!rest || sscanf(rest + 1, fields, &state, &process->parent, &threads) != 3)
		return false;
	/* The first thread may have ended and others not. */
	process->dead = state == 'X' || (state == 'Z' && threads < 2);
	return true;
}

static bool read_stat(int proc, const char *name, struct process *process)
{
	char path[300], text[1024];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/stat", name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	process->pid = atoi(name);
	return parse_stat(text, process);
}

static void add(struct table *table, const struct process *process)
{
	struct process *larger;

	if (table->count == table->room) {
		table->room = table->room ? 2 * table->room : 256;
		larger = realloc(table->processes, table->room * sizeof(*larger));
		if (!larger) {
			table->room = table->count;
			return;
		}
		table->processes = larger;
	}
	table->processes[table->count++] = *process;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *one = a, *other = b;

	return (one->pid > other->pid) - (one->pid < other->pid);
}

/* Whether /proc shows the processes as this one's namespace numbers them. */
static bool is_ours(int proc)
{
	char text[32] = "";
	ssize_t got = readlinkat(proc, "self", text, sizeof(text) - 1);

	return got > 0 && atoi(text) == getpid();
}

static bool read_table(struct table *table)
{
	DIR *dir = opendir("/proc");
	struct process process;
	struct dirent *entry;

	memset(table, 0, sizeof(*table));
	if (!dir)
		return false;
	if (!is_ours(dirfd(dir))) {
		closedir(dir);
		return false;
	}
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)*entry->d_name) &&
		    read_stat(dirfd(dir), entry->d_name, &process))
			add(table, &process);
	closedir(dir);
	qsort(table->processes, table->count, sizeof(*table->processes), by_pid);
	return true;
}

/* -------- who is one -------- */

static bool is_stranger(const struct run *r, pid_t pid)
{
	size_t i;

	for (i = 0; i < r->stranger_count; i++)
		if (r->strangers[i] == pid)
			return true;
	return false;
}

static pid_t parent_of(const struct table *table, pid_t pid)
{
	const struct process key = { .pid = pid }, *found;

	found = bsearch(&key, table->processes, table->count, sizeof(key), by_pid);
	return found ? found->parent : 0;
}

/* The steps are counted, as what is read is not of one moment and might go in circles. */
static bool is_descendant(const struct run *r, const struct table *table, pid_t pid)
{
	pid_t own = getpid();
	size_t steps;

	for (steps = 0; pid > 0 && pid != own && steps <= table->count; steps++) {
		if (is_stranger(r, pid))
			return false;
		pid = parent_of(table, pid);
		if (pid == own)
			return true;
	}
	return false;
}

/* Where there is no /proc, its group is what can be reached. */
static bool signal_group(const struct run *r, int signal)
{
	bool any = r->attempt.group && kill(-r->attempt.group, signal) == 0;

	return (r->attempt.pid && kill(r->attempt.pid, signal) == 0) || any;
}

bool descendants_signal(const struct run *r, int signal)
{
	struct table table;
	const struct process *p;
	bool any = false;

	if (!read_table(&table))
		return signal_group(r, signal);
	for (p = table.processes; p < table.processes + table.count; p++)
		if (!p->dead && is_descendant(r, &table, p->pid) && kill(p->pid, signal) == 0)
			any = true;
	free(table.processes);
	return any;
}

/* Without children there are no others either. */
static bool have_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool descendants_left(const struct run *r)
{
	if (!have_children())
		return false;
	return !r->stranger_count || descendants_signal(r, 0);
}

/* -------- at the start -------- */

/* The shell that became this process may have left it children: they are none of the command's. */
static void find_strangers(struct run *r)
{
	struct table table;
	const struct process *p;

	if (!read_table(&table))
		return;
	r->strangers = calloc(table.count, sizeof(*r->strangers));
	for (p = table.processes; r->strangers && p < table.processes + table.count; p++)
		if (p->parent == getpid())
			r->strangers[r->stranger_count++] = p->pid;
	free(table.processes);
}

void descendants_adopt(struct run *r)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (have_children())
		find_strangers(r);
}
