// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"

#define MODULE_FILE "/kretry.ko"
#define MODULE_NAME "kretry"

static int load(void)
{
	int fd = open(MODULE_FILE, O_RDONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, settings.module_args, 0) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

void module_load_step(void)
{
	struct outcome outcome = {};
	int ret = load();

	if (ret)
		fail(&outcome, "finit_module(\"%s\"): %s", settings.module_args, strerror(-ret));
	check_kernel(&outcome);
	report(&outcome, "module.load_succeeds");
	outcome_free(&outcome);
	if (ret)
		bail_out("without the module there is nothing to test");
}

/* A test that unloads the module has to load it again; the next test must not pay for it. */
void module_still_loaded(struct outcome *outcome)
{
	int ret;

	if (!settings.module || access("/sys/module/" MODULE_NAME, F_OK) == 0)
		return;
	fail(outcome, "left the module unloaded");
	ret = load();
	if (ret)
		fail(outcome, "loading it again: %s", strerror(-ret));
}

void module_unload_step(void)
{
	struct outcome outcome = {};

	if (syscall(SYS_delete_module, MODULE_NAME, O_NONBLOCK) < 0)
		fail(&outcome, "delete_module: %s", strerror(errno));
	check_kernel(&outcome);
	report(&outcome, "module.unload_at_end_succeeds");
	outcome_free(&outcome);
}
