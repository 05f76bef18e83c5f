// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What other users can do: nothing to a private policy, to a global one what its mode says. */
#include "harness.h"
#include "shared.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>

#define ALICE	1000
#define BOB	1001
#define GROUP	1500
#define KEY	7

FIXTURE(isolation) {
	struct kt_party root, alice, bob;
	struct kretry_policy policy;	/* "shop", 10 tokens, opens after 3 failures for an hour */
};

FIXTURE_SETUP(isolation)
{
	ASSERT_EQ(0, kt_here(&self->root));
	ASSERT_EQ(0, kt_there(&self->alice, ALICE));
	ASSERT_EQ(0, kt_there(&self->bob, BOB));
	kt_policy(&self->policy);
	kt_name(&self->policy, "shop");
	kt_budget(&self->policy, 10);
	kt_breaker(&self->policy, 3, 3600 * SEC, 1);
}

FIXTURE_TEARDOWN(isolation)
{
	kt_leave(&self->bob);
	kt_leave(&self->alice);
	kt_leave(&self->root);
}

/* The names that user @uid sees, in a process of its own; its exit status counts them. */
static int count_names(void *arg)
{
	struct kretry_policy_entry entry;
	int fd;

	if (kt_become(*(uid_t *)arg))
		return 100;
	fd = kt_open();
	return fd < 0 ? 101 : kt_list(fd, "shop", &entry);
}

static int names_of(uid_t uid)
{
	return kt_child(count_names, &uid);
}

/* -------- private names -------- */

TEST_F(isolation, private_name_not_seen_opened_or_unlinked_by_another_user)
{
	ASSERT_LT(0, kt_party_create(&self->alice, &self->policy));
	EXPECT_EQ(1, names_of(ALICE));
	EXPECT_EQ(0, names_of(BOB));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->bob, "shop", 0));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->bob, "shop", KRETRY_OPEN_GLOBAL));
	EXPECT_EQ(-ENOENT, kt_party_unlink(&self->bob, "shop", 0));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->root, "shop", 0));
	EXPECT_LT(0, kt_party_named(&self->alice, "shop", 0));
}

/* The same name of two users is two policies: neither drains, trips or closes the other. */
TEST_F(isolation, same_name_of_two_users_nothing_shared)
{
	struct kretry_policy other = self->policy;
	int alice, bob;

	other.max_retries = 2;
	alice = kt_party_create(&self->alice, &self->policy);
	bob = kt_party_create(&self->bob, &other);
	ASSERT_LT(0, alice);
	ASSERT_LT(0, bob);
	EXPECT_EQ(2, kt_fail(&self->bob, bob, KEY, 20));
	EXPECT_EQ(KRETRY_OPEN, kt_stat_key(&self->bob, bob, KEY).state);
	EXPECT_EQ(10 * KRETRY_UTOK, kt_stat_key(&self->alice, alice, KEY).balance_utok);
	EXPECT_EQ(KRETRY_CLOSED, kt_stat_key(&self->alice, alice, KEY).state);
	EXPECT_EQ(KRETRY_GO, kt_event(&self->alice, alice, KEY, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(0, kt_party_unlink(&self->bob, "shop", 0));
	EXPECT_LT(0, kt_party_named(&self->alice, "shop", 0));
}

TEST_F(isolation, ids_of_another_file_reach_nothing)
{
	int alice = kt_party_create(&self->alice, &self->policy), id;
	struct kretry_stat stat;

	ASSERT_LT(0, alice);
	for (id = 0; id < 100; id++) {
		EXPECT_EQ(-ENOENT, kt_event(&self->bob, id, KEY, KRETRY_EVENT_TRANSIENT));
		EXPECT_EQ(-ENOENT, kt_force(&self->bob, id, KRETRY_MODE_FORCED_OPEN));
		stat = kt_stat_key(&self->bob, id, KEY);
		EXPECT_TRUE(kt_all(&stat, sizeof(stat), 0));
	}
	EXPECT_EQ(10 * KRETRY_UTOK, kt_stat_key(&self->alice, alice, KEY).balance_utok);
}

/* Who opened the file decides, not who uses it. */
TEST_F(isolation, file_passed_on_keeps_the_identity_of_its_opener)
{
	struct kt_party passed;
	int fd, id;

	ASSERT_EQ(0, setresuid(-1, ALICE, -1));
	fd = kt_open();
	ASSERT_EQ(0, setresuid(-1, 0, -1));
	ASSERT_LT(0, kt_party_create(&self->alice, &self->policy));
	ASSERT_EQ(0, kt_there_with(&passed, fd));
	close(fd);
	id = kt_party_named(&passed, "shop", 0);
	EXPECT_LT(0, id);
	EXPECT_EQ(1, kt_fail(&passed, id, KEY, 1));
	self->policy.open_flags = KRETRY_OPEN_GLOBAL;
	EXPECT_EQ(-EPERM, kt_party_create(&passed, &self->policy));
	kt_leave(&passed);
}

/* -------- global names -------- */

static int create_global(FIXTURE_DATA(isolation) *self, uint32_t mode)
{
	self->policy.open_flags = KRETRY_OPEN_GLOBAL;
	self->policy.uid = ALICE;
	self->policy.gid = GROUP;
	self->policy.mode = mode;
	return kt_party_create(&self->root, &self->policy);
}

TEST_F(isolation, global_needs_the_capability)
{
	self->policy.open_flags = KRETRY_OPEN_GLOBAL;
	self->policy.mode = 0666;
	EXPECT_EQ(-EPERM, kt_party_create(&self->alice, &self->policy));
	EXPECT_EQ(0, names_of(ALICE));
	EXPECT_LT(0, kt_party_create(&self->root, &self->policy));
	EXPECT_LT(0, kt_party_named(&self->alice, "shop", KRETRY_OPEN_GLOBAL));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->alice, "shop", 0));
}

