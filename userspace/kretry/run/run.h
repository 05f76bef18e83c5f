/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* kretry run: what its parts share. It is one thread, which waits in one place, loop_wait(). */
#ifndef KRETRY_RUN_H
#define KRETRY_RUN_H

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "../command.h"

/* What it exits with, besides what the command does. */
#define EXIT_REFUSED	122
#define EXIT_HINT	123
#define EXIT_TIMEOUT	124
#define EXIT_OWN	125	/* kretry itself failed */
#define EXIT_NO_EXEC	126
#define EXIT_NOT_FOUND	127
#define EXIT_SIGNAL	128	/* and its number */

#define NS_PER_S	1000000000ULL
#define NS_PER_MS	1000000ULL

/* -------- what the options say -------- */

struct statuses {
	bool		given;
	bool		has[256];
};

enum codes { CODES_EXIT, CODES_CURL };
enum stdin_mode { STDIN_REPLAY, STDIN_NULL, STDIN_INHERIT };
enum output_mode { OUTPUT_PASS, OUTPUT_LAST, OUTPUT_SUCCESS };

struct settings {
	char		**command;
	uint64_t	key;
	uint64_t	timeout_ns;		/* 0: none */
	uint64_t	grace_ns;
	struct statuses	retry_on;
	struct statuses	no_retry_on;
	unsigned int	codes;
	unsigned int	stdin_mode;
	unsigned int	output_mode;
	const char	*hint_file;		/* NULL: none */
	int		hint_fd;		/* of the command; -1: none */
	bool		once_only;
	bool		quiet;
	bool		verbose;
	bool		json;
	bool		nested_too;
};

/* -------- bytes that are kept -------- */

/* In memory, and from SPOOL_MEMORY on in a file without a name. */
struct spool {
	char		*memory;
	size_t		room;
	int		fd;			/* -1: none */
	uint64_t	size;
};

#define SPOOL_MEMORY	(1U << 20)
#define CHUNK		(1U << 16)

/* -------- the parts -------- */

enum event {
	ON_SIGNAL, ON_ALARM, ON_DEADLINE, ON_SOURCE, ON_STDIN, ON_STDOUT, ON_STDERR, ON_HINT, EVENTS
};

enum phase {
	PHASE_RUNNING,
	PHASE_ENDING,		/* asked to end, and has the grace for it */
	PHASE_KILLING
};

struct attempt {
	uint64_t	number;			/* from 1 on; 0 before the first */
	pid_t		pid;			/* 0: it is gone */
	pid_t		group;			/* its own; 0: it is in ours */
	int		status;			/* as wait(2) says */
	int		exec_error;
	bool		timed_out;
	bool		told_rest;		/* those that the command left behind */
	enum phase	phase;
	enum kretry_event class;
};

struct input {
	enum { INPUT_INHERIT, INPUT_NULL, INPUT_FILE, INPUT_PUMP } kind;
	off_t		start;			/* of a file */
	int		to;			/* the command's pipe; -1: closed */
	bool		room;			/* in that pipe */
	bool		ended;			/* the source */
	bool		lost;			/* it cannot be read again */
	struct spool	kept;
	uint64_t	position;		/* in what is kept */
	char		*chunk;			/* on its way */
	size_t		from, until;
};

struct output {
	int		from[2];		/* -1: closed */
	struct spool	kept[2];
	int		error;			/* why some of it is lost */
	char		*chunk;
};

struct hint {
	struct stat	before;			/* st_nlink 0: it was not there */
	int		from;			/* of fd:N; -1 */
	char		*text;
	size_t		length;
	/* what the last attempt's said */
	bool		given;
	uint64_t	ns;
	int		http;			/* its status, or 0 */
};

struct run {
	const struct options	*o;
	struct settings		set;
	struct kretry		*k;
	struct kretry_policy	policy;
	struct kretry_op	op;
	uint64_t		limit;		/* of attempts; 0: none */
	bool			nested;
	int			interrupt;	/* the signal */
	enum kretry_event	last_class;	/* of the attempt before */
	char			key[KRETRY_IDEMPOTENCY_KEY_SIZE];

