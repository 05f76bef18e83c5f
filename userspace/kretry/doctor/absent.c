// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A module that is not loaded: whether there is one, for this kernel, and what loads it. */

#include <string.h>
#include <unistd.h>

#include "doctor.h"

/* The first word of vermagic is the kernel's release; a module for another one is refused. */
static bool is_for(const struct ko *ko, const char *release)
{
	size_t len = strlen(release);

	return !*ko->vermagic ||
	       (!strncmp(ko->vermagic, release, len) &&
		(ko->vermagic[len] == ' ' || !ko->vermagic[len]));
}

static void say_file(struct doctor *d, const struct ko *ko)
{
	bool fits = is_for(ko, d->release);
	json_t *finding;

	finding = found(d, fits ? MARK_OK : MARK_PROBLEM, "file",
			fits ? "%s, version %s, signed: %s, built for %s" :
			"%s, version %s, signed: %s, is built for another kernel: %s",
			ko->path, *ko->version ? ko->version : "?", ko->is_signed ? "yes" : "no",
			*ko->vermagic ? ko->vermagic : "?");
	json_object_set_new(finding, "path", json_string(ko->path));
	json_object_set_new(finding, "signed", json_boolean(ko->is_signed));
}

static bool is_indexed(const struct doctor *d)
{
	char path[PATH_MAX], line[4096];
	bool there = false;
	FILE *file;

	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", d->release);
	file = fopen(path, "re");
	while (file && !there && fgets(line, sizeof(line), file)) {
		line[strcspn(line, ":")] = '\0';
		there = strstr(line, "/" MODULE ".ko") || !strncmp(line, MODULE ".ko", 9);
	}
	if (file)
		fclose(file);
	return there;
}

static void check_file(struct doctor *d, struct ko *ko)
{
	ko_read(ko);
	say_file(d, ko);
	if (!is_for(ko, d->release)) {
		check_source(d, STATUS_NOT_BUILT);
		return;
	}
	check_forbidden(d);
	check_signature(d, ko);
	if (!is_indexed(d)) {
		found(d, MARK_PROBLEM, "index", "modules.dep does not list it for modprobe");
		blame_as_root(d, STATUS_NOT_LOADED, "depmod");
	}
	blame_as_root(d, STATUS_NOT_LOADED, "modprobe " MODULE);
}

/* A kernel that runs on after its package was removed or replaced by the next one. */
static bool is_kernel_gone(const struct doctor *d)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/lib/modules/%s", d->release);
	return access(path, F_OK) < 0;
}

static void check_none(struct doctor *d)
{
	char others[LINE];

	if (!ko_elsewhere(d->release, others, sizeof(others))) {
		found(d, MARK_PROBLEM, "file", "no " MODULE ".ko below /lib/modules");
		check_source(d, STATUS_NOT_INSTALLED);
		return;
	}
	found(d, MARK_PROBLEM, "file", "no " MODULE ".ko for this kernel, but for: %s", others);
	if (is_kernel_gone(d)) {
		found(d, MARK_PROBLEM, "release", "the running kernel is no longer installed");
		blame_as_root(d, STATUS_NOT_BUILT, "systemctl reboot");
	}
	check_source(d, STATUS_NOT_BUILT);
}

void check_absent(struct doctor *d)
{
	struct ko ko;

	if (d->in_container) {
		found(d, MARK_NOTE, "container",
		      "the module is the host's to load: run kretry doctor there");
		blame(d, STATUS_NOT_LOADED, "kretry doctor  # on the host");
		return;
	}
	if (ko_find(d->release, &ko))
		check_file(d, &ko);
	else
		check_none(d);
}
