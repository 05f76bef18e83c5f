// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Policies with a name: opened or created, never reset, gone with their last opener or later. */
#include "harness.h"
#include "shared.h"

#include <errno.h>

#define KEY	7

FIXTURE(named) {
	struct kt_party me;
	struct kretry_policy policy;	/* "named", 10 tokens, opens after 3 failures for an hour */
};

FIXTURE_SETUP(named)
{
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_name(&self->policy, "named");
	kt_budget(&self->policy, 10);
	kt_breaker(&self->policy, 3, 3600 * SEC, 1);
}

FIXTURE_TEARDOWN(named)
{
	kt_party_unlink(&self->me, "named", 0);
	kt_leave(&self->me);
}

static uint64_t balance(struct kt_party *party, int id)
{
	return kt_stat_key(party, id, KEY).balance_utok / KRETRY_UTOK;
}

TEST_F(named, create_then_open_same_state)
{
	int first = kt_party_create(&self->me, &self->policy), second, third;
	struct kt_party other;

	ASSERT_LT(0, first);
	EXPECT_EQ(1, kt_fail(&self->me, first, KEY, 1));
	second = kt_party_named(&self->me, "named", 0);
	ASSERT_LT(0, second);
	EXPECT_NE(first, second);
	EXPECT_EQ(9, balance(&self->me, second));
	ASSERT_EQ(0, kt_there(&other, 0));
	third = kt_party_named(&other, "named", 0);
	ASSERT_LT(0, third);
	EXPECT_EQ(9, balance(&other, third));
	EXPECT_EQ(1, kt_fail(&other, third, KEY, 1));
	EXPECT_EQ(8, balance(&self->me, first));
	EXPECT_EQ(2, kt_stat_key(&self->me, first, KEY).streak);
	kt_leave(&other);
}

/* Neither a further opener nor a further creator changes anything. */
TEST_F(named, open_or_create_again_state_not_reset)
{
	int id = kt_party_create(&self->me, &self->policy), i;
	struct kretry_stat before, after;
	struct kt_party other;

	EXPECT_EQ(2, kt_fail(&self->me, id, KEY, 3));
	before = kt_stat_key(&self->me, id, KEY);
	EXPECT_EQ(KRETRY_OPEN, before.state);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, kt_there(&other, 0));
		EXPECT_LT(0, kt_party_create(&other, &self->policy));
		EXPECT_LT(0, kt_party_named(&other, "named", 0));
		kt_leave(&other);
	}
	after = kt_stat_key(&self->me, id, KEY);
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(after)));
}

TEST_F(named, create_other_parameters_eexist_nothing_changed)
{
	struct kretry_policy other = self->policy, before;
	struct kretry_policy_entry entry;
	unsigned int row;

	ASSERT_LT(0, kt_party_create(&self->me, &self->policy));
	for (row = 0; row < 7; row++) {
		other = self->policy;
		other.max_retries -= row == 0;
		other.backoff.cap_ns += row == 1;
		other.budget.capacity_utok += row == 2;
		other.breaker.open_cap_ns += row == 3;
		other.pacing.pace_ns += row == 4;
		other.linger_ns += row == 5;
		other.clockid = row == 6 ? CLOCK_BOOTTIME : other.clockid;
		before = other;
		EXPECT_EQ(-EEXIST, kt_create(self->me.fd, &other))
			TH_LOG("row %u", row);
		EXPECT_EQ(0, memcmp(&before, &other, sizeof(other)));
	}
	EXPECT_EQ(1, kt_policies(self->me.fd));
	EXPECT_EQ(1, kt_list(self->me.fd, "named", &entry));
	/* How it is opened is no parameter. */
	other = self->policy;
	other.open_flags = KRETRY_OPEN_NOTIFY;
	EXPECT_LT(0, kt_party_create(&self->me, &other));
}

TEST_F(named, get_of_an_opened_policy_same_parameters)
{
	struct kretry_policy got;
	struct kt_party other;
	int id;

	ASSERT_LT(0, kt_party_create(&self->me, &self->policy));
	ASSERT_EQ(0, kt_here(&other));
	id = kt_party_named(&other, "named", 0);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, kt_get(other.fd, id, &got));
	self->policy.id = id;
	EXPECT_EQ(0, memcmp(&self->policy, &got, sizeof(got)));
	kt_leave(&other);
}

TEST_F(named, open_unknown_name_enoent)
{
	struct kretry_policy_ref ref = { .size = sizeof(ref), .name = "unknown" }, before = ref;

	ASSERT_LT(0, kt_party_create(&self->me, &self->policy));
	EXPECT_EQ(-ENOENT, kt_ioctl(self->me.fd, KRETRY_IOC_POLICY_OPEN, &ref));
	EXPECT_EQ(0, memcmp(&before, &ref, sizeof(ref)));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->me, "name", 0));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->me, "named2", 0));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->me, "named", KRETRY_OPEN_GLOBAL));
	EXPECT_EQ(-ENOENT, kt_party_unlink(&self->me, "unknown", 0));
	EXPECT_EQ(-EINVAL, kt_party_named(&self->me, "", 0));
}

