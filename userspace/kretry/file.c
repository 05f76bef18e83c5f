// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Policy files: INI, a section for each policy, named like it. The reader below counts the lines
 * that the parser asks for, and takes the names of sections, which the parser cuts short.
 */

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

struct reading {
	FILE		*file;
	const char	*path;
	int		line;
	bool		indented;	/* the line */
	bool		may_be_empty;
	struct draft	*drafts;
	int		count;
	bool		failed;
	struct problem	problem;
};

static void note(struct reading *r, int line, const char *text)
{
	if (r->failed)
		return;
	r->failed = true;
	r->problem = (struct problem) { .line = line };
	snprintf(r->problem.text, sizeof(r->problem.text), "%s", text);
}

static void note_twin(struct reading *r, const char *name)
{
	char text[sizeof(r->problem.text)];
	int i;

	for (i = 0; i < r->count - 1; i++) {
		if (strcmp((const char *)r->drafts[i].policy.name, name))
			continue;
		snprintf(text, sizeof(text),
			 "a policy of that name comes twice: the other is %s:%d", r->path,
			 r->drafts[i].line);
		note(r, r->line, text);
		return;
	}
}

/* @line begins with "[". Comments and what else may follow are the parser's to judge. */
static void begin_section(struct reading *r, const char *line)
{
	char name[256] = "";
	struct draft *larger;
	size_t len = strcspn(line + 1, "]\n");

	larger = realloc(r->drafts, (size_t)(r->count + 1) * sizeof(*larger));
	if (!larger) {
		note(r, r->line, strerror(ENOMEM));
		return;
	}
	r->drafts = larger;
	larger += r->count++;
	draft_init(larger);
	larger->path = r->path;
	larger->line = r->line;
	if (line[1 + len] != ']')
		return;
	memcpy(name, line + 1, len < sizeof(name) ? len : sizeof(name) - 1);
	if (!r->failed && !draft_set_name(larger, name, &r->problem))
		r->failed = true;
	note_twin(r, name);
}

static char *read_line(char *text, int size, void *arg)
{
	struct reading *r = arg;
	const char *first;

	if (r->failed || !fgets(text, size, r->file))
		return NULL;
	r->line++;
	first = text + strspn(text, " \t");
	r->indented = first != text;
	if (strlen(text) == (size_t)size - 1 && text[size - 2] != '\n')
		note(r, r->line, "the line is too long; a table may go on in indented lines");
	else if (*text == '[')
		begin_section(r, text);
	return text;
}

static int take_setting(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;

	(void)section;
	if (r->failed)
		return 0;
	if (!r->count) {
		note(r, r->line, "a setting before the first [name]");
		return 0;
	}
	if (draft_set(&r->drafts[r->count - 1], key, value ? value : "", r->line, &r->problem))
		return 1;
	r->failed = true;
	if (r->indented && r->drafts[r->count - 1].settings)
		snprintf(r->problem.text, sizeof(r->problem.text),
			 "an indented line goes on with the one above, and only a table may");
	return 0;
}

static void finish_all(struct reading *r)
{
	int i;

	for (i = 0; i < r->count && !r->failed; i++)
		if (!draft_finish(&r->drafts[i], &r->problem))
			r->failed = true;
	if (!r->count && !r->may_be_empty)
		note(r, 1, "no policy in it: each begins with [name]");
}

static int complain(const struct reading *r)
{
	const struct problem *p = &r->problem;

	fprintf(stderr, "kretry: %s:%d: %s%s%s\n", r->path, p->line, p->key, *p->key ? ": " : "",
		p->text);
	return -EXIT_USAGE;
}

/* One of a directory may be all comments; what a person names is to have something in it. */
int read_policies(const char *path, bool may_be_empty, struct draft **drafts)
{
	struct reading r = { .path = path, .may_be_empty = may_be_empty };
	int line;

	r.file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	if (!r.file)
		return -fail("%s: %s", path, strerror(errno));
	line = ini_parse_stream(read_line, &r, take_setting, &r);
	if (ferror(r.file))
		note(&r, r.line, strerror(errno));
	if (line > 0)
		note(&r, line, "neither [name] nor KEY = VALUE nor a comment");
	if (r.file != stdin)
		fclose(r.file);
	if (!r.failed)
		finish_all(&r);
	if (r.failed) {
		free(r.drafts);
		return complain(&r);
	}
	*drafts = r.drafts;
	return r.count;
}
