// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Policy files and directories of them, as one set: a name may come only once. */

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"

static int out_of_memory(void)
{
	return fail("%s", strerror(ENOMEM));
}

static const struct draft *find_twin(const struct policy_set *set, const struct draft *draft)
{
	int i;

	for (i = 0; i < set->count; i++)
		if (!strcmp((const char *)set->drafts[i].policy.name,
			    (const char *)draft->policy.name))
			return &set->drafts[i];
	return NULL;
}

static int add_drafts(struct policy_set *set, const struct draft *drafts, int count)
{
	struct draft *larger;
	const struct draft *twin;
	int i;

	larger = realloc(set->drafts, (size_t)(set->count + count + 1) * sizeof(*larger));
	if (!larger)
		return out_of_memory();
	set->drafts = larger;
	for (i = 0; i < count; i++) {
		twin = find_twin(set, &drafts[i]);
		if (twin) {
			fprintf(stderr,
				"kretry: %s:%d: a policy of that name comes twice: the other is %s:%d\n",
				drafts[i].path, drafts[i].line, twin->path, twin->line);
			return EXIT_USAGE;
		}
		set->drafts[set->count++] = drafts[i];
	}
	return 0;
}

/* The drafts point to the path, so the set has it too. */
static int add_file(struct policy_set *set, const char *path, bool may_be_empty)
{
	char **larger = realloc(set->paths, (size_t)(set->path_count + 1) * sizeof(*larger));
	struct draft *drafts;
	int count, ret;

	if (!larger)
		return out_of_memory();
	set->paths = larger;
	set->paths[set->path_count] = strdup(path);
	if (!set->paths[set->path_count])
		return out_of_memory();
	count = read_policies(set->paths[set->path_count++], may_be_empty, &drafts);
	if (count < 0)
		return -count;
	ret = add_drafts(set, drafts, count);
	free(drafts);
	return ret;
}

static int is_policy_file(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && end && !strcmp(end, ".conf");
}

/* Not alphasort(), which a locale may change. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int list_policy_files(const char *dir, struct dirent ***names)
{
	return scandir(dir, names, is_policy_file, by_name);
}

static int add_directory(struct policy_set *set, const char *dir)
{
	struct dirent **names;
	char path[PATH_MAX];
	int i, count = list_policy_files(dir, &names), ret = 0;

	if (count < 0)
		return fail("%s: %s", dir, strerror(errno));
	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (!ret)
			ret = add_file(set, path, true);
		free(names[i]);
	}
	free(names);
	return ret;
}

/* Nobody has to make a directory in order to have no policies. */
static bool is_absent_directory(const char *path)
{
	size_t len = strlen(path);

	return errno == ENOENT && len >= 2 &&
	       (path[len - 1] == '/' || !strcmp(path + len - 2, ".d"));
}

static int add_source(struct policy_set *set, const char *path)
{
	struct stat st;
	int before = set->count, ret;

	if (stat(path, &st) < 0 && is_absent_directory(path)) {
		fprintf(stderr, "kretry: note: %s is not there, so no policies\n", path);
		return 0;
	}
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return add_file(set, path, false);
	ret = add_directory(set, path);
	if (!ret && set->count == before)
		fprintf(stderr, "kretry: note: no policies in %s/*.conf\n", path);
	return ret;
}

int read_all_policies(char *const *paths, int count, struct policy_set *set)
{
	int i, ret = 0;

	memset(set, 0, sizeof(*set));
	for (i = 0; i < count && !ret; i++)
		ret = add_source(set, paths[i]);
	if (ret)
		policy_set_free(set);
	return ret;
}

void policy_set_free(struct policy_set *set)
{
	free(set->drafts);
	while (set->path_count)
		free(set->paths[--set->path_count]);
	free(set->paths);
	memset(set, 0, sizeof(*set));
}
