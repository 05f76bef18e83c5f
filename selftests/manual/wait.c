// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What is around the fragment of README.md that waits on io_uring. */
#include <kretry.h>

int wait_and_send(struct kretry *k, const char *request, size_t length, int fd);

int wait_and_send(struct kretry *k, const char *request, size_t length, int fd)
{
	static struct kretry_wait wait;
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	if (io_uring_queue_init(4, &ring, 0) < 0)
		return -1;
	EXAMPLE
	return 0;
}
