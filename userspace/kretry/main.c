// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry: the command. One file has a verb, or a few that belong together. */

#include <errno.h>
#include <string.h>

#include "command.h"

static const struct verb policy_verbs[] = {
	{ "add", policy_add,
	  HAS(OPT_DEVICE) | HAS(OPT_GLOBAL) | HAS(OPT_LINGER) | HAS(OPT_HOLD) | HAS(OPT_PRESET),
	  1, -1, help_add },
	{ "apply", policy_apply,
	  HAS(OPT_DEVICE) | HAS(OPT_LINGER) | HAS(OPT_HOLD) | HAS(OPT_DRY_RUN) | HAS(OPT_REPLACE),
	  1, -1, help_apply },
	{ "list", policy_list, HAS(OPT_DEVICE) | HAS(OPT_JSON), 0, 0,
	  "\nlist the named policies\n\n"
	  "Those of this user, and the global ones that it may look at. OPENERS are open files; a\n"
	  "policy with none lingers.\n" },
	{ "show", policy_show,
	  HAS(OPT_DEVICE) | HAS(OPT_GLOBAL) | HAS(OPT_JSON) | HAS(OPT_PRESET), 0, 1,
	  "[NAME]\nshow a policy's parameters, or a preset's\n\n"
	  "As a section of a policy file, of which kretry policy apply makes the same policy.\n" },
	{ "rm", policy_rm, HAS(OPT_DEVICE) | HAS(OPT_GLOBAL), 1, -1,
	  "NAME...\nfree the name of a policy\n\n"
	  "Those who have the policy open keep it, and share it still; who opens or creates that\n"
	  "name from now on gets another.\n" },
	{ "presets", policy_presets, HAS(OPT_JSON), 0, 0,
	  "\nlist the presets\n\n"
	  "They have the parameters of other systems. See kretry policy show --preset grpc.\n" },
};

static const struct verb verbs[] = {
	/* For the list of verbs; it has verbs of its own, which run() sees to. */
	{ "policy", NULL, 0, 0, -1, "VERB\nmake, list, show and remove policies\n" },
	{ "run", verb_run,
	  HAS(OPT_DEVICE) | HAS(OPT_POLICY) | HAS(OPT_CONFIG) | HAS(OPT_PRESET) | HAS(OPT_SET) |
	  HAS(OPT_ATTEMPTS) | HAS(OPT_DELAY) | HAS(OPT_MAX_DELAY) | HAS(OPT_FACTOR) |
	  HAS(OPT_JITTER) | HAS(OPT_TOTAL) | HAS(OPT_MAX_HINT) | HAS(OPT_KEY) |
	  HAS(OPT_ONCE_ONLY) | HAS(OPT_TIMEOUT) | HAS(OPT_GRACE) | HAS(OPT_RETRY_ON) |
	  HAS(OPT_NO_RETRY_ON) | HAS(OPT_CODES) | HAS(OPT_RETRY_AFTER_FROM) | HAS(OPT_STDIN) |
	  HAS(OPT_OUTPUT) | HAS(OPT_QUIET) | HAS(OPT_VERBOSE) | HAS(OPT_JSON) | HAS(OPT_NESTED),
	  1, -1, help_run },
	{ "next", verb_next,
	  HAS(OPT_DEVICE) | HAS(OPT_GLOBAL) | HAS(OPT_JSON) | HAS(OPT_KEY) | HAS(OPT_PRESET) |
	  HAS(OPT_ATTEMPT) | HAS(OPT_EVENT) | HAS(OPT_HINT) | HAS(OPT_NO_RETRY) |
	  HAS(OPT_ELAPSED) | HAS(OPT_PREVIOUS) | HAS(OPT_IDEMPOTENT), 0, -1, help_next },
	{ "stat", verb_stat,
	  HAS(OPT_DEVICE) | HAS(OPT_GLOBAL) | HAS(OPT_JSON) | HAS(OPT_PROMETHEUS) | HAS(OPT_KEY),
	  0, -1, help_stat },
	{ "top", verb_top, HAS(OPT_DEVICE) | HAS(OPT_GLOBAL) | HAS(OPT_INTERVAL), 0, -1, help_top },
	{ "doctor", verb_doctor, HAS(OPT_DEVICE) | HAS(OPT_JSON), 0, 0, help_doctor },
	{ "force", verb_force, HAS(OPT_DEVICE) | HAS(OPT_GLOBAL) | HAS(OPT_KEY), 2, 2, help_force },
};

static bool is_help(const char *text)
{
	return !strcmp(text, "--help") || !strcmp(text, "-h") || !strcmp(text, "help");
}

static void print_usage(void)
{
	puts("usage: kretry VERB [OPTION...] [ARGUMENT...]\n\n"
	     "Host-wide retry policies: deadlines, budgets and circuit breakers that all processes\n"
	     "of this host share through /dev/kretry.\n");
	print_verbs(verbs, ARRAY_SIZE(verbs));
	puts("\nEach says more with --help. --device PATH is for another node than /dev/kretry.\n"
	     "--version prints the version.\n\n"
	     "Exit status: 0 it is done; 1 it failed; 2 the command line or a policy file is wrong;\n"
	     "3 the verdict of kretry next is to stop.");
}

static int policy_verb(int argc, char **argv)
{
	if (argc < 2 || !is_help(argv[1]))
		return run_verb(policy_verbs, ARRAY_SIZE(policy_verbs), "kretry policy", argc,
				argv);
	puts("usage: kretry policy VERB [OPTION...] [ARGUMENT...]\n");
	print_verbs(policy_verbs, ARRAY_SIZE(policy_verbs));
	puts("\nA named policy is there as long as a process has it open, and lingers after that.\n"
	     "Each verb says more with --help.");
	return 0;
}

static int run(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "policy"))
		return policy_verb(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "--version"))
		puts("kretry " KRETRY_VERSION);
	else if (argc > 1 && is_help(argv[1]))
		print_usage();
	else
		return run_verb(verbs, ARRAY_SIZE(verbs), "kretry", argc, argv);
	return 0;
}

int main(int argc, char **argv)
{
	int ret = run(argc, argv);

	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "kretry: standard output: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return ret;
}
