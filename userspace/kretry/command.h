/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the verbs of the command share. */
#ifndef KRETRY_COMMAND_H
#define KRETRY_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kretry.h"

/* What it exits with, besides 0; kretry --help says so. */
#define EXIT_FAILED	1
#define EXIT_USAGE	2
#define EXIT_STOP	3

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

/* -------- options.c -------- */

enum option_id {
	OPT_HELP,
	OPT_DEVICE,
	OPT_JSON,
	OPT_PROMETHEUS,
	OPT_GLOBAL,
	OPT_KEY,
	OPT_LINGER,
	OPT_HOLD,
	OPT_DRY_RUN,
	OPT_REPLACE,
	OPT_INTERVAL,
	OPT_PRESET,
	OPT_ATTEMPT,
	OPT_EVENT,
	OPT_HINT,
	OPT_NO_RETRY,
	OPT_ELAPSED,
	OPT_PREVIOUS,
	OPT_IDEMPOTENT,
	OPT_POLICY,
	OPT_CONFIG,
	OPT_SET,
	OPT_ATTEMPTS,
	OPT_DELAY,
	OPT_MAX_DELAY,
	OPT_FACTOR,
	OPT_JITTER,
	OPT_TOTAL,
	OPT_MAX_HINT,
	OPT_ONCE_ONLY,
	OPT_TIMEOUT,
	OPT_GRACE,
	OPT_RETRY_ON,
	OPT_NO_RETRY_ON,
	OPT_CODES,
	OPT_RETRY_AFTER_FROM,
	OPT_STDIN,
	OPT_OUTPUT,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_NESTED,
	OPTIONS
};

#define HAS(option)	(1ULL << (option))

#define SETS_MAX	128

struct options {
	const char	*value[OPTIONS];	/* NULL: not given */
	const char	*sets[SETS_MAX];	/* each --set: it may be repeated */
	int		set_count;
	char		**args;
	int		count;
};

struct verb {
	const char	*name;
	int		(*run)(const struct options *o);
	uint64_t	options;		/* HAS() of those it takes besides --help */
	int		min_args;
	int		max_args;		/* -1: any number */
	const char	*help;			/* arguments, summary, and more, a line each */
};

/* Find the verb in @argv[1] and run it; the exit status. @prefix names the command so far. */
int run_verb(const struct verb *verbs, size_t count, const char *prefix, int argc, char **argv);
int run_options(const struct verb *verb, const char *name, int argc, char **argv);
void print_verbs(const struct verb *verbs, size_t count);

/* One line on stderr; the first returns EXIT_USAGE, the second EXIT_FAILED. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether what is written there may have colours: to a terminal, and without NO_COLOR. */
bool may_colour(int fd);

/* The duration an option gives, if it is given; the exit status. @name is for the message. */
int take_duration(const struct options *o, enum option_id option, const char *name, uint64_t *ns);

/* -------- units.c: each parser returns NULL, or what is wrong -------- */

const char *parse_duration(const char *text, uint64_t *ns);
const char *parse_tokens(const char *text, uint64_t *utok);
const char *parse_ratio(const char *text, uint64_t *ppm);
const char *parse_factor(const char *text, uint64_t *ppm);
const char *parse_count(const char *text, uint64_t max, uint64_t *count);

#define UNIT_TEXT	48

const char *format_duration(uint64_t ns, char *text);
const char *format_millionths(uint64_t value, char *text);

/* -------- params.c -------- */

#define PARAMS_MAX	80

/* A policy that is being written: where each of its parameters was set. */
struct draft {
	struct kretry_policy	policy;
	const char		*path;		/* of the file it is in, where there is one */
	int			line;		/* of its section */
	int			lines[PARAMS_MAX];	/* 0: not set */
	int			settings;
};

struct problem {
	char		key[64];		/* "": the policy as a whole */
	int		line;
	char		text[512];
};

void draft_init(struct draft *draft);
bool draft_set_name(struct draft *draft, const char *name, struct problem *problem);
bool draft_set(struct draft *draft, const char *key, const char *value, int line,
	       struct problem *problem);
