// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The queue of a handle: of the device's file where the module decides, else of the process. */

#include <errno.h>
#include <unistd.h>

#include "internal.h"

/* -------- whose it is -------- */

bool queue_is_callers(struct kretry *k)
{
	int user = QUEUE_UNUSED;

	return atomic_compare_exchange_strong(&k->queue_user, &user, QUEUE_CALLERS) ||
	       user == QUEUE_CALLERS;
}

/* Not in a child of fork(), which shares the file, and so the queue, with its parent. */
bool queue_claim(struct kretry *k)
{
	int user = QUEUE_UNUSED;

	return k->features & KRETRY_FEATURE_QUEUE && k->pid == getpid() &&
	       atomic_compare_exchange_strong(&k->queue_user, &user, QUEUE_SCHEDULERS);
}

void queue_release(struct kretry *k)
{
	atomic_store(&k->queue_user, QUEUE_UNUSED);
}

/* -------- what it holds -------- */

int queue_fd(struct kretry *k)
{
	int ret;

	if (!(k->features & KRETRY_FEATURE_QUEUE))
		return -EOPNOTSUPP;
	if (k->fd >= 0)
		return k->fd;
	lock_library();
	ret = waiting_fd(k);
	unlock_library();
	return ret;
}

static int module_read(struct kretry *k, struct kretry_op *ops, unsigned int max)
{
	ssize_t ret;

	if (max > PROCESS_MAX_BATCH)
		max = PROCESS_MAX_BATCH;
	do {
		ret = read(k->fd, ops, max * sizeof(*ops));
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return errno == EAGAIN ? 0 : -errno;
	return (int)((size_t)ret / sizeof(*ops));
}

int queue_read(struct kretry *k, struct kretry_op *ops, unsigned int max)
{
	int ret;

	if (!(k->features & KRETRY_FEATURE_QUEUE))
		return -EOPNOTSUPP;
	if (!max)
		return 0;
	if (k->fd >= 0)
		return module_read(k, ops, max);
	lock_library();
	ret = waiting_read(k, ops, max);
	unlock_library();
	return ret;
}

static int module_cancel(struct kretry *k, u64 user_data, struct kretry_op *op)
{
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = user_data };
	int ret = device_ioctl(k, KRETRY_IOC_CANCEL, &cancel);

	if (ret < 0)
		return ret;
	*op = cancel.op;
	return 0;
}

int queue_cancel(struct kretry *k, u64 user_data, struct kretry_op *op)
{
	int ret;

	if (k->fd >= 0)
		return module_cancel(k, user_data, op);
	lock_library();
	ret = waiting_cancel(k, user_data, op);
	unlock_library();
	return ret;
}

/* -------- for callers -------- */

int kretry_queue_fd(struct kretry *k)
{
	return queue_is_callers(k) ? queue_fd(k) : -EBUSY;
}

int kretry_queue_read(struct kretry *k, struct kretry_op *ops, unsigned int max)
{
	return queue_is_callers(k) ? queue_read(k, ops, max) : -EBUSY;
}

int kretry_queue_cancel(struct kretry *k, uint64_t user_data, struct kretry_op *op)
{
	return queue_is_callers(k) ? queue_cancel(k, user_data, op) : -EBUSY;
}
