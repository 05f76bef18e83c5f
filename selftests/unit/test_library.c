// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The library's handle: backends and their reasons, policies, decisions in the process. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "internal.h"

#define NO_DEVICE	"/nonexistent/kretry"

static struct kretry *open_process(void)
{
	struct kretry *k;

	assert_int_equal(kretry_open(&k, NO_DEVICE, 0), 0);
	return k;
}

static struct kretry *open_module(void)
{
	struct kretry *k;

	memset(&device, 0, sizeof(device));
	device.abi_version = KRETRY_ABI_VERSION;
	assert_int_equal(kretry_open(&k, DEVICE_PATH, KRETRY_MODULE_ONLY), 0);
	return k;
}

static u32 create(struct kretry *k, struct kretry_policy p)
{
	assert_int_equal(kretry_policy_create(k, &p), 0);
	assert_int_not_equal(p.id, 0);
	return p.id;
}

static u32 create_fixed(struct kretry *k, u64 base)
{
	return create(k, policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, base, base));
}

static struct kretry_op failure_of(u32 policy)
{
	return (struct kretry_op){ .policy = policy, .event = KRETRY_EVENT_TRANSIENT };
}

/* -------- opening -------- */

static void open_no_device_decides_in_process_and_says_why(void **state)
{
	struct kretry *k = open_process();
	struct kretry_info info;

	(void)state;
	assert_int_equal(kretry_backend(k), KRETRY_BACKEND_PROCESS);
	assert_int_equal(kretry_fd(k), -EBADF);
	assert_string_equal(kretry_backend_reason(k), NO_DEVICE
			    ": No such file or directory: load the module with modprobe kretry");
	assert_int_equal(kretry_info(k, &info), 0);
	assert_int_equal(info.size, sizeof(info));
	assert_int_equal(info.abi_version, KRETRY_ABI_VERSION);
	assert_true(info.features == PROCESS_FEATURES);
	assert_int_equal(info.max_keys, PROCESS_MAX_KEYS);
	assert_true(info.max_linger_ns == 3600 * SEC);
	assert_int_equal(info.max_policies, PROCESS_MAX_POLICIES);
	kretry_close(k);
}

static void open_module_only_no_device_fails(void **state)
{
	struct kretry *k = NULL;

	(void)state;
	assert_int_equal(kretry_open(&k, NO_DEVICE, KRETRY_MODULE_ONLY), -ENOENT);
	assert_null(k);
}

static void open_another_device_is_told_from_kretrys(void **state)
{
	struct kretry *k;

	(void)state;
	memset(&device, 0, sizeof(device));
	assert_int_equal(kretry_open(&k, DEVICE_PATH, KRETRY_MODULE_ONLY), -ENOTTY);
	assert_int_equal(kretry_open(&k, DEVICE_PATH, 0), 0);
	assert_int_equal(kretry_backend(k), KRETRY_BACKEND_PROCESS);
	assert_non_null(strstr(kretry_backend_reason(k), "another device"));
	kretry_close(k);
}

static void open_other_abi_names_both(void **state)
{
	struct kretry *k;

	(void)state;
	device.abi_version = KRETRY_ABI_VERSION + 1;
	assert_int_equal(kretry_open(&k, DEVICE_PATH, KRETRY_MODULE_ONLY), -EPROTO);
	assert_int_equal(kretry_open(&k, DEVICE_PATH, 0), 0);
	assert_int_equal(kretry_backend(k), KRETRY_BACKEND_PROCESS);
	assert_string_equal(kretry_backend_reason(k), DEVICE_PATH
			    ": the module speaks ABI 2 and the library ABI 1: update the older one");
	kretry_close(k);
}

static void open_same_abi_uses_module_without_reason(void **state)
{
	struct kretry *k = open_module();

	(void)state;
	assert_int_equal(kretry_backend(k), KRETRY_BACKEND_MODULE);
	assert_true(kretry_fd(k) >= 0);
	assert_string_equal(kretry_backend_reason(k), "");
	kretry_close(k);
}

