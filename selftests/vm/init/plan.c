// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plan has one step a line, in the order they run:
 *
 *	kselftest PROGRAM [timeout=SECONDS]	every test of a kselftest_harness.h program,
 *						each in a process of its own
 *	run PROGRAM [ARGUMENT ...] [timeout=SECONDS]
 *						one program, its output goes to the console
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "init.h"

#define MAX_STEPS 256
#define MAX_ARGS 32
#define LIST_TIMEOUT_S 60
#define FIXTURE_WIDTH 20
#define VARIANT_WIDTH 25

struct step {
	char *argv[MAX_ARGS];
	struct test *tests;
	long timeout_s;
	bool kselftest;
};

/* selector is what the harness's -r takes, name is what we print. */
struct test {
	struct test *next;
	char selector[256];
	char name[512];
};

struct names {
	char *item[MAX_STEPS];
	unsigned int count;
};

static struct step steps[MAX_STEPS];
static unsigned int nr_steps;

static void add_name(struct names *names, const char *start, size_t len)
{
	if (!len)
		return;
	if (names->count == MAX_STEPS)
		bail_out("a kselftest program has too many tests");
	names->item[names->count++] = strndup(start, len);
}

static void free_names(struct names *names)
{
	while (names->count)
		free(names->item[--names->count]);
}

static void add_test(struct step *step, const char *fixture, const char *variant, const char *name)
{
	struct test *test = calloc(1, sizeof(*test)), **end = &step->tests;
	bool said = !strcmp(fixture, "global") || !strcmp(fixture, step->argv[0]);

	if (!test)
		bail_out("out of memory");
	snprintf(test->selector, sizeof(test->selector), "%s%s%s.%s", fixture,
		 *variant ? "." : "", variant, name);
	snprintf(test->name, sizeof(test->name), "%s.%s", step->argv[0],
		 test->selector + (said ? strlen(fixture) + 1 : 0));
	if (settings.only[0] && fnmatch(settings.only, test->name, FNM_EXTMATCH)) {
		free(test);
		return;
	}
	while (*end)
		end = &(*end)->next;
	*end = test;
}

/* A fixture's tests each run once with each of its variants. */
static void add_fixture(struct step *step, const char *fixture, struct names *variants,
			struct names *tests)
{
	unsigned int v, t;

	for (v = 0; v < variants->count || v == 0; v++)
		for (t = 0; t < tests->count; t++)
			add_test(step, fixture, variants->count ? variants->item[v] : "",
				 tests->item[t]);
	free_names(variants);
	free_names(tests);
}

/* One padded column of the harness's list; a name longer than the column pushes the rest on. */
static const char *column(const char *at, size_t width, const char **start, size_t *len)
{
	size_t here = strnlen(at, width);

	*start = at;
	*len = strcspn(at, " ");
	if (*len > here)
		here = *len;
	return at[here] ? at + here + 1 : at + here;
}

static void parse_list(struct step *step, char *list)
{
	struct names variants = {}, tests = {};
	char fixture[128] = "", *line, *save;
	const char *at, *start;
	size_t len;

	for (line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (line[0] == '#' || line[0] == '-')
			continue;
		at = column(line, FIXTURE_WIDTH, &start, &len);
		if (len) {
			add_fixture(step, fixture, &variants, &tests);
			snprintf(fixture, sizeof(fixture), "%.*s", (int)len, start);
		}
		at = column(at, VARIANT_WIDTH, &start, &len);
		add_name(&variants, start, len);
		add_name(&tests, at, strcspn(at, " "));
	}
	add_fixture(step, fixture, &variants, &tests);
}

static void list_tests(struct step *step)
{
	char *argv[] = { step->argv[0], "-l", NULL };
	struct command command = { .argv = argv, .timeout_s = LIST_TIMEOUT_S };
	struct outcome outcome;

	run_command(&command, &outcome);
	if (outcome.failed || !outcome.output.data ||
	    !strstr(outcome.output.data, "# FIXTURE")) {
		dprintf(STDOUT_FILENO, "# %s -l lists no tests: %s\n", step->argv[0],
			outcome.output.data ? outcome.output.data : "");
		bail_out("a program of the plan is no kselftest");
	}
	parse_list(step, outcome.output.data);
	outcome_free(&outcome);
}

