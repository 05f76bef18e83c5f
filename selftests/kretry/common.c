// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

int kt_open(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int kt_ioctl(int fd, unsigned long command, const void *arg)
{
	int ret = ioctl(fd, command, arg);

	return ret < 0 ? -errno : ret;
}

int kt_info(int fd, struct kretry_info *info)
{
	memset(info, POISON, sizeof(*info));
	info->size = sizeof(*info);
	return kt_ioctl(fd, KRETRY_IOC_INFO, info);
}

int kt_create(int fd, struct kretry_policy *policy)
{
	int ret = kt_ioctl(fd, KRETRY_IOC_POLICY_CREATE, policy);

	return ret ? ret : (int)policy->id;
}

int kt_get(int fd, uint32_t id, struct kretry_policy *policy)
{
	memset(policy, POISON, sizeof(*policy));
	policy->size = sizeof(*policy);
	policy->id = id;
	return kt_ioctl(fd, KRETRY_IOC_POLICY_GET, policy);
}

int kt_close(int fd, uint32_t id)
{
	struct kretry_policy_ref ref = { .size = sizeof(ref), .id = id };

	return kt_ioctl(fd, KRETRY_IOC_POLICY_CLOSE, &ref);
}

int kt_step(int fd, struct kretry_op *op)
{
	return kt_ioctl(fd, KRETRY_IOC_STEP, op);
}

int kt_batch(int fd, struct kretry_op *ops, unsigned int count)
{
	struct kretry_batch batch = {
		.size = sizeof(batch),
		.ops = (uintptr_t)ops,
		.count = count,
		.op_size = sizeof(*ops),
	};

	return kt_ioctl(fd, KRETRY_IOC_STEP_BATCH, &batch);
}

int kt_shutdown(int fd)
{
	return kt_ioctl(fd, KRETRY_IOC_SHUTDOWN, NULL);
}

int kt_policies(int fd)
{
	char path[64], line[256];
	int count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file))
		count += !strncmp(line, "policy:\t", 8);
	fclose(file);
	return count;
}

void kt_policy(struct kretry_policy *policy)
{
	memset(policy, 0, sizeof(*policy));
	policy->size = sizeof(*policy);
	policy->clockid = CLOCK_MONOTONIC;
	policy->max_retries = KRETRY_NO_LIMIT;
	policy->backoff.strategy = KRETRY_FIXED;
	policy->backoff.base_ns = 100 * MSEC;
	policy->backoff.cap_ns = 10 * SEC;
}

void kt_exponential(struct kretry_policy *policy, uint64_t base_ns, uint64_t cap_ns)
{
	kt_policy(policy);
	policy->backoff.strategy = KRETRY_EXPONENTIAL;
	policy->backoff.multiplier_ppm = 2 * KRETRY_PPM;
	policy->backoff.base_ns = base_ns;
	policy->backoff.cap_ns = cap_ns;
}

struct kretry_op kt_op(uint32_t policy, unsigned int event)
{
	struct kretry_op op = { .policy = policy, .event = (__u8)event };

	return op;
}

int64_t kt_delay(int fd, uint32_t policy, uint32_t attempt)
{
	struct kretry_op op = kt_op(policy, KRETRY_EVENT_TRANSIENT);
	int ret;

	op.attempt = attempt;
	ret = kt_step(fd, &op);
	if (ret)
		return ret;
	return op.verdict == KRETRY_RETRY ? (int64_t)op.delay_ns : -ECANCELED;
}

void *kt_page_end(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), span = (len + page - 1) / page * page;
	char *memory = mmap(NULL, span + page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + span, page, PROT_NONE))
		abort();
	memset(memory, POISON, span);
	return memory + span - len;
}

void *kt_read_only(const void *from, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), span = (len + page - 1) / page * page;
	void *memory = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	memcpy(memory, from, len);
	if (mprotect(memory, span, PROT_READ))
		abort();
	return memory;
}

bool kt_all(const void *memory, size_t len, unsigned char value)
{
	const unsigned char *bytes = memory;
	size_t i;

	for (i = 0; i < len; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

int kt_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int kt_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(fn(arg));
	return kt_wait(pid);
}

int kt_become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return -errno;
	return 0;
}

int kt_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

struct in_namespace {
	int64_t seconds;
	int (*fn)(void *arg);
	void *arg;
};

/* Needs a child: a new time namespace is entered by those born after. */
static int enter(void *arg)
{
	const struct in_namespace *in = arg;
	char offsets[128];

	CHECK_EQ(0, unshare(CLONE_NEWTIME));
	snprintf(offsets, sizeof(offsets), "monotonic %lld 0\nboottime %lld 500\n",
		 (long long)in->seconds, (long long)in->seconds + 7);
	CHECK_EQ(0, kt_write_file("/proc/self/timens_offsets", offsets));
	return kt_child(in->fn, in->arg);
}

int kt_in_time_namespace(int64_t seconds, int (*fn)(void *arg), void *arg)
{
	struct in_namespace in = { seconds, fn, arg };

	return kt_child(enter, &in);
}

int64_t kt_slab_bytes(const char *path)
{
	char name[256];
	long long value, found = -1;
	FILE *file;

	snprintf(name, sizeof(name), "%s/memory.stat", path);
	file = fopen(name, "re");
	if (!file)
		return -errno;
	while (fscanf(file, "%63s %lld", name, &value) == 2)
		if (!strcmp(name, "slab"))
			found = value;
	fclose(file);
	return found;
}

int64_t kt_read_number(const char *path)
{
	long long number = -1;
	FILE *file = fopen(path, "re");

	if (!file)
		return -errno;
	if (fscanf(file, "%lld", &number) != 1)
		number = -EINVAL;
	fclose(file);
	return number;
}

int kt_load(const char *parameters)
{
	int fd = open(MODULE_FILE, O_RDONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (syscall(SYS_finit_module, fd, parameters, 0))
		ret = -errno;
	close(fd);
	return ret;
}

int kt_unload(void)
{
	return syscall(SYS_delete_module, MODULE_NAME, O_NONBLOCK) ? -errno : 0;
}

int kt_ensure_loaded(void)
{
	int ret = kt_load("");

	return ret == -EEXIST ? 0 : ret;
}

uint64_t kt_now(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		abort();
	return (uint64_t)ts.tv_sec * SEC + (uint64_t)ts.tv_nsec;
}

void kt_sleep_until(clockid_t clock, uint64_t deadline_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / SEC),
		.tv_nsec = (long)(deadline_ns % SEC),
	};

	while (clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static int move_time_of_day(int64_t days)
{
	struct timespec ts;

	CHECK_EQ(0, clock_gettime(CLOCK_REALTIME, &ts));
	ts.tv_sec += days * 86400;
	CHECK_EQ(0, clock_settime(CLOCK_REALTIME, &ts));
	return 0;
}

int kt_jump_time_of_day(void)
{
	kt_sleep(2 * SEC);
	CHECK_EQ(0, move_time_of_day(1));
	kt_sleep(3 * SEC);
	CHECK_EQ(0, move_time_of_day(-2));
	kt_sleep(2 * SEC);
	CHECK_EQ(0, move_time_of_day(1));
	return 0;
}
