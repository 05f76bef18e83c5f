// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Verbs and their options. */

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

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
	[OPT_INTERVAL]		= { "interval", "DURATION" },
	[OPT_PRESET]		= { "preset", "PRESET" },
	[OPT_ATTEMPT]		= { "attempt", "N" },
	[OPT_EVENT]		= { "event", "EVENT" },
	[OPT_HINT]		= { "hint", "DURATION" },
	[OPT_NO_RETRY]		= { "no-retry", NULL },
	[OPT_ELAPSED]		= { "elapsed", "DURATION" },
	[OPT_PREVIOUS]		= { "previous", "DURATION" },
	[OPT_IDEMPOTENT]	= { "idempotent", NULL },
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

/* Those @verb takes, as getopt_long() wants them; their val is the option and 256. */
static void list_options(const struct verb *verb, struct option *list)
{
	unsigned int i;

	for (i = 0; i < OPTIONS; i++)
		if (i == OPT_HELP || verb->options & HAS(i))
			*list++ = (struct option) {
				.name = options[i].name,
				.has_arg = options[i].argument ? required_argument : no_argument,
				.val = 256 + (int)i,
			};
	*list = (struct option) { 0 };
}

static int parse_options(const struct verb *verb, int argc, char **argv, struct options *o)
{
	struct option list[OPTIONS + 1];
	int option;

	list_options(verb, list);
	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, ":h", list, NULL)) != -1) {
		if (option == 'h')
			option = 256 + OPT_HELP;
		if (option == ':')
			return usage_error("%s needs a value", argv[optind - 1]);
		if (option == '?')
			return usage_error("no such option: %s", argv[optind - 1]);
		o->value[option - 256] = optarg ? optarg : "";
	}
	o->args = argv + optind;
	o->count = argc - optind;
	if (o->value[OPT_HELP])
		return 0;
	if (o->count < verb->min_args)
		return usage_error("too few arguments");
	if (verb->max_args >= 0 && o->count > verb->max_args)
		return usage_error("too many arguments: %s", o->args[verb->max_args]);
	return 0;
}

static void print_help(const struct verb *verb)
{
	unsigned int i;

	printf("usage: %s", command);
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
