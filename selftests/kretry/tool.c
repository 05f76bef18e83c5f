// SPDX-License-Identifier: GPL-2.0-only OR MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS		16

static size_t read_all(int fd, char *out, size_t size)
{
	size_t have = 0;
	ssize_t got;

	while (have < size - 1 && (got = read(fd, out + have, size - 1 - have)) > 0)
		have += (size_t)got;
	out[have] = '\0';
	return have;
}

pid_t tool_start(const char *line, const int *std)
{
	char words[512], *argv[WORDS], *save;
	unsigned int argc = 0;
	pid_t pid;

	snprintf(words, sizeof(words), "kretry %s", line);
	for (argv[0] = strtok_r(words, " ", &save); argv[argc] && argc < WORDS - 1;)
		argv[++argc] = strtok_r(NULL, " ", &save);
	pid = fork();
	if (pid)
		return pid;
	dup2(std[0], 0);
	dup2(std[1], 1);
	dup2(std[1], 2);
	execvp(argv[0], argv);
	_exit(127);
}

int tool_wait(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int tool_run(char *out, size_t size, const char *line)
{
	int pipes[2], std[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	std[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	std[1] = pipes[1];
	pid = tool_start(line, std);
	close(pipes[1]);
	close(std[0]);
	read_all(pipes[0], out, size);
	close(pipes[0]);
	return tool_wait(pid);
}

bool tool_says(const char *out, const char *text)
{
	if (strstr(out, text))
		return true;
	fprintf(stderr, "# no \"%s\" in: %s\n", text, out);
	return false;
}

int tool_write_file(const char *path, const char *text)
{
	char dir[512], *slash;
	FILE *file;

	snprintf(dir, sizeof(dir), "%s", path);
	for (slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(dir, 0755);
		*slash = '/';
	}
	file = fopen(path, "we");
	if (!file)
		return -1;
	fputs(text, file);
	return fclose(file);
}

int tool_forget_policies(struct kretry *k)
{
	struct kretry_policy_entry *entries;
	unsigned int count, i;
	int ret;

	kretry_shutdown(k);
	ret = kretry_policy_list(k, &entries, &count);
	for (i = 0; !ret && i < count; i++)
		kretry_policy_unlink(k, (char *)entries[i].name,
				     entries[i].open_flags & KRETRY_OPEN_GLOBAL);
	if (!ret)
		free(entries);
	return ret;
}
