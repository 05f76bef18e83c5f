/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the tests of the scheduler share: a policy, a ring, and tasks that count what is called. */
#ifndef KRETRY_UNIT_JOBS_H
#define KRETRY_UNIT_JOBS_H

#include "unit.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kretry.h"

struct fixture {
	struct kretry *k;
	struct kretry_sched *s;
	struct io_uring ring;
	u32 policy;
	unsigned int attempts;
	unsigned int dones;
	unsigned int early;
	u64 latest_ns;		/* the longest that an attempt came after its deadline */
};

/* One operation: it fails @failures times at once, then succeeds; negative: it does not report. */
struct job {
	struct fixture *f;
	struct kretry_task *task;
	int failures;
	unsigned int attempts;
	unsigned int dones;
	struct kretry_op last;
};

static inline void job_attempt(struct kretry_task *task, void *arg)
{
	const struct kretry_op *op = kretry_task_op(task);
	struct job *job = arg;
	u64 now = kretry_now(CLOCK_MONOTONIC);

	job->attempts++;
	job->f->attempts++;
	if (now < op->deadline_ns)
		job->f->early++;
	else if (now - op->deadline_ns > job->f->latest_ns)
		job->f->latest_ns = now - op->deadline_ns;
	if (job->failures < 0)
		return;
	kretry_task_report(task, job->failures-- > 0 ? KRETRY_EVENT_TRANSIENT : KRETRY_EVENT_OK, 0,
			   0);
}

static inline void job_done(struct kretry_task *task, const struct kretry_op *op, void *arg)
{
	struct job *job = arg;

	(void)task;
	job->dones++;
	job->f->dones++;
	job->last = *op;
}

static const struct kretry_task_ops job_ops = { .attempt = job_attempt, .done = job_done };

static inline u32 job_policy(struct fixture *f, u8 jitter, u64 base)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, jitter, base, base);

	assert_int_equal(kretry_policy_create(f->k, &p), 0);
	return p.id;
}

/* A policy with fixed delays of @base, and no scheduler yet. */
static inline void open_handle(struct fixture *f, u64 base)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(kretry_open(&f->k, NULL, KRETRY_PROCESS_ONLY), 0);
	f->policy = job_policy(f, KRETRY_JITTER_NONE, base);
}

/* The scheduler on a ring of the test's, with room for 16 completions. */
static inline void open_shared(struct fixture *f, u64 base, unsigned int flags,
			       unsigned int max_tasks)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE | flags,
		.cq_entries = 16,
	};

	open_handle(f, base);
	assert_int_equal(io_uring_queue_init_params(8, &f->ring, &params), 0);
	assert_int_equal(kretry_sched_init(&f->s, f->k, &f->ring, max_tasks), 0);
}

static inline void open_own(struct fixture *f, u64 base, unsigned int max_tasks)
{
	open_handle(f, base);
	assert_int_equal(kretry_sched_init(&f->s, f->k, NULL, max_tasks), 0);
}

static inline void close_fixture(struct fixture *f)
{
	kretry_sched_exit(f->s);
	if (f->ring.ring_fd)
		io_uring_queue_exit(&f->ring);
	kretry_close(f->k);
}

static inline void start_job(struct fixture *f, struct job *job, int failures)
{
	struct kretry_op op = { .policy = f->policy };

	*job = (struct job){ .f = f, .failures = failures };
	assert_int_equal(kretry_sched_start(f->s, &op, &job_ops, job, &job->task), 0);
}

static inline struct job *start_jobs(struct fixture *f, unsigned int count, int failures)
{
	struct job *jobs = calloc(count, sizeof(*jobs));
	unsigned int i;

	assert_non_null(jobs);
	for (i = 0; i < count; i++)
		start_job(f, &jobs[i], failures);
	return jobs;
}

static inline void run_all(struct fixture *f)
{
	assert_int_equal(kretry_sched_run(f->s, NULL, NULL, NULL), 0);
	assert_int_equal(kretry_sched_pending(f->s), 0);
}

static inline void sleep_ns(u64 ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / SEC), .tv_nsec = (long)(ns % SEC) };

	nanosleep(&ts, NULL);
}

#endif /* KRETRY_UNIT_JOBS_H */
