// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One client: think, call, think, call. Each call is an operation of libkretry's scheduler, which
 * sleeps to the deadlines on this process's own ring; connect, send and recv run on the same ring.
 *
 * What is reported: a refused connect is TRANSIENT, a refusal by the server THROTTLED, and a reset
 * after the request was sent UNKNOWN, as the work may have been done. The calls are marked
 * IDEMPOTENT (think of a read), so UNKNOWN is retried like the others.
 */
#include "storm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum action { ACTION_THINK = 1, ACTION_CONNECT, ACTION_SEND, ACTION_RECEIVE };

struct client {
	struct storm_run *run;
	struct storm_log *log;
	struct kretry *kretry;
	struct kretry_sched *sched;
	uint32_t policy;
	uint64_t random;
	bool thinking;
	int fd;
	struct sockaddr_in address;
	struct kretry_task *task;
	struct storm_record record;	/* of the attempt under way */
	uint8_t answer;
};

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint64_t think_time(struct client *c)
{
	double uniform = ((double)(next_random(&c->random) >> 11) + 1.0) / 9007199254740992.0;

	return (uint64_t)(-log(uniform) * (double)STORM_THINK_NS);
}

static struct io_uring_sqe *get_sqe(struct client *c)
{
	struct io_uring_sqe *sqe = kretry_sched_get_sqe(c->sched);

	if (!sqe)
		storm_die("client: the submission queue is full");
	return sqe;
}

static void report(struct client *c, enum storm_answer answer, enum kretry_event event)
{
	close(c->fd);
	c->fd = -1;
	c->record.end_ns = kretry_now(CLOCK_MONOTONIC);
	c->record.answer = (uint8_t)answer;
	storm_log(c->log, &c->record);
	storm_check(kretry_task_report(c->task, event, 0, 0), "client: kretry_task_report");
}

static void on_failure(struct client *c, enum action action, int res)
{
	if (action == ACTION_CONNECT && res == -ECONNREFUSED)
		report(c, STORM_REFUSED, KRETRY_EVENT_TRANSIENT);
	else if (res == -ECONNRESET || res == -EPIPE || (action == ACTION_RECEIVE && res == 0))
		report(c, STORM_RESET, KRETRY_EVENT_UNKNOWN);
	else
		storm_die("client: %s: %s", action == ACTION_CONNECT ? "connect" :
			  action == ACTION_SEND ? "send" : "recv", strerror(-res));
}

static void on_connected(struct client *c)
{
	struct io_uring_sqe *sqe = get_sqe(c);

	io_uring_prep_send(sqe, c->fd, &c->record.request, sizeof(c->record.request), MSG_NOSIGNAL);
	io_uring_sqe_set_data64(sqe, ACTION_SEND);
}

static void on_sent(struct client *c)
{
	struct io_uring_sqe *sqe = get_sqe(c);

	io_uring_prep_recv(sqe, c->fd, &c->answer, 1, 0);
	io_uring_sqe_set_data64(sqe, ACTION_RECEIVE);
}

static void on_answer(struct client *c)
{
	if (c->answer == STORM_SERVED)
		report(c, STORM_SERVED, KRETRY_EVENT_OK);
	else if (c->answer == STORM_THROTTLED)
		report(c, STORM_THROTTLED, KRETRY_EVENT_THROTTLED);
	else
		storm_die("client: no such answer: %u", c->answer);
}

static void on_cqe(const struct io_uring_cqe *cqe, void *arg)
{
	enum action action = (enum action)cqe->user_data;
	struct client *c = arg;

	if (action == ACTION_THINK)
		c->thinking = false;
	else if (cqe->res < 0 || (action == ACTION_RECEIVE && cqe->res == 0))
		on_failure(c, action, cqe->res);
	else if (action == ACTION_CONNECT)
		on_connected(c);
	else if (action == ACTION_SEND)
		on_sent(c);
	else
		on_answer(c);
}

/* Of the policy or, with @flags, of the key. */
static struct kretry_stat look(struct client *c, uint32_t flags)
{
	struct kretry_stat stat = {
		.policy = c->policy,
		.flags = flags,
		.key = flags ? c->run->port : 0,
	};

	storm_check(kretry_stat(c->kretry, &stat), "client: kretry_stat");
	return stat;
}

/*
 * The op of a WAIT is written when the wait begins, and the attempt turns into a probe at its end.
 * But the breaker has one probe in a half-open period, and that admits no other attempt.
 */