TEST_F(named, without_a_name_each_creation_its_own)
{
	int first, second;

	kt_name(&self->policy, "");
	first = kt_party_create(&self->me, &self->policy);
	second = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(1, kt_fail(&self->me, first, KEY, 1));
	EXPECT_EQ(9, balance(&self->me, first));
	EXPECT_EQ(10, balance(&self->me, second));
}

TEST_F(named, unlink_frees_the_name_holders_keep_theirs)
{
	int old = kt_party_create(&self->me, &self->policy), fresh;
	struct kretry_policy_entry entry;

	EXPECT_EQ(1, kt_fail(&self->me, old, KEY, 1));
	ASSERT_EQ(0, kt_party_unlink(&self->me, "named", 0));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->me, "named", 0));
	EXPECT_EQ(-ENOENT, kt_party_unlink(&self->me, "named", 0));
	EXPECT_EQ(0, kt_list(self->me.fd, "named", &entry));
	self->policy.max_retries = 5;
	fresh = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, fresh);
	EXPECT_EQ(10, balance(&self->me, fresh));
	EXPECT_EQ(9, balance(&self->me, old));
	EXPECT_EQ(1, kt_fail(&self->me, old, KEY, 1));
	EXPECT_EQ(10, balance(&self->me, fresh));
}

/* -------- the list -------- */

TEST_F(named, list_each_name_with_openers_and_keys)
{
	struct kretry_policy_entry entry;
	struct kt_party other;
	int id;

	EXPECT_EQ(0, kt_list(self->me.fd, "named", &entry));
	id = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(2, kt_fail(&self->me, id, 1, 2));
	EXPECT_EQ(1, kt_fail(&self->me, id, 2, 1));
	ASSERT_EQ(0, kt_here(&other));
	ASSERT_LT(0, kt_party_named(&other, "named", 0));
	kt_name(&self->policy, "another");
	ASSERT_LT(0, kt_party_create(&other, &self->policy));
	EXPECT_EQ(2, kt_list(self->me.fd, "another", &entry));
	EXPECT_EQ(1, entry.openers);
	EXPECT_EQ(0, entry.keys);
	EXPECT_EQ(2, kt_list(self->me.fd, "named", &entry));
	EXPECT_EQ(2, entry.openers);
	EXPECT_EQ(2, entry.keys);
	EXPECT_EQ(0, entry.open_flags | entry.uid | entry.gid);
	kt_leave(&other);
	EXPECT_EQ(1, kt_list(self->me.fd, "named", &entry));
	EXPECT_EQ(1, entry.openers);
}

TEST_F(named, list_shorter_array_filled_count_is_what_there_is)
{
	struct kretry_policy_entry entries[8];
	struct kretry_policy_list list = {
		.size = sizeof(list), .entry_size = sizeof(entries[0]),
		.entries = (uintptr_t)entries,
	};
	char name[8];
	int i;

	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "list%d", i);
		kt_name(&self->policy, name);
		ASSERT_LT(0, kt_party_create(&self->me, &self->policy));
	}
	memset(entries, POISON, sizeof(entries));
	ASSERT_EQ(0, kt_ioctl(self->me.fd, KRETRY_IOC_POLICY_LIST, &list));
	EXPECT_EQ(5, list.count);
	EXPECT_TRUE(kt_all(entries, sizeof(entries), POISON));
	list.count = 3;
	ASSERT_EQ(0, kt_ioctl(self->me.fd, KRETRY_IOC_POLICY_LIST, &list));
	EXPECT_EQ(5, list.count);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, memcmp(entries[i].name, "list", 4));
	EXPECT_TRUE(kt_all(&entries[3], 5 * sizeof(entries[0]), POISON));
	list.count = 5;
	list.entries = 8;
	EXPECT_EQ(-EFAULT, kt_ioctl(self->me.fd, KRETRY_IOC_POLICY_LIST, &list));
}

/* -------- how long it lives -------- */

TEST_F(named, last_closer_takes_it_along)
{
	struct kretry_policy_entry entry;
	struct kt_party other;
	int id;

	ASSERT_EQ(0, kt_here(&other));
	id = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(1, kt_fail(&self->me, id, KEY, 1));
	ASSERT_LT(0, kt_party_named(&other, "named", 0));
	ASSERT_EQ(0, kt_close(self->me.fd, id));
	EXPECT_EQ(1, kt_list(self->me.fd, "named", &entry));
	kt_leave(&other);
	EXPECT_EQ(0, kt_list(self->me.fd, "named", &entry));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->me, "named", 0));
	id = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(10, balance(&self->me, id));
}

