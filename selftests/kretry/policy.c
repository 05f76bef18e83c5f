// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Registering policies: what goes in comes out, ids, degenerate parameters, fdinfo, permissions. */
#include "harness.h"

#include <fcntl.h>
#include <sys/stat.h>

FIXTURE(policy) {
	int fd;
};

FIXTURE_SETUP(policy)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(policy)
{
	close(self->fd);
}

/* One of each strategy, with every field that it may have. */
static const struct kretry_backoff backoffs[] = {
	{ .strategy = KRETRY_FIXED, .base_ns = 7, .cap_ns = KRETRY_NS_MAX },
	{ .strategy = KRETRY_LINEAR, .jitter = KRETRY_JITTER_FULL, .base_ns = SEC,
	  .base_throttled_ns = 2 * SEC, .cap_ns = 3600 * SEC, .floor_ns = 5 },
	{ .strategy = KRETRY_EXPONENTIAL, .jitter = KRETRY_JITTER_EQUAL, .base_ns = 100 * MSEC,
	  .multiplier_ppm = 1500000, .cap_ns = 20 * SEC },
	{ .strategy = KRETRY_EXPONENTIAL, .jitter = KRETRY_JITTER_PROPORTIONAL, .base_ns = 1,
	  .jitter_ppm = KRETRY_PPM, .multiplier_ppm = 0xffffffff, .cap_ns = 20 * SEC },
	{ .strategy = KRETRY_FIXED, .jitter = KRETRY_JITTER_ADDITIVE, .jitter_ppm = 0xffffffff,
	  .cap_ns = 20 * SEC },
	{ .strategy = KRETRY_DECORRELATED, .base_ns = SEC, .cap_ns = 10 * SEC, .floor_ns = 1 },
	{ .strategy = KRETRY_SLOTTED, .base_ns = 51200, .cap_ns = 1023 * 51200ULL },
	{ .strategy = KRETRY_TABLE, .table_len = 4, .table_ns = { 0, 1, 1, KRETRY_NS_MAX },
	  .cap_ns = SEC },
};

static void fill(struct kretry_policy *policy, size_t row)
{
	kt_policy(policy);
	policy->flags = KRETRY_POLICY_ASSUME_IDEMPOTENT | KRETRY_POLICY_HINT_CLAMP |
			KRETRY_POLICY_HINT_MAX | KRETRY_POLICY_HINT_EXACT;
	policy->clockid = row % 2 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
	policy->max_retries = row;
	policy->max_elapsed_ns = KRETRY_NS_MAX - row;
	policy->reset_after_ns = row * SEC;
	policy->slack_ns = row * MSEC;
	policy->hint_limit_ns = 60 * SEC + row;
	policy->hint_over_own_ns = row;
	policy->backoff = backoffs[row];
}

TEST_F(policy, create_then_get_each_strategy_same_parameters)
{
	struct kretry_policy policy, got, other;
	size_t i;
	int id;

	for (i = 0; i < ARRAY_LEN(backoffs); i++) {
		fill(&policy, i);
		id = kt_create(self->fd, &policy);
		ASSERT_LT(0, id)
			TH_LOG("row %zu", i);
		ASSERT_EQ(0, kt_get(self->fd, id, &got));
		EXPECT_EQ(0, memcmp(&policy, &got, sizeof(got)))
			TH_LOG("row %zu", i);
		fill(&other, (i + 1) % ARRAY_LEN(backoffs));
		EXPECT_NE(0, memcmp(&other.backoff, &got.backoff, sizeof(got.backoff)));
	}
	EXPECT_EQ((int)ARRAY_LEN(backoffs), kt_policies(self->fd));
}

TEST_F(policy, create_only_id_of_the_struct_changes)
{
	struct kretry_policy policy, before;

	fill(&policy, 2);
	policy.id = 0xa5a5a5a5;
	before = policy;
	ASSERT_LT(0, kt_create(self->fd, &policy));
	EXPECT_NE(before.id, policy.id);
	before.id = policy.id;
	EXPECT_EQ(0, memcmp(&before, &policy, sizeof(before)));
}

TEST_F(policy, create_thousand_times_ids_not_reused)
{
	unsigned char seen[4096] = { 0 };
	struct kretry_policy policy;
	int i, id, kept = 0;

	kt_policy(&policy);
	for (i = 0; i < 1000; i++) {
		id = kt_create(self->fd, &policy);
		ASSERT_LE(1, id);
		ASSERT_GT(4096, id);
		EXPECT_EQ(0, seen[id]);
		seen[id] = 1;
		if (i % 10 == 0) {
			kept++;
			continue;
		}
		ASSERT_EQ(0, kt_close(self->fd, id));
	}
	EXPECT_EQ(kept, kt_policies(self->fd));
}

TEST_F(policy, close_twice_enoent)
{
	struct kretry_op op, before;
	struct kretry_policy policy, got;
	int id;

	kt_policy(&policy);
	id = kt_create(self->fd, &policy);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, kt_close(self->fd, id));
	EXPECT_EQ(-ENOENT, kt_close(self->fd, id));
	EXPECT_EQ(-ENOENT, kt_get(self->fd, id, &got));
	before = kt_op(id, KRETRY_EVENT_TRANSIENT);
	op = before;
	EXPECT_EQ(-ENOENT, kt_step(self->fd, &op));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(policy, get_unknown_id_enoent_nothing_written)
{
	static const uint32_t ids[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff };
	struct kretry_policy got, before;
	size_t i;

	memset(&before, POISON, sizeof(before));
	before.size = sizeof(before);
	for (i = 0; i < ARRAY_LEN(ids); i++) {
		before.id = ids[i];
		EXPECT_EQ(-ENOENT, kt_get(self->fd, ids[i], &got));
		EXPECT_EQ(0, memcmp(&before, &got, sizeof(got)));
	}
}

