/* SPDX-License-Identifier: MIT */
/* A command run for a notice. */
#ifndef NOTICE_EXEC_H
#define NOTICE_EXEC_H

#include "notice/notice.h"

/*
 * Run text by sh, with the notice in PREEMPT_NOTICE_SOURCE, _REASON, _UTC and _LEFT_MS and as JSON
 * on its stdin, and wait for its end. Nothing of the notice is put into text, which sh interprets.
 * A signal that ends us (base/process/ending.h) is passed on to the command's process group;
 * ending_signal still returns it. STATUS_OK: *code is the command's exit code, as in a shell ($?).
 */
enum status notice_exec(
	const struct notice *notice, const char *text, int *code, struct error *err);

#endif
