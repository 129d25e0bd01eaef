/* SPDX-License-Identifier: MIT */
/* The HTML page: the drawing, and a table with the durations of the phases. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "status/timeline.h"

static int by_length(const void *a, const void *b)
{
	const struct timeline_span *x = a, *y = b;
	int64_t p = x->to - x->from, q = y->to - y->from;
	return p < q ? -1 : p > q;
}

static void add_cell(struct text *text, int64_t milliseconds)
{
	text_add(text, "<td>");
	timeline_add_time(text, milliseconds);
	text_add(text, "</td>");
}

/* Add the row of a phase, from its spans that end after the notice or the round's opening. */
static void add_row(struct text *text, const struct timeline_attempt *attempt,
	enum timeline_phase phase, const char *word)
{
	struct timeline_span *spans = xcalloc(attempt->span_count + 1, sizeof(*spans));
	size_t count = 0;
	for (size_t i = 0; i < attempt->span_count; i++) {
		struct timeline_span span = attempt->spans[i];
		const bool before = span.from < attempt->called;
		/* Of the training, count only the time from the notice to the report. */
		if (span.phase != phase || span.to < attempt->called ||
			(phase == PHASE_TRAIN && (!before || span.to >= attempt->ended)))
			continue;
		if (before)
			span.from = attempt->called;
		spans[count++] = span;
	}
	if (count) {
		qsort(spans, count, sizeof(*spans), by_length);
		const struct timeline_span *last = &spans[count - 1];
		text_addf(text, "<tr><th scope=\"row\">%s</th>", word);
		add_cell(text, spans[0].to - spans[0].from);
		add_cell(text, spans[count / 2].to - spans[count / 2].from);
		add_cell(text, last->to - last->from);
		text_addf(text, "<td>%" PRIu64 " on ", last->task);
		timeline_add_xml(text, attempt->lanes[last->task].host);
		text_add(text, "</td></tr>\n");
	}
	free(spans);
}

static void add_table(struct text *text, const struct timeline_attempt *attempt)
{
	static const char *const words[PHASE_KINDS] = {"notice or round to report",
		"report to agreement", "agreement to save", "save", "saved to exit"};
	if (attempt->zoom_to <= attempt->zoom_from)
		return;
	text_addf(text, "<table><caption>Attempt %" PRIu64, attempt->number);
	text_add(text, *attempt->why ? ", " : "");
	timeline_add_xml(text, attempt->why);
	text_add(text, "</caption>\n<tr><th scope=\"col\">Phase</th><th scope=\"col\">Shortest</th>"
		       "<th scope=\"col\">Median</th><th scope=\"col\">Longest</th>"
		       "<th scope=\"col\">Slowest task</th></tr>\n");
	for (int phase = 0; phase < PHASE_KINDS; phase++)
		add_row(text, attempt, (enum timeline_phase)phase, words[phase]);
	text_add(text, "</table>\n");
}

void timeline_add_html(struct text *text, const struct timeline_attempt *attempts, size_t count)
{
	text_add(text,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
		"<meta name=\"viewport\" content=\"width=device-width\"/><title>Timeline of run ");
	timeline_add_xml(text, count ? attempts[0].run : "");
	text_add(text,
		"</title>\n<style>:root{color-scheme:light dark}\n"
		"body{font:14px system-ui,sans-serif;max-width:1200px;margin:12px auto;"
		"background:#fff;color:#1c2127}\n"
		"table{border-collapse:collapse;margin:18px 12px}caption{text-align:left;"
		"font-weight:600;padding:6px 0;overflow-wrap:anywhere}\n"
		"th,td{padding:4px 18px 4px 0;text-align:left;border-bottom:1px solid #8886}\n"
		"td:nth-child(n+2):nth-child(-n+4){font-variant-numeric:tabular-nums}\n"
		"@media (prefers-color-scheme:dark){body{background:#14181d;color:#e6edf3}}\n"
		"</style></head><body>\n");
	timeline_add_svg(text, attempts, count);
	for (size_t i = 0; i < count; i++)
		add_table(text, &attempts[i]);
	text_add(text, "</body></html>\n");
}
