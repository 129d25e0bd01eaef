/* SPDX-License-Identifier: MIT */
/* A command run for a notice. */
#ifndef NOTICE_EXEC_H
#define NOTICE_EXEC_H

#include "notice/notice.h"

/*
 * Run text by sh, with the notice in PREEMPT_NOTICE_SOURCE, _REASON, _UTC and _LEFT_MS and as JSON
 * on its stdin, and wait for it. The text is the user's own; nothing of the notice is put into it.
 * Signals that end us (base/process/ending.h) are passed on to its process group, and stay set.
 * STATUS_OK: *code is its exit code, as in a shell ($?).
 */
enum status notice_exec(
	const struct notice *notice, const char *text, int *code, struct error *err);

#endif
