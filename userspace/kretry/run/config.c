// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The section of a policy in a directory of policy files. */

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* One that cannot be read is told, and what another program has there is no reason to stop. */
static int find_in_file(const char *path, const char *name, struct draft *draft)
{
	struct draft *drafts;
	int i, found = 0, count = read_policies(path, true, &drafts);

	if (count < 0)
		return -1;
	for (i = 0; i < count && !found; i++) {
		found = !strcmp((const char *)drafts[i].policy.name, name);
		if (found)
			*draft = drafts[i];
	}
	free(drafts);
	return found;
}

/* 1; 0 if there is none; -1 if there may be one where it could not be read. */
int config_find(const char *dir, const char *name, struct draft *draft)
{
	struct dirent **names;
	char path[PATH_MAX];
	int i, one, found = 0, count = list_policy_files(dir, &names);

	if (count < 0 && errno == ENOENT)
		return 0;
	if (count < 0) {
		fail("%s: %s", dir, strerror(errno));
		return -1;
	}
	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		one = found > 0 ? 0 : find_in_file(path, name, draft);
		found = one ? one : found;
		free(names[i]);
	}
	free(names);
	return found;
}
