// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What sd_notify(3) does: a datagram to the socket that the service manager has given us. */

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "command.h"

/* One whose name begins with @ is in the abstract namespace. */
static socklen_t address_of(const char *path, struct sockaddr_un *address)
{
	size_t len = strlen(path);

	if ((*path != '/' && *path != '@') || len >= sizeof(address->sun_path))
		return 0;
	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(address->sun_path, path, len);
	if (*path == '@')
		address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

/* Nobody waits for an answer, and without a manager there is nobody to tell. */
void notify(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	socklen_t len = path ? address_of(path, &address) : 0;
	char text[256];
	va_list list;
	int fd;

	if (!len)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, len);
	close(fd);
}
