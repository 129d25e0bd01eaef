/* SPDX-License-Identifier: MIT */
#include "queue/output/joblog.h"

#include <inttypes.h>
#include <string.h>

void joblog_command(struct text *text, const struct queue_item *item)
{
	struct text raw = {0};
	for (size_t i = 0; item->argv[i]; i++) {
		text_add(&raw, i ? " " : "");
		/* Show text for a shell as the user wrote it. */
		if (item->shell && i == 0)
			text_add(&raw, item->argv[i]);
		else
			text_add_shell_word(&raw, item->argv[i]);
	}
	text_add_escaped(text, text_string(&raw));
	text_release(&raw);
}

void joblog_row(struct text *text, const struct queue_item *item, const struct queue_result *result)
{
	const struct queue_ending *ending = &result->ending;
	int64_t started = result->started;
	int64_t runtime = started && result->ended > started ? result->ended - started : 0;
	int code = ending->number ? 0 : queue_ending_code(ending);
	char host[4 * sizeof(result->host)];
	text_escape(host, sizeof(host), result->host, strlen(result->host));
	text_addf(text,
		"%" PRIu64 "\t%s\t%" PRId64 ".%03d\t%6" PRId64 ".%03d\t0\t%" PRIu64 "\t%d\t%d\t",
		item->id, *host ? host : ":", started / 1000, (int)(started % 1000), runtime / 1000,
		(int)(runtime % 1000), result->out, code, ending->number);
	joblog_command(text, item);
	text_add(text, "\n");
}