static void open_denied_names_group_of_node(void **state)
{
	char path[] = "/tmp/kretry-unit-XXXXXX";
	int fd = mkstemp(path);
	struct kretry *k;
	bool root = geteuid() == 0;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(chmod(path, 0), 0);
	if (root) {
		assert_int_equal(chown(path, 0, 0), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	assert_int_equal(kretry_open(&k, path, 0), 0);
	if (root)
		assert_int_equal(seteuid(0), 0);
	unlink(path);
	assert_non_null(strstr(kretry_backend_reason(k),
			       ": Permission denied: ask for access to the node (its group is "));
	if (root)
		assert_non_null(strstr(kretry_backend_reason(k),
				       "(its group is root, its mode 00)"));
	kretry_close(k);
}

/* One that the group could open, by somebody who is not in it; only root can become that. */
static void open_denied_names_group_to_join(void **state)
{
	char path[] = "/tmp/kretry-unit-XXXXXX";
	int fd = mkstemp(path);
	struct kretry *k;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	if (geteuid()) {
		unlink(path);
		skip();
	}
	assert_int_equal(chown(path, 0, 54321), 0);
	assert_int_equal(chmod(path, 0660), 0);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(kretry_open(&k, path, 0), 0);
	assert_int_equal(seteuid(0), 0);
	unlink(path);
	assert_non_null(strstr(kretry_backend_reason(k),
			       ": Permission denied: join the group 54321 "));
	kretry_close(k);
}

static void open_process_only_does_not_look(void **state)
{
	struct kretry *k;

	(void)state;
	device.abi_version = KRETRY_ABI_VERSION;
	assert_int_equal(kretry_open(&k, DEVICE_PATH, KRETRY_PROCESS_ONLY), 0);
	assert_int_equal(kretry_backend(k), KRETRY_BACKEND_PROCESS);
	assert_string_not_equal(kretry_backend_reason(k), "");
	kretry_close(k);
}

static void open_wrong_flags_einval(void **state)
{
	struct kretry *k;

	(void)state;
	assert_int_equal(kretry_open(&k, NULL, 0x4), -EINVAL);
	assert_int_equal(kretry_open(&k, NULL, KRETRY_MODULE_ONLY | KRETRY_PROCESS_ONLY), -EINVAL);
	kretry_close(NULL);
}

/* -------- policies -------- */

static void policy_init_is_what_the_header_says(void **state)
{
	struct kretry_policy p;

	(void)state;
	kretry_policy_init(&p);
	assert_int_equal(kretry_policy_check(&p), 0);
	assert_int_equal(p.clockid, CLOCK_MONOTONIC);
	assert_int_equal(p.max_retries, 4);
	assert_true(kretry_ceiling(&p.backoff, p.backoff.base_ns, 0) == 100 * MS);
	assert_true(kretry_ceiling(&p.backoff, p.backoff.base_ns, 3) == 800 * MS);
	assert_true(kretry_ceiling(&p.backoff, p.backoff.base_ns, 100) == 20 * SEC);
	assert_int_equal(p.backoff.jitter, KRETRY_JITTER_FULL);
	assert_true(p.hint_limit_ns == 60 * SEC && p.max_elapsed_ns == 0);
}

static void policy_ids_are_not_soon_reused(void **state)
{
	struct kretry *k = open_process();
	u32 first = create_fixed(k, MS), second;

	(void)state;
	assert_int_equal(kretry_policy_close(k, first), 0);
	second = create_fixed(k, MS);
	assert_int_equal(second, first + 1);
	k->last_id = U32_MAX - 1;
	assert_int_equal(create_fixed(k, MS), U32_MAX);
	assert_int_equal(create_fixed(k, MS), first);
	/* The second one is in use. */
	assert_int_equal(create_fixed(k, MS), second + 1);
	kretry_close(k);
}

static void policy_4097th_edquot_until_one_is_closed(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, MS, MS);
	unsigned int i;

	(void)state;
	for (i = 0; i < 4096; i++)
		assert_int_equal(kretry_policy_create(k, &p), 0);
	assert_int_equal(kretry_policy_create(k, &p), -EDQUOT);
	assert_int_equal(kretry_policy_close(k, 77), 0);
	assert_int_equal(kretry_policy_create(k, &p), 0);
	assert_int_equal(kretry_policy_create(k, &p), -EDQUOT);
	kretry_close(k);
}

static void policy_get_returns_what_was_created(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = policy_of(KRETRY_TABLE, KRETRY_JITTER_EQUAL, MS, SEC), got;

	(void)state;
	p.id = create(k, p);
	assert_int_equal(kretry_policy_get(k, p.id, &got), 0);
	assert_memory_equal(&got, &p, sizeof(p));
	assert_int_equal(kretry_policy_get(k, p.id + 1, &got), -ENOENT);
	assert_memory_equal(&got, &p, sizeof(p));
	kretry_close(k);
}

static void policy_bad_is_refused_and_takes_no_id(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 2, 1);

	(void)state;
	assert_int_equal(kretry_policy_create(k, &p), -EINVAL);
	p.backoff.base_ns = 1;
	p.budget.capacity_utok = KRETRY_UTOK;
	p.budget.max_retrying = 1;
	assert_int_equal(kretry_policy_create(k, &p), -EOPNOTSUPP);
	assert_int_equal(p.id, 0);
	assert_int_equal(create_fixed(k, MS), 1);
	kretry_close(k);
}

