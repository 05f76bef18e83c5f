// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Bytes that are kept: the first MiB in memory, more in a file without a name in $TMPDIR. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

void spool_init(struct spool *spool)
{
	*spool = (struct spool) { .fd = -1 };
}

const char *spool_directory(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

/* Not every file system can have one that never had a name. */
static int open_file(void)
{
	const char *dir = spool_directory();
	char path[PATH_MAX];
	int fd;

	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/kretry-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd >= 0 ? fd : -errno;
}

static int write_all(int fd, const char *data, size_t size, uint64_t position)
{
	ssize_t got;

	while (size) {
		got = pwrite(fd, data, size, (off_t)position);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -ENOSPC;
		data += got;
		size -= (size_t)got;
		position += (uint64_t)got;
	}
	return 0;
}

static int grow(struct spool *spool, size_t need)
{
	size_t room = spool->room ? spool->room : CHUNK;
	char *larger;

	while (room < need)
		room *= 2;
	if (room == spool->room)
		return 0;
	larger = realloc(spool->memory, room);
	if (!larger)
		return -ENOMEM;
	spool->memory = larger;
	spool->room = room;
	return 0;
}

static int move_to_file(struct spool *spool)
{
	int ret, fd = open_file();

	if (fd < 0)
		return fd;
	ret = write_all(fd, spool->memory, spool->size, 0);
	if (ret < 0) {
		close(fd);
		return ret;
	}
	free(spool->memory);
	spool->memory = NULL;
	spool->room = 0;
	spool->fd = fd;
	return 0;
}

int spool_append(struct spool *spool, const char *data, size_t size)
{
	int ret = 0;

	if (spool->fd < 0 && spool->size + size <= SPOOL_MEMORY) {
		ret = grow(spool, spool->size + size);
		if (!ret)
			memcpy(spool->memory + spool->size, data, size);
	} else {
		if (spool->fd < 0)
			ret = move_to_file(spool);
		if (!ret)
			ret = write_all(spool->fd, data, size, spool->size);
	}
	if (!ret)
		spool->size += size;
	return ret;
}

ssize_t spool_read(const struct spool *spool, uint64_t position, char *data, size_t size)
{
	ssize_t got;

	if (size > spool->size - position)
		size = spool->size - position;
	if (spool->fd < 0) {
		if (size)
			memcpy(data, spool->memory + position, size);
		return (ssize_t)size;
	}
	got = pread(spool->fd, data, size, (off_t)position);
	return got < 0 ? -errno : got;
}

void spool_clear(struct spool *spool)
{
	if (spool->fd >= 0)
		close(spool->fd);
	free(spool->memory);
	spool_init(spool);
}
