// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What runs in a machine that is cloned while retries wait in it. It tells the host on the second
 * serial port that it is "ready" to be saved, and goes on when an answer comes. At its end it
 * prints
 *
 *	op NUMBER KIND DEADLINE DELAY TIME VERDICT
 *				it waited in the kernel until then, came back when, and as what
 *	draw DELAY		a fresh one, made after the answer
 *	stat KIND REDRAWN	of that kind's policy
 *	traced COUNT		all of them, as the trace has it
 *	went-on TIME		from here on it looked for what had come
 *
 * The host judges, since it alone sees both clones. It is told nothing before the end: who writes
 * to a port waits for the host to read, and to an idle machine that may be any time.
 */
#include "rings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define PORT	"/dev/ttyS1"
#define TRACING	"/sys/kernel/tracing"
#define OPS	32	/* of each kind */
#define DRAWS	32
#define LONG	(240 * SEC)

/* What kinds of ops there are: each has a policy of its own. */
enum kind { DUE, FULL, EQUAL, PROPORTIONAL, BOOTTIME, LIMITED, WAIT, DRAW, KINDS };

static const char *const names[KINDS] = {
	"due", "full", "equal", "proportional", "boottime", "limited", "wait", "draw"
};

struct guest {
	int fd;
	int port;
	struct io_uring ring;
	uint32_t policy[KINDS];
	unsigned int waiting;
	struct kretry_op waits[OPS];
	struct {
		enum kind kind;
		uint64_t deadline;
		uint64_t delay;
		uint64_t time;
		int verdict;
	} ops[KINDS * OPS];
	int64_t draws[DRAWS];
	uint64_t redrawn[KINDS];
	unsigned int traced;
	uint64_t went_on;
};

/* -------- before -------- */

static void make_policy(struct kretry_policy *policy, enum kind kind)
{
	kt_policy(policy);
	policy->backoff.base_ns = LONG;
	policy->backoff.cap_ns = KRETRY_NS_MAX;
	policy->backoff.jitter = KRETRY_JITTER_FULL;
	policy->backoff.floor_ns = LONG / 4;
	if (kind == DUE || kind == LIMITED) {
		policy->backoff.jitter = KRETRY_JITTER_NONE;
	} else if (kind == EQUAL) {
		policy->backoff.jitter = KRETRY_JITTER_EQUAL;
	} else if (kind == PROPORTIONAL) {
		policy->backoff.jitter = KRETRY_JITTER_PROPORTIONAL;
		policy->backoff.jitter_ppm = KRETRY_PPM / 5;
	} else if (kind == BOOTTIME) {
		policy->clockid = CLOCK_BOOTTIME;
	}
	if (kind == LIMITED)
		policy->max_elapsed_ns = LONG + MSEC;
}

static int create_policies(struct guest *guest)
{
	struct kretry_policy policy;
	int kind, id;

	for (kind = 0; kind < KINDS; kind++) {
		make_policy(&policy, kind);
		id = kt_create(guest->fd, &policy);
		CHECK(id > 0);
		guest->policy[kind] = (uint32_t)id;
	}
	return 0;
}

static struct kretry_op new_op(struct guest *guest, enum kind kind, unsigned int number)
{
	struct kretry_op op = kt_op(guest->policy[kind], KRETRY_EVENT_TRANSIENT);

	op.user_data = kind * OPS + number;
	return op;
}

static int granted(struct guest *guest, enum kind kind, const struct kretry_op *op)
{
	CHECK_EQ(KRETRY_RETRY, op->verdict);
	guest->ops[op->user_data].kind = kind;
	guest->ops[op->user_data].deadline = op->deadline_ns;
	guest->ops[op->user_data].delay = op->delay_ns;
	guest->waiting++;
	return 0;
}

static int queue_ops(struct guest *guest, enum kind kind)
{
	struct kretry_op op;
	unsigned int i;

	for (i = 0; i < OPS; i++) {
		op = new_op(guest, kind, i);
		op.flags |= KRETRY_OP_QUEUE;
		CHECK_EQ(0, kt_step(guest->fd, &op));
		CHECK(op.flags & KRETRY_OP_QUEUED);
		CHECK_EQ(0, granted(guest, kind, &op));
	}
	return 0;
}

static int submit_waits(struct guest *guest)
{
	unsigned int i;

	CHECK_EQ(0, io_uring_queue_init(OPS, &guest->ring, 0));
	if (!kt_ring_waits(guest->fd))
		return 0;
	for (i = 0; i < OPS; i++) {
		guest->waits[i] = new_op(guest, WAIT, i);
		kt_put_wait(&guest->ring, guest->fd, &guest->waits[i]);
	}
	CHECK_EQ(OPS, io_uring_submit(&guest->ring));
	for (i = 0; i < OPS; i++)
		CHECK_EQ(0, granted(guest, WAIT, &guest->waits[i]));
	return 0;
}

/*
 * The kernel's generator is seeded anew each minute, which would make clones differ that are not
 * told of each other. With these times of a clock that counts instructions the machine is saved,
 * and has made its draws, far from any of the seedings.
 */