TEST_F(isolation, global_and_private_of_one_name_are_two)
{
	int global = create_global(self, 0666), private;

	ASSERT_LT(0, global);
	self->policy.open_flags = 0;
	self->policy.uid = 0;
	self->policy.gid = 0;
	self->policy.mode = 0;
	private = kt_party_create(&self->alice, &self->policy);
	ASSERT_LT(0, private);
	EXPECT_EQ(1, kt_fail(&self->alice, private, KEY, 1));
	EXPECT_EQ(10 * KRETRY_UTOK, kt_stat_key(&self->root, global, KEY).balance_utok);
	EXPECT_EQ(2, names_of(ALICE));
	EXPECT_EQ(1, names_of(BOB));
}

TEST_F(isolation, global_shared_by_users_as_one)
{
	int root = create_global(self, 0666), alice, bob;

	ASSERT_LT(0, root);
	alice = kt_party_named(&self->alice, "shop", KRETRY_OPEN_GLOBAL);
	bob = kt_party_named(&self->bob, "shop", KRETRY_OPEN_GLOBAL);
	EXPECT_EQ(1, kt_fail(&self->alice, alice, KEY, 1));
	EXPECT_EQ(1, kt_fail(&self->bob, bob, KEY, 1));
	EXPECT_EQ(8 * KRETRY_UTOK, kt_stat_key(&self->root, root, KEY).balance_utok);
	EXPECT_EQ(0, kt_fail(&self->alice, alice, KEY, 1));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&self->bob, bob, KEY, KRETRY_EVENT_BEGIN));
}

struct access {
	uid_t uid;
	gid_t gid;
	int open, step, stat;
};

/* A user of the given ids tries everything. */
static int try_access(void *arg)
{
	struct access *want = arg;
	struct kretry_stat stat = { .size = sizeof(stat) };
	struct kt_party me;
	struct kretry_op op;
	int id;

	CHECK(!setgroups(0, NULL) && !setresgid(want->gid, want->gid, want->gid));
	CHECK(!setresuid(want->uid, want->uid, want->uid));
	CHECK_EQ(0, kt_here(&me));
	id = kt_party_named(&me, "shop", KRETRY_OPEN_GLOBAL);
	CHECK_EQ(want->open, id > 0 ? 0 : id);
	if (id < 0)
		return 0;
	stat.policy = id;
	CHECK_EQ(want->stat, kt_ioctl(me.fd, KRETRY_IOC_STAT, &stat));
	op = kt_op(id, KRETRY_EVENT_TRANSIENT);
	CHECK_EQ(want->step, kt_step(me.fd, &op));
	op = kt_op(id, KRETRY_EVENT_TRANSIENT);
	CHECK_EQ(1, kt_batch(me.fd, &op, 1));
	CHECK_EQ(want->step ? KRETRY_ERROR : KRETRY_RETRY, op.verdict);
	CHECK(!want->step || KRETRY_OP_ERRNO(op.flags) == -want->step);
	return 0;
}

