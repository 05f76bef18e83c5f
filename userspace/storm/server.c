// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The server: TCP on io_uring, on 127.0.0.1. It serves STORM_CAPACITY requests in each aligned bin
 * and refuses the rest at once.
 *
 * How the outage comes to be: after some usual traffic the server stalls. It goes on to take
 * requests and answers none, until each client waits for an answer. At the edge of the next bin,
 * T0, it resets all these calls and closes its listening socket. STORM_OUTAGE_NS later it listens
 * again. So every client has just one call in flight at T0, wherever its think time had put it, and
 * they all learn of the outage in the same instant, as the clients of a crashed server do.
 */
#include "storm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS	(2 * STORM_CLIENTS)

enum phase { PHASE_WARM, PHASE_STALLED, PHASE_DOWN, PHASE_UP };

enum action { ACTION_PHASE, ACTION_ACCEPT, ACTION_RECEIVE, ACTION_SERVE, ACTION_SEND };

struct connection {
	int fd;				/* -1: free */
	bool held;
	uint8_t answer;
	struct storm_request request;
	struct __kernel_timespec served_at;
};

struct server {
	struct storm_run *run;
	struct io_uring ring;
	enum phase phase;
	struct __kernel_timespec phase_ends;
	int listener;
	unsigned int held;
	uint64_t bin;			/* the bin that served counts in */
	unsigned int served;
	struct connection connections[CONNECTIONS];
};

static struct io_uring_sqe *get_sqe(struct server *s)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);

	if (!sqe) {
		storm_check(io_uring_submit(&s->ring), "server: io_uring_submit");
		sqe = io_uring_get_sqe(&s->ring);
	}
	if (!sqe)
		storm_die("server: the submission queue is full");
	return sqe;
}

/* After the prep function: some versions of liburing clear user_data in it. */
static void set_action(struct io_uring_sqe *sqe, enum action action, unsigned int index)
{
	io_uring_sqe_set_data64(sqe, action | (uint64_t)index << 8);
}

/* Bound, but not yet listening: connects are refused and no client can be given the port. */
static void bind_listener(struct server *s)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(s->run->port),
	};
	socklen_t length = sizeof(address);
	int on = 1;

	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->listener < 0 ||
	    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(s->listener, (struct sockaddr *)&address, length) ||
	    getsockname(s->listener, (struct sockaddr *)&address, &length))
		storm_die("server: cannot bind 127.0.0.1:%u: %s", s->run->port, strerror(errno));
	s->run->port = ntohs(address.sin_port);
}

static void arm_accept(struct server *s)
{
	struct io_uring_sqe *sqe = get_sqe(s);

	io_uring_prep_accept(sqe, s->listener, NULL, NULL, SOCK_CLOEXEC);
	set_action(sqe, ACTION_ACCEPT, (unsigned int)s->phase);
}

static void start_listening(struct server *s)
{
	if (listen(s->listener, CONNECTIONS))
		storm_die("server: cannot listen: %s", strerror(errno));
	arm_accept(s);
}

static void arm_phase_end(struct server *s, uint64_t when_ns)
{
	struct io_uring_sqe *sqe = get_sqe(s);

	kretry_prep_sleep(sqe, &s->phase_ends, CLOCK_MONOTONIC, when_ns);
	set_action(sqe, ACTION_PHASE, 0);
}

static void arm_receive(struct server *s, unsigned int index)
{
	struct connection *c = &s->connections[index];
	struct io_uring_sqe *sqe = get_sqe(s);

	io_uring_prep_recv(sqe, c->fd, &c->request, sizeof(c->request), MSG_WAITALL);
	set_action(sqe, ACTION_RECEIVE, index);
}

static void send_answer(struct server *s, unsigned int index)
{
	struct connection *c = &s->connections[index];
	struct io_uring_sqe *sqe = get_sqe(s);

	io_uring_prep_send(sqe, c->fd, &c->answer, 1, MSG_NOSIGNAL);
	set_action(sqe, ACTION_SEND, index);
}

static void serve(struct server *s, unsigned int index, uint64_t now)
{
	struct connection *c = &s->connections[index];
	struct io_uring_sqe *sqe = get_sqe(s);

	kretry_prep_sleep(sqe, &c->served_at, CLOCK_MONOTONIC, now + STORM_SERVICE_NS);
	set_action(sqe, ACTION_SERVE, index);
}

static void close_connection(struct connection *c)
{
	close(c->fd);
	c->fd = -1;
	c->held = false;
}

/* With a linger time of 0 close sends a RST. */
static void reset_connection(struct connection *c)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	if (setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		storm_die("server: SO_LINGER: %s", strerror(errno));
	close_connection(c);
}

