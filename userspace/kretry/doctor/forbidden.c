// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What forbids loading: the kernel's own switches, and the configuration of modprobe. */

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

static int is_configuration(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && end && !strcmp(end, ".conf");
}

/* Only these two lines matter; what "install" names instead of the module is its own affair. */
static void judge_line(struct doctor *d, const char *path, char *line)
{
	char *save, *verb = strtok_r(line, " \t\n", &save);
	char *name = verb ? strtok_r(NULL, " \t\n", &save) : NULL;

	if (!name || strcmp(name, MODULE))
		return;
	if (!strcmp(verb, "blacklist"))
		found(d, MARK_NOTE, "blacklist", "%s: not loaded at boot; modprobe " MODULE
		      " still does", path);
	if (strcmp(verb, "install"))
		return;
	found(d, MARK_PROBLEM, "install", "%s: modprobe runs \"%s\" instead", path,
	      save ? save + strspn(save, " \t") : "");
	blame_as_root(d, STATUS_FORBIDDEN, "sed -i '/^install[[:space:]]*" MODULE "/d' %s", path);
}

static void read_file(struct doctor *d, const char *path)
{
	char line[1024];
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		judge_line(d, path, line);
	}
	if (file)
		fclose(file);
}

static void read_directory(struct doctor *d, const char *dir)
{
	struct dirent **names;
	char path[PATH_MAX];
	int i, count = scandir(dir, &names, is_configuration, alphasort);

	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		read_file(d, path);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

void check_forbidden(struct doctor *d)
{
	static const char *const dirs[] = {
		"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d",
		"/usr/lib/modprobe.d", "/lib/modprobe.d",
	};
	char value[16] = "";
	size_t i;

	if (read_text("/proc/sys/kernel/modules_disabled", value, sizeof(value)) &&
	    strcmp(value, "0")) {
		found(d, MARK_PROBLEM, "loading",
		      "kernel.modules_disabled is %s: nothing loads before the next boot", value);
		blame_as_root(d, STATUS_FORBIDDEN, "systemctl reboot");
	}
	if (boot_option_has("module_blacklist", MODULE)) {
		found(d, MARK_PROBLEM, "loading", "module_blacklist=" MODULE
		      " on the kernel's command line");
		blame_as_root(d, STATUS_FORBIDDEN, "editor /etc/default/grub");
	}
	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		read_directory(d, dirs[i]);
}