/* Read is query, write is step; the first of owner, group and others that fits counts. */
TEST_F(isolation, global_mode_bits_as_of_a_file)
{
	static const struct {
		uint32_t mode;
		struct access who;
	} rows[] = {
		{ 0640, { ALICE, ALICE, 0, 0, 0 } },
		{ 0640, { BOB, GROUP, 0, -EACCES, 0 } },
		{ 0640, { BOB, BOB, -EACCES, 0, 0 } },
		{ 0620, { BOB, GROUP, 0, 0, -EACCES } },
		{ 0604, { BOB, BOB, 0, -EACCES, 0 } },
		{ 0602, { BOB, BOB, 0, 0, -EACCES } },
		{ 0066, { ALICE, GROUP, -EACCES, 0, 0 } },
		{ 0606, { BOB, GROUP, -EACCES, 0, 0 } },
		{ 0000, { ALICE, ALICE, -EACCES, 0, 0 } },
		{ 0000, { 0, 0, 0, 0, 0 } },
	};
	struct access who;
	size_t i;
	int id;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		who = rows[i].who;
		self->policy.budget.capacity_utok = 100 * KRETRY_UTOK;
		id = create_global(self, rows[i].mode);
		ASSERT_LT(0, id);
		EXPECT_EQ(0, kt_child(try_access, &who))
			TH_LOG("row %zu", i);
		ASSERT_EQ(0, kt_close(self->root.fd, id));
	}
}

