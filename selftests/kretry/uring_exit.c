// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ten thousand WAITs pend for an hour and whoever waits goes away, in every way there is: it is
 * gone at once, the budget of the host has its tokens back, and the module is free.
 */
#include "harness.h"
#include "rings.h"
#include "shared.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#define KEY	7
#define WAITS	10000
#define FULL	(WAITS * KRETRY_UTOK)
#define BATCH	500

/* After exec the program is this again: it then only stays until it is killed. */
__attribute__((constructor)) static void after_exec(void)
{
	if (getenv("URING_EXIT"))
		for (;;)
			pause();
}

/* In virtual time nothing outside can hold it up; where there are more CPUs a busy host can. */
static uint64_t soon(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 20 * SEC : SEC;
}

FIXTURE(uring_exit) {
	struct kt_party me;		/* watches the budget */
	struct kretry_policy policy;	/* an hour, 10,000 tokens */
	int id;
	uint32_t *ready;		/* waits that the child has issued */
	struct kt_party waiter;
	struct io_uring ring;
};

FIXTURE_SETUP(uring_exit)
{
	ASSERT_EQ(0, kt_ensure_loaded());
	ASSERT_EQ(0, kt_here(&self->me));
	if (!kt_ring_waits(self->me.fd))
		SKIP(return, "no WAIT on this kernel");
	kt_policy(&self->policy);
	kt_name(&self->policy, "uring_exit");
	kt_budget(&self->policy, WAITS);
	self->policy.backoff.base_ns = 3600 * SEC;
	self->policy.backoff.cap_ns = 3600 * SEC;
	self->id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, self->id);
	self->ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->ready);
}

FIXTURE_TEARDOWN(uring_exit)
{
	kt_leave(&self->me);
}

/* Open the device and a ring, and issue all the waits. */
static int wait_a_lot(FIXTURE_DATA(uring_exit) *self, unsigned int ring_flags)
{
	static struct kretry_op ops[BATCH];
	int id, i, issued;

	CHECK_EQ(0, kt_here(&self->waiter));
	id = kt_party_create(&self->waiter, &self->policy);
	CHECK(id > 0);
	CHECK_EQ(0, kt_ring(&self->ring, BATCH, ring_flags));
	for (issued = 0; issued < WAITS; issued += BATCH) {
		for (i = 0; i < BATCH; i++) {
			ops[i] = kt_failed(id, KEY, issued + i);
			kt_put_wait(&self->ring, self->waiter.fd, &ops[i]);
		}
		CHECK_EQ(BATCH, io_uring_submit(&self->ring));
		/* An SQPOLL thread takes its time. */
		while (!__atomic_load_n(&ops[BATCH - 1].verdict, __ATOMIC_ACQUIRE))
			kt_sleep(MSEC);
		CHECK_EQ(KRETRY_RETRY, ops[BATCH - 1].verdict);
	}
	__atomic_store_n(self->ready, WAITS, __ATOMIC_RELEASE);
	return 0;
}

static uint64_t balance(FIXTURE_DATA(uring_exit) *self)
{
	return kt_stat_key(&self->me, self->id, KEY).balance_utok;
}

/* Since @start all has come back, and soon. */
static int check_all_back(FIXTURE_DATA(uring_exit) *self, uint64_t start)
{
	while (balance(self) != FULL && kt_now(CLOCK_MONOTONIC) < start + soon())
		kt_sleep(MSEC);
	CHECK_EQ(FULL, balance(self));
	CHECK_EQ(FULL, kt_stat(&self->me, self->id).refunded_utok);
	CHECK_EQ(0, kt_stat(&self->me, self->id).queued);
	return 0;
}

/* With nobody left the module can go. */
static int check_unloads(FIXTURE_DATA(uring_exit) *self)
{
	uint64_t end = kt_now(CLOCK_MONOTONIC) + soon();
	int ret;

	kt_leave(&self->me);
	while ((ret = kt_unload()) == -EWOULDBLOCK && kt_now(CLOCK_MONOTONIC) < end)
		kt_sleep(MSEC);
	CHECK_EQ(0, ret);
	CHECK_EQ(0, kt_load(""));
	return kt_here(&self->me);
}

/* -------- a process that ends -------- */

static int end_by_exit(FIXTURE_DATA(uring_exit) *self)
{
	(void)self;
	return 0;
}

static int end_by_signal(FIXTURE_DATA(uring_exit) *self)
{
	(void)self;
	while (pause())
		;
	return 1;
}

