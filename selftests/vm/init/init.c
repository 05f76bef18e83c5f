// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Process 1 of the test VM: sets the system up, loads the module, runs the plan, reports in KTAP
 * on the console and powers off. Words of the kernel command line steer it:
 *
 *	kretry_vm.nonce=WORD	printed in the last line, which nothing else can print
 *	kretry_vm.label=WORD	in front of every test name
 *	kretry_vm.timeout=N	seconds of guest time a test may take
 *	kretry_vm.only=GLOB	runs only the kselftests whose name matches
 *	kretry_vm.module=0	runs without the module
 *	kretry.PARAM=VALUE	a parameter of the module
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "init.h"

struct settings settings = { .label = "vm", .timeout_s = 60, .module = true };

static const struct {
	const char *type, *dir, *options;
	bool optional;
} filesystems[] = {
	{ "proc", "/proc", NULL, false },
	{ "sysfs", "/sys", NULL, false },
	{ "devtmpfs", "/dev", NULL, false },
	{ "tmpfs", "/tmp", "mode=1777", false },
	{ "tmpfs", "/run", "mode=0755", false },
	{ "tmpfs", "/dev/shm", "mode=1777", false },
	{ "devpts", "/dev/pts", NULL, true },
	{ "tracefs", "/sys/kernel/tracing", NULL, true },
	{ "debugfs", "/sys/kernel/debug", NULL, true },
	{ "cgroup2", "/sys/fs/cgroup", NULL, true },
};

static void mount_all(void)
{
	size_t i;

	for (i = 0; i < sizeof(filesystems) / sizeof(filesystems[0]); i++) {
		mkdir(filesystems[i].dir, 0755);
		if (mount(filesystems[i].type, filesystems[i].dir, filesystems[i].type, 0,
			  filesystems[i].options) == 0 || errno == EBUSY)
			continue;
		dprintf(STDOUT_FILENO, "# no %s: %s\n", filesystems[i].type, strerror(errno));
		if (!filesystems[i].optional)
			bail_out("cannot mount what every test needs");
	}
}

/* devtmpfs leaves these to udev. */
static void link_standard_streams(void)
{
	symlink("/proc/self/fd", "/dev/fd");
	symlink("fd/0", "/dev/stdin");
	symlink("fd/1", "/dev/stdout");
	symlink("fd/2", "/dev/stderr");
}

/* initramfs gives us /dev/console only if it has the node, so open it once /dev is there. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		return;
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Raw for as long as it is open, so the descriptor stays open to the end. */
static int open_data_port(void)
{
	int fd = open("/dev/ttyS1", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	struct termios raw;

	if (fd < 0 || tcgetattr(fd, &raw) < 0)
		return -1;
	cfmakeraw(&raw);
	raw.c_cflag |= CLOCAL;
	tcsetattr(fd, TCSANOW, &raw);
	return fd;
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		bail_out("no loopback interface");
	request.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		bail_out("cannot bring the loopback interface up");
	close(fd);
}

static bool word_value(const char *word, const char *name, char *value, size_t size)
{
	size_t len = strlen(name);

	if (strncmp(word, name, len))
		return false;
	snprintf(value, size, "%s", word + len);
	return true;
}

static void take_word(const char *word)
{
	char value[256];
	size_t used;

	if (word_value(word, "kretry_vm.nonce=", settings.nonce, sizeof(settings.nonce)) ||
	    word_value(word, "kretry_vm.label=", settings.label, sizeof(settings.label)) ||
	    word_value(word, "kretry_vm.only=", settings.only, sizeof(settings.only)))
		return;
	if (word_value(word, "kretry_vm.timeout=", value, sizeof(value))) {
		settings.timeout_s = atol(value);
	} else if (word_value(word, "kretry_vm.module=", value, sizeof(value))) {
		settings.module = atoi(value);
	} else if (word_value(word, "kretry.", value, sizeof(value))) {
		used = strlen(settings.module_args);
		snprintf(settings.module_args + used, sizeof(settings.module_args) - used, "%s%s",
			 used ? " " : "", value);
	}
}

static void read_settings(void)
{
	static char line[4096];
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	char *word, *save;

	if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0)
		bail_out("cannot read the kernel command line");
	close(fd);
	for (word = strtok_r(line, "\n ", &save); word; word = strtok_r(NULL, "\n ", &save))
		take_word(word);
	if (!settings.nonce[0] || settings.timeout_s <= 0)
		bail_out("the kernel command line lacks kretry_vm.nonce or a timeout");
}

/* The kernel hands unknown words of its command line on as our environment. */
static void set_environment(void)
{
	char *slash;

	clearenv();
	setenv("PATH", "/tests", 1);
	setenv("HOME", "/", 1);
	setenv("TMPDIR", "/tmp", 1);
	setenv("KRETRY_MODULE", "/kretry.ko", 1);
	setenv("KRETRY_MODULE_ARGS", settings.module_args, 1);
	slash = strchr(settings.label, '/');
	if (!slash)
		return;
	setenv("KRETRY_VM_MODE", slash + 1, 1);
	*slash = '\0';
	setenv("KRETRY_VM_KERNEL", settings.label, 1);
	*slash = '/';
}

static void finish(int data_port)
{
	if (data_port >= 0)
		tcdrain(data_port);
	dprintf(STDOUT_FILENO, "kretry-vm-done %s total=%u failed=%u skipped=%u\n", settings.nonce,
		totals.total, totals.failed, totals.skipped);
	tcdrain(STDOUT_FILENO);
	sync();
	reboot(RB_POWER_OFF);
}

int main(void)
{
	int data_port;

	if (getpid() != 1) {
		fprintf(stderr, "init: runs only as process 1 of the test VM\n");
		return 2;
	}
	mount_all();
	open_console();
	link_standard_streams();
	read_settings();
	set_environment();
	loopback_up();
	data_port = open_data_port();
	kmsg_open();
	plan_read("/plan");
	dprintf(STDOUT_FILENO, "KTAP version 1\n1..%u # %s\n",
		plan_count() + 2 * settings.module, settings.label);
	if (settings.module)
		module_load_step();
	plan_run();
	if (settings.module)
		module_unload_step();
	finish(data_port);
	return 0;
}
