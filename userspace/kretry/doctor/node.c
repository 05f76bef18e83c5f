// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The device node: whether it is there, whose it is, who may open it, and what answers. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "doctor.h"

static const char *const features[] = {
	"named", "budget", "retrying", "breaker", "pacing", "cooling", "stat", "queue",
	"uring-step", "uring-wait",
};

static void say_features(struct doctor *d, const struct kretry_info *info)
{
	json_t *list = json_array(), *finding;
	char text[256] = "";
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(features); i++) {
		if (!(info->features & 1ULL << i))
			continue;
		len = strlen(text);
		snprintf(text + len, sizeof(text) - len, " %s", features[i]);
		json_array_append_new(list, json_string(features[i]));
	}
	finding = found(d, MARK_OK, "abi", "version %u:%s", info->abi_version, text);
	json_object_set_new(finding, "version", json_integer(info->abi_version));
	json_object_set_new(finding, "features", list);
}

static void say_limits(struct doctor *d, const struct kretry_info *info)
{
	char linger[UNIT_TEXT];
	json_t *finding;

	finding = found(d, MARK_OK, "limits",
			"policies %u, keys %u, queued %u, batch %u, linger %s",
			info->max_policies, info->max_keys, info->max_queued, info->max_batch,
			format_duration(info->max_linger_ns, linger));
	json_object_set_new(finding, "max_policies", json_integer(info->max_policies));
	json_object_set_new(finding, "max_keys", json_integer(info->max_keys));
	json_object_set_new(finding, "max_queued", json_integer(info->max_queued));
	json_object_set_new(finding, "max_batch", json_integer(info->max_batch));
	json_object_set_new(finding, "max_linger_ns",
			    json_integer((json_int_t)info->max_linger_ns));
}

/* -------- one that is not there -------- */

static void blame_missing(struct doctor *d)
{
	char numbers[32] = "", mode[32] = "438";
	unsigned int major, minor;

	found(d, MARK_PROBLEM, "node", "%s is not there%s", d->path, d->in_container ?
	      ": the host has the module, and the container was not given the device" : "");
	read_text(MODULE_DIR "/parameters/mode", mode, sizeof(mode));
	read_text("/sys/class/misc/" MODULE "/dev", numbers, sizeof(numbers));
	if (d->in_container)
		blame(d, STATUS_NO_NODE, "%s run --device %s IMAGE",
		      access("/run/.containerenv", F_OK) ? "docker" : "podman", KRETRY_DEVICE);
	else if (strcmp(d->path, KRETRY_DEVICE))
		blame(d, STATUS_NO_NODE, "kretry doctor");
	else if (sscanf(numbers, "%u:%u", &major, &minor) == 2)
		blame_as_root(d, STATUS_NO_NODE, "mknod -m 0%o %s c %u %u",
			      (unsigned int)strtoul(mode, NULL, 10), d->path, major, minor);
	else
		blame_as_root(d, STATUS_NO_NODE, "modprobe -r " MODULE);
}

/* -------- one that may not be opened -------- */

static void blame_group(struct doctor *d, gid_t gid)
{
	char group[64], user[64];

	group_name(gid, group, sizeof(group));
	user_name(geteuid(), user, sizeof(user));
	if (is_member(user, gid)) {
		found(d, MARK_PROBLEM, "access",
		      "this user, %s, is in the group %s since after this session began", user,
		      group);
		blame(d, STATUS_NO_PERMISSION, "newgrp %s", group);
		return;
	}
	found(d, MARK_PROBLEM, "access", "this user, %s, is not in the group %s, which may open it",
	      user, group);
	blame_as_root(d, STATUS_NO_PERMISSION, "usermod -aG %s %s", group, user);
}

static void blame_denied(struct doctor *d, const struct stat *st)
{
	char user[64];

	if ((st->st_mode & 0060) == 0060 && st->st_gid) {
		blame_group(d, st->st_gid);
		return;
	}
	user_name(geteuid(), user, sizeof(user));
	found(d, MARK_PROBLEM, "access",
	      "this user, %s, may not open it (for good: udev(7), or the module's mode=)", user);
	blame_as_root(d, STATUS_NO_PERMISSION, "chmod 0666 %s", d->path);
}

