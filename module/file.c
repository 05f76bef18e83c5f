// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "file.h"

#include <linux/module.h>
#include <linux/slab.h>

#include "ioctl.h"
#include "limits.h"
#include "policy.h"

static int kretry_open(struct inode *inode, struct file *filp)
{
	struct kretry_file *kf = kzalloc(sizeof(*kf), KRETRY_GFP);

	if (!kf)
		return -ENOMEM;
	xa_init_flags(&kf->policies, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	kf->next_id = 1;
	kf->cred = filp->f_cred;
	filp->private_data = kf;
	return nonseekable_open(inode, filp);
}

/* The last reference is gone: no command runs on this file, and none will. */
static int kretry_release(struct inode *inode, struct file *filp)
{
	struct kretry_file *kf = filp->private_data;

	kretry_policy_drop_all(kf);
	xa_destroy(&kf->policies);
	kfree(kf);
	return 0;
}

/* Due ops come from here once there is a queue. */
static ssize_t kretry_read(struct file *filp, char __user *buf, size_t len, loff_t *pos)
{
	return -EOPNOTSUPP;
}

static void kretry_show_fdinfo(struct seq_file *m, struct file *filp)
{
	kretry_policy_show_all(filp->private_data, m);
}

const struct file_operations kretry_fops = {
	.owner		= THIS_MODULE,
	.open		= kretry_open,
	.release	= kretry_release,
	.read		= kretry_read,
	.unlocked_ioctl	= kretry_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= kretry_show_fdinfo,
};
