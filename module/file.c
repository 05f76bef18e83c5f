// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "file.h"

#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "deliver.h"
#include "ioctl.h"
#include "lease.h"
#include "limits.h"
#include "policy.h"
#include "redraw.h"
#include "uring.h"

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
	kretry_queue_init(kf);
	kretry_redraw_add(kf);
	filp->private_data = kf;
	filp->f_mode |= FMODE_NOWAIT;
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

	kretry_redraw_remove(kf);
	kretry_handle_drop_all(kf);
	kretry_queue_exit(kf);
	xa_destroy(&kf->handles);
	kfree(kf);
	return 0;
}

static ssize_t kretry_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *filp = iocb->ki_filp;

	return kretry_deliver_read(filp->private_data, to,
				   filp->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT);
}

static __poll_t kretry_poll(struct file *filp, poll_table *table)
{
	struct kretry_file *kf = filp->private_data;
	__poll_t events = 0;

	poll_wait(filp, &kf->wait, table);
	if (kretry_queue_is_due(&kf->queue))
		events |= EPOLLIN | EPOLLRDNORM;
	if (kretry_handle_any_news(kf))
		events |= EPOLLPRI;
	return events;
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
	.read_iter	= kretry_read_iter,
	.poll		= kretry_poll,
	.unlocked_ioctl	= kretry_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.uring_cmd	= kretry_uring_cmd,
	.show_fdinfo	= kretry_show_fdinfo,
};
