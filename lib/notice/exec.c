/* SPDX-License-Identifier: MIT */
#include "notice/exec.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/process/ending.h"
#include "base/process/subprocess.h"

static void describe_notice(const struct notice *notice, const char *line)
{
	char utc[32], left[32] = "";
	clock_format_utc(notice->received_utc, utc);
	if (notice->deadline != CLOCK_NEVER) {
		int64_t now = clock_now();
		snprintf(left, sizeof(left), "%lld",
			(long long)(notice->deadline > now ? notice->deadline - now : 0));
	}
	setenv("PREEMPT_NOTICE_SOURCE", notice->source, 1);
	setenv("PREEMPT_NOTICE_REASON", notice->reason, 1);
	setenv("PREEMPT_NOTICE_UTC", utc, 1);
	setenv("PREEMPT_NOTICE_LEFT_MS", left, 1);
	setenv("PREEMPT_NOTICE", line, 1);
}

enum status notice_exec(const struct notice *notice, const char *text, int *code, struct error *err)
{
	struct text line = {0};
	struct subprocess child;
	int asked = 0;
	notice_write_json(notice, &line);
	describe_notice(notice, text_string(&line));
	text_add(&line, "\n");
	struct subprocess_options how = {.shell = text, .input = text_string(&line)};
	enum status status = subprocess_start(&child, &how, err);
	text_release(&line);
	while (subprocess_check(&child, clock_now()) == SUBPROCESS_RUNS) {
		struct pollfd ended = {.fd = child.end.descriptor, .events = POLLIN};
		ending_wait(&ended, 1, child.end.due);
		if (!ending_signal())
			continue;
		asked = ending_signal();
		ending_set(0);
		subprocess_signal(&child, asked);
	}
	*code = child.code;
	/* Do not kill the processes that it left in the background: they live until we end. */
	subprocess_reap(&child, true);
	if (asked)
		ending_set(asked);
	return status;
}
