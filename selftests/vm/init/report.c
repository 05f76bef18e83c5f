// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"

/* Proprietary, forced, out-of-tree, unsigned and test taints are no kernel problem. */
#define TAINT_HARMLESS ((1UL << 0) | (1UL << 1) | (1UL << 12) | (1UL << 13) | (1UL << 18))

struct totals totals;

void fail(struct outcome *outcome, const char *fmt, ...)
{
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	text_printf(&outcome->diag, "%s\n", line);
	outcome->failed = true;
}

static unsigned long read_taint(void)
{
	char value[32] = "";
	int fd = open("/proc/sys/kernel/tainted", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, value, sizeof(value) - 1) <= 0)
		bail_out("cannot read /proc/sys/kernel/tainted");
	close(fd);
	return strtoul(value, NULL, 10);
}

void check_kernel(struct outcome *outcome)
{
	static unsigned long known;
	unsigned long taint = read_taint() & ~TAINT_HARMLESS;

	if (kmsg_check(&outcome->diag))
		outcome->failed = true;
	if (taint & ~known)
		fail(outcome, "the kernel is newly tainted: %#lx", taint & ~known);
	known |= taint;
}

void judge_exit(struct outcome *outcome)
{
	if (outcome->timed_out)
		return;
	if (WIFSIGNALED(outcome->status))
		fail(outcome, "killed by signal %d", WTERMSIG(outcome->status));
	else if (WEXITSTATUS(outcome->status))
		fail(outcome, "exit code %d", WEXITSTATUS(outcome->status));
}

/* Every line gets "# " in front, so that no output can pass for a result. */
static void print_quoted(const struct text *text)
{
	struct text quoted = {};
	const char *line = text->data, *end;

	while (line && *line) {
		end = strchrnul(line, '\n');
		text_printf(&quoted, "# ");
		text_add(&quoted, line, end - line);
		text_add(&quoted, "\n", 1);
		line = *end ? end + 1 : end;
	}
	if (text->cut)
		text_printf(&quoted, "# (the rest is cut)\n");
	if (quoted.data)
		write_all(STDOUT_FILENO, quoted.data, quoted.len);
	text_free(&quoted);
}

void report(struct outcome *outcome, const char *name)
{
	struct text line = {};
	bool skipped = outcome->skip[0] && !outcome->failed;

	totals.total++;
	totals.failed += outcome->failed;
	totals.skipped += skipped;
	if (outcome->failed) {
		print_quoted(&outcome->output);
		print_quoted(&outcome->diag);
	}
	text_printf(&line, "%sok %u %s:%s", outcome->failed ? "not " : "", totals.total,
		    settings.label, name);
	if (skipped)
		text_printf(&line, " # SKIP %s", outcome->skip);
	text_add(&line, "\n", 1);
	write_all(STDOUT_FILENO, line.data, line.len);
	text_free(&line);
}

void bail_out(const char *why)
{
	dprintf(STDOUT_FILENO, "\nBail out! %s\n", why);
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}