static void parse_step(char *line)
{
	struct step *step = &steps[nr_steps];
	unsigned int argc = 0;
	char *word, *save;

	word = strtok_r(line, " \t", &save);
	if (!word || word[0] == '#')
		return;
	if (strcmp(word, "kselftest") && strcmp(word, "run"))
		bail_out("a line of the plan starts with neither kselftest nor run");
	step->kselftest = !strcmp(word, "kselftest");
	step->timeout_s = settings.timeout_s;
	while ((word = strtok_r(NULL, " \t", &save)))
		if (!strncmp(word, "timeout=", strlen("timeout=")))
			step->timeout_s = atol(word + strlen("timeout="));
		else if (argc < MAX_ARGS - 1)
			step->argv[argc++] = word;
	if (!argc || step->timeout_s <= 0 || ++nr_steps == MAX_STEPS)
		bail_out("the plan has a bad line or too many");
}

void plan_read(const char *path)
{
	static char plan[65536];
	FILE *file = fopen(path, "re");
	char *line, *save;
	unsigned int i;

	if (!file || !fread(plan, 1, sizeof(plan) - 1, file))
		bail_out("the plan is missing or empty");
	fclose(file);
	for (line = strtok_r(plan, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		parse_step(line);
	for (i = 0; i < nr_steps; i++)
		if (steps[i].kselftest)
			list_tests(&steps[i]);
}

unsigned int plan_count(void)
{
	unsigned int i, count = 0;
	struct test *test;

	for (i = 0; i < nr_steps; i++) {
		count += !steps[i].kselftest;
		for (test = steps[i].tests; test; test = test->next)
			count++;
	}
	return count;
}

/* The harness must have run exactly this one test, and said how it went. */
static void judge_kselftest(struct outcome *outcome)
{
	unsigned int results = 0;
	char *line, *skip, *output = strdup(outcome->output.data ? outcome->output.data : "");
	char *save;

	for (line = strtok_r(output, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		results += !strncmp(line, "ok ", 3) || !strncmp(line, "not ok ", 7);
		skip = strstr(line, "# SKIP");
		if (strncmp(line, "ok ", 3) || !skip)
			continue;
		skip += strlen("# SKIP");
		snprintf(outcome->skip, sizeof(outcome->skip), "%s",
			 skip + strspn(skip, " "));
		if (!outcome->skip[0])
			strcpy(outcome->skip, "no reason given");
	}
	free(output);
	if (results != 1 && !outcome->failed)
		fail(outcome, "printed %u results, not one", results);
}

static void run_test(struct step *step, struct test *test)
{
	char *argv[] = { step->argv[0], "-r", test->selector, NULL };
	struct command command = { .argv = argv, .timeout_s = step->timeout_s };
	struct outcome outcome;

	run_command(&command, &outcome);
	judge_exit(&outcome);
	judge_kselftest(&outcome);
	check_kernel(&outcome);
	module_still_loaded(&outcome);
	report(&outcome, test->name);
	outcome_free(&outcome);
}

static void run_program(struct step *step)
{
	struct command command = {
		.argv = step->argv, .timeout_s = step->timeout_s, .live = true
	};
	struct outcome outcome;
	char name[256] = "";
	unsigned int i;

	for (i = 0; step->argv[i]; i++)
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s%s", i ? " " : "",
			 step->argv[i]);
	dprintf(STDOUT_FILENO, "# output of %s:\n", name);
	run_command(&command, &outcome);
	if (outcome.output.len && outcome.output.data[outcome.output.len - 1] != '\n')
		write_all(STDOUT_FILENO, "\n", 1);
	text_free(&outcome.output);
	judge_exit(&outcome);
	check_kernel(&outcome);
	module_still_loaded(&outcome);
	report(&outcome, name);
	outcome_free(&outcome);
}

void plan_run(void)
{
	struct test *test;
	unsigned int i;

	for (i = 0; i < nr_steps; i++) {
		if (!steps[i].kselftest)
			run_program(&steps[i]);
		for (test = steps[i].tests; test; test = test->next)
			run_test(&steps[i], test);
	}
}
