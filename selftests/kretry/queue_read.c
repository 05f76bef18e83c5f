// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* read() of due ops: any buffer, any way to wait, any number of readers, and nothing lost. */
#include "harness.h"
#include "queued.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define PAGE	4096
#define OP	sizeof(struct kretry_op)

FIXTURE(queue_read) {
	int fd;
	uint32_t id;	/* 100 ms */
	struct kretry_op ops[128];
};

FIXTURE_SETUP(queue_read)
{
	struct kretry_policy policy;

	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_nonblock(self->fd, true);
	kt_policy(&policy);
	self->id = kt_create(self->fd, &policy);
}

FIXTURE_TEARDOWN(queue_read)
{
	close(self->fd);
}

/* So many ops, from 0 on, all due. */
static void make_due(struct __test_metadata *_metadata, FIXTURE_DATA(queue_read) *self,
		     unsigned int count)
{
	ASSERT_EQ(count, kt_queue_many(self->fd, self->id, 0, count));
	kt_sleep(200 * MSEC);
	ASSERT_EQ((int)count, kt_waiting(self->fd, self->id));
}

/* The next ones that there are to read: from @first on, @count of them, and no more. */
static void expect_rest(struct __test_metadata *_metadata, FIXTURE_DATA(queue_read) *self,
			unsigned int first, unsigned int count)
{
	unsigned int i, got = 0;
	int more;

	while ((more = kt_take(self->fd, self->ops + got, 128 - got)) > 0)
		got += more;
	EXPECT_EQ(-EAGAIN, more);
	EXPECT_EQ(count, got);
	for (i = 0; i < got; i++) {
		EXPECT_EQ(first + i, self->ops[i].user_data);
		EXPECT_EQ(KRETRY_GO, self->ops[i].verdict);
		EXPECT_EQ(1, self->ops[i].attempt);
	}
	EXPECT_EQ(0, kt_waiting(self->fd, self->id));
}

/* -------- buffers -------- */

