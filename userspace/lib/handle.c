// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The handle: which backend decides, and why not the module. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

int device_ioctl(const struct kretry *k, unsigned long cmd, void *arg)
{
	int ret = ioctl(k->fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

/*
 * The name of a group of this machine, or its number. Not by getgrgid(3), which loads modules, and
 * those a static program must not load.
 */
static void group_name(gid_t gid, char *name, size_t size)
{
	char buf[4096];
	struct group group, *found;
	FILE *file = fopen("/etc/group", "re");

	snprintf(name, size, "%u", (unsigned int)gid);
	if (!file)
		return;
	while (fgetgrent_r(file, &group, buf, sizeof(buf), &found) == 0) {
		if (group.gr_gid == gid) {
			snprintf(name, size, "%s", group.gr_name);
			break;
		}
	}
	fclose(file);
}

/* Who may, and so what to ask for; nobody is sent into the group root. */
static void reason_denied(struct kretry *k, const char *path)
{
	const char *ask = "ask for access to the node";
	char group[64];
	struct stat st;

	if (stat(path, &st) != 0) {
		snprintf(k->reason, sizeof(k->reason),
			 "%s: Permission denied: ask for access to its directory", path);
		return;
	}
	group_name(st.st_gid, group, sizeof(group));
	if (st.st_gid && (st.st_mode & 0060) == 0060)
		snprintf(k->reason, sizeof(k->reason),
			 "%s: Permission denied: join the group %s and log in again", path, group);
	else
		snprintf(k->reason, sizeof(k->reason),
			 "%s: Permission denied: %s (its group is %s, its mode 0%o)", path, ask,
			 group, st.st_mode & 0777);
}

static void reason_open(struct kretry *k, const char *path, int error)
{
	const char *remedy = "see open(2)";

	switch (error) {
	case EACCES:
		reason_denied(k, path);
		return;
	case ENOENT:
	case ENODEV:
	case ENXIO:
		remedy = "load the module with modprobe kretry";
		break;
	case EPERM:
		remedy = "allow the device in the container's device rules";
		break;
	case EMFILE:
	case ENFILE:
		remedy = "raise the limit of open files";
		break;
	}
	errno = error;
	snprintf(k->reason, sizeof(k->reason), "%s: %m: %s", path, remedy);
}

/* Is it kretry, and does it speak this ABI? */
static int device_check(struct kretry *k, const char *path)
{
	struct kretry_info info = { .size = sizeof(info) };

	if (device_ioctl(k, KRETRY_IOC_INFO, &info) < 0) {
		snprintf(k->reason, sizeof(k->reason),
			 "%s: it is another device: give the path of kretry's (usually %s)",
			 path, KRETRY_DEVICE);
		return -ENOTTY;
	}
	k->features = info.features;
	if (info.abi_version == KRETRY_ABI_VERSION)
		return 0;
	snprintf(k->reason, sizeof(k->reason),
		 "%s: the module speaks ABI %u and the library ABI %u: update the older one",
		 path, info.abi_version, KRETRY_ABI_VERSION);
	return -EPROTO;
}

static int device_open(struct kretry *k, const char *path)
{
	int ret;

	k->fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (k->fd < 0) {
		ret = -errno;
		k->fd = -1;
		reason_open(k, path, -ret);
		return ret;
	}
	ret = device_check(k, path);
	if (ret < 0) {
		close(k->fd);
		k->fd = -1;
	}
	return ret;
}

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t at_fork = PTHREAD_ONCE_INIT;

void lock_library(void)
{
	pthread_mutex_lock(&library);
}

void unlock_library(void)
{
	pthread_mutex_unlock(&library);
}

static void prepare_fork(void)
{
	pthread_atfork(lock_library, unlock_library, unlock_library);
}

int kretry_open(struct kretry **kp, const char *path, unsigned int flags)
{
	struct kretry *k;
	int ret = 0;

	if (flags & ~(KRETRY_MODULE_ONLY | KRETRY_PROCESS_ONLY) ||
	    flags == (KRETRY_MODULE_ONLY | KRETRY_PROCESS_ONLY))
		return -EINVAL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	pthread_once(&at_fork, prepare_fork);
	k->fd = -1;
	k->pid = getpid();
	if (flags & KRETRY_PROCESS_ONLY)
		snprintf(k->reason, sizeof(k->reason),
			 "the program asked for decisions in the process");
	else
		ret = device_open(k, path ? path : KRETRY_DEVICE);
	if (ret < 0 && flags & KRETRY_MODULE_ONLY) {
		kretry_close(k);
		return ret;
	}
	if (k->fd < 0)
		k->features = PROCESS_FEATURES;
	*kp = k;
	return 0;
}

void kretry_close(struct kretry *k)
{
	if (!k)
		return;
	lock_library();
	policy_drop_all(k);
	waiting_free(k);
	unlock_library();
	if (k->fd >= 0)
		close(k->fd);
	free(k);
}

int kretry_fd(const struct kretry *k)
{
	return k->fd >= 0 ? k->fd : -EBADF;
}

enum kretry_backend kretry_backend(const struct kretry *k)
{
	return k->fd >= 0 ? KRETRY_BACKEND_MODULE : KRETRY_BACKEND_PROCESS;
}

const char *kretry_backend_reason(const struct kretry *k)
{
	return k->reason;
}

int kretry_info(struct kretry *k, struct kretry_info *info)
{
	int ret;

	*info = (struct kretry_info) { .size = sizeof(*info) };
	if (k->fd >= 0) {
		ret = device_ioctl(k, KRETRY_IOC_INFO, info);
		return ret < 0 ? ret : 0;
	}
	info->abi_version = KRETRY_ABI_VERSION;
	info->features = PROCESS_FEATURES;
	info->max_batch = PROCESS_MAX_BATCH;
	info->max_policies = PROCESS_MAX_POLICIES;
	info->max_keys = PROCESS_MAX_KEYS;
	info->max_queued = PROCESS_MAX_QUEUED;
	info->max_linger_ns = PROCESS_MAX_LINGER_NS;
	return 0;
}

int kretry_shutdown(struct kretry *k)
{
	int ret = 0;

	lock_library();
	if (k->fd >= 0)
		ret = device_ioctl(k, KRETRY_IOC_SHUTDOWN, NULL);
	if (ret >= 0)
		policy_drop_all(k);
	unlock_library();
	return ret < 0 ? ret : 0;
}
