/* SPDX-License-Identifier: MIT */
#include "status/timeline.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

#define WIDTH	1200 /* px, like all lengths here */
#define LEFT	170  /* the lanes begin here, right of their labels */
#define RIGHT	1180
#define LABELS	3   /* rows of labels above the lanes */
#define LETTER	6.4 /* px: the average width of a letter */
#define UNDREWN 0.3 /* px: a shorter span is not drawn */

static const struct {
	const char *class, *word;
} phases[PHASE_KINDS] = {{"train", "training"}, {"hold", "held until the agreement"},
	{"reach", "training to the agreed step"}, {"save", "saving"},
	{"stay", "saved, waits for the others"}};

static const struct {
	const char *shape, *word;
} events[EVENT_KINDS] = {{"er", "reported"}, {"ea", "acknowledged"}, {"es", "saved"},
	{"ex", "exited"}, {"ed", "declared dead"}};

int64_t timeline_tick(int64_t length, int most)
{
	static const int64_t ticks[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000,
		15000, 30000, 60000, 120000, 300000, 600000, 900000, 1800000, 3600000, 7200000,
		10800000, 21600000, 43200000, 86400000};
	const size_t count = sizeof(ticks) / sizeof(ticks[0]);
	for (size_t i = 0; i < count; i++)
		if (length / ticks[i] <= most)
			return ticks[i];
	/* Otherwise use whole days. */
	return (length / most / ticks[count - 1] + 1) * ticks[count - 1];
}

void timeline_add_time(struct text *text, int64_t ms)
{
	if (ms < 0) {
		text_add(text, "\xe2\x88\x92");
		ms = -ms;
	}
	const int64_t seconds = ms / 1000;
	if (ms == 0)
		text_add(text, "0");
	else if (ms < 1000)
		text_addf(text, "%" PRId64 " ms", ms);
	else if (seconds < 60 && ms % 1000 >= 100)
		text_addf(text, "%" PRId64 ".%d s", seconds, (int)(ms % 1000 / 100));
	else if (seconds < 60)
		text_addf(text, "%" PRId64 " s", seconds);
	else if (seconds < 3600 && seconds % 60)
		text_addf(text, "%" PRId64 " min %d s", seconds / 60, (int)(seconds % 60));
	else if (seconds < 3600)
		text_addf(text, "%" PRId64 " min", seconds / 60);
	else if (seconds / 60 % 60)
		text_addf(text, "%" PRId64 " h %d min", seconds / 3600, (int)(seconds / 60 % 60));
	else
		text_addf(text, "%" PRId64 " h", seconds / 3600);
}

void timeline_add_xml(struct text *text, const char *string)
{
	struct text plain = {0};
	text_add_escaped(&plain, string);
	for (const char *at = text_string(&plain); *at; at++) {
		/* XML cannot hold U+FFFE and U+FFFF, although they have a UTF-8 form. */
		if (strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0) {
			text_add(text, "?");
			at += 2;
			continue;
		}
		switch (*at) {
		case '&': text_add(text, "&amp;"); break;
		case '<': text_add(text, "&lt;"); break;
		case '>': text_add(text, "&gt;"); break;
		case '"': text_add(text, "&quot;"); break;
		case '\'': text_add(text, "&#39;"); break;
		default: text_add_bytes(text, at, 1);
		}
	}
	text_release(&plain);
}

/* ---- Positions ---- */

/* A span of time, which is drawn from LEFT to RIGHT. */
struct scale {
	int64_t from, to;
};

static double place(const struct scale *scale, int64_t at)
{
	if (at <= scale->from)
		return LEFT;
	if (at >= scale->to)
		return RIGHT;
	return LEFT +
	       (double)(at - scale->from) * (RIGHT - LEFT) / (double)(scale->to - scale->from);
}

static bool is_within(const struct scale *scale, int64_t at)
{
	return at >= scale->from && at <= scale->to;
}

static bool is_zoomed(const struct timeline_attempt *attempt)
{
	return attempt->zoom_to > attempt->zoom_from;
}

