// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The files of the module, and what is written in them. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"

#define MODULES		"/lib/modules"
#define SIGNED		"~Module signature appended~\n"
#define OPEN_DIRS	16

/* nftw(3) passes nothing on. */
static char *where;

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	static const char *const names[] = { "kretry.ko", "kretry.ko.xz", "kretry.ko.zst",
					     "kretry.ko.gz" };
	size_t i;

	(void)st;
	for (i = 0; i < ARRAY_SIZE(names) && (type == FTW_F || type == FTW_SL); i++)
		if (!strcmp(path + ftw->base, names[i])) {
			snprintf(where, PATH_MAX, "%s", path);
			return 1;
		}
	return 0;
}

bool ko_find(const char *release, struct ko *ko)
{
	char dir[PATH_MAX];

	memset(ko, 0, sizeof(*ko));
	where = ko->path;
	snprintf(dir, sizeof(dir), MODULES "/%s", release);
	/* Links would lead into the kernel's headers. */
	return nftw(dir, visit, OPEN_DIRS, FTW_PHYS) == 1;
}

bool ko_elsewhere(const char *release, char *text, size_t size)
{
	DIR *modules = opendir(MODULES);
	struct dirent *entry;
	struct ko ko;
	size_t len = 0;

	*text = '\0';
	while (modules && (entry = readdir(modules)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, release) && len < size &&
		    ko_find(entry->d_name, &ko))
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? " " : "",
						entry->d_name);
	if (modules)
		closedir(modules);
	return len;
}

/* -------- what is written in them -------- */

int run_tool(char *const *argv, char *out, size_t size)
{
	int pipes[2], status = -1;
	size_t have = 0;
	ssize_t got;
	pid_t pid;

	*out = '\0';
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		dup2(pipes[1], STDOUT_FILENO);
		dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDERR_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	close(pipes[1]);
	while (pid > 0 && have < size - 1 &&
	       (got = read(pipes[0], out + have, size - 1 - have)) > 0)
		have += (size_t)got;
	out[have] = '\0';
	close(pipes[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Of a compressed one, and of a signature, only kmod knows. */
static void ask_modinfo(struct ko *ko, char *field, char *value, size_t size)
{
	char *argv[5] = { "/sbin/modinfo", "-F", field, ko->path, NULL };

	if (run_tool(argv, value, size) == 0)
		value[strcspn(value, "\n")] = '\0';
	else
		*value = '\0';
}

/* A string of the section .modinfo, "name=value" between two NULs. */
static void copy_info(const char *data, size_t len, const char *name, char *value, size_t size)
{
	char wanted[32];
	size_t n = 1 + (size_t)snprintf(wanted + 1, sizeof(wanted) - 1, "%s=", name);
	const char *at;

	wanted[0] = '\0';
	at = memmem(data, len, wanted, n);
	if (!at)
		return;
	at += n;
	snprintf(value, size, "%.*s", (int)strnlen(at, len - (size_t)(at - data)), at);
}

static void read_plain(struct ko *ko, const char *data, size_t len)
{
	copy_info(data, len, "vermagic", ko->vermagic, sizeof(ko->vermagic));
	copy_info(data, len, "version", ko->version, sizeof(ko->version));
	ko->is_signed = len >= strlen(SIGNED) &&
			!memcmp(data + len - strlen(SIGNED), SIGNED, strlen(SIGNED));
}

void ko_read(struct ko *ko)
{
	int fd = open(ko->path, O_RDONLY | O_CLOEXEC);
	size_t len = strlen(ko->path);
	void *data = MAP_FAILED;
	struct stat st;

	ask_modinfo(ko, "signer", ko->signer, sizeof(ko->signer));
	ko->is_signed = *ko->signer;
	if (strcmp(ko->path + len - 3, ".ko")) {
		ask_modinfo(ko, "vermagic", ko->vermagic, sizeof(ko->vermagic));
		ask_modinfo(ko, "version", ko->version, sizeof(ko->version));
	} else if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size) {
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (data != MAP_FAILED) {
		read_plain(ko, data, (size_t)st.st_size);
		munmap(data, (size_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
}