TEST_F(isolation, global_force_and_unlink_by_owner_or_privileged_only)
{
	int root = create_global(self, 0666), alice, bob;

	ASSERT_LT(0, root);
	alice = kt_party_named(&self->alice, "shop", KRETRY_OPEN_GLOBAL);
	bob = kt_party_named(&self->bob, "shop", KRETRY_OPEN_GLOBAL);
	EXPECT_EQ(-EPERM, kt_force(&self->bob, bob, KRETRY_MODE_FORCED_OPEN));
	EXPECT_EQ(-EPERM, kt_force_key(&self->bob, bob, KEY, KRETRY_MODE_FORCED_OPEN));
	EXPECT_EQ(KRETRY_GO, kt_event(&self->bob, bob, KEY, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(0, kt_force(&self->alice, alice, KRETRY_MODE_FORCED_OPEN));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&self->bob, bob, KEY, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(0, kt_force(&self->root, root, KRETRY_MODE_AUTOMATIC));
	EXPECT_EQ(KRETRY_GO, kt_event(&self->bob, bob, KEY, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(-EPERM, kt_party_unlink(&self->bob, "shop", KRETRY_OPEN_GLOBAL));
	EXPECT_EQ(0, kt_party_unlink(&self->alice, "shop", KRETRY_OPEN_GLOBAL));
	EXPECT_EQ(-ENOENT, kt_party_unlink(&self->root, "shop", KRETRY_OPEN_GLOBAL));
}

/* -------- quotas -------- */

static int64_t create_many(struct kt_party *party, struct kretry_policy policy, unsigned int most,
			   const char *prefix)
{
	char name[32] = "";
	unsigned int i;
	int ret;

	for (i = 0; i < most; i++) {
		if (*prefix)
			snprintf(name, sizeof(name), "%s%u", prefix, i);
		kt_name(&policy, name);
		ret = kt_party_create(party, &policy);
		if (ret < 0)
			return ret == -EDQUOT ? (int64_t)i : ret;
	}
	return most;
}

/* Bob takes all he can get, in names and keys; Alice does not notice. */
TEST_F(isolation, exhausting_ones_quota_nothing_to_another_user)
{
	int alice = kt_party_create(&self->alice, &self->policy);
	struct kretry_info info;
	unsigned int i;

	ASSERT_EQ(0, kt_info(self->root.fd, &info));
	ASSERT_GT(info.max_policies + 1, create_many(&self->bob, self->policy,
						     info.max_policies + 1, "b"));
	for (i = 0; i < info.max_keys + 10; i++)
		kt_event(&self->bob, 1, i, KRETRY_EVENT_TRANSIENT);
	EXPECT_EQ(info.max_keys, kt_stat(&self->bob, 1).keys);
	EXPECT_EQ(10, create_many(&self->alice, self->policy, 10, "a"));
	EXPECT_EQ(1, kt_fail(&self->alice, alice, KEY, 1));
	EXPECT_EQ(1, kt_stat(&self->alice, alice).keys);
}

TEST_F(isolation, lingering_names_count_against_the_quota)
{
	struct kretry_info info;
	int64_t first, second;

	ASSERT_EQ(0, kt_info(self->root.fd, &info));
	self->policy.linger_ns = 60 * SEC;
	first = create_many(&self->bob, self->policy, info.max_policies + 1, "b");
	ASSERT_LT(0, first);
	EXPECT_EQ(0, kt_party_close(&self->bob));
	EXPECT_EQ(0, kt_party_open(&self->bob));
	second = create_many(&self->bob, self->policy, info.max_policies + 1, "c");
	EXPECT_GE(info.max_policies, first + second);
	EXPECT_EQ(0, create_many(&self->bob, self->policy, 1, "d"));
	EXPECT_EQ(0, kt_party_unlink(&self->bob, "b17", 0));
	EXPECT_EQ(0, kt_party_unlink(&self->bob, "b18", 0));
	EXPECT_EQ(1, create_many(&self->bob, self->policy, 2, "d"));
	EXPECT_EQ(0, kt_party_close(&self->bob));
	kt_sleep(70 * SEC);
	EXPECT_EQ(0, kt_party_open(&self->bob));
	EXPECT_EQ(first, create_many(&self->bob, self->policy, info.max_policies + 1, "e"));
}

/* -------- user namespaces -------- */

struct handshake {
	int to_parent[2], from_parent[2];
};

static int map_ids(pid_t pid, uid_t first)
{
	char path[64], map[64];

	snprintf(map, sizeof(map), "0 %u 1\n", first);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	CHECK_EQ(0, kt_write_file(path, map));
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	CHECK_EQ(0, kt_write_file(path, map));
	return 0;
}

/* Alice as root of a namespace of her own: her names are there, privilege is not. */
static int root_of_a_namespace(struct handshake *hand, struct kretry_policy *policy)
{
	struct kretry_policy_entry entry;
	struct kretry_policy got;
	struct kt_party me;
	char byte;
	int id;

	CHECK_EQ(0, kt_become(ALICE));
	CHECK_EQ(0, unshare(CLONE_NEWUSER));
	CHECK_EQ(1, write(hand->to_parent[1], "u", 1));
	CHECK_EQ(1, read(hand->from_parent[0], &byte, 1));
	CHECK(!setresuid(0, 0, 0));
	CHECK_EQ(0, kt_here(&me));
	id = kt_party_named(&me, "shop", 0);
	CHECK(id > 0);
	CHECK_EQ(1, kt_fail(&me, id, KEY, 1));
	CHECK_EQ(2, kt_list(me.fd, "shop", &entry));
	CHECK_EQ(2, kt_list(me.fd, "global", &entry));
	CHECK_EQ(0, entry.uid);
	CHECK_EQ(65534, entry.gid);
	id = kt_party_named(&me, "global", KRETRY_OPEN_GLOBAL);
	CHECK(id > 0);
	CHECK_EQ(0, kt_get(me.fd, id, &got));
	CHECK_EQ(0, got.uid);
	CHECK_EQ(65534, got.gid);
	policy->open_flags = KRETRY_OPEN_GLOBAL;
	kt_name(policy, "mine");
	CHECK_EQ(-EPERM, kt_party_create(&me, policy));
	return 0;
}

TEST_F(isolation, user_namespace_same_user_same_names_no_privilege)
{
	struct kretry_policy global = self->policy;
	int alice = kt_party_create(&self->alice, &self->policy);
	struct handshake hand;
	char byte;
	pid_t pid;

	global.open_flags = KRETRY_OPEN_GLOBAL;
	global.uid = ALICE;
	global.gid = GROUP;
	global.mode = 0600;
	kt_name(&global, "global");
	ASSERT_LT(0, kt_party_create(&self->root, &global));
	ASSERT_EQ(0, pipe(hand.to_parent) | pipe(hand.from_parent));
	pid = fork();
	if (!pid)
		_exit(root_of_a_namespace(&hand, &self->policy));
	ASSERT_EQ(1, read(hand.to_parent[0], &byte, 1));
	ASSERT_EQ(0, map_ids(pid, ALICE));
	ASSERT_EQ(1, write(hand.from_parent[1], "m", 1));
	EXPECT_EQ(0, kt_wait(pid));
	EXPECT_EQ(9 * KRETRY_UTOK, kt_stat_key(&self->alice, alice, KEY).balance_utok);
}

TEST_HARNESS_MAIN