static void policy_closed_is_unknown(void **state)
{
	struct kretry *k = open_process();
	u32 id = create_fixed(k, MS), other = create_fixed(k, MS);
	struct kretry_op op = failure_of(id), was = op;

	(void)state;
	assert_int_equal(kretry_policy_close(k, id), 0);
	assert_int_equal(kretry_policy_close(k, id), -ENOENT);
	assert_int_equal(kretry_step(k, &op), -ENOENT);
	assert_memory_equal(&op, &was, sizeof(op));
	op.policy = other;
	assert_int_equal(kretry_step(k, &op), 0);
	kretry_close(k);
}

static void shutdown_drops_policies_and_stays_usable(void **state)
{
	struct kretry *k = open_process();
	u32 id = create_fixed(k, MS);
	struct kretry_op op = failure_of(id);

	(void)state;
	assert_int_equal(kretry_shutdown(k), 0);
	assert_int_equal(kretry_step(k, &op), -ENOENT);
	op.policy = create_fixed(k, MS);
	assert_int_not_equal(op.policy, id);
	assert_int_equal(kretry_step(k, &op), 0);
	kretry_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_no_device_decides_in_process_and_says_why),
		cmocka_unit_test(open_module_only_no_device_fails),
		cmocka_unit_test(open_another_device_is_told_from_kretrys),
		cmocka_unit_test(open_other_abi_names_both),
		cmocka_unit_test(open_same_abi_uses_module_without_reason),
		cmocka_unit_test(open_denied_names_group_of_node),
		cmocka_unit_test(open_denied_names_group_to_join),
		cmocka_unit_test(open_process_only_does_not_look),
		cmocka_unit_test(open_wrong_flags_einval),
		cmocka_unit_test(policy_init_is_what_the_header_says),
		cmocka_unit_test(policy_ids_are_not_soon_reused),
		cmocka_unit_test(policy_4097th_edquot_until_one_is_closed),
		cmocka_unit_test(policy_get_returns_what_was_created),
		cmocka_unit_test(policy_bad_is_refused_and_takes_no_id),
		cmocka_unit_test(policy_closed_is_unknown),
		cmocka_unit_test(shutdown_drops_policies_and_stays_usable),
	};

	return run_group(tests);
}