/* "key=value", as on a command line. */
bool draft_set_pair(struct draft *draft, const char *pair, struct problem *problem);
/* Fill in what follows from what was set, and see whether it fits together. */
bool draft_finish(struct draft *draft, struct problem *problem);

void params_print(const struct kretry_policy *policy);
void params_print_keys(void);

/* -------- the rest -------- */

/* file.c: the drafts of a file, and how many; negative is the exit status, told already. */
int read_policies(const char *path, bool may_be_empty, struct draft **drafts);

/* Those of many files. */
struct policy_set {
	struct draft	*drafts;
	int		count;
	char		**paths;
	int		path_count;
};

struct dirent;

/* sources.c: the names of a directory's policy files, in that order; as scandir(3). */
int list_policy_files(const char *dir, struct dirent ***names);

/*
 * Read files and directories, of which it takes what is named *.conf, in the C locale's
 * order. The exit status; where it is not 0, what was wrong has been told and @set is empty.
 */
int read_all_policies(char *const *paths, int count, struct policy_set *set);
void policy_set_free(struct policy_set *set);

/* create.c */

/* What could not be is told; then an exit status. Before any is made, for all. */
int check_linger(struct kretry *k, const struct options *o, const struct draft *drafts, int count);
/* The id is then in @policy; -errno. */
int create_policy(struct kretry *k, const struct options *o, struct kretry_policy *policy);
/* The words for what it returned. */
const char *why_not_created(int error);

/* hold.c */

/* From here on SIGINT, SIGTERM and SIGHUP are what take_signal() returns. */
void block_signals(void);
int take_signal(void);
/* Those of the files in @o->args until a signal ends it, read again at SIGHUP; the exit status. */
int hold_policies(const struct options *o, struct kretry *k, struct policy_set *set);

/* apply.c: the files in @o->args, with the options that are for those that do not say */
int read_arguments(const struct options *o, struct policy_set *set);

/* notify.c: tell the service manager, if one has started us */
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* json.c */
struct json_t;
struct json_t *params_json(const struct kretry_policy *policy);
void print_json(struct json_t *json);

/* device.c */
int open_module(const struct options *o, struct kretry **k);
int open_any(const struct options *o, struct kretry **k);
/* A private policy of that name or, failing that, a global one; the exit status. */
int open_policy(struct kretry *k, const struct options *o, const char *name, uint32_t *id,
		bool *global);
int parse_key(const char *text, uint64_t *key);

/* A name as it can be shown on a terminal: at most 4 bytes for each of its own. */
#define SHOWN_NAME	(4 * KRETRY_NAME_MAX)

const char *shown_name(const unsigned char *name, char *text);
const char *mode_name(unsigned int mode);
const char *state_name(unsigned int state);

/* sample.c: the counters of named policies */
struct sample {
	struct kretry_policy_entry	entry;
	struct kretry_stat		stat;
	struct kretry_stat		key;
	clockid_t			clock;
};

/* Those of @o->args, or all. @samples is for the caller to free(). The exit status. */
int take_samples(struct kretry *k, const struct options *o, struct sample **samples,
		 unsigned int *count);

/* the verbs */
int policy_add(const struct options *o);
int policy_apply(const struct options *o);
int policy_list(const struct options *o);
int policy_show(const struct options *o);
int policy_rm(const struct options *o);
int policy_presets(const struct options *o);
int verb_next(const struct options *o);
int verb_stat(const struct options *o);
int verb_top(const struct options *o);
int verb_force(const struct options *o);
int verb_run(const struct options *o);
int verb_doctor(const struct options *o);
extern const char help_add[], help_apply[], help_next[], help_stat[], help_top[], help_force[];
extern const char help_run[], help_doctor[];

/* run/help.c: a line about an option, or a heading, which has none (0); without text the end */
struct option_line {
	enum option_id	option;
	const char	*text;
};

extern const struct option_line run_lines[];

void print_prometheus(const struct sample *samples, unsigned int count, bool with_key);

#endif /* KRETRY_COMMAND_H */
