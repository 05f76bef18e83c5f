// SPDX-License-Identifier: GPL-2.0-only OR MIT
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/miscdevice.h>
#include <linux/module.h>

#include "file.h"
#include "key.h"
#include "limits.h"
#include "name.h"
#include "policy.h"
#include "queue.h"
#include "redraw.h"

#define KRETRY_MODE_MASK	0666

unsigned int kretry_max_policies = 4096;
module_param_named(max_policies, kretry_max_policies, uint, 0444);
MODULE_PARM_DESC(max_policies, "Most policies of one user, 1 or more (4096)");

unsigned int kretry_max_keys = 1024;
module_param_named(max_keys, kretry_max_keys, uint, 0444);
MODULE_PARM_DESC(max_keys, "Most keys of one policy, 1 to 65536 (1024)");

unsigned int kretry_max_queued = 131072;
module_param_named(max_queued, kretry_max_queued, uint, 0444);
MODULE_PARM_DESC(max_queued, "Most ops queued on one file, 0 for none (131072)");

unsigned int kretry_max_linger_s = 3600;
module_param_named(max_linger_s, kretry_max_linger_s, uint, 0444);
MODULE_PARM_DESC(max_linger_s, "Longest a named policy outlives its openers, in s (3600)");

static ushort mode = 0666;
module_param(mode, ushort, 0444);
MODULE_PARM_DESC(mode, "Permissions of /dev/kretry, read and write bits only (0666)");

static struct miscdevice kretry_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "kretry",
	.fops	= &kretry_fops,
};

static int __init kretry_check_parameters(void)
{
	if (!kretry_max_policies) {
		pr_err("max_policies=0 would allow no policy at all: give 1 or more\n");
		return -EINVAL;
	}
	if (!kretry_max_keys || kretry_max_keys > KRETRY_MAX_KEYS) {
		pr_err("max_keys=%u: give 1 to %u\n", kretry_max_keys, KRETRY_MAX_KEYS);
		return -EINVAL;
	}
	if (!mode || mode & ~KRETRY_MODE_MASK) {
		pr_err("mode=0%o: give read and write bits only, such as 0660\n", mode);
		return -EINVAL;
	}
	return 0;
}

static int __init kretry_init(void)
{
	int err = kretry_check_parameters();

	if (err)
		return err;
	err = kretry_key_cache_init();
	if (err)
		return err;
	err = kretry_queue_cache_init();
	if (err)
		goto no_queue;
	err = kretry_policy_init();
	if (err)
		goto no_policies;
	err = kretry_redraw_init();
	if (err)
		goto no_notifiers;
	kretry_device.mode = mode;
	err = misc_register(&kretry_device);
	if (err)
		goto no_device;
	return 0;
no_device:
	kretry_redraw_exit();
no_notifiers:
	kretry_policy_exit();
no_policies:
	kretry_queue_cache_exit();
no_queue:
	kretry_key_cache_exit();
	return err;
}

/* The device first: then nothing new can come, and each step waits for what the next one frees. */
static void __exit kretry_exit(void)
{
	misc_deregister(&kretry_device);
	kretry_redraw_exit();
	kretry_name_exit();
	kretry_policy_exit();
	kretry_queue_cache_exit();
	kretry_key_cache_exit();
}

module_init(kretry_init);
module_exit(kretry_exit);

MODULE_DESCRIPTION("Host-wide retry policies, deadlines, budgets and circuit breakers");
MODULE_AUTHOR("The kretry developers");
MODULE_VERSION("1.0.0");
MODULE_LICENSE("Dual MIT/GPL");