static int end_by_fault(FIXTURE_DATA(uring_exit) *self)
{
	(void)self;
	/* What the harness would do about it. */
	signal(SIGSEGV, SIG_DFL);
	return *(volatile int *)kt_page_end(0);
}

static int end_by_exec(FIXTURE_DATA(uring_exit) *self)
{
	(void)self;
	setenv("URING_EXIT", "1", 1);
	execl("/proc/self/exe", "uring_exit", NULL);
	return 1;
}

FIXTURE(uring_ends) {
	FIXTURE_DATA(uring_exit) exits;
};

FIXTURE_VARIANT(uring_ends) {
	int (*end)(FIXTURE_DATA(uring_exit) *self);
	int status;
	unsigned int ring_flags;
	bool kill, lives;
};

#define DEFERRED	(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)
#define KILLED		.kill = true, .status = 128 + SIGKILL

FIXTURE_VARIANT_ADD(uring_ends, exit) { .end = end_by_exit };
FIXTURE_VARIANT_ADD(uring_ends, exit_deferred) { .end = end_by_exit, .ring_flags = DEFERRED };
FIXTURE_VARIANT_ADD(uring_ends, exit_sqpoll) {
	.end = end_by_exit, .ring_flags = IORING_SETUP_SQPOLL,
};

FIXTURE_VARIANT_ADD(uring_ends, sigkill) { .end = end_by_signal, KILLED };
FIXTURE_VARIANT_ADD(uring_ends, sigkill_deferred) {
	.end = end_by_signal, KILLED, .ring_flags = DEFERRED,
};

FIXTURE_VARIANT_ADD(uring_ends, sigkill_sqpoll) {
	.end = end_by_signal, KILLED, .ring_flags = IORING_SETUP_SQPOLL,
};

FIXTURE_VARIANT_ADD(uring_ends, segfault) { .end = end_by_fault, .status = 128 + SIGSEGV };
FIXTURE_VARIANT_ADD(uring_ends, exec) { .end = end_by_exec, KILLED, .lives = true };
FIXTURE_VARIANT_ADD(uring_ends, exec_deferred) {
	.end = end_by_exec, KILLED, .lives = true, .ring_flags = DEFERRED,
};

FIXTURE_SETUP(uring_ends)
{
	uring_exit_setup(_metadata, &self->exits, NULL);
}

FIXTURE_TEARDOWN(uring_ends)
{
	kt_leave(&self->exits.me);
}

static int wait_and_end(FIXTURE_DATA(uring_exit) *self, const FIXTURE_VARIANT(uring_ends) *variant)
{
	CHECK_EQ(0, wait_a_lot(self, variant->ring_flags));
	return variant->end(self);
}

TEST_F(uring_ends, gone_at_once_tokens_back_module_free)
{
	FIXTURE_DATA(uring_exit) *exits = &self->exits;
	uint64_t start;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(wait_and_end(exits, variant));
	while (!__atomic_load_n(exits->ready, __ATOMIC_ACQUIRE))
		kt_sleep(MSEC);
	start = kt_now(CLOCK_MONOTONIC);
	if (variant->lives) {
		EXPECT_EQ(0, check_all_back(exits, start));
		start = kt_now(CLOCK_MONOTONIC);
	} else if (variant->kill) {
		EXPECT_EQ(0, balance(exits));
	}
	if (variant->kill)
		kill(pid, SIGKILL);
	EXPECT_EQ(variant->status, kt_wait(pid));
	EXPECT_GT(start + soon(), kt_now(CLOCK_MONOTONIC));
	EXPECT_EQ(0, check_all_back(exits, start));
	EXPECT_EQ(0, check_unloads(exits));
}

/* -------- a process that is stopped -------- */

static int wait_for_all(FIXTURE_DATA(uring_exit) *self)
{
	unsigned int i;

	for (i = 0; i < WAITS; i++)
		CHECK_EQ(0, kt_next(&self->ring, NULL));
	CHECK_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	return 0;
}

/* A child whose waits fall due while it is stopped. */
static pid_t stopped_over_the_deadline(FIXTURE_DATA(uring_exit) *self)
{
	pid_t pid;

	kt_leave(&self->me);
	self->policy.backoff.base_ns = 3 * SEC;
	kt_name(&self->policy, "uring_exit_stop");
	if (kt_here(&self->me))
		return -1;
	self->id = kt_party_create(&self->me, &self->policy);
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(wait_a_lot(self, 0) || wait_for_all(self));
	while (!__atomic_load_n(self->ready, __ATOMIC_ACQUIRE))
		kt_sleep(MSEC);
	kill(pid, SIGSTOP);
	kt_sleep(5 * SEC);
	return pid;
}

