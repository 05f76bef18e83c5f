// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Signatures: a kernel that enforces them refuses a module whose key it does not trust. DKMS signs
 * with a key of this machine, which its owner enrols in the firmware once, by mokutil.
 */

#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define EFIVARS		"/sys/firmware/efi/efivars"
#define SECURE_BOOT	EFIVARS "/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* A variable's value comes after 4 bytes of attributes. */
static bool is_secure_boot(void)
{
	unsigned char value[5] = { 0 };
	FILE *file = fopen(SECURE_BOOT, "re");
	bool on = file && fread(value, 1, sizeof(value), file) == sizeof(value) && value[4] == 1;

	if (file)
		fclose(file);
	return on;
}

/* Why this kernel takes only modules that are signed, or NULL. */
static const char *enforcement(void)
{
	char text[128];

	if (read_text("/sys/module/module/parameters/sig_enforce", text, sizeof(text)) &&
	    *text == 'Y')
		return "module.sig_enforce";
	if (read_text("/sys/kernel/security/lockdown", text, sizeof(text)) &&
	    (strstr(text, "[integrity]") || strstr(text, "[confidentiality]")))
		return "kernel lockdown";
	return NULL;
}

/* DKMS's own, then where Ubuntu has it; the former also where there is none yet. */
static const char *key_file(void)
{
	static const char *const files[] = {
		"/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (access(files[i], F_OK) == 0)
			return files[i];
	return files[0];
}

/* mokutil's answer is its words: its status means other things in other versions. */
static bool is_enrolled(const char *key)
{
	char *argv[4] = { "/usr/bin/mokutil", "--test-key", (char *)key, NULL };
	char out[LINE];

	return run_tool(argv, out, sizeof(out)) >= 0 && strstr(out, "is already enrolled");
}

/* Keyrings show their keys by the signer's name; to root, that is. */
static bool is_known(const char *signer)
{
	char line[LINE];
	FILE *file = fopen("/proc/keys", "re");
	bool known = false;

	while (file && *signer && !known && fgets(line, sizeof(line), file))
		known = strstr(line, "asymmetri") && strstr(line, signer);
	if (file)
		fclose(file);
	return known;
}

static void say_refused(struct doctor *d, const struct ko *ko, const char *why, const char *key)
{
	const char *absent = " (made by DKMS when it builds; not there yet)";
	bool is_there = access(key, F_OK) == 0;
	json_t *finding;

	found(d, MARK_PROBLEM, "signature",
	      "%s: only modules that the kernel trusts are loaded, and %s is %s", why, ko->path,
	      !ko->is_signed ? "not signed" :
	      is_secure_boot() ? "signed, by a key not enrolled" :
	      "signed, by a key not known to it");
	finding = found(d, is_there ? MARK_NOTE : MARK_PROBLEM, "key",
			"%s%s: enrol it with mokutil --import %s, reboot, and confirm it then",
			key, is_there ? "" : absent, key);
	json_object_set_new(finding, "path", json_string(key));
	blame_as_root(d, STATUS_SIGNATURE, "mokutil --import %s", key);
}

void check_signature(struct doctor *d, const struct ko *ko)
{
	const char *why = enforcement(), *key = key_file();

	if (is_secure_boot())
		found(d, MARK_NOTE, "secure-boot", "on");
	if (!why)
		found(d, MARK_OK, "signature", "not enforced");
	else if (ko->is_signed && (is_known(ko->signer) || is_enrolled(key)))
		found(d, MARK_OK, "signature", "enforced (%s), and the key is enrolled", why);
	else
		say_refused(d, ko, why, key);
}
