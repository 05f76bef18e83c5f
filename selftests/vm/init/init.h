/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef VM_INIT_H
#define VM_INIT_H

#include <stdbool.h>
#include <stddef.h>

/* Text that grows up to a limit; what comes after it is dropped and said so. */
struct text {
	char *data;
	size_t len;
	bool cut;
};

/* What is known about one program run, and later about one test. */
struct outcome {
	struct text output;
	struct text diag;
	int status;
	bool timed_out;
	bool failed;
	char skip[256];
};

struct command {
	char *const *argv;
	long timeout_s;
	bool live;
};

struct settings {
	char nonce[64];
	char label[64];
	char only[128];
	char module_args[512];
	long timeout_s;
	bool module;
};

struct totals {
	unsigned int total;
	unsigned int failed;
	unsigned int skipped;
};

extern struct settings settings;
extern struct totals totals;

/* text.c */
void text_add(struct text *text, const char *data, size_t len);
__attribute__((format(printf, 2, 3))) void text_printf(struct text *text, const char *fmt, ...);
void text_free(struct text *text);
void write_all(int fd, const char *data, size_t len);

/* kmsg.c */
void kmsg_open(void);
unsigned int kmsg_check(struct text *diag);

/* child.c */
long long now_ms(void);
void run_command(const struct command *command, struct outcome *outcome);
void outcome_free(struct outcome *outcome);

/* report.c */
__attribute__((format(printf, 2, 3))) void fail(struct outcome *outcome, const char *fmt, ...);
void check_kernel(struct outcome *outcome);
void judge_exit(struct outcome *outcome);
void report(struct outcome *outcome, const char *name);
__attribute__((noreturn)) void bail_out(const char *why);

/* module.c */
void module_load_step(void);
void module_unload_step(void);
void module_still_loaded(struct outcome *outcome);

/* plan.c */
void plan_read(const char *path);
unsigned int plan_count(void);
void plan_run(void);

#endif