static void blame_cgroup(struct doctor *d)
{
	found(d, MARK_PROBLEM, "access", "the device rules of this %s do not allow it",
	      d->in_container ? "container" : "service or container");
	if (d->in_container)
		blame(d, STATUS_NO_PERMISSION, "%s run --device %s IMAGE",
		      access("/run/.containerenv", F_OK) ? "docker" : "podman", d->path);
	else
		blame(d, STATUS_NO_PERMISSION, "systemctl edit UNIT  # DeviceAllow=%s rw", d->path);
}

static void blame_open(struct doctor *d, int error, const struct stat *st)
{
	switch (error) {
	case EACCES:
		blame_denied(d, st);
		break;
	case EPERM:
		blame_cgroup(d);
		break;
	case ENODEV:
	case ENXIO:
		/* A node without its module: what that lacks is said later. */
		found(d, MARK_PROBLEM, "access", "no module stands behind it");
		if (d->loaded)
			blame_as_root(d, STATUS_OTHER_DEVICE, "rm %s", d->path);
		break;
	default:
		found(d, MARK_PROBLEM, "access", "%s", strerror(error));
		blame_as_root(d, STATUS_NO_PERMISSION, "dmesg");
	}
}

/* -------- what answers -------- */

static void blame_other(struct doctor *d, const struct kretry_info *info)
{
	if (!info->abi_version) {
		found(d, MARK_PROBLEM, "abi", "%s is another device", d->path);
		if (!d->loaded)
			return;
		if (strcmp(d->path, KRETRY_DEVICE))
			blame(d, STATUS_OTHER_DEVICE, "kretry doctor");
		else
			blame_as_root(d, STATUS_OTHER_DEVICE, "rm %s", d->path);
		return;
	}
	found(d, MARK_PROBLEM, "abi", "the module speaks version %u, and the library %u",
	      info->abi_version, KRETRY_ABI_VERSION);
	blame_as_root(d, STATUS_OTHER_DEVICE, "apt install %s",
		      info->abi_version < KRETRY_ABI_VERSION ? "kretry-dkms" : "kretry");
}

static void check_answer(struct doctor *d, const struct stat *st)
{
	struct kretry_info info = { .size = sizeof(info) };
	int fd = -1, error;

	/* What is no device may be a pipe, which would wait, or a file, which is not for us. */
	if (S_ISCHR(st->st_mode)) {
		fd = open(d->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		error = errno;
	}
	if (S_ISCHR(st->st_mode) && fd < 0) {
		blame_open(d, error, st);
		return;
	}
	if (fd >= 0)
		found(d, MARK_OK, "access", "this user may open it");
	if (fd < 0 || ioctl(fd, KRETRY_IOC_INFO, &info) < 0)
		info.abi_version = 0;
	if (fd >= 0)
		close(fd);
	if (info.abi_version == KRETRY_ABI_VERSION) {
		say_features(d, &info);
		say_limits(d, &info);
	} else {
		blame_other(d, &info);
	}
}

static void say_node(struct doctor *d, const struct stat *st)
{
	char user[64], group[64], kind[64] = "not a character device";
	json_t *finding;
	bool is_device = S_ISCHR(st->st_mode);

	user_name(st->st_uid, user, sizeof(user));
	group_name(st->st_gid, group, sizeof(group));
	if (is_device)
		snprintf(kind, sizeof(kind), "character device %u:%u", major(st->st_rdev),
			 minor(st->st_rdev));
	finding = found(d, is_device ? MARK_OK : MARK_PROBLEM, "node", "%s, %s, %s:%s, mode 0%o",
			d->path, kind, user, group, st->st_mode & 07777);
	json_object_set_new(finding, "uid", json_integer(st->st_uid));
	json_object_set_new(finding, "gid", json_integer(st->st_gid));
	json_object_set_new(finding, "mode", json_integer(st->st_mode & 07777));
}

void check_node(struct doctor *d)
{
	struct stat st;

	if (stat(d->path, &st) == 0) {
		say_node(d, &st);
		check_answer(d, &st);
	} else if (errno != ENOENT && errno != ENOTDIR) {
		found(d, MARK_PROBLEM, "node", "%s: %m", d->path);
		blame_as_root(d, STATUS_NO_PERMISSION, "kretry doctor --device %s", d->path);
	} else if (d->loaded) {
		blame_missing(d);
	} else {
		found(d, MARK_PROBLEM, "node", "%s is not there", d->path);
	}
	if (!d->loaded && kretry_backend(d->k) != KRETRY_BACKEND_MODULE)
		check_absent(d);
}
