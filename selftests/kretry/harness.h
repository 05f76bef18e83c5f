/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's harness, without its own time limit of 30 s: in virtual time a test may sleep for
 * hours, and what runs the tests limits each of them anyway.
 */
#ifndef KRETRY_SELFTEST_HARNESS_H
#define KRETRY_SELFTEST_HARNESS_H

#include "common.h"

#include <kselftest_harness.h>

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	1000000

#endif /* KRETRY_SELFTEST_HARNESS_H */