TEST_F(queue_read, buffer_smaller_than_an_op_einval_op_stays)
{
	unsigned char memory[OP];
	size_t size;

	make_due(_metadata, self, 1);
	memset(memory, POISON, sizeof(memory));
	for (size = 0; size < OP; size++) {
		EXPECT_EQ(-1, read(self->fd, memory, size));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_TRUE(kt_all(memory, sizeof(memory), POISON));
	expect_rest(_metadata, self, 0, 1);
	/* With nothing to read as well. */
	EXPECT_EQ(-1, read(self->fd, memory, OP - 1));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(queue_read, buffer_of_no_whole_number_of_ops_the_rest_untouched)
{
	static const size_t sizes[] = { 65, 127, 128, 191, 16 * 64 + 1, 17 * 64 + 63 };
	static unsigned char memory[32 * 64];
	unsigned int first = 0;
	size_t i;

	make_due(_metadata, self, 100);
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		memset(memory, POISON, sizeof(memory));
		ASSERT_EQ((ssize_t)(sizes[i] / OP * OP), read(self->fd, memory, sizes[i]));
		EXPECT_EQ(first, ((struct kretry_op *)memory)->user_data);
		EXPECT_TRUE(kt_all(memory + sizes[i] / OP * OP,
				   sizeof(memory) - sizes[i] / OP * OP, POISON));
		first += sizes[i] / OP;
	}
	expect_rest(_metadata, self, first, 100 - first);
}

/* Ops lie across the pieces, whatever their sizes. */
TEST_F(queue_read, buffer_in_many_pieces_filled_in_order)
{
	static unsigned char memory[100 * 64];
	struct iovec iov[1024];
	unsigned int i, size = 1, count = 0;
	size_t at = 0;

	make_due(_metadata, self, 100);
	for (; at < sizeof(memory); at += iov[count - 1].iov_len) {
		iov[count].iov_base = memory + at;
		iov[count++].iov_len = size < sizeof(memory) - at ? size : sizeof(memory) - at;
		size = size * 5 % 23;
	}
	ASSERT_LT(100, count);
	ASSERT_EQ((ssize_t)sizeof(memory), readv(self->fd, iov, (int)count));
	for (i = 0; i < 100; i++)
		EXPECT_EQ(i, ((struct kretry_op *)memory)[i].user_data);
	expect_rest(_metadata, self, 100, 0);
}

TEST_F(queue_read, buffer_that_cannot_be_written_efault_nothing_lost)
{
	void *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kretry_op op = { 0 };
	void * const buffers[] = {
		NULL, (void *)1, hole, kt_read_only(&op, OP), kt_page_end(OP - 1), kt_page_end(8),
		(void *)-4096L,
	};
	size_t i;

	make_due(_metadata, self, 40);
	for (i = 0; i < ARRAY_LEN(buffers); i++) {
		EXPECT_EQ(-1, read(self->fd, buffers[i], OP));
		EXPECT_EQ(EFAULT, errno)
			TH_LOG("buffer %zu", i);
		EXPECT_EQ(40, kt_waiting(self->fd, self->id));
		EXPECT_TRUE(kt_poll(self->fd, 0) & POLLIN);
	}
	expect_rest(_metadata, self, 0, 40);
}

/* What fits before the hole is delivered, however much was asked for; the rest stays. */
TEST_F(queue_read, buffer_over_the_end_of_memory_filled_up_to_it)
{
	static const unsigned int there[] = { 1, 2, 15, 16, 17, 33 };
	unsigned int i, first = 0;
	struct kretry_op *ops;
	size_t row;

	make_due(_metadata, self, 100);
	for (row = 0; row < ARRAY_LEN(there); row++) {
		ops = kt_page_end(there[row] * OP + row * 7);
		ASSERT_EQ((ssize_t)(there[row] * OP), read(self->fd, ops, 1000 * OP))
			TH_LOG("%u ops before the hole: %d", there[row], errno);
		for (i = 0; i < there[row]; i++)
			EXPECT_EQ(first + i, ops[i].user_data);
		first += there[row];
	}
	expect_rest(_metadata, self, first, 100 - first);
}

/* -------- waiting -------- */

TEST_F(queue_read, nothing_due_nonblocking_eagain_blocking_waits)
{
	struct kretry_op op;
	int64_t late;

	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &op));
	ASSERT_EQ(0, kt_queue(self->fd, self->id, 1));
	EXPECT_EQ(-EAGAIN, kt_take_one(self->fd, &op));
	kt_nonblock(self->fd, false);
	ASSERT_EQ(0, kt_take_one(self->fd, &op));
	EXPECT_EQ(1, op.user_data);
	late = (int64_t)(kt_now(CLOCK_MONOTONIC) - op.start_ns - 100 * MSEC);
	EXPECT_LE(0, late);
	EXPECT_GT((int64_t)(50 * MSEC), late);
}

static volatile int alarms;

static void count_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static void alarm_soon(int flags)
{
	struct sigaction action = { .sa_handler = count_alarm, .sa_flags = flags };
	struct itimerspec in = { .it_value.tv_nsec = 50 * MSEC };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	timer_t timer;

	alarms = 0;
	if (sigaction(SIGALRM, &action, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &in, NULL))
		abort();
}

TEST_F(queue_read, signal_while_waiting_eintr_or_restarted)
{
	struct kretry_op op;

	kt_nonblock(self->fd, false);
	ASSERT_EQ(0, kt_queue(self->fd, self->id, 1));
	alarm_soon(0);
	EXPECT_EQ(-EINTR, kt_take_one(self->fd, &op));
	EXPECT_EQ(1, alarms);
	ASSERT_EQ(0, kt_take_one(self->fd, &op));
	EXPECT_EQ(1, op.user_data);
	ASSERT_EQ(0, kt_queue(self->fd, self->id, 2));
	alarm_soon(SA_RESTART);
	ASSERT_EQ(0, kt_take_one(self->fd, &op));
	EXPECT_EQ(1, alarms);
	EXPECT_EQ(2, op.user_data);
	EXPECT_LE(op.start_ns + 100 * MSEC, kt_now(CLOCK_MONOTONIC));
}

