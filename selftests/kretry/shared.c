// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Requests that are no ioctl: an ioctl of this device has a magic above them. */
enum request {
	REQUEST_EXIT,
	REQUEST_CLOSE,
	REQUEST_OPEN,
	REQUEST_EXEC,
};

struct message {
	unsigned long command;
	int ret;
	unsigned int size;
	unsigned char arg[1024];
};

/* -------- the process of a party -------- */

static int party_exec(int socket, int fd)
{
	char first[16], second[16];

	snprintf(first, sizeof(first), "%d", socket);
	snprintf(second, sizeof(second), "%d", fd);
	if (fcntl(socket, F_SETFD, 0) || fcntl(fd, F_SETFD, 0))
		return -errno;
	execl("/proc/self/exe", "party", "--party", first, second, NULL);
	return -errno;
}

static int party_obey(struct message *message, int socket, int *fd)
{
	switch (message->command) {
	case REQUEST_CLOSE:
		return close(*fd) ? -errno : 0;
	case REQUEST_OPEN:
		*fd = kt_open();
		return *fd < 0 ? *fd : 0;
	case REQUEST_EXEC:
		return party_exec(socket, *fd);
	}
	return kt_ioctl(*fd, message->command, message->size ? message->arg : NULL);
}

static void party_serve(int socket, int fd)
{
	struct message message;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(socket, &message, sizeof(message), 0) == sizeof(message)) {
		if (message.command == REQUEST_EXIT)
			break;
		message.ret = party_obey(&message, socket, &fd);
		if (send(socket, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
			break;
	}
	_exit(0);
}

/* What comes after an exec starts with the answer to it. */
void kt_party_main(int argc, char **argv)
{
	struct message message = { .command = REQUEST_EXEC };

	if (argc != 4 || strcmp(argv[1], "--party"))
		return;
	if (send(atoi(argv[2]), &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
		_exit(1);
	party_serve(atoi(argv[2]), atoi(argv[3]));
}

/* Open files of whoever started the party would live as long as it. */
static void party_close_all_but(int first, int second)
{
	int fd, most = (int)sysconf(_SC_OPEN_MAX);

	for (fd = STDERR_FILENO + 1; fd < most; fd++)
		if (fd != first && fd != second)
			close(fd);
}

static int party_request(struct kt_party *party, unsigned long command, void *arg, size_t size)
{
	struct message message = { .command = command, .size = (unsigned int)size };

	if (size > sizeof(message.arg))
		abort();
	if (size)
		memcpy(message.arg, arg, size);
	if (send(party->socket, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message) ||
	    recv(party->socket, &message, sizeof(message), 0) != sizeof(message))
		return -EPIPE;
	if (size)
		memcpy(arg, message.arg, size);
	return message.ret;
}

/* -------- parties -------- */

int kt_here(struct kt_party *party)
{
	memset(party, 0, sizeof(*party));
	party->socket = -1;
	party->fd = kt_open();
	return party->fd < 0 ? party->fd : 0;
}

static int party_start(struct kt_party *party, uid_t uid, int fd)
{
	int ends[2];

	memset(party, 0, sizeof(*party));
	party->fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	fflush(NULL);
	party->pid = fork();
	if (party->pid < 0)
		return -errno;
	if (!party->pid) {
		party_close_all_but(ends[1], fd);
		if (uid && kt_become(uid))
			_exit(1);
		party_serve(ends[1], fd);
	}
	close(ends[1]);
	party->socket = ends[0];
	return 0;
}

int kt_there(struct kt_party *party, uid_t uid)
{
	int ret = party_start(party, uid, -1);

	return ret ? ret : kt_party_open(party);
}

int kt_there_with(struct kt_party *party, int fd)
{
	return party_start(party, 0, fd);
}

int kt_call(struct kt_party *party, unsigned long command, void *arg, size_t size)
{
	if (!party->pid)
		return kt_ioctl(party->fd, command, arg);
	return party_request(party, command, arg, size);
}

int kt_party_close(struct kt_party *party)
{
	return party_request(party, REQUEST_CLOSE, NULL, 0);
}

int kt_party_open(struct kt_party *party)
{
	return party_request(party, REQUEST_OPEN, NULL, 0);
}

int kt_party_exec(struct kt_party *party)
{
	return party_request(party, REQUEST_EXEC, NULL, 0);
}

void kt_leave(struct kt_party *party)
{
	struct message message = { .command = REQUEST_EXIT };

	if (party->pid) {
		send(party->socket, &message, sizeof(message), MSG_NOSIGNAL);
		kt_wait(party->pid);
		close(party->socket);
	} else {
		close(party->fd);
	}
}

void kt_kill(struct kt_party *party)
{
	kill(party->pid, SIGKILL);
	kt_wait(party->pid);
	close(party->socket);
}

/* -------- policies -------- */

void kt_name(struct kretry_policy *policy, const char *name)
{
	memset(policy->name, 0, sizeof(policy->name));
	memcpy(policy->name, name, strlen(name));
}

void kt_budget(struct kretry_policy *policy, uint64_t tokens)
{
	policy->budget.capacity_utok = tokens * KRETRY_UTOK;
	policy->budget.initial_utok = tokens * KRETRY_UTOK;
	policy->budget.cost_transient_utok = KRETRY_UTOK;
	policy->budget.cost_throttled_utok = KRETRY_UTOK;
	policy->budget.cost_unknown_utok = KRETRY_UTOK;
}

void kt_breaker(struct kretry_policy *policy, unsigned int consecutive, uint64_t open_ns,
		unsigned int probes)
{
	policy->breaker.consecutive = consecutive;
	policy->breaker.open_ns = open_ns;
	policy->breaker.open_cap_ns = open_ns;
	policy->breaker.probes = probes;
	policy->breaker.probe_timeout_ns = 10 * SEC;
}

int kt_party_create(struct kt_party *party, const struct kretry_policy *policy)
{
	struct kretry_policy copy = *policy;
	int ret = kt_call(party, KRETRY_IOC_POLICY_CREATE, &copy, sizeof(copy));

	return ret ? ret : (int)copy.id;
}

static int reference(struct kt_party *party, unsigned long command, const char *name, uint32_t id,
		     uint32_t open_flags)
{
	struct kretry_policy_ref ref = {
		.size = sizeof(ref), .id = id, .open_flags = open_flags,
	};
	int ret;

	memcpy(ref.name, name, strlen(name));
	ret = kt_call(party, command, &ref, sizeof(ref));
	return ret ? ret : (int)ref.id;
}

int kt_party_named(struct kt_party *party, const char *name, uint32_t open_flags)
{
	return reference(party, KRETRY_IOC_POLICY_OPEN, name, 0, open_flags);
}

int kt_party_unlink(struct kt_party *party, const char *name, uint32_t open_flags)
{
	return reference(party, KRETRY_IOC_POLICY_UNLINK, name, 0, open_flags);
}

int kt_party_forget(struct kt_party *party, uint32_t id)
{
	int ret = reference(party, KRETRY_IOC_POLICY_CLOSE, "", id, 0);

	return ret == (int)id ? 0 : ret;
}

int kt_list(int fd, const char *name, struct kretry_policy_entry *entry)
{
	static struct kretry_policy_entry entries[8192];
	struct kretry_policy_list list = {
		.size = sizeof(list), .entry_size = sizeof(entries[0]),
		.entries = (uintptr_t)entries, .count = ARRAY_LEN(entries),
	};
	int ret = kt_ioctl(fd, KRETRY_IOC_POLICY_LIST, &list);
	unsigned int i;

	memset(entry, 0, sizeof(*entry));
	if (ret)
		return ret;
	for (i = 0; i < list.count && i < ARRAY_LEN(entries); i++)
		if (!strcmp((char *)entries[i].name, name))
			*entry = entries[i];
	return (int)list.count;
}

/* -------- ops -------- */

int kt_report(struct kt_party *party, struct kretry_op *op, unsigned int event)
{
	int ret;

	op->event = (__u8)event;
	ret = kt_call(party, KRETRY_IOC_STEP, op, sizeof(*op));
	return ret ? ret : op->verdict;
}

int kt_begin(struct kt_party *party, uint32_t policy, uint64_t key, struct kretry_op *op)
{
	*op = kt_op(policy, 0);
	op->key = key;
	return kt_report(party, op, KRETRY_EVENT_BEGIN);
}

int kt_event(struct kt_party *party, uint32_t policy, uint64_t key, unsigned int event)
{
	struct kretry_op op = kt_op(policy, 0);

	op.key = key;
	return kt_report(party, &op, event);
}

int kt_fail(struct kt_party *party, uint32_t policy, uint64_t key, unsigned int count)
{
	struct kretry_op op;
	int granted = 0;

	while (count--) {
		kt_begin(party, policy, key, &op);
		granted += kt_report(party, &op, KRETRY_EVENT_TRANSIENT) == KRETRY_RETRY;
	}
	return granted;
}

int kt_spend(struct kt_party *party, uint32_t policy, uint64_t key)
{
	int granted = 0, verdict;

	while ((verdict = kt_event(party, policy, key, KRETRY_EVENT_TRANSIENT)) == KRETRY_RETRY)
		granted++;
	return verdict == KRETRY_STOP_BUDGET ? granted : -EIO;
}

int64_t kt_many(struct kt_party *party, uint32_t policy, uint64_t key, unsigned int event,
		unsigned int count, unsigned int verdict)
{
	struct kretry_op ops[512];
	unsigned int now, i;
	int64_t got = 0;

	for (; count; count -= now) {
		now = count < ARRAY_LEN(ops) ? count : (unsigned int)ARRAY_LEN(ops);
		for (i = 0; i < now; i++) {
			ops[i] = kt_op(policy, event);
			ops[i].key = key;
		}
		if (kt_batch(party->fd, ops, now) != (int)now)
			return -EIO;
		for (i = 0; i < now; i++)
			got += ops[i].verdict == verdict;
	}
	return got;
}

/* -------- state -------- */

static struct kretry_stat stat_of(struct kt_party *party, uint32_t policy, uint32_t flags,
				  uint64_t key)
{
	struct kretry_stat stat = {
		.size = sizeof(stat), .policy = policy, .flags = flags, .key = key,
	};

	if (kt_call(party, KRETRY_IOC_STAT, &stat, sizeof(stat)))
		memset(&stat, 0, sizeof(stat));
	return stat;
}

struct kretry_stat kt_stat(struct kt_party *party, uint32_t policy)
{
	return stat_of(party, policy, 0, 0);
}

struct kretry_stat kt_stat_key(struct kt_party *party, uint32_t policy, uint64_t key)
{
	return stat_of(party, policy, KRETRY_SCOPE_KEY, key);
}

static int force(struct kt_party *party, uint32_t policy, uint32_t flags, uint64_t key,
		 unsigned int mode)
{
	struct kretry_force force = {
		.size = sizeof(force), .policy = policy, .flags = flags, .key = key, .mode = mode,
	};

	return kt_call(party, KRETRY_IOC_FORCE, &force, sizeof(force));
}

int kt_force(struct kt_party *party, uint32_t policy, unsigned int mode)
{
	return force(party, policy, 0, 0, mode);
}

int kt_force_key(struct kt_party *party, uint32_t policy, uint64_t key, unsigned int mode)
{
	return force(party, policy, KRETRY_SCOPE_KEY, key, mode);
}

void kt_sleep_open(struct kt_party *party, uint32_t policy, uint64_t key)
{
	kt_sleep_until(CLOCK_MONOTONIC, kt_stat_key(party, policy, key).half_open_ns);
}