/* The time that the lanes show, with some room before and after it. */
static struct scale panel_scale(const struct timeline_attempt *attempt)
{
	struct scale scale = {attempt->began, attempt->ended};
	if (is_zoomed(attempt)) {
		int64_t length = attempt->zoom_to - attempt->zoom_from;
		scale = (struct scale){attempt->zoom_from, attempt->zoom_to};
		/* Draw the deadline if it is near; otherwise add_attempt mentions it in words. */
		if (attempt->deadline > scale.to && attempt->deadline - scale.to <= 2 * length)
			scale.to = attempt->deadline;
		scale.from -= (scale.to - scale.from) / 20;
	}
	scale.to += (scale.to - scale.from) / 40;
	if (scale.to <= scale.from)
		scale.to = scale.from + 1;
	return scale;
}

static double lane_height(uint64_t tasks)
{
	if (tasks <= 16)
		return 26;
	if (tasks <= 64)
		return 15;
	if (tasks <= 128)
		return 9;
	return tasks <= 512 ? 3 : 1536 / (double)tasks;
}

static void add_line(struct text *text, const char *class, double x, double from, double to)
{
	text_addf(text, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>\n", class, x, from, to);
}

static void begin_words(struct text *text, const char *class, double x, double y)
{
	text_addf(text, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
}

/* Add the time axis below the lanes. Its labels are the time since `zero`. */
static void add_axis(
	struct text *text, const struct scale *scale, int64_t zero, double top, double bottom)
{
	const int64_t tick = timeline_tick(scale->to - scale->from, 10);
	int64_t at = zero - (zero - scale->from) / tick * tick;
	for (; at <= scale->to; at += tick) {
		double x = place(scale, at);
		add_line(text, "grid", x, top, bottom + 4);
		begin_words(text, "tick", x, bottom + 17);
		text_add(text, at > zero ? "+" : "");
		timeline_add_time(text, at - zero);
		text_add(text, "</text>\n");
	}
}

/* ---- The lanes ---- */

static void add_mark_words(struct text *text, const struct timeline_mark *mark, int64_t zero)
{
	text_addf(text, "\n%s ", events[mark->event].word);
	text_add(text, mark->at > zero ? "+" : "");
	timeline_add_time(text, mark->at - zero);
	if (mark->has_step)
		text_addf(text, ", step %" PRIu64, mark->step);
}

static void add_span(struct text *text, const struct scale *scale, const struct timeline_span *span,
	double y, double height)
{
	double from = place(scale, span->from), to = place(scale, span->to);
	if (span->to <= scale->from || span->from >= scale->to || to - from < UNDREWN)
		return;
	text_addf(text, "<path class=\"%s\" d=\"M%.1f %.1fH%.1fv%.1fH%.1fz\"/>",
		phases[span->phase].class, from, y, to, height, from);
}

/* The next span and mark to draw; both are sorted by task. */
struct cursor {
	uint64_t task;
	size_t span, mark;
};

/* Draw what a task did: a tooltip, bars, and, if the lane is high enough, marks. */
static void add_lane(struct text *text, const struct timeline_attempt *attempt,
	struct cursor *cursor, const struct scale *scale, double y)
{
	const uint64_t task = cursor->task;
	const size_t first = cursor->mark;
	const struct timeline_lane *lane = &attempt->lanes[task];
	const double height = lane_height(attempt->tasks);
	const double bar = height < 4 ? height : height * 0.7;
	const int64_t zero = is_zoomed(attempt) ? attempt->zoom_from : attempt->began;
	text_addf(text, "<g class=\"lane\"><title>task %" PRIu64 " on ", task);
	timeline_add_xml(text, lane->host);
	text_add(text, ": ");
	timeline_add_xml(text, lane->state);
	while (cursor->mark < attempt->mark_count && attempt->marks[cursor->mark].task == task)
		add_mark_words(text, &attempt->marks[cursor->mark++], zero);
	text_add(text, "</title>");
	while (cursor->span < attempt->span_count && attempt->spans[cursor->span].task == task)
		add_span(text, scale, &attempt->spans[cursor->span++], y + (height - bar) / 2, bar);
	for (size_t i = first; i < cursor->mark; i++) {
		const struct timeline_mark *mark = &attempt->marks[i];
		if (is_within(scale, mark->at) && (height > 10 || mark->event == EVENT_DEAD))
			text_addf(text, "<use href=\"#%s\" x=\"%.1f\" y=\"%.1f\"/>",
				events[mark->event].shape, place(scale, mark->at), y + height / 2);
	}
	text_add(text, "</g>\n");
}

/* Add at most `most` bytes of a name, cut between characters. */
static void add_cut(struct text *text, const char *name, size_t most)
{
	char cut[4 * 64];
	size_t length = strlen(name);
	bool whole = length <= most;
	for (length = whole ? length : most; !whole && length && (name[length] & 0xc0) == 0x80;)
		length--;
	if (length >= sizeof(cut))
		length = sizeof(cut) - 1;
	memcpy(cut, name, length);
	cut[length] = '\0';
	timeline_add_xml(text, cut);
	text_add(text, whole ? "" : "\xe2\x80\xa6");
}

/* Label each task if there is room; otherwise each host's first task, and each 32nd. */
static void add_labels(struct text *text, const struct timeline_attempt *attempt, double top)
{
	const double height = lane_height(attempt->tasks);
	double last = -100;
	for (uint64_t i = 0; i < attempt->tasks; i++) {
		const struct timeline_lane *lane = &attempt->lanes[i];
		const bool new_host = !i || strcmp(lane->host, lane[-1].host) != 0;
		const double y = top + (double)i * height;
		if (height < 12 && i % 32 && (!new_host || y - last < 26))
			continue;
		if (y - last < 12)
			continue;
		if (height < 12)
			text_addf(text, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", 12, y, RIGHT);
		begin_words(text, lane->bad ? "task bad" : "task", LEFT - 10,
			height < 12 ? y + 11 : y + height / 2 + 4);
		add_cut(text, lane->host, 16);
		text_addf(text, " <tspan class=\"number\">%" PRIu64 "</tspan></text>\n", i);
		last = y;
	}
}

/* ---- Lines through all lanes ---- */

/* Add the label of a line in the first row in which it covers no other; if none, omit it. */
static void add_line_label(struct text *text, double x, double top, double ends[LABELS],
	const char *label, const char *class)
{
	const double width = LETTER * (double)strlen(label) + 8;
	const bool before = x + width > WIDTH;
	const double from = before ? x - width : x;
	int row = 0;
	while (row < LABELS && from < ends[row])
		row++;
	if (row == LABELS)
		return;
	ends[row] = from + width;
	const double y = top - 6 - 15 * row;
	add_line(text, class, x, y - 8, top);
	text_addf(text, "<text class=\"label%s\" x=\"%.1f\" y=\"%.1f\">", before ? " end" : "",
		before ? x - 4 : x + 4, y);
	timeline_add_xml(text, label);
	text_add(text, "</text>\n");
}

static void add_lines(struct text *text, const struct timeline_attempt *attempt,
	const struct scale *scale, double top, double bottom)
{
	double ends[LABELS] = {0};
	for (size_t i = 0; i < attempt->line_count; i++) {
		const struct timeline_line *line = &attempt->lines[i];
		if (!is_within(scale, line->at))
			continue;
		double x = place(scale, line->at);
		add_line(text, "line", x, top, bottom);
		add_line_label(text, x, top, ends, line->label, "line");
	}
	if (attempt->deadline && is_within(scale, attempt->deadline)) {
		double x = place(scale, attempt->deadline);
		add_line(text, "deadline", x, top, bottom);
		add_line_label(text, x, top, ends, "deadline", "deadline");
	}
}

/* ---- One attempt ---- */

static double add_title(struct text *text, const struct timeline_attempt *attempt, double y)
{
	char utc[32];
	begin_words(text, "title", 12, y + 24);
	text_add(text, "run ");
	timeline_add_xml(text, attempt->run);
	text_addf(text, ", attempt %" PRIu64 ": ", attempt->number);
	timeline_add_xml(text, attempt->word);
	text_add(text, "</text>\n");
	begin_words(text, "sub", 12, y + 44);
	clock_format_utc(attempt->began, utc);
	text_addf(text, "%" PRIu64 " task%s; started %.10s %.8s UTC, ", attempt->tasks,
		attempt->tasks == 1 ? "" : "s", utc, utc + 11);
	timeline_add_time(text, attempt->ended - attempt->began);
	if (attempt->agreed)
		text_addf(text, "; agreed step %" PRIu64, attempt->step);
	if (attempt->deadline && is_zoomed(attempt)) {
		text_add(text, "; grace ");
		timeline_add_time(text, attempt->deadline - attempt->zoom_from);
	}
	text_add(text, "</text>\n");
	if (!*attempt->why)
		return y + 54;
	begin_words(text, "sub", 12, y + 62);
	add_cut(text, attempt->why, 180);
	text_add(text, "</text>\n");
	return y + 72;
}

/* Add the whole attempt as one bar that shows which part of it is drawn large below. */
static double add_overview(struct text *text, const struct timeline_attempt *attempt,
	const struct scale *panel, double y)
{
	const struct scale whole = {attempt->began,
		attempt->ended > attempt->began ? attempt->ended : attempt->began + 1};
	double from = place(&whole, panel->from), to = place(&whole, panel->to);
	begin_words(text, "task", LEFT - 10, y + 15);
	text_add(text, "whole attempt</text>\n");
	text_addf(text, "<path class=\"train\" d=\"M%d %.1fH%dv14H%dz\"/>\n", LEFT, y + 4, RIGHT,
		LEFT);
	/* Draw at least 3 px, so that 5 s of 10 h are visible. */
	if (to - from < 3)
		from = to - 3 > LEFT ? to - 3 : LEFT, to = from + 3;
	text_addf(text, "<path class=\"funnel\" d=\"M%.1f %.1fH%.1fL%d %.1fH%dz\"/>\n", from,
		y + 20, to, RIGHT, y + 54 + 15 * LABELS + 12, LEFT);
	add_axis(text, &whole, attempt->began, y + 4, y + 18);
	text_addf(text, "<path class=\"part\" d=\"M%.1f %.1fH%.1fv18H%.1fz\"/>\n", from, y + 2, to,
		from);
	return y + 54;
}

static double add_attempt(struct text *text, const struct timeline_attempt *attempt, double y)
{
	const struct scale scale = panel_scale(attempt);
	const bool zoomed = is_zoomed(attempt);
	struct cursor cursor = {0};
	y = add_title(text, attempt, y);
	if (zoomed)
		y = add_overview(text, attempt, &scale, y);
	const double top = y + 15 * LABELS + 12;
	const double bottom = top + lane_height(attempt->tasks) * (double)attempt->tasks;
	if (zoomed && attempt->deadline > scale.from)
		text_addf(text, "<path class=\"grace\" d=\"M%.1f %.1fH%.1fV%.1fH%.1fz\"/>\n",
			place(&scale, attempt->zoom_from), top, place(&scale, attempt->deadline),
			bottom, place(&scale, attempt->zoom_from));
	add_axis(text, &scale, zoomed ? attempt->zoom_from : attempt->began, top, bottom);
	add_labels(text, attempt, top);
	for (; cursor.task < attempt->tasks; cursor.task++)
		add_lane(text, attempt, &cursor, &scale,
			top + (double)cursor.task * lane_height(attempt->tasks));
	add_lines(text, attempt, &scale, top, bottom);
	begin_words(text, "tick", (LEFT + RIGHT) / 2.0, bottom + 33);
	text_add(text, zoomed ? "time since the claim or the round" : "time since the start");
	if (zoomed && attempt->deadline > scale.to) {
		text_add(text, "; the deadline, +");
		timeline_add_time(text, attempt->deadline - attempt->zoom_from);
		text_add(text, ", is further to the right");
	}
	text_add(text, "</text>\n");
	return bottom + 48;
}

static double add_legend(struct text *text, double y)
{
	double x = 12;
	for (int i = 0; i < PHASE_KINDS; i++) {
		text_addf(text, "<path class=\"%s\" d=\"M%.1f %.1fh16v12h-16z\"/>", phases[i].class,
			x, y);
		begin_words(text, "key", x + 22, y + 10);
		text_addf(text, "%s</text>\n", phases[i].word);
		x += 22 + LETTER * (double)strlen(phases[i].word) + 14;
	}
	x = 12;
	for (int i = 0; i < EVENT_KINDS; i++) {
		text_addf(text, "<use href=\"#%s\" x=\"%.1f\" y=\"%.1f\"/>", events[i].shape, x + 8,
			y + 26);
		begin_words(text, "key", x + 22, y + 30);
		text_addf(text, "%s</text>\n", events[i].word);
		x += 22 + LETTER * (double)strlen(events[i].word) + 14;
	}
	text_addf(text, "<path class=\"grace\" d=\"M%.1f %.1fh16v12h-16z\"/>", x, y + 20);
	begin_words(text, "key", x + 22, y + 30);
	text_add(text, "grace period</text>\n");
	begin_words(text, "key", 12, y + 50);
	text_add(text,
		"Times are by each machine\xe2\x80\x99s own clock; events that must follow one "
		"another are drawn in that order. Point at a lane for its times.</text>\n");
	return y + 62;
}

static const char style[] =
	"svg.timeline{--ink:#1c2127;--dim:#57606a;--paper:#fff;--grid:#d8dee4;--train:#b4c0cc;"
	"--hold:#e69f00;--reach:#6cb6e8;--save:#0b5fa5;--stay:#1f9e77;--bad:#b3261e;"
	"--grace:#fbe9e7;font:12px system-ui,sans-serif;max-width:100%;height:auto}\n"
	"@media (prefers-color-scheme:dark){svg.timeline{--ink:#e6edf3;--dim:#9ea7b3;--paper:#14181d;"
	"--grid:#323a43;--train:#566371;--hold:#f0b429;--reach:#4aa3dd;--save:#2f6fd0;"
	"--stay:#2fb58a;--bad:#ff7b72;--grace:#3a2224}}\n"
	".timeline text{fill:var(--ink)}.timeline .title{font-size:19px;font-weight:600}"
	".timeline .sub,.timeline .key,.timeline .tick{fill:var(--dim)}.timeline .sub{font-size:13px}"
	".timeline .tick{text-anchor:middle}.timeline .task,.timeline .end{text-anchor:end}"
	".timeline .number{font-weight:600}.timeline .bad{fill:var(--bad)}"
	".timeline .paper{fill:var(--paper)}.timeline .grid{stroke:var(--grid);fill:none}"
	".timeline .line{stroke:var(--ink);stroke-dasharray:3 3;fill:none}"
	".timeline .deadline{stroke:var(--bad);stroke-width:2;fill:none}"
	".timeline .label{stroke:var(--paper);stroke-width:3px;paint-order:stroke}"
	".timeline .grace{fill:var(--grace)}.timeline .train{fill:var(--train)}"
	".timeline .hold{fill:var(--hold)}.timeline .reach{fill:var(--reach)}"
	".timeline .save{fill:var(--save)}.timeline .stay{fill:var(--stay)}"
	".timeline .part{fill:none;stroke:var(--bad);stroke-width:2}"
	".timeline .funnel{fill:var(--grid);opacity:.45}"
	".shape{fill:var(--ink);stroke:var(--paper)}.dead{stroke:var(--bad);"
	"stroke-width:3;fill:none}.timeline .lane:hover path{opacity:.75}\n";

static const char shapes[] = "<defs><path id=\"er\" class=\"shape\" d=\"M0-6L5 0 0 6-5 0z\"/>"
			     "<circle id=\"ea\" class=\"shape\" r=\"4\"/>"
			     "<path id=\"es\" class=\"shape\" d=\"M-4-4h8v8h-8z\"/>"
			     "<path id=\"ex\" class=\"shape\" d=\"M-1.5-8h3V8h-3z\"/>"
			     "<path id=\"ed\" class=\"dead\" d=\"M-5-5L5 5M-5 5L5-5\"/></defs>\n";

void timeline_add_svg(struct text *text, const struct timeline_attempt *attempts, size_t count)
{
	struct text body = {0};
	double y = 0;
	for (size_t i = 0; i < count; i++)
		y = add_attempt(&body, &attempts[i], y);
	y = add_legend(&body, y);
	text_addf(text,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" role=\"img\" "
		"width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n<title>",
		WIDTH, y, WIDTH, y);
	text_add(text, "Timeline of run ");
	timeline_add_xml(text, count ? attempts[0].run : "");
	text_addf(text, "</title>\n<style>%s</style>\n%s", style, shapes);
	text_add(text, "<path class=\"paper\" d=\"M0 0H");
	text_addf(text, "%dV%.0fH0z\"/>\n", WIDTH, y);
	text_add(text, text_string(&body));
	text_add(text, "</svg>\n");
	text->too_long |= body.too_long;
	text_release(&body);
}
