/* SPDX-License-Identifier: MIT */
/* A command run for a notice. */
#ifndef NOTICE_EXEC_H
#define NOTICE_EXEC_H

#include "notice/notice.h"

/*
 * Run text by sh, with the notice in PREEMPT_NOTICE_SOURCE, _REASON, _UTC and _LEFT_MS and as JSON
 * on its stdin, and wait for it. The text is its user's own; what the notice says goes nowhere
 * else. Signals that end us (base/ending.h) are passed on to its process group, and stay set.
 * STATUS_OK: *code is its exit code, as a shell says it.
 */
enum status notice_exec(
	const struct notice *notice, const char *text, int *code, struct error *err);

#endif
