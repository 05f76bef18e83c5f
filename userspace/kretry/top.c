// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry top: what happens each second, on a terminal until q is typed, else once. */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "command.h"

const char help_top[] =
	"[NAME...]\n"
	"show rates, live on a terminal\n"
	"\n"
	"Of the policies named, or all that may be looked at. q quits. --interval is 1s unless it is\n"
	"given. Where the output is no terminal one table is printed, of one interval. FAIL/s is\n"
	"failures reported, STOP/s all verdicts to stop, BUDG/s and OPEN/s those of budgets and open\n"
	"breakers among them, OPENED how often a breaker has opened so far.\n";

#define HOME		"\033[H"
#define CLEAR_LINE	"\033[K\n"
#define CLEAR_REST	"\033[J"
#define ALT_SCREEN	"\033[?1049h\033[?25l"
#define OLD_SCREEN	"\033[?25h\033[?1049l"
#define BOLD		"\033[1m"
#define PLAIN		"\033[0m"

static struct termios saved;
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

static void restore_terminal(void)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &saved);
	fputs(OLD_SCREEN, stdout);
	fflush(stdout);
}

static void take_terminal(void)
{
	struct sigaction action = { .sa_handler = stop };
	struct termios raw;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	tcgetattr(STDIN_FILENO, &saved);
	raw = saved;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs(ALT_SCREEN, stdout);
}

static unsigned int screen_lines(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2)
		return size.ws_row;
	return 24;
}

/* True: it is time to go. */
static bool wait_interval(bool live, uint64_t interval_ns)
{
	struct pollfd input = { .fd = live ? STDIN_FILENO : -1, .events = POLLIN };
	uint64_t now = kretry_now(CLOCK_MONOTONIC), end = now + interval_ns;
	char key;

	for (; now < end && !stopped; now = kretry_now(CLOCK_MONOTONIC)) {
		if (poll(&input, 1, (int)((end - now + 999999) / 1000000)) <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
			return true;
	}
	return stopped;
}

/* -------- the table -------- */

static uint64_t stops(const struct kretry_stat *s)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(s->stops); i++)
		sum += s->stops[i];
	return sum;
}

static uint64_t failures(const struct kretry_stat *s)
{
	return s->events[KRETRY_EVENT_TRANSIENT] + s->events[KRETRY_EVENT_THROTTLED] +
	       s->events[KRETRY_EVENT_UNKNOWN] + s->events[KRETRY_EVENT_PERMANENT];
}

static const struct column {
	const char	*head;
	uint64_t	(*sum)(const struct kretry_stat *s);
	unsigned int	stop;
} columns[] = {
	{ "FAIL/s", failures, 0 }, { "STOP/s", stops, 0 },
	{ "BUDG/s", NULL, KRETRY_STOP_BUDGET }, { "OPEN/s", NULL, KRETRY_STOP_OPEN },
};

/* Tenths a second of what has grown from @then to @now. */
static uint64_t rate(uint64_t then, uint64_t now, uint64_t ns)
{
	return now > then ? (uint64_t)((unsigned __int128)(now - then) * 10000000000ULL / ns) : 0;
}

static void print_rate(uint64_t tenths)
{
	printf(" %5" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
}

static void print_row(const struct sample *was, const struct sample *is, uint64_t ns)
{
	const struct kretry_stat *a = &was->stat, *b = &is->stat;
	char name[SHOWN_NAME];
	unsigned int i;

	printf("%-16.16s", shown_name(is->entry.name, name));
	print_rate(rate(a->events[KRETRY_EVENT_OK], b->events[KRETRY_EVENT_OK], ns));
	print_rate(rate(a->retry, b->retry, ns));
	for (i = 0; i < ARRAY_SIZE(columns); i++) {
		if (columns[i].sum)
			print_rate(rate(columns[i].sum(a), columns[i].sum(b), ns));
		else
			print_rate(rate(a->stops[columns[i].stop - KRETRY_STOP_PERMANENT],
					b->stops[columns[i].stop - KRETRY_STOP_PERMANENT], ns));
	}
	printf(" %7" PRIu64 " %6u", (uint64_t)b->opened, b->keys);
}

static void print_table(const struct sample *was, unsigned int was_count,
			const struct sample *is, unsigned int count, uint64_t ns, bool live)
{
	unsigned int i, n, rows = live ? screen_lines() - 2 : count;
	const char *end = live ? CLEAR_LINE : "\n";

	if (live)
		fputs(HOME BOLD, stdout);
	printf("%-16s %7s %7s", "POLICY", "OK/s", "RETRY/s");
	for (i = 0; i < ARRAY_SIZE(columns); i++)
		printf(" %7s", columns[i].head);
	printf(" %7s %6s%s%s", "OPENED", "KEYS", live ? PLAIN : "", end);
	for (i = 0; i < count && i < rows; i++) {
		for (n = 0; n < was_count; n++)
			if (!memcmp(&was[n].entry.name, &is[i].entry.name, KRETRY_NAME_MAX) &&
			    was[n].entry.open_flags == is[i].entry.open_flags)
				break;
		print_row(n < was_count ? &was[n] : &is[i], &is[i], ns);
		fputs(end, stdout);
	}
	if (live)
		printf("%s%u policies; q quits", CLEAR_REST, count);
	fflush(stdout);
}

static int watch(struct kretry *k, const struct options *o, uint64_t interval_ns, bool live)
{
	unsigned int was_count = 0, count;
	struct sample *was = NULL, *is;
	uint64_t then = 0, now;
	int ret;

	do {
		ret = take_samples(k, o, &is, &count);
		if (ret)
			break;
		now = kretry_now(CLOCK_MONOTONIC);
		if (was || live)
			print_table(was, was_count, is, count, was ? now - then : 1, live);
		if (was && !live)
			break;
		free(was);
		was = is;
		was_count = count;
		then = now;
		is = NULL;
	} while (!wait_interval(live, interval_ns));
	free(was);
	if (!ret)
		free(is);
	return ret;
}

int verb_top(const struct options *o)
{
	bool live = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	uint64_t interval_ns = 1000000000;
	const char *error = NULL;
	struct kretry *k;
	int ret;

	if (o->value[OPT_INTERVAL])
		error = parse_duration(o->value[OPT_INTERVAL], &interval_ns);
	if (error || interval_ns < 10000000 || interval_ns > 3600000000000ULL)
		return usage_error("--interval: %s", error ? error : "from 10ms to 1h");
	ret = open_module(o, &k);
	if (ret)
		return ret;
	if (live)
		take_terminal();
	ret = watch(k, o, interval_ns, live);
	if (live)
		restore_terminal();
	kretry_close(k);
	return ret;
}