TEST_F(uring_exit, stopped_over_the_deadline_completes_when_it_goes_on)
{
	pid_t pid = stopped_over_the_deadline(self);

	EXPECT_EQ(0, balance(self));
	EXPECT_EQ(WAITS, kt_stat(&self->me, self->id).queued);
	kill(pid, SIGCONT);
	EXPECT_EQ(0, kt_wait(pid));
	EXPECT_EQ(0, balance(self));
	EXPECT_EQ(WAITS, kt_stat(&self->me, self->id).go);
	EXPECT_EQ(0, check_unloads(self));
}

/* Due, but never delivered. */
TEST_F(uring_exit, stopped_over_the_deadline_and_killed_tokens_back)
{
	pid_t pid = stopped_over_the_deadline(self);
	uint64_t start = kt_now(CLOCK_MONOTONIC);

	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, kt_wait(pid));
	EXPECT_EQ(0, check_all_back(self, start));
	EXPECT_EQ(0, kt_stat(&self->me, self->id).go);
	EXPECT_EQ(0, check_unloads(self));
}

/* -------- a process that goes on -------- */

TEST_F(uring_exit, ring_closed_device_open)
{
	uint64_t start;

	ASSERT_EQ(0, wait_a_lot(self, 0));
	EXPECT_EQ(0, balance(self));
	start = kt_now(CLOCK_MONOTONIC);
	io_uring_queue_exit(&self->ring);
	EXPECT_EQ(0, check_all_back(self, start));
	kt_leave(&self->waiter);
	EXPECT_EQ(0, check_unloads(self));
}

static void *exit_ring(void *ring)
{
	io_uring_queue_exit(ring);
	return NULL;
}

TEST_F(uring_exit, ring_closed_by_another_thread)
{
	pthread_t thread;
	uint64_t start;

	ASSERT_EQ(0, wait_a_lot(self, 0));
	start = kt_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, pthread_create(&thread, NULL, exit_ring, &self->ring));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, check_all_back(self, start));
	kt_leave(&self->waiter);
	EXPECT_EQ(0, check_unloads(self));
}

/* The waits hold the file: they go on, and the module is in use until they are over. */
TEST_F(uring_exit, device_closed_ring_open_waits_go_on)
{
	unsigned int i, done = 0;

	self->policy.backoff.base_ns = 4 * SEC;
	kt_name(&self->policy, "uring_exit_soon");
	ASSERT_EQ(0, wait_a_lot(self, 0));
	kt_leave(&self->waiter);
	kt_leave(&self->me);
	EXPECT_EQ(-EWOULDBLOCK, kt_unload());
	for (i = 0; i < WAITS; i++)
		done += kt_next(&self->ring, NULL) == 0;
	EXPECT_EQ(WAITS, done);
	ASSERT_EQ(0, kt_here(&self->me));
	io_uring_queue_exit(&self->ring);
	EXPECT_EQ(0, check_unloads(self));
}

TEST_F(uring_exit, device_closed_then_ring_closed)
{
	uint64_t start;

	ASSERT_EQ(0, wait_a_lot(self, 0));
	kt_leave(&self->waiter);
	EXPECT_EQ(0, balance(self));
	start = kt_now(CLOCK_MONOTONIC);
	io_uring_queue_exit(&self->ring);
	EXPECT_EQ(0, check_all_back(self, start));
	EXPECT_EQ(0, check_unloads(self));
}

TEST_F(uring_exit, shutdown_completes_all_ecanceled)
{
	unsigned int i, cancelled = 0;
	uint64_t start;

	ASSERT_EQ(0, wait_a_lot(self, 0));
	start = kt_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, kt_shutdown(self->waiter.fd));
	EXPECT_EQ(0, check_all_back(self, start));
	for (i = 0; i < WAITS; i++)
		cancelled += kt_next(&self->ring, NULL) == -ECANCELED;
	EXPECT_EQ(WAITS, cancelled);
	EXPECT_EQ(KT_NOTHING, kt_look(&self->ring, NULL));
	EXPECT_GT(start + soon(), kt_now(CLOCK_MONOTONIC));
	EXPECT_EQ(0, kt_policies(self->waiter.fd));
	io_uring_queue_exit(&self->ring);
	kt_leave(&self->waiter);
	EXPECT_EQ(0, check_unloads(self));
}

TEST_HARNESS_MAIN
