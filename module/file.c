// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "file.h"

#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "ioctl.h"
#include "lease.h"
#include "limits.h"
#include "policy.h"

static int kretry_open(struct inode *inode, struct file *filp)
{
	struct kretry_file *kf = kzalloc(sizeof(*kf), KRETRY_GFP);

	if (!kf)
		return -ENOMEM;
	xa_init_flags(&kf->handles, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	kf->next_id = 1;
	kf->cred = filp->f_cred;
	spin_lock_init(&kf->lease_lock);
	INIT_LIST_HEAD(&kf->leases);
	init_waitqueue_head(&kf->wait);
	filp->private_data = kf;
	return nonseekable_open(inode, filp);
}

/* A process that closes the file, or dies, gives back its probes though others hold the file. */
static int kretry_flush(struct file *filp, fl_owner_t owner)
{
	kretry_lease_drop_process(filp->private_data, task_tgid(current));
	return 0;
}

/* The last reference is gone: no command runs on this file, and none will. */
static int kretry_release(struct inode *inode, struct file *filp)
{
	struct kretry_file *kf = filp->private_data;

	kretry_handle_drop_all(kf);
	xa_destroy(&kf->handles);
	kfree(kf);
	return 0;
}

/* Due ops come from here once there is a queue. */
static ssize_t kretry_read(struct file *filp, char __user *buf, size_t len, loff_t *pos)
{
	return -EOPNOTSUPP;
}

static __poll_t kretry_poll(struct file *filp, poll_table *table)
{
	struct kretry_file *kf = filp->private_data;

	poll_wait(filp, &kf->wait, table);
	return kretry_handle_any_news(kf) ? EPOLLPRI : 0;
}

static void kretry_show_fdinfo(struct seq_file *m, struct file *filp)
{
	kretry_handle_show_all(filp->private_data, m);
}

const struct file_operations kretry_fops = {
	.owner		= THIS_MODULE,
	.open		= kretry_open,
	.flush		= kretry_flush,
	.release	= kretry_release,
	.read		= kretry_read,
	.poll		= kretry_poll,
	.unlocked_ioctl	= kretry_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= kretry_show_fdinfo,
};
