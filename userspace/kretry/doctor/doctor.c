// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry doctor: can the module be used, if not why not, and what is to be done. */

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"

const char help_doctor[] =
	"\nsay whether the module can be used, and if not why\n"
	"\n"
	"A line for each thing looked at, with a mark: ok, note, or problem. Then who decides, the\n"
	"module or the library in each process, and the next command to type, if one is needed.\n"
	"It changes nothing. As root it sees more.\n"
	"\n"
	"Exit status:\n"
	"  0   the module can be used\n"
	"  1   the doctor itself failed\n"
	"  2   the command line is wrong\n"
	"  10  not-installed: there is no kretry.ko\n"
	"  11  not-built: there is none for the running kernel\n"
	"  12  not-loaded: there is one, and it is not loaded\n"
	"  13  signature: the kernel takes only modules whose signature it trusts\n"
	"  14  no-node: the module is loaded, and the device node is not there\n"
	"  15  no-permission: this user cannot open the node\n"
	"  16  other-device: the node is of another device, or the module speaks another ABI\n"
	"  17  forbidden: loading the module is forbidden\n";

static const char *cause(enum status status)
{
	switch (status) {
	case STATUS_USABLE:
		return "usable";
	case STATUS_NOT_INSTALLED:
		return "not-installed";
	case STATUS_NOT_BUILT:
		return "not-built";
	case STATUS_NOT_LOADED:
		return "not-loaded";
	case STATUS_SIGNATURE:
		return "signature";
	case STATUS_NO_NODE:
		return "no-node";
	case STATUS_NO_PERMISSION:
		return "no-permission";
	case STATUS_OTHER_DEVICE:
		return "other-device";
	case STATUS_FORBIDDEN:
		return "forbidden";
	}
	return "?";
}

static const char *const marks[] = {
	[MARK_OK] = "ok", [MARK_NOTE] = "note", [MARK_PROBLEM] = "problem",
};

/* Paths and names of others reach the terminal as plain ASCII. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

json_t *found(struct doctor *d, enum mark mark, const char *key, const char *format, ...)
{
	json_t *finding = json_object();
	char text[2 * PATH_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	make_plain(text);
	json_object_set_new(finding, "mark", json_string(marks[mark]));
	json_object_set_new(finding, "text", json_string(text));
	json_object_set_new(d->findings, key, finding);
	return finding;
}

static void set_cause(struct doctor *d, enum status status, const char *prefix, const char *format,
		      va_list list)
{
	size_t len;

	if (d->status != STATUS_USABLE)
		return;
	d->status = status;
	len = (size_t)snprintf(d->next, sizeof(d->next), "%s", prefix);
	vsnprintf(d->next + len, sizeof(d->next) - len, format, list);
	make_plain(d->next);
}

void blame(struct doctor *d, enum status status, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	set_cause(d, status, "", format, list);
	va_end(list);
}

void blame_as_root(struct doctor *d, enum status status, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	set_cause(d, status, geteuid() ? "sudo " : "", format, list);
	va_end(list);
}

static bool is_container(void)
{
	char text[64];

	return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
	       read_text("/run/systemd/container", text, sizeof(text)) || getenv("container");
}

static int examine(struct doctor *d)
{
	struct utsname system;
	int ret = kretry_open(&d->k, d->path, 0);

	if (ret < 0)
		return fail("%s", strerror(-ret));
	if (uname(&system) < 0)
		return fail("uname: %m");
	snprintf(d->release, sizeof(d->release), "%s", system.release);
	d->in_container = is_container();
	found(d, MARK_OK, "kernel", "Linux %s%s", d->release,
	      d->in_container ? ", seen from a container" : "");
	check_module(d);
	check_node(d);
	check_rings(d);
	return 0;
}

/* -------- what it says -------- */

static void print_finding(const char *key, json_t *finding)
{
	static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m" };
	const char *mark = json_string_value(json_object_get(finding, "mark"));
	const char *colour = "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(marks) && may_colour(STDOUT_FILENO); i++)
		if (!strcmp(mark, marks[i]))
			colour = colours[i];
	printf("%s%-8s%s %-12s %s\n", colour, mark, *colour ? "\033[0m" : "", key,
	       json_string_value(json_object_get(finding, "text")));
}

static void print_text(const struct doctor *d)
{
	json_t *finding;
	const char *key;

	json_object_foreach(d->findings, key, finding)
		print_finding(key, finding);
	printf("\n%s\n", d->status == STATUS_USABLE ?
	       "The module decides: budgets and breakers are shared by all processes." :
	       "The library decides, in each process: budgets and breakers are its own.");
	if (*d->next)
		printf("Next: %s\n", d->next);
}

static void print_object(const struct doctor *d)
{
	json_t *json = json_object();

	json_object_set_new(json, "status", json_integer(d->status));
	json_object_set_new(json, "cause", json_string(cause(d->status)));
	json_object_set_new(json, "backend", json_string(d->status ? "process" : "module"));
	json_object_set_new(json, "next", *d->next ? json_string(d->next) : json_null());
	json_object_set(json, "findings", d->findings);
	print_json(json);
}

int verb_doctor(const struct options *o)
{
	struct doctor d = {
		.findings = json_object(),
		.path = o->value[OPT_DEVICE] ? o->value[OPT_DEVICE] : KRETRY_DEVICE,
	};
	int ret = examine(&d);

	if (!ret && o->value[OPT_JSON])
		print_object(&d);
	else if (!ret)
		print_text(&d);
	json_decref(d.findings);
	kretry_close(d.k);
	return ret ? ret : (int)d.status;
}
