// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * storm: 32 client processes against a small TCP server that fails, once for each retry policy and
 * seed. Writes raw data; report makes the table and the pictures from it.
 */
#include "storm.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct options {
	const char *rows;
	const char *data;
	enum kretry_method method;
	uint64_t seed;
	uint64_t seeds;
	uint64_t others;
	uint64_t window_s;
	unsigned int open_flags;
};

static const char usage[] =
	"usage: storm [options]\n"
	"32 client processes call a TCP server that serves 4 requests in each 0.25 s, resets all of\n"
	"their calls at once and is then down for 1.5 s; one run for each retry policy and seed.\n"
	"  --rows A,B     only these policies, or \"list\" for their names (default: all)\n"
	"  --seed N       first seed of the think times (default: 1)\n"
	"  --seeds N      runs of each policy, with seeds N, N+1, ... (default: 5)\n"
	"  --wait METHOD  how the clients sleep to a deadline: timeout, queue or wait\n"
	"                 (default: best, which is wait where the kernel offers that)\n"
	"  --others N     also N runs of each policy by each other method (default: 0)\n"
	"  --window S     seconds to watch after the outage has begun (default: 45)\n"
	"  --data FILE    where to write the raw data (default: storm.raw)\n"
	"  --module       fail where " KRETRY_DEVICE " cannot be used\n"
	"  --process-only do not look for the module: each process decides for itself\n"
	"  --help         this text\n";

void storm_die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "storm: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void storm_check(int ret, const char *what)
{
	if (ret < 0)
		storm_die("%s: %s", what, strerror(-ret));
}

void storm_log(struct storm_log *log, const struct storm_record *record)
{
	if (log->count == log->size)
		log->lost = true;
	else
		log->records[log->count++] = *record;
}

static void usage_error(const char *what, const char *value)
{
	fprintf(stderr, "storm: %s '%s': try storm --help\n", what, value);
	exit(2);
}

static uint64_t parse_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < min || value > max) {
		fprintf(stderr, "storm: --%s takes a number from %llu to %llu, not '%s'\n", option,
			(unsigned long long)min, (unsigned long long)max, text);
		exit(2);
	}
	return value;
}

static enum kretry_method parse_method(const char *text)
{
	unsigned int method;

	for (method = 0; method < STORM_METHODS; method++)
		if (!strcmp(text, storm_method_name(method)))
			return method;
	fprintf(stderr, "storm: --wait takes best, timeout, queue or wait, not '%s'\n", text);
	exit(2);
}

static const struct option longs[] = {
	{ "rows", required_argument, NULL, 'r' },
	{ "seed", required_argument, NULL, 's' },
	{ "seeds", required_argument, NULL, 'n' },
	{ "wait", required_argument, NULL, 'b' },
	{ "others", required_argument, NULL, 'o' },
	{ "window", required_argument, NULL, 'w' },
	{ "data", required_argument, NULL, 'd' },
	{ "module", no_argument, NULL, 'm' },
	{ "process-only", no_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void parse_options(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'r')
			o->rows = optarg;
		else if (c == 's')
			o->seed = parse_number("seed", optarg, 1, 1000000);
		else if (c == 'n')
			o->seeds = parse_number("seeds", optarg, 1, 1000);
		else if (c == 'b')
			o->method = parse_method(optarg);
		else if (c == 'o')
			o->others = parse_number("others", optarg, 0, 1000);
		else if (c == 'w')
			o->window_s = parse_number("window", optarg, 5, 3600);
		else if (c == 'd')
			o->data = optarg;
		else if (c == 'm')
			o->open_flags |= KRETRY_MODULE_ONLY;
		else if (c == 'p')
			o->open_flags |= KRETRY_PROCESS_ONLY;
		else if (c == 'h')
			exit(fputs(usage, stdout) == EOF);
		else
			exit(2);
	}
	if (optind < argc)
		usage_error("unexpected argument", argv[optind]);
	if (o->open_flags == (KRETRY_MODULE_ONLY | KRETRY_PROCESS_ONLY))
		usage_error("contradicting options", "--module --process-only");
}

static void list_rows(void)
{
	const struct storm_row *rows;
	size_t i, count;

	rows = storm_rows(&count);
	for (i = 0; i < count; i++)
		printf("%-14s %s\n", rows[i].name, rows[i].label);
	exit(0);
}

/* NULL selects all, else a list of names separated by commas. */
static void select_rows(const char *list, bool *selected)
{
	const struct storm_row *rows;
	size_t i, count, length;

	rows = storm_rows(&count);
	for (i = 0; !list && i < count; i++)
		selected[i] = true;
	while (list) {
		length = strcspn(list, ",");
		for (i = 0; i < count; i++)
			if (strlen(rows[i].name) == length && !strncmp(rows[i].name, list, length))
				break;
		if (i == count)
			usage_error("--rows list shows the policies there are, not", list);
		selected[i] = true;
		list = list[length] ? list + length + 1 : NULL;
	}
}

