// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry doctor on a machine that is well, and on one where something is wrong. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kretry.h"
#include "tool.h"

#define SYSCTL	"/proc/sys/kernel/io_uring_disabled"
#define GROUP	4242

FIXTURE(doctor) {
	struct stat node;
	struct utsname system;
	char out[65536];	/* what the command last said */
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* What a test has put there goes, so that each finds the machine as it was. */
static void clean(void)
{
	static const char *const trees[] = { "/lib/modules", "/var/lib/dkms", "/etc" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(trees); i++)
		nftw(trees[i], remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

FIXTURE_SETUP(doctor)
{
	clean();
	ASSERT_EQ(0, tool_write_file("/etc/passwd", "root:x:0:0::/:/bin/sh\n"));
	ASSERT_EQ(0, tool_write_file("/etc/group", "root:x:0:\n"));
	ASSERT_EQ(0, stat(DEVICE, &self->node));
	ASSERT_EQ(0, uname(&self->system));
}

FIXTURE_TEARDOWN_PARENT(doctor)
{
	clean();
	/* A node that the test has made would stand in the way of the module's own. */
	kt_unload();
	unlink(DEVICE);
	EXPECT_EQ(0, kt_ensure_loaded());
}

/* Copy the module to where modprobe would find it, for a kernel of that release. */
static int install(const char *release)
{
	char path[512], *data = malloc(1 << 24);
	FILE *from = fopen(MODULE_FILE, "re"), *to;
	size_t len = from ? fread(data, 1, 1 << 24, from) : 0;

	snprintf(path, sizeof(path), "/lib/modules/%s/updates/dkms/kretry.ko", release);
	tool_write_file(path, "");
	to = fopen(path, "we");
	if (!len || !to || fwrite(data, 1, len, to) != len)
		return -1;
	fclose(from);
	free(data);
	return fclose(to);
}

static int write_in(const char *release, const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "/lib/modules/%s/%s", release, name);
	return tool_write_file(path, text);
}

/* Run it as the user 1000, who is in no other group. */
static int run_as_user(char *out, size_t size)
{
	int pipes[2], std[2];
	size_t have = 0;
	ssize_t got;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	std[0] = pipes[1];
	std[1] = pipes[1];
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(kt_become(1000) ? 126 : tool_wait(tool_start("doctor", std)));
	close(pipes[1]);
	while (have < size - 1 && (got = read(pipes[0], out + have, size - 1 - have)) > 0)
		have += (size_t)got;
	out[have] = '\0';
	close(pipes[0]);
	return kt_wait(pid);
}

TEST_F(doctor, loaded_and_node_open_usable)
{
	RUN(0, "doctor");
	SAYS("ok       module       loaded, version ");
	SAYS(" mode=0666");
	SAYS("ok       node         /dev/kretry, character device 10:");
	SAYS(":root, mode 0666\n");
	SAYS("ok       abi          version 1: named budget ");
	SAYS("ok       io_uring     available\n");
	SAYS("The module decides");
	SAYS_NOT("problem");
	SAYS_NOT("Next:");
	SAYS_NOT("\033");
}

TEST_F(doctor, loaded_json_is_one_object_by_key)
{
	RUN(0, "doctor --json");
	SAYS("{\n  \"status\": 0,\n  \"cause\": \"usable\",\n  \"backend\": \"module\",\n"
	     "  \"next\": null,\n  \"findings\": {");
	SAYS("\"parameters\": {\n      \"mark\": \"ok\"");
	SAYS("\"max_keys\": \"1024\"");
	SAYS("\"mode\": 438");
	RUN(16, "doctor --json --device /dev/null");
	SAYS("\"status\": 16,\n  \"cause\": \"other-device\",\n  \"backend\": \"process\",\n"
	     "  \"next\": \"kretry doctor\"");
}

TEST_F(doctor, limits_are_those_of_the_parameters)
{
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, kt_load("max_policies=7 max_linger_s=90 mode=0600"));
	RUN(0, "doctor");
	SAYS(" max_policies=7 ");
	SAYS(" mode=0600");
	SAYS("limits       policies 7, keys 1024, ");
	SAYS("linger 90s\n");
	SAYS("root, mode 0600\n");
	EXPECT_EQ(0, kt_unload());
}

/* What it says to type makes the very node that was there. */
TEST_F(doctor, node_removed_says_how_to_make_it)
{
	unsigned int mode, major, minor;
	char *next;
	int got;

	ASSERT_EQ(0, unlink(DEVICE));
	RUN(14, "doctor");
	SAYS("problem  node         /dev/kretry is not there\n");
	next = strstr(self->out, "Next: ");
	ASSERT_NE(NULL, next);
	got = sscanf(next, "Next: mknod -m %o /dev/kretry c %u %u\n", &mode, &major, &minor);
	ASSERT_EQ(3, got);
	EXPECT_EQ(0666, mode);
	ASSERT_EQ(0, mknod(DEVICE, S_IFCHR | mode, makedev(major, minor)));
	RUN(0, "doctor");
}

TEST_F(doctor, node_not_given_to_a_container_says_so)
{
	ASSERT_EQ(0, unlink(DEVICE));
	setenv("container", "docker", 1);
	RUN(14, "doctor");
	SAYS("the container was not given the device\n");
	SAYS("\nNext: docker run --device /dev/kretry IMAGE\n");
	EXPECT_EQ(0, kt_unload());
	RUN(12, "doctor");
	SAYS("the module is the host's to load");
	unsetenv("container");
	EXPECT_EQ(0, kt_load(""));
}

TEST_F(doctor, node_0600_refuses_a_user_and_not_root)
{
	ASSERT_EQ(0, chmod(DEVICE, 0600));
	EXPECT_EQ(15, run_as_user(self->out, sizeof(self->out)));
	SAYS("problem  access       this user, 1000, may not open it");
	SAYS("The library decides");
	SAYS("\nNext: sudo chmod 0666 /dev/kretry\n");
	RUN(0, "doctor");
	EXPECT_EQ(0, chmod(DEVICE, 0666));
	EXPECT_EQ(0, run_as_user(self->out, sizeof(self->out)));
}

static int check_reason(void *arg)
{
	struct kretry *k;

	CHECK_EQ(0, kt_become(1000));
	CHECK_EQ(0, kretry_open(&k, NULL, 0));
	CHECK_EQ(KRETRY_BACKEND_PROCESS, kretry_backend(k));
	CHECK(tool_says(kretry_backend_reason(k), arg));
	kretry_close(k);
	return 0;
}

TEST_F(doctor, node_of_a_group_names_it_to_others)
{
	ASSERT_EQ(0, tool_write_file("/etc/group", "users:x:100:\nretriers:x:4242:\n"));
	ASSERT_EQ(0, tool_write_file("/etc/passwd", "alice:x:1000:1000::/:/bin/sh\n"));
	ASSERT_EQ(0, chown(DEVICE, 0, GROUP));
	ASSERT_EQ(0, chmod(DEVICE, 0660));
	EXPECT_EQ(15, run_as_user(self->out, sizeof(self->out)));
	SAYS("/dev/kretry, character device 10:");
	SAYS(":retriers, mode 0660\n");
	SAYS("this user, alice, is not in the group retriers, which may open it\n");
	SAYS("\nNext: sudo usermod -aG retriers alice\n");
	EXPECT_EQ(0, kt_child(check_reason, "/dev/kretry: Permission denied: join the group "
						    "retriers and log in again"));
	ASSERT_EQ(0, tool_write_file("/etc/group", "retriers:x:4242:bob,alice\n"));
	EXPECT_EQ(15, run_as_user(self->out, sizeof(self->out)));
	SAYS("\nNext: newgrp retriers\n");
	ASSERT_EQ(0, chmod(DEVICE, 0600));
	EXPECT_EQ(0, kt_child(check_reason, "(its group is retriers, its mode 0600)"));
}

TEST_F(doctor, node_of_another_device_is_told)
{
	ASSERT_EQ(0, tool_write_file("/tmp/file", "text"));
	RUN(16, "doctor --device /tmp/file");
	SAYS("/tmp/file, not a character device, ");
	SAYS("\nNext: kretry doctor\n");
	ASSERT_EQ(0, unlink(DEVICE));
	ASSERT_EQ(0, mknod(DEVICE, S_IFCHR | 0666, makedev(1, 3)));
	RUN(16, "doctor");
	SAYS("problem  abi          /dev/kretry is another device\n");
	SAYS("\nNext: rm /dev/kretry\n");
	EXPECT_EQ(0, unlink(DEVICE));
}

TEST_F(doctor, unloaded_no_file_not_installed)
{
	ASSERT_EQ(0, kt_unload());
	RUN(10, "doctor");
	SAYS("problem  module       not loaded\n");
	SAYS("problem  file         no kretry.ko below /lib/modules\n");
	SAYS("\nNext: apt install kretry-dkms\n");
}

TEST_F(doctor, unloaded_file_for_this_kernel_not_loaded)
{
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, install(self->system.release));
	RUN(12, "doctor");
	SAYS("updates/dkms/kretry.ko, version ");
	SAYS("signed: no, built for ");
	SAYS("ok       signature    not enforced\n");
	SAYS("problem  index        modules.dep does not list it");
	SAYS("\nNext: depmod\n");
	ASSERT_EQ(0, write_in(self->system.release, "modules.dep", "updates/dkms/kretry.ko:\n"));
	RUN(12, "doctor");
	SAYS_NOT("index");
	SAYS("\nNext: modprobe kretry\n");
	ASSERT_EQ(0, mknod(DEVICE, S_IFCHR | 0666, self->node.st_rdev));
	RUN(12, "doctor");
	SAYS("no module stands behind it\n");
	EXPECT_EQ(0, unlink(DEVICE));
}

