// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A kernel that was told to load only modules whose signature it trusts: ours is refused, the
 * command says why and what to do, and programs go on with the library.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kretry.h"
#include "tool.h"

#define FILE_HERE	"/tests/kretry.ko"
#define KEY		"/var/lib/dkms/mok.pub"
#define UBUNTU_KEY	"/var/lib/shim-signed/mok/MOK.der"
#define MARKER		"~Module signature appended~\n"

FIXTURE(enforced) {
	struct utsname system;
	char path[512];		/* of the module that is installed */
	char out[65536];
};

/* Installed, and listed for modprobe. */
FIXTURE_SETUP(enforced)
{
	char data[65536], dep[512];
	int from, to;
	ssize_t got;

	ASSERT_EQ(0, uname(&self->system));
	snprintf(self->path, sizeof(self->path), "/lib/modules/%s/updates/dkms/kretry.ko",
		 self->system.release);
	snprintf(dep, sizeof(dep), "/lib/modules/%s/modules.dep", self->system.release);
	ASSERT_EQ(0, tool_write_file(dep, "updates/dkms/kretry.ko:\n"));
	ASSERT_EQ(0, tool_write_file(self->path, ""));
	from = open(FILE_HERE, O_RDONLY | O_CLOEXEC);
	to = open(self->path, O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, from);
	ASSERT_LE(0, to);
	while ((got = read(from, data, sizeof(data))) > 0)
		ASSERT_EQ(got, write(to, data, (size_t)got));
	close(from);
	close(to);
	unlink(KEY);
	unlink(UBUNTU_KEY);
}

FIXTURE_TEARDOWN(enforced)
{
}

static int load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int ret = syscall(SYS_finit_module, fd, "", 0) < 0 ? -errno : 0;

	close(fd);
	return ret;
}

TEST_F(enforced, unsigned_refused_and_doctor_says_why)
{
	EXPECT_EQ(-EKEYREJECTED, load(self->path));
	RUN(13, "doctor");
	SAYS("problem  signature    module.sig_enforce: ");
	SAYS("updates/dkms/kretry.ko is not signed\n");
	SAYS("problem  key          " KEY " (made by DKMS when it builds; not there yet): "
	     "enrol it with mokutil --import " KEY);
	SAYS("\nNext: mokutil --import " KEY "\n");
	RUN(13, "doctor --json");
	SAYS("\"cause\": \"signature\"");
	SAYS("\"path\": \"" KEY "\"");
}

TEST_F(enforced, signed_by_unknown_key_refused_and_doctor_names_the_key)
{
	int fd = open(self->path, O_WRONLY | O_APPEND | O_CLOEXEC);

	ASSERT_EQ(strlen(MARKER), (size_t)write(fd, MARKER, strlen(MARKER)));
	close(fd);
	EXPECT_GT(0, load(self->path));
	ASSERT_EQ(0, tool_write_file(UBUNTU_KEY, "key"));
	RUN(13, "doctor");
	SAYS("updates/dkms/kretry.ko is signed, by a key not known to it\n");
	SAYS("note     key          " UBUNTU_KEY ": ");
	SAYS("\nNext: mokutil --import " UBUNTU_KEY "\n");
	ASSERT_EQ(0, tool_write_file(KEY, "key"));
	RUN(13, "doctor");
	SAYS("\nNext: mokutil --import " KEY "\n");
}

TEST_F(enforced, library_decides_meanwhile)
{
	struct kretry_policy policy;
	struct kretry_op op;
	struct kretry *k;

	EXPECT_EQ(-EKEYREJECTED, load(self->path));
	ASSERT_EQ(0, kretry_open(&k, NULL, 0));
	EXPECT_EQ(KRETRY_BACKEND_PROCESS, kretry_backend(k));
	kt_exponential(&policy, 100 * MSEC, SEC);
	ASSERT_EQ(0, kretry_policy_create(k, &policy));
	op = kt_op(policy.id, KRETRY_EVENT_TRANSIENT);
	op.attempt = 2;
	ASSERT_EQ(0, kretry_step(k, &op));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(400 * MSEC, op.delay_ns);
	kretry_close(k);
	RUN(0, "next --preset curl --json");
	SAYS("\"backend\": \"process\"");
}

/* There is no way back but a boot, so this comes last. */
TEST_F(enforced, modules_disabled_is_named_first)
{
	ASSERT_EQ(0, kt_write_file("/proc/sys/kernel/modules_disabled", "1"));
	EXPECT_EQ(-EPERM, load(self->path));
	RUN(17, "doctor");
	SAYS("kernel.modules_disabled is 1");
	SAYS("\nNext: systemctl reboot\n");
}

TEST_HARNESS_MAIN
