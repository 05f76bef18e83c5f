// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What builds the module for the running kernel: DKMS, which needs that kernel's headers. */

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define DKMS	"/var/lib/dkms/" MODULE

/* A version that DKMS has the source of: a directory with a link of that name. */
static bool has_source(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DKMS "/%s/source", name);
	return name[0] != '.' && access(path, F_OK) == 0;
}

/* The newest; there is seldom more than one. */
static bool find_source(char *version, size_t size)
{
	DIR *dir = opendir(DKMS);
	struct dirent *entry;

	*version = '\0';
	while (dir && (entry = readdir(dir)))
		if (has_source(entry->d_name) && strverscmp(entry->d_name, version) > 0)
			snprintf(version, size, "%s", entry->d_name);
	if (dir)
		closedir(dir);
	return *version;
}

static bool has_headers(struct doctor *d)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/lib/modules/%s/build/Makefile", d->release);
	if (access(path, F_OK) == 0)
		return true;
	found(d, MARK_PROBLEM, "headers", "those of the running kernel are not installed");
	return false;
}

static void say_source(struct doctor *d, const char *version)
{
	char log[PATH_MAX];

	snprintf(log, sizeof(log), DKMS "/%s/build/make.log", version);
	found(d, MARK_PROBLEM, "dkms", "has the source of %s, not built for this kernel%s%s",
	      version, access(log, F_OK) ? "" : "; the last build failed: see ",
	      access(log, F_OK) ? "" : log);
}

void check_source(struct doctor *d, enum status status)
{
	char version[NAME_MAX + 1];

	if (!find_source(version, sizeof(version))) {
		found(d, MARK_NOTE, "dkms", "has no source of the module");
		blame_as_root(d, status, "apt install kretry-dkms");
		return;
	}
	say_source(d, version);
	if (!has_headers(d))
		blame_as_root(d, STATUS_NOT_BUILT, "apt install linux-headers-%s", d->release);
	else
		blame_as_root(d, STATUS_NOT_BUILT, "dkms install " MODULE "/%s -k %s", version,
			      d->release);
}