TEST_F(doctor, unloaded_file_for_another_kernel_not_built)
{
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, install("5.10.0-1-amd64"));
	RUN(11, "doctor");
	SAYS("no kretry.ko for this kernel, but for: 5.10.0-1-amd64\n");
	SAYS("the running kernel is no longer installed\n");
	SAYS("\nNext: systemctl reboot\n");
	ASSERT_EQ(0, write_in(self->system.release, "modules.dep", ""));
	RUN(11, "doctor");
	SAYS("\nNext: apt install kretry-dkms\n");
}

TEST_F(doctor, unloaded_dkms_without_headers_then_with)
{
	char wanted[512];

	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, write_in(self->system.release, "modules.dep", ""));
	ASSERT_EQ(0, tool_write_file("/var/lib/dkms/kretry/1.0.0/source/dkms.conf", ""));
	RUN(11, "doctor");
	SAYS("has the source of 1.0.0, not built for this kernel\n");
	SAYS("those of the running kernel are not installed\n");
	snprintf(wanted, sizeof(wanted), "\nNext: apt install linux-headers-%s\n",
		 self->system.release);
	SAYS(wanted);
	ASSERT_EQ(0, write_in(self->system.release, "build/Makefile", ""));
	ASSERT_EQ(0, tool_write_file("/var/lib/dkms/kretry/1.0.0/build/make.log", "error"));
	RUN(11, "doctor");
	SAYS("see /var/lib/dkms/kretry/1.0.0/build/make.log\n");
	snprintf(wanted, sizeof(wanted), "\nNext: dkms install kretry/1.0.0 -k %s\n",
		 self->system.release);
	SAYS(wanted);
}