static bool is_probe(struct client *c, const struct kretry_op *op)
{
	if (c->run->method != KRETRY_METHOD_WAIT || !c->run->row->policy.breaker.probes)
		return op->flags & KRETRY_OP_PROBE;
	return look(c, KRETRY_SCOPE_KEY).leases > 0;
}

static void check_method(struct client *c)
{
	c->log->method = (uint8_t)kretry_sched_method(c->sched);
	if (c->log->method != c->run->method)
		storm_die("client: it sleeps by %s, not by %s: %s",
			  storm_method_name(c->log->method), storm_method_name(c->run->method),
			  kretry_sched_reason(c->sched));
}

static void on_attempt(struct kretry_task *task, void *arg)
{
	const struct kretry_op *op = kretry_task_op(task);
	struct client *c = arg;
	struct io_uring_sqe *sqe;

	c->task = task;
	c->record.time_ns = kretry_now(CLOCK_MONOTONIC);
	c->record.deadline_ns = op->deadline_ns;
	c->record.delay_ns = op->delay_ns;
	c->record.probe = is_probe(c, op);
	c->record.begun = (uint32_t)look(c, 0).events[KRETRY_EVENT_BEGIN];
	c->record.request.attempt = op->attempt;
	check_method(c);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		storm_die("client: socket: %s", strerror(errno));
	sqe = get_sqe(c);
	io_uring_prep_connect(sqe, c->fd, (struct sockaddr *)&c->address, sizeof(c->address));
	io_uring_sqe_set_data64(sqe, ACTION_CONNECT);
}

static void on_done(struct kretry_task *task, const struct kretry_op *op, void *arg)
{
	struct client *c = arg;
	struct storm_record record = { .request = c->record.request, .answer = STORM_GAVE_UP };

	(void)task;
	if (!kretry_is_stop(op->verdict))
		return;
	record.time_ns = kretry_now(CLOCK_MONOTONIC);
	record.verdict = op->verdict;
	storm_log(c->log, &record);
}

static const struct kretry_task_ops task_ops = { .attempt = on_attempt, .done = on_done };

/* There is no task while the client thinks, so the scheduler would not wait. */
static void think(struct client *c)
{
	struct io_uring *ring = kretry_sched_ring(c->sched);
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe = get_sqe(c);
	int ret;

	kretry_prep_sleep(sqe, &ts, CLOCK_MONOTONIC, kretry_now(CLOCK_MONOTONIC) + think_time(c));
	io_uring_sqe_set_data64(sqe, ACTION_THINK);
	c->thinking = true;
	while (c->thinking) {
		ret = io_uring_submit_and_wait(ring, 1);
		if (ret < 0 && ret != -EINTR)
			storm_check(ret, "client: io_uring_submit_and_wait");
		while (!io_uring_peek_cqe(ring, &cqe)) {
			if (!kretry_sched_cqe(c->sched, cqe))
				on_cqe(cqe, c);
			io_uring_cqe_seen(ring, cqe);
		}
	}
}

/* The key is the same for all clients of a run: they call one dependency. */
static void call(struct client *c)
{
	struct kretry_op op = {
		.policy = c->policy,
		.flags = KRETRY_OP_IDEMPOTENT,
		.key = c->run->port,
	};
	int ret;

	c->record.request.call++;
	ret = kretry_sched_start(c->sched, &op, &task_ops, c, NULL);
	storm_check(ret, "client: kretry_sched_start");
	storm_check(kretry_sched_run(c->sched, on_cqe, c, NULL), "client: kretry_sched_run");
}

static void prepare(struct client *c)
{
	struct kretry_policy policy;

	storm_check(kretry_open(&c->kretry, NULL, c->run->open_flags),
		    "cannot open " KRETRY_DEVICE);
	storm_run_policy(c->run, &policy);
	storm_check(kretry_policy_create(c->kretry, &policy), "cannot register the policy");
	c->policy = policy.id;
	storm_check(kretry_sched_init(&c->sched, c->kretry, NULL, 1), "client: kretry_sched_init");
	storm_check(kretry_sched_set_method(c->sched, c->run->method),
		    "client: kretry_sched_set_method");
	c->run->backend = (uint8_t)kretry_backend(c->kretry);
}

void storm_client(struct storm_run *run, unsigned int id)
{
	struct client c = {
		.run = run,
		.log = &run->clients[id],
		.random = run->seed * STORM_CLIENTS + id,
		.record.request.client = id,
		.address.sin_family = AF_INET,
		.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	prepare(&c);
	storm_ready(run);
	c.address.sin_port = htons(run->port);
	for (;;) {
		think(&c);
		call(&c);
	}
}
