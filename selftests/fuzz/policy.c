// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Policy files. One that is accepted has policies that the decision code accepts too; and each as
 * kretry policy show prints it is a file that is accepted, for the same policy.
 */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "complaints.h"

/* How many policies, or less than 0; complaints are not shown. */
static int read_text(const char *text, size_t length, struct draft **drafts)
{
	static FILE *nowhere;
	FILE *shown = stderr;
	char path[32];
	int fd = memfd_create("policies", 0), count;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	ENSURE(fd >= 0 && nowhere && write(fd, text, length) == (ssize_t)length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	stderr = nowhere;
	count = read_policies(path, true, drafts);
	stderr = shown;
	close(fd);
	return count;
}

/* What params_print() prints. */
static char *print(const struct kretry_policy *policy, size_t *length)
{
	FILE *shown = stdout;
	char *text;

	stdout = open_memstream(&text, length);
	ENSURE(stdout);
	params_print(policy);
	fclose(stdout);
	stdout = shown;
	return text;
}

/* A name that is not plain is printed so that it does no harm, and then not the same any more. */
static bool is_plain(const unsigned char *name)
{
	for (; *name; name++)
		if (*name <= ' ' || *name >= 0x7f || *name == '\\')
			return false;
	return true;
}

static void ensure_printed_is_the_same(struct kretry_policy *policy)
{
	struct draft *again = NULL;
	size_t length;
	char *text;
	int count;

	if (!is_plain(policy->name)) {
		memset(policy->name, 0, sizeof(policy->name));
		policy->name[0] = 'p';
	}
	text = print(policy, &length);
	count = read_text(text, length, &again);

	if (count != 1 || memcmp(&again->policy, policy, sizeof(*policy)))
		fprintf(stderr, "%s", text);
	ENSURE(count == 1);
	ENSURE(!memcmp(&again->policy, policy, sizeof(*policy)));
	free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct draft *drafts = NULL;
	int count = read_text((const char *)data, size, &drafts), i;
	struct kretry_policy policy;
	struct kretry *k;

	ENSURE(count >= 0 || count == -EXIT_USAGE);
	if (count <= 0) {
		if (!count)
			free(drafts);
		return 0;
	}
	ENSURE(!kretry_open(&k, NULL, KRETRY_PROCESS_ONLY));
	for (i = 0; i < count; i++) {
		policy = drafts[i].policy;
		policy.id = 0;
		ENSURE(!kretry_policy_create(k, &policy));
		/* One that lingers would be in the way of another input's. */
		ENSURE(!kretry_policy_unlink(k, (char *)policy.name,
					     policy.open_flags & KRETRY_OPEN_GLOBAL));
		ensure_printed_is_the_same(&drafts[i].policy);
	}
	kretry_close(k);
	free(drafts);
	return 0;
}
