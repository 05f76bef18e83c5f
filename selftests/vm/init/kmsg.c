// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "init.h"

/* Any of these, not in the middle of a longer word, makes the test fail that was running. */
static const char *const problems[] = {
	"WARNING",
	"BUG:",
	"kernel BUG at",
	"Oops",
	"Call Trace",
	"Kernel panic",
	"UBSAN",
	"KASAN",
	"KFENCE",
	"KCSAN",
	"KMSAN",
	"kmemleak",
	"INFO: task",
	"INFO: trying to register non-static key",
	"INFO: possible",
	"INFO: suspicious",
	"INFO: rcu",
	"rcu: INFO",
	"soft lockup",
	"hard LOCKUP",
	"stall on CPU",
	"possible recursive locking",
	"possible circular locking",
	"possible irq lock inversion",
	"inconsistent lock state",
	"suspicious RCU usage",
	"bad unlock balance",
	"held lock freed",
	"lock held when returning to user space",
	"lock still held",
	"sleeping function called from invalid context",
	"scheduling while atomic",
	"refcount_t",
	"general protection fault",
	"unable to handle",
	"divide error",
	"invalid opcode:",
	"stack-out-of-bounds",
	"out-of-bounds",
	"use-after-free",
	"double free",
	"stack guard page was hit",
	"kernel stack overflow",
	"corrupted stack end",
	"Bad page state",
	"Bad page map",
	"bad usercopy",
	"Kernel memory exposure",
	"Kernel memory overwrite",
	"Objects remaining",
	"still has objects",
	"list_add corruption",
	"list_del corruption",
	"ODEBUG",
	"page allocation failure",
	"Out of memory",
	"unregister_netdevice",
	"unchecked MSR access",
	"sysfs: cannot create duplicate filename",
};

static int kmsg_fd = -1;

void kmsg_open(void)
{
	kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg_fd < 0 || lseek(kmsg_fd, 0, SEEK_END) < 0)
		bail_out("cannot read the kernel log");
}

static bool starts_word(const char *text, const char *at)
{
	return at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
}

static bool is_problem(const char *text)
{
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(problems) / sizeof(problems[0]); i++)
		for (at = text; (at = strstr(at, problems[i])); at++)
			if (starts_word(text, at))
				return true;
	return false;
}

/* A record is "priority,sequence,time,flags;text\n key=value\n". */
static const char *record_text(char *record)
{
	char *text = strchr(record, ';');
	char *end;

	text = text ? text + 1 : record;
	end = strchr(text, '\n');
	if (end)
		*end = '\0';
	return text;
}

/* Reads what is new in the kernel log. From the first problem on all records are quoted. */
unsigned int kmsg_check(struct text *diag)
{
	unsigned int found = 0;
	char record[8192];
	const char *text;
	ssize_t len;

	for (;;) {
		len = read(kmsg_fd, record, sizeof(record) - 1);
		if (len < 0 && errno == EPIPE) {
			text_printf(diag, "the kernel log overran: records were lost\n");
			found++;
			continue;
		}
		if (len <= 0)
			return found;
		record[len] = '\0';
		text = record_text(record);
		found += is_problem(text);
		if (found)
			text_printf(diag, "kernel: %s\n", text);
	}
}