static void *read_blocked(void *arg)
{
	FIXTURE_DATA(queue_read) *self = arg;
	struct kretry_op op;

	return (void *)(intptr_t)(kt_take_one(self->fd, &op) ? -1 : (int)op.user_data);
}

/* An op that comes in later, and first: the timer armed for another does not hold it up. */
TEST_F(queue_read, op_due_before_the_first_wakes_the_reader_in_time)
{
	struct kretry_policy policy;
	uint64_t start;
	pthread_t thread;
	void *got;

	kt_policy(&policy);
	policy.backoff.base_ns = 10 * SEC;
	ASSERT_EQ(0, kt_queue(self->fd, kt_create(self->fd, &policy), 1));
	kt_nonblock(self->fd, false);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_blocked, self));
	kt_sleep(100 * MSEC);
	start = kt_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, kt_queue(self->fd, self->id, 2));
	ASSERT_EQ(0, pthread_join(thread, &got));
	EXPECT_EQ(2, (intptr_t)got);
	EXPECT_LE(100 * MSEC, kt_now(CLOCK_MONOTONIC) - start);
	EXPECT_GT(200 * MSEC, kt_now(CLOCK_MONOTONIC) - start);
}

#define READERS	8
#define EACH	250

/* Count each op by its name; one behind the last tells the reader to go. */
static int read_until_told(int fd, unsigned char *seen)
{
	struct kretry_op op;
	ssize_t got;

	while ((got = read(fd, &op, OP)) == (ssize_t)OP && op.user_data < READERS * EACH)
		__atomic_add_fetch(&seen[op.user_data], 1, __ATOMIC_SEQ_CST);
	return got != (ssize_t)OP;
}

TEST_F(queue_read, many_readers_of_one_file_each_op_once)
{
	unsigned char *seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				   -1, 0);
	pid_t pids[READERS];
	unsigned int i;

	kt_nonblock(self->fd, false);
	for (i = 0; i < READERS; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(read_until_told(dup(self->fd), seen));
	}
	for (i = 0; i < READERS * EACH; i += 50) {
		ASSERT_EQ(50, kt_queue_many(self->fd, self->id, i, 50));
		kt_sleep(5 * MSEC);
	}
	kt_sleep(200 * MSEC);
	EXPECT_EQ(0, kt_waiting(self->fd, self->id));
	ASSERT_EQ(READERS, kt_queue_many(self->fd, self->id, READERS * EACH, READERS));
	for (i = 0; i < READERS; i++)
		EXPECT_EQ(0, kt_wait(pids[i]));
	EXPECT_TRUE(kt_all(seen, READERS * EACH, 1));
	EXPECT_TRUE(kt_all(seen + READERS * EACH, PAGE - READERS * EACH, 0));
}

/* SHUTDOWN under a reader: it goes on waiting, for what is queued after. */
TEST_F(queue_read, shutdown_while_waiting_reader_waits_on)
{
	struct kretry_policy policy;
	pthread_t thread;
	void *got;

	ASSERT_EQ(0, kt_queue(self->fd, self->id, 1));
	kt_nonblock(self->fd, false);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_blocked, self));
	kt_sleep(50 * MSEC);
	ASSERT_EQ(0, kt_shutdown(self->fd));
	kt_sleep(SEC);
	kt_policy(&policy);
	ASSERT_EQ(0, kt_queue(self->fd, kt_create(self->fd, &policy), 2));
	ASSERT_EQ(0, pthread_join(thread, &got));
	EXPECT_EQ(2, (intptr_t)got);
}

TEST_HARNESS_MAIN