TEST_F(named, shutdown_is_a_close_of_all)
{
	struct kretry_policy_entry entry;
	int id;

	ASSERT_LT(0, kt_party_create(&self->me, &self->policy));
	ASSERT_LT(0, kt_party_named(&self->me, "named", 0));
	ASSERT_EQ(0, kt_shutdown(self->me.fd));
	EXPECT_EQ(0, kt_list(self->me.fd, "named", &entry));
	id = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(10, balance(&self->me, id));
}

/* A crash-looping program does not get a fresh budget each time. */
TEST_F(named, linger_outlives_a_killed_opener_then_gone)
{
	struct kretry_policy_entry entry;
	struct kt_party other;
	int id;

	self->policy.linger_ns = 60 * SEC;
	ASSERT_EQ(0, kt_there(&other, 0));
	id = kt_party_create(&other, &self->policy);
	EXPECT_EQ(2, kt_fail(&other, id, KEY, 2));
	kt_kill(&other);
	EXPECT_EQ(1, kt_list(self->me.fd, "named", &entry));
	EXPECT_EQ(0, entry.openers);
	kt_sleep(59 * SEC);
	id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, id);
	EXPECT_EQ(8, balance(&self->me, id));
	kt_sleep(120 * SEC);
	EXPECT_EQ(8, balance(&self->me, id));
	ASSERT_EQ(0, kt_close(self->me.fd, id));
	kt_sleep(59 * SEC);
	EXPECT_EQ(1, kt_list(self->me.fd, "named", &entry));
	/* The kernel's coarse timers are late by up to an eighth. */
	kt_sleep(10 * SEC);
	EXPECT_EQ(0, kt_list(self->me.fd, "named", &entry));
	id = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(10, balance(&self->me, id));
}

TEST_F(named, linger_ends_with_unlink)
{
	struct kretry_policy_entry entry;
	int id;

	self->policy.linger_ns = 600 * SEC;
	id = kt_party_create(&self->me, &self->policy);
	ASSERT_EQ(0, kt_close(self->me.fd, id));
	ASSERT_EQ(0, kt_party_unlink(&self->me, "named", 0));
	EXPECT_EQ(0, kt_list(self->me.fd, "named", &entry));
	id = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(0, kt_party_unlink(&self->me, "named", 0));
	EXPECT_EQ(0, kt_close(self->me.fd, id));
	EXPECT_EQ(0, kt_list(self->me.fd, "named", &entry));
}

TEST_F(named, linger_beyond_the_maximum_einval)
{
	struct kretry_info info;

	ASSERT_EQ(0, kt_info(self->me.fd, &info));
	EXPECT_EQ(3600 * SEC, info.max_linger_ns);
	self->policy.linger_ns = info.max_linger_ns + 1;
	EXPECT_EQ(-EINVAL, kt_party_create(&self->me, &self->policy));
	self->policy.linger_ns = info.max_linger_ns;
	EXPECT_LT(0, kt_party_create(&self->me, &self->policy));
	EXPECT_EQ(0, kt_party_unlink(&self->me, "named", 0));
}

TEST_F(named, forked_child_and_passed_file_share_it)
{
	int id = kt_party_create(&self->me, &self->policy), copy = dup(self->me.fd);
	struct kretry_policy_entry entry;
	struct kt_party other;

	ASSERT_EQ(0, kt_there_with(&other, copy));
	close(copy);
	EXPECT_EQ(1, kt_fail(&other, id, KEY, 1));
	EXPECT_EQ(9, balance(&self->me, id));
	EXPECT_EQ(1, kt_list(self->me.fd, "named", &entry));
	EXPECT_EQ(1, entry.openers);
	kt_leave(&other);
	EXPECT_EQ(9, balance(&self->me, id));
}

/* -------- unloading -------- */

TEST_F(named, unload_with_open_file_refused_with_lingering_works)
{
	int id;

	self->policy.linger_ns = 3600 * SEC;
	id = kt_party_create(&self->me, &self->policy);
	EXPECT_EQ(2, kt_fail(&self->me, id, KEY, 3));
	EXPECT_EQ(-EWOULDBLOCK, kt_unload());
	kt_leave(&self->me);
	EXPECT_EQ(0, kt_unload());
	ASSERT_EQ(0, kt_ensure_loaded());
	ASSERT_EQ(0, kt_here(&self->me));
	EXPECT_EQ(-ENOENT, kt_party_named(&self->me, "named", 0));
}

TEST_HARNESS_MAIN
