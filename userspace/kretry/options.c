// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Verbs and their options. */

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

static const struct option_text {
	const char	*name;
	const char	*argument;	/* NULL: it takes none */
} options[OPTIONS] = {
	[OPT_HELP]		= { "help", NULL },
	[OPT_DEVICE]		= { "device", "PATH" },
	[OPT_JSON]		= { "json", NULL },
	[OPT_PROMETHEUS]	= { "prometheus", NULL },
	[OPT_GLOBAL]		= { "global", NULL },
	[OPT_KEY]		= { "key", "KEY" },
	[OPT_LINGER]		= { "linger", "DURATION" },
	[OPT_HOLD]		= { "hold", NULL },
	[OPT_DRY_RUN]		= { "dry-run", NULL },
	[OPT_REPLACE]		= { "replace", NULL },
	[OPT_INTERVAL]		= { "interval", "DURATION" },
	[OPT_PRESET]		= { "preset", "PRESET" },
	[OPT_ATTEMPT]		= { "attempt", "N" },
	[OPT_EVENT]		= { "event", "EVENT" },
	[OPT_HINT]		= { "hint", "DURATION" },
	[OPT_NO_RETRY]		= { "no-retry", NULL },
	[OPT_ELAPSED]		= { "elapsed", "DURATION" },
	[OPT_PREVIOUS]		= { "previous", "DURATION" },
	[OPT_IDEMPOTENT]	= { "idempotent", NULL },
	[OPT_POLICY]		= { "policy", "NAME" },
	[OPT_CONFIG]		= { "config", "DIR" },
	[OPT_SET]		= { "set", "KEY=VALUE" },
	[OPT_ATTEMPTS]		= { "attempts", "N" },
	[OPT_DELAY]		= { "delay", "DURATION" },
	[OPT_MAX_DELAY]		= { "max-delay", "DURATION" },
	[OPT_FACTOR]		= { "factor", "FACTOR" },
	[OPT_JITTER]		= { "jitter", "JITTER" },
	[OPT_TOTAL]		= { "total", "DURATION" },
	[OPT_MAX_HINT]		= { "max-hint", "DURATION" },
	[OPT_ONCE_ONLY]		= { "once-only", NULL },
	[OPT_TIMEOUT]		= { "timeout", "DURATION" },
	[OPT_GRACE]		= { "grace", "DURATION" },
	[OPT_RETRY_ON]		= { "retry-on", "LIST" },
	[OPT_NO_RETRY_ON]	= { "no-retry-on", "LIST" },
	[OPT_CODES]		= { "codes", "TABLE" },
	[OPT_RETRY_AFTER_FROM]	= { "retry-after-from", "FILE" },
	[OPT_STDIN]		= { "stdin", "HOW" },
	[OPT_OUTPUT]		= { "output", "WHICH" },
	[OPT_QUIET]		= { "quiet", NULL },
	[OPT_VERBOSE]		= { "verbose", NULL },
	[OPT_NESTED]		= { "nested", NULL },
};

static const char letters[OPTIONS] = {
	[OPT_HELP] = 'h', [OPT_QUIET] = 'q', [OPT_VERBOSE] = 'v',
};

/* "kretry policy add", for messages. */
static char command[64] = "kretry";

int usage_error(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fprintf(stderr, "%s: ", command);
	vfprintf(stderr, format, list);
	fprintf(stderr, ": see %s --help\n", command);
	va_end(list);
	return EXIT_USAGE;
}

int fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fprintf(stderr, "%s: ", command);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	va_end(list);
	return EXIT_FAILED;
}

static bool takes(const struct verb *verb, unsigned int option)
{
	return option == OPT_HELP || verb->options & HAS(option);
}

/* What follows the first word that is no option is not ours. */
static bool runs_command(const struct verb *verb)
{
	return verb->run == verb_run;
}

bool may_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR");

	return isatty(fd) && (!no_color || !*no_color);
}

int take_duration(const struct options *o, enum option_id option, const char *name, uint64_t *ns)
{
	const char *error = NULL;

	if (o->value[option])
		error = parse_duration(o->value[option], ns);
	return error ? usage_error("--%s: %s", name, error) : 0;
}

/* Those @verb takes, as getopt_long() wants them; their val is the option and 256. */
static void list_options(const struct verb *verb, struct option *list, char *shorts)
{
	unsigned int i;

	if (runs_command(verb))
		*shorts++ = '+';
	*shorts++ = ':';
	for (i = 0; i < OPTIONS; i++) {
		if (!takes(verb, i))
			continue;
		*list++ = (struct option) {
			.name = options[i].name,
			.has_arg = options[i].argument ? required_argument : no_argument,
			.val = 256 + (int)i,
		};
		if (letters[i])
			*shorts++ = letters[i];
	}
	*list = (struct option) { 0 };
	*shorts = '\0';
}