/* The kernel refuses it: so would modprobe. */
TEST_F(doctor, unloaded_vermagic_of_another_kernel_not_built)
{
	char path[512], other[128];

	ASSERT_EQ(0, kt_unload());
	snprintf(path, sizeof(path), "/lib/modules/%s/extra/kretry.ko", self->system.release);
	ASSERT_EQ(0, tool_write_file(path, ""));
	snprintf(other, sizeof(other), "vermagic=%s.1 SMP", self->system.release);
	ASSERT_EQ(0, truncate(path, 64));
	ASSERT_EQ(strlen(other), (size_t)pwrite(open(path, O_WRONLY | O_CLOEXEC), other,
						strlen(other), 8));
	RUN(11, "doctor");
	SAYS("is built for another kernel: ");
	SAYS(".1 SMP\n");
}

TEST_F(doctor, modprobe_configuration_that_forbids_is_named)
{
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, install(self->system.release));
	ASSERT_EQ(0, write_in(self->system.release, "modules.dep", "updates/dkms/kretry.ko:\n"));
	ASSERT_EQ(0, tool_write_file("/etc/modprobe.d/a.conf", "#install kretry /bin/false\n"
				     "install kretry2 /bin/false\n"));
	ASSERT_EQ(0, tool_write_file("/etc/modprobe.d/b.conf", "blacklist kretry\n"));
	RUN(12, "doctor");
	SAYS("note     blacklist    /etc/modprobe.d/b.conf: ");
	ASSERT_EQ(0, tool_write_file("/etc/modprobe.d/c.conf", "install\tkretry /bin/false\n"));
	RUN(17, "doctor");
	SAYS("/etc/modprobe.d/c.conf: modprobe runs \"/bin/false\" instead\n");
	SAYS(" /etc/modprobe.d/c.conf\n");
}

TEST_F(doctor, io_uring_disabled_is_a_note)
{
	if (access(SYSCTL, F_OK) < 0)
		SKIP(return, "no kernel.io_uring_disabled");
	ASSERT_EQ(0, kt_write_file(SYSCTL, "2"));
	RUN(0, "doctor");
	SAYS("note     io_uring     off: kernel.io_uring_disabled is 2, for all\n");
	SAYS("in the queue of the device");
	ASSERT_EQ(0, kt_write_file(SYSCTL, "1"));
	EXPECT_EQ(0, run_as_user(self->out, sizeof(self->out)));
	SAYS("off for this user: kernel.io_uring_disabled is 1");
	RUN(0, "doctor");
	SAYS("ok       io_uring     available\n");
	EXPECT_EQ(0, kt_write_file(SYSCTL, "0"));
}

TEST_HARNESS_MAIN
