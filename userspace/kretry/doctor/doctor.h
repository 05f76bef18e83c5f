/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the parts of kretry doctor share: what has been found, and what is to blame. */
#ifndef KRETRY_DOCTOR_H
#define KRETRY_DOCTOR_H

#include <jansson.h>
#include <limits.h>
#include <sys/stat.h>

#include "../command.h"

/* What it exits with; help_doctor has the words. */
enum status {
	STATUS_USABLE		= 0,
	STATUS_NOT_INSTALLED	= 10,
	STATUS_NOT_BUILT	= 11,
	STATUS_NOT_LOADED	= 12,
	STATUS_SIGNATURE	= 13,
	STATUS_NO_NODE		= 14,
	STATUS_NO_PERMISSION	= 15,
	STATUS_OTHER_DEVICE	= 16,
	STATUS_FORBIDDEN	= 17,
};

enum mark { MARK_OK, MARK_NOTE, MARK_PROBLEM };

#define MODULE		"kretry"
#define MODULE_DIR	"/sys/module/" MODULE
#define LINE		512

struct doctor {
	json_t		*findings;	/* an object, in the order they were made */
	enum status	status;
	char		next[LINE];	/* "": nothing to type */
	const char	*path;		/* of the node */
	char		release[128];	/* of the running kernel */
	bool		loaded;
	bool		in_container;
	struct kretry	*k;		/* the library's own view */
};

/* A finding by the name @key; what there is to add about it can be set in the object returned. */
json_t *found(struct doctor *d, enum mark mark, const char *key, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * The first cause counts, with the one command that helps: as it is, or as_root() for one that is
 * root's to type.
 */
void blame(struct doctor *d, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void blame_as_root(struct doctor *d, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* -------- read.c: what the system says in files -------- */

/* The first line of a file, without its end; false where there is none. */
bool read_text(const char *path, char *text, size_t size);
/* The names of a group and a user of this machine, or their numbers. */
void group_name(gid_t gid, char *name, size_t size);
void user_name(uid_t uid, char *name, size_t size);
/* Whether /etc/group has @user in @gid; a session from before does not have it yet. */
bool is_member(const char *user, gid_t gid);
/* Whether the words of the kernel's command line have @name=…@value…, of a list with commas. */
bool boot_option_has(const char *name, const char *value);

/* -------- ko.c: the files of the module -------- */

struct ko {
	char	path[PATH_MAX];
	char	vermagic[256];		/* "": not known */
	char	version[64];
	char	signer[128];
	bool	is_signed;
};

/* Below /lib/modules/@release. */
bool ko_find(const char *release, struct ko *ko);
void ko_read(struct ko *ko);
/* Releases that have one, apart from @release, with a space between them. */
bool ko_elsewhere(const char *release, char *text, size_t size);
/* Run a program with its words; what it prints on stdout. Its status, or -1. */
int run_tool(char *const *argv, char *out, size_t size);

/* -------- the parts of the diagnosis -------- */

void check_module(struct doctor *d);
void check_node(struct doctor *d);
void check_absent(struct doctor *d);
/* What is to blame if there is nothing to build it from, is @status. */
void check_source(struct doctor *d, enum status status);
void check_forbidden(struct doctor *d);
void check_signature(struct doctor *d, const struct ko *ko);
void check_rings(struct doctor *d);

#endif /* KRETRY_DOCTOR_H */
