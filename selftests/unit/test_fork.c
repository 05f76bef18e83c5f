// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a child of fork() does with its copy of everything leaves its parent's alone. */
#include "jobs.h"
#include "queued.h"

#include <sys/mman.h>
#include <sys/wait.h>

#define TASKS	50
#define DRAWS	4
#define CHILDREN 8

static void wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Everything that an atexit handler or a destructor may call, and decisions on the way. */
static void child_tidies_up(struct fixture *f)
{
	struct kretry_op op = { .policy = f->policy, .event = KRETRY_EVENT_TRANSIENT };
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, MS, SEC);
	int bad;

	bad = kretry_step(f->k, &op) || op.verdict != KRETRY_RETRY ||
	      kretry_policy_create(f->k, &p) || p.id == f->policy;
	kretry_sched_exit(f->s);
	kretry_close(f->k);
	_exit(bad || f->dones);
}

/* On a ring of the scheduler's own, and on one of the caller's. */
static void tidy_child_leaves_the_parents_sleepers(void **state)
{
	struct fixture f;
	struct job *jobs;
	int shared, i;
	pid_t pid;

	(void)state;
	for (shared = 0; shared <= 1; shared++) {
		if (shared)
			open_shared(&f, 60 * MS, 0, TASKS);
		else
			open_own(&f, 60 * MS, TASKS);
		jobs = start_jobs(&f, TASKS, 1);
		kretry_sched_poll(f.s);
		io_uring_submit(kretry_sched_ring(f.s));
		pid = fork();
		if (!pid)
			child_tidies_up(&f);
		wait_for(pid);
		assert_int_equal(kretry_sched_pending(f.s), TASKS);
		run_all(&f);
		assert_int_equal(f.early, 0);
		for (i = 0; i < TASKS; i++) {
			assert_int_equal(jobs[i].attempts, 2);
			assert_int_equal(jobs[i].dones, 1);
			assert_int_equal(jobs[i].last.verdict, KRETRY_DONE);
		}
		close_fixture(&f);
		free(jobs);
	}
}

/* Its queue, its probe and its budget are what they were. */
static void tidy_child_leaves_the_parents_queue_and_probe(void **state)
{
	struct kretry_policy b = breaker_of(MS, SEC);
	struct kretry *k = open_process();
	u32 queued = create(k, budget_of(3)), broken = create(k, b);
	struct kretry_op op;
	pid_t pid;

	(void)state;
	enqueue(k, queued, 1);
	open_breaker(k, broken);
	pause_ns(2 * MS);
	op = step(k, broken, KRETRY_EVENT_BEGIN);
	assert_int_equal(op.flags & KRETRY_OP_PROBE, KRETRY_OP_PROBE);
	pid = fork();
	if (!pid) {
		step(k, queued, KRETRY_EVENT_TRANSIENT);
		step(k, queued, KRETRY_EVENT_TRANSIENT);
		kretry_queue_cancel(k, 1, &op);
		kretry_shutdown(k);
		kretry_close(k);
		_exit(0);
	}
	wait_for(pid);
	assert_int_equal(step(k, broken, KRETRY_EVENT_BEGIN).verdict, KRETRY_STOP_OPEN);
	assert_int_equal(continue_op(k, &op, KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(read_one(k).user_data, 1);
	assert_int_equal(step(k, queued, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(step(k, queued, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(step(k, queued, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_STOP_BUDGET);
	kretry_close(k);
}

static int order(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* One drawn before the fork, so that there is something to copy, and four by each afterwards. */
static void parent_and_children_draw_what_nobody_else_does(void **state)
{
	u64 hour = 3600 * SEC;
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_FULL, hour, hour);
	struct kretry *k = open_process();
	u32 policy = create(k, p), i, n = 1;
	u64 *draws = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[CHILDREN];

	(void)state;
	draws[0] = step(k, policy, KRETRY_EVENT_TRANSIENT).delay_ns;
	for (i = 0; i < CHILDREN; i++, n += DRAWS) {
		pids[i] = fork();
		if (pids[i])
			continue;
		for (i = 0; i < DRAWS; i++)
			draws[n + i] = step(k, policy, KRETRY_EVENT_TRANSIENT).delay_ns;
		kretry_close(k);
		_exit(0);
	}
	for (i = 0; i < DRAWS; i++)
		draws[n++] = step(k, policy, KRETRY_EVENT_TRANSIENT).delay_ns;
	for (i = 0; i < CHILDREN; i++)
		wait_for(pids[i]);
	qsort(draws, n, sizeof(*draws), order);
	for (i = 1; i < n; i++)
		assert_true(draws[i] != draws[i - 1] && draws[i - 1]);
	munmap(draws, 4096);
	kretry_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tidy_child_leaves_the_parents_sleepers),
		cmocka_unit_test(tidy_child_leaves_the_parents_queue_and_probe),
		cmocka_unit_test(parent_and_children_draw_what_nobody_else_does),
	};

	return run_group(tests);
}