static void flush_data(FILE *out, const char *path)
{
	if (fflush(out) || ferror(out))
		storm_die("cannot write %s: %s", path, strerror(errno));
}

/* Here rather than in each client: one line of error, not 32. */
static void check_device(unsigned int open_flags)
{
	struct kretry *kretry;
	int ret = kretry_open(&kretry, NULL, open_flags);

	if (ret)
		storm_die("cannot use %s (%s): load the module, or leave --module away",
			  KRETRY_DEVICE, strerror(-ret));
	kretry_close(kretry);
}

static void *map_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		storm_die("out of memory");
	return p;
}

static void init_log(struct storm_log *log, struct storm_record **records, size_t size)
{
	log->records = *records;
	log->size = size;
	*records += size;
}

static void run_once(const struct options *o, const struct storm_row *row,
		     enum kretry_method method, uint64_t seed, FILE *out)
{
	const size_t records = STORM_SERVER_RECORDS + STORM_CLIENTS * STORM_CLIENT_RECORDS;
	struct storm_run *run = map_shared(sizeof(*run));
	struct storm_record *memory = map_shared(records * sizeof(*memory)), *next = memory;
	unsigned int i;

	run->row = row;
	run->method = method;
	run->seed = seed;
	run->window_ns = o->window_s * NS_PER_S;
	run->open_flags = o->open_flags;
	init_log(&run->server, &next, STORM_SERVER_RECORDS);
	for (i = 0; i < STORM_CLIENTS; i++)
		init_log(&run->clients[i], &next, STORM_CLIENT_RECORDS);
	storm_run(run);
	storm_emit_run(out, run);
	flush_data(out, o->data);
	printf("  %s, seed %llu, %s: %zu requests reached the server, decided by the %s\n",
	       row->label, (unsigned long long)seed, storm_method_name(method), run->server.count,
	       run->backend == KRETRY_BACKEND_MODULE ? "module" : "process");
	munmap(memory, records * sizeof(*memory));
	munmap(run, sizeof(*run));
}

/* Runs of each selected row by one method. */
static unsigned int run_rows(const struct options *o, const bool *selected,
			     enum kretry_method method, uint64_t seeds, FILE *out)
{
	const struct storm_row *rows;
	unsigned int runs = 0;
	size_t i, count;
	uint64_t n;

	rows = storm_rows(&count);
	for (i = 0; i < count; i++)
		for (n = 0; selected[i] && n < seeds; n++, runs++)
			run_once(o, &rows[i], method, o->seed + n, out);
	return runs;
}

static unsigned int run_others(const struct options *o, const bool *selected, FILE *out)
{
	char reason[STORM_REASON_MAX];
	unsigned int method, runs = 0;

	for (method = KRETRY_METHOD_TIMEOUT; o->others && method < STORM_METHODS; method++) {
		if (method == o->method)
			continue;
		if (storm_method(o->open_flags, method, reason) >= 0) {
			runs += run_rows(o, selected, method, o->others, out);
			continue;
		}
		printf("  no runs by %s: %s\n", storm_method_name(method), reason);
		storm_emit_lack(out, method, reason);
	}
	return runs;
}

static void choose_method(struct options *o)
{
	char reason[STORM_REASON_MAX];
	int ret = storm_method(o->open_flags, o->method, reason);

	if (ret < 0) {
		fprintf(stderr, "storm: --wait %s cannot be had here: %s\n",
			storm_method_name(o->method), reason);
		exit(2);
	}
	o->method = (enum kretry_method)ret;
}

int main(int argc, char **argv)
{
	struct options o = { .data = "storm.raw", .seed = 1, .seeds = 5, .window_s = 45 };
	bool selected[STORM_MAX_ROWS] = { false };
	unsigned int runs;
	FILE *out;

	parse_options(&o, argc, argv);
	if (o.rows && !strcmp(o.rows, "list"))
		list_rows();
	select_rows(o.rows, selected);
	setvbuf(stdout, NULL, _IOLBF, 0);
	check_device(o.open_flags);
	choose_method(&o);
	out = fopen(o.data, "w");
	if (!out)
		storm_die("cannot write %s: %s", o.data, strerror(errno));
	storm_emit_head(out);
	runs = run_rows(&o, selected, o.method, o.seeds, out);
	runs += run_others(&o, selected, out);
	storm_emit_tail(out, runs);
	flush_data(out, o.data);
	return 0;
}