TEST_F(policy, id_on_another_open_file_enoent)
{
	struct kretry_policy policy, got;
	int other = kt_open(), id;

	ASSERT_LE(0, other);
	kt_policy(&policy);
	for (id = 0; id < 10; id++)
		ASSERT_LT(0, kt_create(self->fd, &policy));
	id = policy.id;
	EXPECT_EQ(-ENOENT, kt_get(other, id, &got));
	EXPECT_EQ(-ENOENT, kt_delay(other, id, 0));
	EXPECT_EQ(-ENOENT, kt_close(other, id));
	EXPECT_EQ(100 * MSEC, kt_delay(self->fd, id, 0));
}

/*
 * Each of base, cap and jitter at its edge is refused or gives delays within [0, cap]: nothing
 * divides by zero or wraps.
 */
TEST_F(policy, degenerate_parameters_einval_or_within_cap)
{
	static const uint64_t bases[] = { 0, 1, 2, SEC, KRETRY_NS_MAX };
	static const uint64_t caps[] = { 0, 1, SEC - 1, SEC, KRETRY_NS_MAX };
	static const uint32_t attempts[] = { 0, 1, 62, 63, 64, 1023, 0x7fffffff, 0xfffffffe };
	struct kretry_policy policy;
	unsigned int made = 0, i, strategy, jitter;
	int64_t delay;
	int id;

	for (i = 0; i < ARRAY_LEN(bases) * ARRAY_LEN(caps) * 6 * 5 * 2; i++) {
		strategy = KRETRY_FIXED + i % 6;
		jitter = i / 6 % 5;
		kt_policy(&policy);
		policy.backoff = (struct kretry_backoff) {
			.strategy = strategy, .jitter = jitter,
			.cap_ns = caps[i / 60 % ARRAY_LEN(caps)],
			.base_ns = strategy == KRETRY_TABLE ? 0 : bases[i / 300],
			.table_ns[0] = strategy == KRETRY_TABLE ? bases[i / 300] : 0,
			.table_len = strategy == KRETRY_TABLE,
			.multiplier_ppm = strategy == KRETRY_EXPONENTIAL ? KRETRY_PPM + i % 3 : 0,
			.jitter_ppm =
				jitter >= KRETRY_JITTER_PROPORTIONAL ? i / 30 % 2 * KRETRY_PPM : 0,
		};
		id = kt_create(self->fd, &policy);
		if (id < 0) {
			EXPECT_EQ(-EINVAL, id);
			continue;
		}
		made++;
		for (size_t j = 0; j < ARRAY_LEN(attempts); j++) {
			delay = kt_delay(self->fd, id, attempts[j]);
			EXPECT_LE(0, delay);
			EXPECT_GE(policy.backoff.cap_ns, (uint64_t)delay);
		}
		EXPECT_EQ(0, kt_close(self->fd, id));
	}
	EXPECT_LT(300, made);
}

static void read_fdinfo(int fd, char *text, size_t size)
{
	char path[64];
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	memset(text, 0, size);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0 || read(info, text, size - 1) < 0)
		text[0] = '\0';
	close(info);
}

TEST_F(policy, fdinfo_one_line_for_each_policy)
{
	struct kretry_policy policy;
	char text[4096], line[128];
	int first, second;

	kt_policy(&policy);
	policy.max_retries = 7;
	first = kt_create(self->fd, &policy);
	kt_exponential(&policy, MSEC, SEC);
	policy.clockid = CLOCK_BOOTTIME;
	policy.backoff.jitter = KRETRY_JITTER_FULL;
	second = kt_create(self->fd, &policy);
	read_fdinfo(self->fd, text, sizeof(text));
	snprintf(line, sizeof(line),
		 "policy:\t%d clock:monotonic strategy:fixed jitter:none max_retries:7\n", first);
	EXPECT_NE(NULL, strstr(text, line))
		TH_LOG("no line %sin:\n%s", line, text);
	snprintf(line, sizeof(line), "policy:\t%d clock:boottime strategy:exponential jitter:full "
		 "max_retries:4294967295\n", second);
	EXPECT_NE(NULL, strstr(text, line))
		TH_LOG("no line %sin:\n%s", line, text);
	EXPECT_EQ(0, kt_close(self->fd, first));
	EXPECT_EQ(1, kt_policies(self->fd));
}

TEST_F(policy, fdinfo_ten_thousand_bytes_of_policies_all_listed)
{
	struct kretry_policy policy;
	int i;

	kt_policy(&policy);
	for (i = 0; i < 1000; i++)
		ASSERT_LT(0, kt_create(self->fd, &policy));
	EXPECT_EQ(1000, kt_policies(self->fd));
}

TEST_F(policy, node_mode_is_0666_owned_by_root)
{
	struct stat st;

	ASSERT_EQ(0, stat(DEVICE, &st));
	EXPECT_EQ(S_IFCHR | 0666, st.st_mode);
	EXPECT_EQ(0, st.st_uid);
	EXPECT_EQ(0, st.st_gid);
}

static int use_as_user(void *arg)
{
	struct kretry_policy policy;
	int fd, id;

	(void)arg;
	CHECK_EQ(0, kt_become(1000));
	fd = kt_open();
	CHECK(fd >= 0);
	kt_policy(&policy);
	id = kt_create(fd, &policy);
	CHECK(id > 0);
	CHECK_EQ(100 * MSEC, kt_delay(fd, id, 0));
	return 0;
}

TEST_F(policy, unprivileged_user_works)
{
	EXPECT_EQ(0, kt_child(use_as_user, NULL));
}

TEST_HARNESS_MAIN
