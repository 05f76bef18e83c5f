// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One layer retries, and a request keeps its key. */
#include "unit.h"

#include <ctype.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kretry.h"

#define KEYS		1000
#define CHILDREN	8

struct key {
	char	text[KRETRY_IDEMPOTENCY_KEY_SIZE];
};

static void assert_uuid(const char *key)
{
	static const char form[] = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
	unsigned int i;

	for (i = 0; i < sizeof(form) - 1; i++) {
		if (form[i] == 'x')
			assert_true(isdigit(key[i]) || (key[i] >= 'a' && key[i] <= 'f'));
		else if (form[i] == 'y')
			assert_non_null(strchr("89ab", key[i]));
		else
			assert_int_equal(key[i], form[i]);
	}
	assert_int_equal(key[i], '\0');
}

static int order(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void assert_all_differ(struct key *keys, unsigned int count)
{
	unsigned int i;

	qsort(keys, count, sizeof(*keys), order);
	for (i = 0; i < count; i++) {
		assert_uuid(keys[i].text);
		assert_true(!i || strcmp(keys[i].text, keys[i - 1].text));
	}
}

static void keys_are_uuids_and_differ(void **state)
{
	static struct key keys[KEYS];
	unsigned int i;

	(void)state;
	memset(keys, 0x5a, sizeof(keys));
	for (i = 0; i < KEYS; i++)
		assert_int_equal(kretry_idempotency_key(keys[i].text), 0);
	assert_all_differ(keys, KEYS);
}

static void keys_of_children_of_fork_differ(void **state)
{
	struct key *keys = mmap(NULL, (CHILDREN + 2) * sizeof(*keys), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i;
	int status;

	(void)state;
	assert_int_equal(kretry_idempotency_key(keys[CHILDREN].text), 0);
	for (i = 0; i < CHILDREN; i++)
		if (!fork())
			_exit(kretry_idempotency_key(keys[i].text) != 0);
	assert_int_equal(kretry_idempotency_key(keys[CHILDREN + 1].text), 0);
	for (i = 0; i < CHILDREN; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_all_differ(keys, CHILDREN + 2);
	munmap(keys, (CHILDREN + 2) * sizeof(*keys));
}

static void attempt_is_counted_from_one(void **state)
{
	char text[KRETRY_ATTEMPT_SIZE];
	struct kretry_op op = { 0 };

	(void)state;
	memset(text, 0x5a, sizeof(text));
	assert_ptr_equal(kretry_attempt_text(&op, text), text);
	assert_string_equal(text, "1");
	op.attempt = 9;
	assert_string_equal(kretry_attempt_text(&op, text), "10");
	op.attempt = UINT32_MAX;
	assert_string_equal(kretry_attempt_text(&op, text), "4294967296");
}

static const char *const nested[] = { "1", "2", "10", "4294967296", " 3\t", "007",
				      "99999999999999999999999999" };
static const char *const not_nested[] = { "", " ", "0", "000", "-1", "+1", "x", "1x", "1 2",
					  "1.5" };

static void header_with_an_attempt_is_nested(void **state)
{
	unsigned int i;

	(void)state;
	/* A header is looked at, not the environment. */
	assert_int_equal(setenv(KRETRY_ATTEMPT_ENV, "1", 1), 0);
	for (i = 0; i < ARRAY_SIZE(not_nested); i++)
		assert_int_equal(kretry_is_nested(not_nested[i]), 0);
	assert_int_equal(unsetenv(KRETRY_ATTEMPT_ENV), 0);
	for (i = 0; i < ARRAY_SIZE(nested); i++)
		assert_int_equal(kretry_is_nested(nested[i]), 1);
}

static void environment_with_an_attempt_is_nested(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(unsetenv(KRETRY_ATTEMPT_ENV), 0);
	assert_int_equal(kretry_is_nested(NULL), 0);
	for (i = 0; i < ARRAY_SIZE(nested); i++) {
		assert_int_equal(setenv(KRETRY_ATTEMPT_ENV, nested[i], 1), 0);
		assert_int_equal(kretry_is_nested(NULL), 1);
	}
	for (i = 0; i < ARRAY_SIZE(not_nested); i++) {
		assert_int_equal(setenv(KRETRY_ATTEMPT_ENV, not_nested[i], 1), 0);
		assert_int_equal(kretry_is_nested(NULL), 0);
	}
	assert_int_equal(unsetenv(KRETRY_ATTEMPT_ENV), 0);
}

/* What the outer layer sends is what the inner one finds; and it then fails at once. */
static void inner_layer_of_a_request_does_not_retry(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, MS, SEC);
	struct kretry_op op = { .event = KRETRY_EVENT_TRANSIENT };
	char text[KRETRY_ATTEMPT_SIZE];
	struct kretry *k;

	(void)state;
	assert_int_equal(kretry_open(&k, NULL, KRETRY_PROCESS_ONLY), 0);
	assert_int_equal(kretry_policy_create(k, &p), 0);
	op.policy = p.id;
	assert_int_equal(kretry_step(k, &op), 0);
	assert_int_equal(op.verdict, KRETRY_RETRY);
	assert_string_equal(kretry_attempt_text(&op, text), "2");
	assert_int_equal(kretry_is_nested(text), 1);
	op = (struct kretry_op){ .policy = p.id, .event = KRETRY_EVENT_TRANSIENT,
				 .flags = KRETRY_OP_NO_RETRY };
	assert_int_equal(kretry_step(k, &op), 0);
	assert_int_equal(op.verdict, KRETRY_STOP_HINT);
	kretry_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_uuids_and_differ),
		cmocka_unit_test(keys_of_children_of_fork_differ),
		cmocka_unit_test(attempt_is_counted_from_one),
		cmocka_unit_test(header_with_an_attempt_is_nested),
		cmocka_unit_test(environment_with_an_attempt_is_nested),
		cmocka_unit_test(inner_layer_of_a_request_does_not_retry),
	};

	return run_group(tests);
}