static int set_up(struct guest *guest)
{
	int kind;

	guest->fd = kt_open();
	CHECK(guest->fd >= 0);
	CHECK_EQ(0, fcntl(guest->fd, F_SETFL, O_NONBLOCK));
	guest->port = open(PORT, O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(guest->port >= 0);
	CHECK_EQ(0, kt_write_file(TRACING "/events/kretry/kretry_put_off/enable", "1"));
	CHECK_EQ(0, create_policies(guest));
	kt_sleep_until(CLOCK_MONOTONIC, 100 * SEC);
	CHECK_EQ(0, queue_ops(guest, DUE));
	kt_sleep(LONG + SEC);
	for (kind = FULL; kind <= LIMITED; kind++)
		CHECK_EQ(0, queue_ops(guest, kind));
	return submit_waits(guest);
}

/* Without sleep: a clock that skips idle time would be far ahead when the host is done. */
static int wait_for_host(struct guest *guest)
{
	struct pollfd port = { .fd = guest->port, .events = POLLIN };
	char word[16];

	CHECK_EQ(6, write(guest->port, "ready\n", 6));
	CHECK_EQ(0, tcdrain(guest->port));
	while (!poll(&port, 1, 0))
		;
	CHECK(read(guest->port, word, sizeof(word)) > 0);
	/* A clone hears of it from its firmware, and passes it on from a work item. */
	kt_sleep(100 * MSEC);
	return 0;
}

/* -------- after -------- */

static int draw(struct guest *guest)
{
	int i;

	for (i = 0; i < DRAWS; i++) {
		guest->draws[i] = kt_delay(guest->fd, guest->policy[DRAW], 0);
		CHECK(guest->draws[i] > 0);
	}
	return 0;
}

static int read_stats(struct guest *guest)
{
	struct kretry_stat stat;
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		memset(&stat, 0, sizeof(stat));
		stat.size = sizeof(stat);
		stat.policy = guest->policy[kind];
		CHECK_EQ(0, kt_ioctl(guest->fd, KRETRY_IOC_STAT, &stat));
		guest->redrawn[kind] = stat.redrawn;
	}
	return 0;
}

static int read_trace(struct guest *guest)
{
	static const char event[] = "kretry_put_off: after=clone count=";
	FILE *trace = fopen(TRACING "/trace", "re");
	char line[512], *at;

	CHECK(trace);
	while (fgets(line, sizeof(line), trace)) {
		at = strstr(line, event);
		guest->traced += at ? (unsigned int)atoi(at + strlen(event)) : 0;
	}
	fclose(trace);
	return 0;
}

static int woke(struct guest *guest, uint64_t number, uint64_t now, int verdict)
{
	CHECK(number < ARRAY_LEN(guest->ops) && guest->ops[number].deadline);
	CHECK_EQ(0, guest->ops[number].time);
	guest->ops[number].time = now;
	guest->ops[number].verdict = verdict;
	guest->waiting--;
	return 0;
}

static int take_ops(struct guest *guest)
{
	struct kretry_op ops[16];
	ssize_t i, len = read(guest->fd, ops, sizeof(ops));
	uint64_t now = kt_now(CLOCK_MONOTONIC);

	CHECK(len > 0 || (len < 0 && errno == EAGAIN));
	for (i = 0; i < len / (ssize_t)sizeof(ops[0]); i++)
		CHECK_EQ(0, woke(guest, ops[i].user_data, now, ops[i].verdict));
	return 0;
}

static int take_waits(struct guest *guest)
{
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&guest->ring, &cqe)) {
		CHECK_EQ(0, cqe->res);
		CHECK_EQ(0, woke(guest, cqe->user_data, kt_now(CLOCK_MONOTONIC), KRETRY_GO));
		io_uring_cqe_seen(&guest->ring, cqe);
	}
	return 0;
}

static int collect(struct guest *guest)
{
	struct pollfd fds[2] = {
		{ .fd = guest->fd, .events = POLLIN },
		{ .fd = guest->ring.ring_fd, .events = POLLIN },
	};

	guest->went_on = kt_now(CLOCK_MONOTONIC);
	while (guest->waiting) {
		CHECK(poll(fds, 2, -1) > 0);
		CHECK_EQ(0, take_ops(guest));
		CHECK_EQ(0, take_waits(guest));
	}
	return 0;
}

static void print_all(const struct guest *guest)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(guest->ops); i++)
		if (guest->ops[i].deadline)
			printf("op %zu %s %llu %llu %llu %d\n", i, names[guest->ops[i].kind],
			       (unsigned long long)guest->ops[i].deadline,
			       (unsigned long long)guest->ops[i].delay,
			       (unsigned long long)guest->ops[i].time, guest->ops[i].verdict);
	for (i = 0; i < DRAWS; i++)
		printf("draw %lld\n", (long long)guest->draws[i]);
	for (i = 0; i < KINDS; i++)
		printf("stat %s %llu\n", names[i], (unsigned long long)guest->redrawn[i]);
	printf("traced %u\n", guest->traced);
	printf("went-on %llu\n", (unsigned long long)guest->went_on);
}

int main(void)
{
	static struct guest guest;

	CHECK_EQ(0, set_up(&guest));
	CHECK_EQ(0, wait_for_host(&guest));
	CHECK_EQ(0, draw(&guest));
	CHECK_EQ(0, read_stats(&guest));
	CHECK_EQ(0, read_trace(&guest));
	CHECK_EQ(0, collect(&guest));
	print_all(&guest);
	return 0;
}
