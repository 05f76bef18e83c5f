// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the system says in files. Users and groups from files too: getpwuid(3) and its like load
 * modules, and those a static program must not load.
 */

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

bool read_text(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	bool there = file && fgets(text, (int)size, file);

	if (file)
		fclose(file);
	if (there)
		text[strcspn(text, "\n")] = '\0';
	return there;
}

void group_name(gid_t gid, char *name, size_t size)
{
	FILE *file = fopen("/etc/group", "re");
	struct group *group;

	snprintf(name, size, "%u", (unsigned int)gid);
	while (file && (group = fgetgrent(file)))
		if (group->gr_gid == gid) {
			snprintf(name, size, "%s", group->gr_name);
			break;
		}
	if (file)
		fclose(file);
}

/* Who is not in the file is in a directory service; the session knows the name. */
void user_name(uid_t uid, char *name, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	const char *session = getenv("LOGNAME");
	struct passwd *user;

	snprintf(name, size, "%u", (unsigned int)uid);
	if (session && uid == getuid())
		snprintf(name, size, "%s", session);
	while (file && (user = fgetpwent(file)))
		if (user->pw_uid == uid) {
			snprintf(name, size, "%s", user->pw_name);
			break;
		}
	if (file)
		fclose(file);
}

bool is_member(const char *user, gid_t gid)
{
	FILE *file = fopen("/etc/group", "re");
	struct group *group;
	bool member = false;
	char **name;

	while (file && !member && (group = fgetgrent(file)))
		for (name = group->gr_mem; group->gr_gid == gid && *name; name++)
			member |= !strcmp(*name, user);
	if (file)
		fclose(file);
	return member;
}

static bool list_has(char *list, const char *value)
{
	char *item, *save;

	for (item = strtok_r(list, ",", &save); item; item = strtok_r(NULL, ",", &save))
		if (!strcmp(item, value))
			return true;
	return false;
}

bool boot_option_has(const char *name, const char *value)
{
	char line[4096], *word, *save;
	size_t len = strlen(name);

	if (!read_text("/proc/cmdline", line, sizeof(line)))
		return false;
	for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!strncmp(word, name, len) && word[len] == '=' &&
		    list_has(word + len + 1, value))
			return true;
	return false;
}