static enum storm_answer decide(struct server *s, uint64_t now)
{
	uint64_t bin = now / STORM_BIN_NS;

	if (s->phase == PHASE_STALLED)
		return STORM_HELD;
	if (bin != s->bin) {
		s->bin = bin;
		s->served = 0;
	}
	if (s->served == STORM_CAPACITY)
		return STORM_THROTTLED;
	s->served++;
	return STORM_SERVED;
}

static void hold(struct server *s, struct connection *c, uint64_t now)
{
	c->held = true;
	if (++s->held < STORM_CLIENTS)
		return;
	/* One bin in between, so that the last client surely waits for its answer. */
	s->run->t0_ns = (now / STORM_BIN_NS + 2) * STORM_BIN_NS;
	arm_phase_end(s, s->run->t0_ns);
}

static void on_request(struct server *s, unsigned int index, int res)
{
	struct connection *c = &s->connections[index];
	uint64_t now = kretry_now(CLOCK_MONOTONIC);
	struct storm_record record = { .time_ns = now };

	if (res != sizeof(c->request)) {
		close_connection(c);
		return;
	}
	c->answer = (uint8_t)decide(s, now);
	record.request = c->request;
	record.answer = c->answer;
	storm_log(&s->run->server, &record);
	if (c->answer == STORM_HELD)
		hold(s, c, now);
	else if (c->answer == STORM_SERVED)
		serve(s, index, now);
	else
		send_answer(s, index);
}

static void on_accept(struct server *s, int fd, enum phase armed_in)
{
	struct connection *c;
	unsigned int i;

	if (s->phase == PHASE_DOWN || (armed_in < PHASE_DOWN && s->phase == PHASE_UP)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fd < 0)
		storm_die("server: accept: %s", strerror(-fd));
	for (i = 0; i < CONNECTIONS && s->connections[i].fd >= 0; i++)
		;
	if (i == CONNECTIONS)
		storm_die("server: more than %u connections", CONNECTIONS);
	c = &s->connections[i];
	c->fd = fd;
	arm_receive(s, i);
	arm_accept(s);
}

/* The ring holds a reference for the pending accept, so only shutdown ends the listening. */
static void go_down(struct server *s)
{
	unsigned int i;

	s->phase = PHASE_DOWN;
	shutdown(s->listener, SHUT_RDWR);
	close(s->listener);
	for (i = 0; i < CONNECTIONS; i++)
		if (s->connections[i].held)
			reset_connection(&s->connections[i]);
	s->run->reset_ns = kretry_now(CLOCK_MONOTONIC);
	bind_listener(s);
	arm_phase_end(s, s->run->t0_ns + STORM_OUTAGE_NS);
}

static void on_phase_end(struct server *s)
{
	if (s->phase == PHASE_WARM) {
		s->phase = PHASE_STALLED;
	} else if (s->phase == PHASE_STALLED) {
		go_down(s);
	} else {
		s->phase = PHASE_UP;
		start_listening(s);
		s->run->up_ns = kretry_now(CLOCK_MONOTONIC);
	}
}

static void on_cqe(struct server *s, const struct io_uring_cqe *cqe)
{
	unsigned int index = (unsigned int)(cqe->user_data >> 8);

	switch ((enum action)(cqe->user_data & 0xff)) {
	case ACTION_PHASE:
		on_phase_end(s);
		break;
	case ACTION_ACCEPT:
		on_accept(s, cqe->res, (enum phase)index);
		break;
	case ACTION_RECEIVE:
		on_request(s, index, cqe->res);
		break;
	case ACTION_SERVE:
		send_answer(s, index);
		break;
	case ACTION_SEND:
		close_connection(&s->connections[index]);
		break;
	}
}

static void __attribute__((noreturn)) loop(struct server *s)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen;
	int ret;

	for (;;) {
		ret = io_uring_submit_and_wait(&s->ring, 1);
		if (ret < 0 && ret != -EINTR)
			storm_check(ret, "server: io_uring_submit_and_wait");
		seen = 0;
		io_uring_for_each_cqe(&s->ring, head, cqe) {
			on_cqe(s, cqe);
			seen++;
		}
		io_uring_cq_advance(&s->ring, seen);
	}
}

void storm_server(struct storm_run *run)
{
	static struct server s;
	unsigned int i;

	s.run = run;
	s.phase = PHASE_WARM;
	for (i = 0; i < CONNECTIONS; i++)
		s.connections[i].fd = -1;
	storm_check(io_uring_queue_init(4 * CONNECTIONS, &s.ring, 0),
		    "server: io_uring_queue_init");
	bind_listener(&s);
	start_listening(&s);
	storm_ready(run);
	arm_phase_end(&s, run->start_ns + STORM_WARM_NS);
	loop(&s);
}
