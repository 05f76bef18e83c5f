// SPDX-License-Identifier: GPL-2.0-only OR MIT
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/miscdevice.h>
#include <linux/module.h>

#include "file.h"
#include "limits.h"

#define KRETRY_MODE_MASK	0666

unsigned int kretry_max_policies = 4096;
module_param_named(max_policies, kretry_max_policies, uint, 0444);
MODULE_PARM_DESC(max_policies, "Most policies of one user, 1 or more (4096)");

static ushort mode = 0666;
module_param(mode, ushort, 0444);
MODULE_PARM_DESC(mode, "Permissions of /dev/kretry, read and write bits only (0666)");

static struct miscdevice kretry_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "kretry",
	.fops	= &kretry_fops,
};

static int __init kretry_init(void)
{
	if (!kretry_max_policies) {
		pr_err("max_policies=0 would allow no policy at all: give 1 or more\n");
		return -EINVAL;
	}
	if (!mode || mode & ~KRETRY_MODE_MASK) {
		pr_err("mode=0%o: give read and write bits only, such as 0660\n", mode);
		return -EINVAL;
	}
	kretry_device.mode = mode;
	return misc_register(&kretry_device);
}

static void __exit kretry_exit(void)
{
	misc_deregister(&kretry_device);
}

module_init(kretry_init);
module_exit(kretry_exit);

MODULE_DESCRIPTION("Host-wide retry policies, deadlines, budgets and circuit breakers");
MODULE_AUTHOR("The kretry developers");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("Dual MIT/GPL");
