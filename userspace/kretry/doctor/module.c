// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A module that is loaded: its version, its parameters, what it offers. */

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

static void check_version(struct doctor *d)
{
	char version[64] = "?";
	json_t *finding;
	bool same;

	read_text(MODULE_DIR "/version", version, sizeof(version));
	same = !strcmp(version, KRETRY_VERSION);
	finding = found(d, same ? MARK_OK : MARK_NOTE, "module",
			same ? "loaded, version %s" :
			"loaded, version %s; this command is of %s: load the newer one",
			version, KRETRY_VERSION);
	json_object_set_new(finding, "version", json_string(version));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* One parameter is a number that people write in octal. */
static void add_parameter(json_t *values, const char *name, char *text, size_t size)
{
	char path[PATH_MAX], value[64];
	size_t len = strlen(text);

	snprintf(path, sizeof(path), MODULE_DIR "/parameters/%s", name);
	if (!read_text(path, value, sizeof(value)))
		return;
	if (!strcmp(name, "mode"))
		snprintf(value, sizeof(value), "0%o", (unsigned int)atoi(value));
	json_object_set_new(values, name, json_string(value));
	snprintf(text + len, size - len, "%s%s=%s", len ? " " : "", name, value);
}

static void check_parameters(struct doctor *d)
{
	struct dirent **names;
	char text[LINE] = "";
	json_t *values = json_object(), *finding;
	int i, count = scandir(MODULE_DIR "/parameters", &names, is_visible, by_name);

	for (i = 0; i < count; i++) {
		add_parameter(values, names[i]->d_name, text, sizeof(text));
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	finding = found(d, MARK_OK, "parameters", "%s", *text ? text : "none");
	json_object_set_new(finding, "values", values);
}

void check_module(struct doctor *d)
{
	d->loaded = access(MODULE_DIR, F_OK) == 0;
	if (!d->loaded) {
		found(d, MARK_PROBLEM, "module", "not loaded");
		return;
	}
	check_version(d);
	check_parameters(d);
}
