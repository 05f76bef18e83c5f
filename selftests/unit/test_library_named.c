// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Named policies where the process decides: shared by its handles, kept for as long as they say. */
#include "library.h"

static void named_budget_is_one_for_two_handles(void **state)
{
	struct kretry *a = open_process(), *b = open_process();
	struct kretry_policy p = name_policy(budget_of(3), "shop");
	u32 id_a = create(a, p), id_b;

	(void)state;
	assert_int_equal(kretry_policy_open(b, "shop", 0, &id_b), 0);
	assert_int_equal(step(a, id_a, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(step(b, id_b, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(step(a, id_a, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(step(b, id_b, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_STOP_BUDGET);
	assert_int_equal(create(b, p), id_b + 1);
	assert_int_equal(step(b, id_b + 1, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_STOP_BUDGET);
	kretry_close(a);
	kretry_close(b);
}

static void unnamed_budgets_are_of_each_policy(void **state)
{
	struct kretry *k = open_process();
	u32 first = create(k, budget_of(1)), second = create(k, budget_of(1));

	(void)state;
	assert_int_equal(step(k, first, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(step(k, first, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_STOP_BUDGET);
	assert_int_equal(step(k, second, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	kretry_close(k);
}

static void same_name_other_parameters_eexist(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = name_policy(budget_of(3), "shop");

	(void)state;
	create(k, p);
	p.max_retries = 9;
	assert_int_equal(kretry_policy_create(k, &p), -EEXIST);
	p.open_flags = KRETRY_OPEN_GLOBAL;
	create(k, p);
	kretry_close(k);
}

static void name_goes_with_its_last_holder(void **state)
{
	struct kretry *a = open_process(), *b = open_process();
	u32 id = create(a, name_policy(budget_of(3), "shop"));

	(void)state;
	assert_int_equal(kretry_policy_open(b, "shop", 0, &id), 0);
	kretry_close(a);
	assert_int_equal(kretry_policy_close(b, id), 0);
	assert_int_equal(kretry_policy_open(b, "shop", 0, &id), -ENOENT);
	kretry_close(b);
}

static void lingering_policy_keeps_its_balance_until_it_lapses(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = name_policy(budget_of(1), "cron");
	u32 id;

	(void)state;
	p.linger_ns = 50 * MS;
	id = create(k, p);
	assert_int_equal(step(k, id, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	kretry_close(k);
	k = open_process();
	id = create(k, p);
	assert_int_equal(step(k, id, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_STOP_BUDGET);
	assert_int_equal(kretry_policy_close(k, id), 0);
	pause_ns(60 * MS);
	assert_int_equal(kretry_policy_open(k, "cron", 0, &id), -ENOENT);
	id = create(k, p);
	assert_int_equal(step(k, id, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(kretry_policy_unlink(k, "cron", 0), 0);
	p.linger_ns = 3600 * SEC + 1;
	assert_int_equal(kretry_policy_create(k, &p), -EINVAL);
	kretry_close(k);
}

static void unlinked_name_is_free_and_holders_keep_theirs(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = name_policy(budget_of(1), "shop");
	u32 old = create(k, p), new;

	(void)state;
	assert_int_equal(step(k, old, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(kretry_policy_unlink(k, "shop", 0), 0);
	assert_int_equal(kretry_policy_unlink(k, "shop", 0), -ENOENT);
	new = create(k, p);
	assert_int_equal(step(k, new, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(step(k, old, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_STOP_BUDGET);
	kretry_close(k);
}

static void name_at_its_edges(void **state)
{
	char longest[KRETRY_NAME_MAX + 1];
	struct kretry *k = open_process();
	u32 id;

	(void)state;
	memset(longest, 'n', sizeof(longest));
	longest[KRETRY_NAME_MAX] = '\0';
	assert_int_equal(kretry_policy_open(k, "", 0, &id), -EINVAL);
	assert_int_equal(kretry_policy_open(k, longest, 0, &id), -EINVAL);
	assert_int_equal(kretry_policy_unlink(k, longest, 0), -EINVAL);
	longest[KRETRY_NAME_MAX - 1] = '\0';
	create(k, name_policy(budget_of(1), longest));
	assert_int_equal(kretry_policy_open(k, longest, 0, &id), 0);
	assert_int_equal(kretry_policy_open(k, longest, 4, &id), -EINVAL);
	kretry_close(k);
}

static void list_has_every_name_once(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy_entry *entries;
	unsigned int count, i, seen = 0;
	char name[16];
	u32 id = 0;

	(void)state;
	assert_int_equal(kretry_policy_list(k, &entries, &count), 0);
	assert_int_equal(count, 0);
	free(entries);
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		id = create(k, name_policy(budget_of(1), name));
	}
	step(k, id, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(kretry_policy_open(k, "p39", 0, &id), 0);
	assert_int_equal(kretry_policy_list(k, &entries, &count), 0);
	assert_int_equal(count, 40);
	for (i = 0; i < count; i++) {
		seen += !strcmp((char *)entries[i].name, "p39") && entries[i].openers == 2 &&
			entries[i].keys == 1;
		seen += !strcmp((char *)entries[i].name, "p0") && entries[i].openers == 1 &&
			!entries[i].keys;
	}
	assert_int_equal(seen, 2);
	free(entries);
	kretry_close(k);
}

static void get_tells_the_parameters_and_the_id(void **state)
{
	struct kretry *a = open_process(), *b = open_process();
	struct kretry_policy p = name_policy(budget_of(3), "shop"), got;
	u32 id;

	(void)state;
	create(a, p);
	create(b, budget_of(1));
	assert_int_equal(kretry_policy_open(b, "shop", 0, &id), 0);
	assert_int_equal(kretry_policy_get(b, id, &got), 0);
	p.id = id;
	assert_memory_equal(&got, &p, sizeof(p));
	kretry_close(a);
	kretry_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_budget_is_one_for_two_handles),
		cmocka_unit_test(unnamed_budgets_are_of_each_policy),
		cmocka_unit_test(same_name_other_parameters_eexist),
		cmocka_unit_test(name_goes_with_its_last_holder),
		cmocka_unit_test(lingering_policy_keeps_its_balance_until_it_lapses),
		cmocka_unit_test(unlinked_name_is_free_and_holders_keep_theirs),
		cmocka_unit_test(name_at_its_edges),
		cmocka_unit_test(list_has_every_name_once),
		cmocka_unit_test(get_tells_the_parameters_and_the_id),
	};

	return run_group(tests);
}
