// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The options that are not of the policy. */

#include <stdlib.h>
#include <string.h>

#include "run.h"

static int take_statuses(const struct options *o, enum option_id option, const char *name,
			 struct statuses *statuses)
{
	const char *error = NULL;

	if (o->value[option])
		error = statuses_parse(o->value[option], statuses);
	return error ? usage_error("--%s: %s", name, error) : 0;
}

/* One of @names, "a, b or c" in @known. */
static int take_word(const struct options *o, enum option_id option, const char *const *names,
		     const char *known, unsigned int *value)
{
	if (!o->value[option])
		return 0;
	for (*value = 0; names[*value]; ++*value)
		if (!strcmp(o->value[option], names[*value]))
			return 0;
	return usage_error("%s: %s", o->value[option], known);
}

static int take_words(struct settings *set, const struct options *o)
{
	static const char *const codes[] = { "exit", "curl", NULL };
	static const char *const inputs[] = { "replay", "null", "inherit", NULL };
	static const char *const outputs[] = { "pass", "last", "success", NULL };
	const char *slash = strrchr(set->command[0], '/');
	int ret;

	if (!strcmp(slash ? slash + 1 : set->command[0], "curl"))
		set->codes = CODES_CURL;
	ret = take_word(o, OPT_CODES, codes, "--codes is exit or curl", &set->codes);
	if (!ret)
		ret = take_word(o, OPT_STDIN, inputs, "--stdin is replay, null or inherit",
				&set->stdin_mode);
	if (!ret)
		ret = take_word(o, OPT_OUTPUT, outputs, "--output is pass, last or success",
				&set->output_mode);
	return ret;
}

static int take_hint_source(struct settings *set, const char *text)
{
	const char *error;
	uint64_t fd;

	set->hint_fd = -1;
	if (!text)
		return 0;
	if (!*text)
		return usage_error("--retry-after-from: a file, or fd:3");
	if (strncmp(text, "fd:", 3)) {
		set->hint_file = text;
		return 0;
	}
	error = parse_count(text + 3, 1023, &fd);
	if (error || fd < 3)
		return usage_error("--retry-after-from %s: a descriptor is fd:3 to fd:1023", text);
	set->hint_fd = (int)fd;
	return 0;
}

int settings_take(struct settings *set, const struct options *o)
{
	int ret;

	*set = (struct settings) {
		.command = o->args,
		.grace_ns = 5 * NS_PER_S,
		.once_only = o->value[OPT_ONCE_ONLY],
		.quiet = o->value[OPT_QUIET],
		.verbose = o->value[OPT_VERBOSE],
		.json = o->value[OPT_JSON],
		.nested_too = o->value[OPT_NESTED],
	};
	if (set->quiet && set->verbose)
		return usage_error("--quiet or --verbose: not both");
	ret = take_duration(o, OPT_TIMEOUT, "timeout", &set->timeout_ns);
	if (!ret)
		ret = take_duration(o, OPT_GRACE, "grace", &set->grace_ns);
	if (!ret)
		ret = take_statuses(o, OPT_RETRY_ON, "retry-on", &set->retry_on);
	if (!ret)
		ret = take_statuses(o, OPT_NO_RETRY_ON, "no-retry-on", &set->no_retry_on);
	if (!ret)
		ret = take_words(set, o);
	if (!ret)
		ret = take_hint_source(set, o->value[OPT_RETRY_AFTER_FROM]);
	if (!ret && o->value[OPT_KEY])
		ret = parse_key(o->value[OPT_KEY], &set->key);
	if (set->timeout_ns == KRETRY_NS_MAX)
		set->timeout_ns = 0;
	return ret;
}