static unsigned int by_letter(int letter)
{
	unsigned int i;

	for (i = 0; i < OPTIONS - 1; i++)
		if (letters[i] == letter)
			break;
	return i;
}

static int take_option(struct options *o, unsigned int option, const char *value)
{
	o->value[option] = value;
	if (option != OPT_SET)
		return 0;
	if (o->set_count == SETS_MAX)
		return usage_error("more than %d times --set", SETS_MAX);
	o->sets[o->set_count++] = value;
	return 0;
}

static int parse_arguments(const struct verb *verb, struct options *o)
{
	if (o->value[OPT_HELP])
		return 0;
	if (o->count < verb->min_args)
		return usage_error("too few arguments");
	if (verb->max_args >= 0 && o->count > verb->max_args)
		return usage_error("too many arguments: %s", o->args[verb->max_args]);
	return 0;
}

static int parse_options(const struct verb *verb, int argc, char **argv, struct options *o)
{
	struct option list[OPTIONS + 1];
	char shorts[OPTIONS + 3];
	int option, ret = 0;

	list_options(verb, list, shorts);
	opterr = 0;
	optind = 1;
	while (!ret && (option = getopt_long(argc, argv, shorts, list, NULL)) != -1) {
		if (option == ':')
			return usage_error("%s needs a value", argv[optind - 1]);
		if (option == '?' && optopt > 0 && optopt < 256)
			return usage_error("no such option: -%c", optopt);
		if (option == '?')
			return usage_error("no such option: %s", argv[optind - 1]);
		option = option < 256 ? (int)by_letter(option) : option - 256;
		ret = take_option(o, (unsigned int)option, optarg ? optarg : "");
	}
	o->args = argv + optind;
	o->count = argc - optind;
	return ret ? ret : parse_arguments(verb, o);
}

static const char *option_usage(enum option_id option, char *text, size_t size)
{
	const struct option_text *o = &options[option];
	char letter[8] = "";

	if (letters[option])
		snprintf(letter, sizeof(letter), "-%c, ", letters[option]);
	snprintf(text, size, "%s--%s%s%s", letter, o->name, o->argument ? " " : "",
		 o->argument ? o->argument : "");
	return text;
}

static void print_lines(const struct option_line *line)
{
	char text[64];

	for (; line->text; line++) {
		if (!line->option) {
			printf("\n%s\n", line->text);
			continue;
		}
		printf("  %-23s %s\n", option_usage(line->option, text, sizeof(text)),
		       line->text);
	}
}

static void print_help(const struct verb *verb)
{
	unsigned int i;

	printf("usage: %s", command);
	if (runs_command(verb)) {
		printf(" [OPTION...] [--] %s", verb->help);
		print_lines(run_lines);
		return;
	}
	for (i = 1; i < OPTIONS; i++)
		if (verb->options & HAS(i))
			printf(options[i].argument ? " [--%s %s]" : " [--%s]", options[i].name,
			       options[i].argument);
	printf(" %s", verb->help);
	if (verb->run == policy_add || verb->run == policy_apply || verb->run == verb_next) {
		printf("\nSettings, each KEY=VALUE (in a file: KEY = VALUE):\n");
		params_print_keys();
	}
}

int run_options(const struct verb *verb, const char *name, int argc, char **argv)
{
	struct options o = { 0 };
	int ret;

	snprintf(command, sizeof(command), "%s", name);
	ret = parse_options(verb, argc, argv, &o);
	if (ret)
		return ret;
	if (o.value[OPT_HELP]) {
		print_help(verb);
		return 0;
	}
	return verb->run(&o);
}

int run_verb(const struct verb *verbs, size_t count, const char *prefix, int argc, char **argv)
{
	char name[64];
	size_t i;

	snprintf(command, sizeof(command), "%s", prefix);
	if (argc < 2)
		return usage_error("what shall it do?");
	for (i = 0; i < count; i++) {
		if (strcmp(argv[1], verbs[i].name))
			continue;
		snprintf(name, sizeof(name), "%s %s", prefix, verbs[i].name);
		return run_options(&verbs[i], name, argc - 1, argv + 1);
	}
	return usage_error("no such verb: %s", argv[1]);
}

/* The second line of a help text is its summary. */
void print_verbs(const struct verb *verbs, size_t count)
{
	const char *line;
	size_t i;

	for (i = 0; i < count; i++) {
		line = strchr(verbs[i].help, '\n') + 1;
		printf("  %-10s %.*s\n", verbs[i].name, (int)strcspn(line, "\n"), line);
	}
}