	struct pollfd		polls[EVENTS];
	sigset_t		old_mask;
	struct sigaction	old_actions[3];
	pid_t			*strangers;	/* children that were there before us */
	size_t			stranger_count;

	struct attempt		attempt;
	struct input		input;
	struct output		output;
	struct hint		hint;
	bool			countdown;	/* a line of it is on the terminal */
};

/* settings.c: the exit status */
int settings_take(struct settings *set, const struct options *o);

/* statuses.c */
const char *statuses_parse(const char *text, struct statuses *statuses);
int exit_code(int status);
enum kretry_event classify(const struct run *r);

/* choose.c: the policy; the exit status */
int choose_policy(struct run *r);

/* config.c: the section of that name: 1; 0 if there is none, -1 if that is not known, and told */
int config_find(const char *dir, const char *name, struct draft *draft);

/* environment.c: in the child */
void environment_set(const struct run *r);

/* loop.c: the errors are told; false then */
bool loop_wait(struct run *r);
bool is_ready(const struct run *r, enum event event);
void watch(struct run *r, enum event event, int fd, short events);
void unwatch(struct run *r, enum event event);
bool alarm_set(struct run *r, uint64_t ns);
bool deadline_set(struct run *r, uint64_t deadline_ns);
void timer_clear(struct run *r, enum event event);

/* signals.c */
void standard_fds_occupy(void);
bool signals_take(struct run *r);
void signals_return(const struct run *r);
bool signals_serve(struct run *r);
void signals_drop(const struct run *r);

/* descendants.c */
void descendants_adopt(struct run *r);
bool descendants_left(const struct run *r);
/* Whether there was one to be reached. */
bool descendants_signal(const struct run *r, int signal);

/* spawn.c: false if kretry could not, which is told */
bool spawn(struct run *r, int in, const int out[2], int hint);

/* attempt.c */
bool attempt_run(struct run *r);
void attempt_end(struct run *r, int signal, bool pass);
void attempt_kill(struct run *r);

/* spool.c: -errno */
void spool_init(struct spool *spool);
int spool_append(struct spool *spool, const char *data, size_t size);
ssize_t spool_read(const struct spool *spool, uint64_t position, char *data, size_t size);
const char *spool_directory(void);
void spool_clear(struct spool *spool);

/* input.c */
bool input_init(struct run *r);
int input_begin(struct run *r);
void input_arrange(struct run *r);
void input_serve(struct run *r);
void input_end(struct run *r);

/* output.c */
bool output_begin(struct run *r, int out[2]);
void output_serve(struct run *r);
void output_end(struct run *r);
/* The exit status, given what it would be. */
int output_print(struct run *r, int status, bool ok);

/* hint.c */
bool hint_begin(struct run *r, int *fd);
void hint_serve(struct run *r);
void hint_end(struct run *r);
void hint_read(struct run *r);

/* progress.c: on stderr */
void note(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void complain(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_attempt(struct run *r);
void progress_end(struct run *r, int status);
void progress_refused(struct run *r);

/* run.c: how long until the deadline of the last answer; 0 if it has come */
uint64_t deadline_left(const struct run *r);
/* whether the server's word is why there is no further attempt */
bool is_hint_too_long(const struct run *r);

/* why.c: a STOP in words, "" if the name says it all */
const char *why_stopped(const struct run *r, char *text, size_t size);
#define WHY_TEXT	256

/* countdown.c */
bool countdown_wanted(const struct run *r);
uint64_t countdown_draw(struct run *r, uint64_t left_ns);	/* until the next */
void countdown_erase(struct run *r);

/* events.c: the same as JSON */
void json_attempt(const struct run *r);
void json_end(const struct run *r, const char *verdict, int status);
void json_note(const char *text);

const char *shown_duration(uint64_t ns, char *text);

#endif /* KRETRY_RUN_H */
