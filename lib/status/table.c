/* SPDX-License-Identifier: MIT */
#include "status/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"

#define PAST_SHOWN 5 /* earlier attempts in the table, unless style.all is set */

enum colour { PLAIN, BOLD, RED, GREEN, YELLOW };

static void paint(struct text *text, const struct table_style *style, enum colour colour)
{
	static const char *const codes[] = {
		"\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[33m"};
	if (style->colour)
		text_add(text, codes[colour]);
}

/* Add a duration, below 10 s with tenths: "2h03m", "12s", "0.4s". */
static void add_span(struct text *text, int64_t milliseconds)
{
	if (milliseconds >= 10000)
		text_add_age(text, milliseconds);
	else if (milliseconds >= 0)
		text_addf(text, "%d.%ds", (int)(milliseconds / 1000),
			(int)(milliseconds % 1000 / 100));
	else
		text_add(text, "-");
}

/* Add the duration in a column of this width; "-" if it is not known. */
static void add_cell(struct text *text, int width, bool known, int64_t milliseconds)
{
	struct text span = {0};
	if (known)
		add_span(&span, milliseconds);
	text_addf(text, " %*s", width, known ? text_string(&span) : "-");
	text_release(&span);
}

static enum colour colour_of(enum task_state state)
{
	if (task_state_is_bad(state))
		return RED;
	if (state == TASK_HELD || state == TASK_SAVING)
		return YELLOW;
	return state == TASK_SAVED || state == TASK_LEFT_SAVED || state == TASK_FINISHED ? GREEN
											 : PLAIN;
}

static void add_state(struct text *text, const struct table_style *style, enum task_state state)
{
	enum colour colour = colour_of(state);
	text_add(text, " ");
	if (colour != PLAIN)
		paint(text, style, colour);
	text_addf(text, "%-8s", task_state_word(state));
	if (colour != PLAIN)
		paint(text, style, PLAIN);
}

static void add_rate(struct text *text, double rate)
{
	if (rate <= 0)
		text_addf(text, " %6s", "-");
	else
		text_addf(text, rate < 10 ? " %6.2f" : rate < 1000 ? " %6.1f" : " %6.0f", rate);
}

static void add_step(struct text *text, bool known, uint64_t step)
{
	if (known)
		text_addf(text, " %9" PRIu64, step);
	else
		text_addf(text, " %9s", "-");
}

/* ---- The lines above the tasks ---- */

static uint64_t count_of(const struct run_status *status, bool (*is)(const struct run_task *task))
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < status->view.attempt.tasks; i++)
		count += is(&status->tasks[i]);
	return count;
}

static bool has_reported(const struct run_task *task)
{
	return task->reported != 0;
}

static bool has_acked(const struct run_task *task)
{
	return task->acked != 0;
}

static bool has_saved(const struct run_task *task)
{
	return task->saved != 0;
}

static void add_title(
	struct text *text, const struct run_status *status, const struct table_style *style)
{
	const struct attempt *attempt = &status->view.attempt;
	const char *word = run_status_word(status);
	const bool bad = run_status_code(status) != 0;
	paint(text, style, BOLD);
	text_addf(text, "run %s  attempt %" PRIu64, attempt->run, attempt->number);
	paint(text, style, PLAIN);
	text_addf(text, "  %" PRIu64 " task%s  ", attempt->tasks, attempt->tasks == 1 ? "" : "s");
	if (bad)
		paint(text, style, RED);
	text_add(text, word);
	if (bad)
		paint(text, style, PLAIN);
	if (status->view.agreement.closed && status->outcome.lasted >= 0) {
		text_add(text, " after ");
		add_span(text, status->outcome.lasted);
	} else if (!status->view.agreement.closed && status->opened) {
		text_add(text, ", up ");
		add_span(text, style->utc - status->opened);
	}
	if (status->outcome.has_saved)
		text_addf(text, "  saved step %" PRIu64, status->outcome.saved);
	text_add(text, "\n");
}

static void add_claim(
	struct text *text, const struct run_status *status, const struct table_style *style)
{
	const struct view_claim *claim = &status->view.claim;
	if (!status->view.agreement.claimed)
		return;
	text_add(text, "claim: ");
	if (claim->outside)
		text_add(text, "from outside, on ");
	else
		text_addf(text, "task %" PRIu64 " on ", claim->task);
	text_add_escaped(text, claim->host);
	if (claim->utc) {
		text_add(text, ", ");
		add_span(text, style->utc > claim->utc ? style->utc - claim->utc : 0);
		text_add(text, " ago");
	}
	text_add(text, ": ");
	text_add_escaped(text, claim->source);
	if (*claim->reason) {
		text_add(text, ": ");
		text_add_escaped(text, claim->reason);
	}
	text_add(text, "\n");
}

static void add_deadline(
	struct text *text, const struct run_status *status, const struct table_style *style)
{
	char utc[32];
	const struct agreement_view *a = &status->view.agreement;
	if (!status->deadline_utc)
		return;
	clock_format_utc(status->deadline_utc, utc);
	text_addf(text, "deadline: %s", utc);
	int64_t left = status->deadline_utc - style->utc;
	if (!a->closed && left > 0) {
		text_add(text, ", ");
		add_span(text, left);
		text_add(text, " left");
	} else if (!a->closed) {
		text_add(text, ", over");
	}
	text_add(text, "\n");
}

static void add_round(struct text *text, const struct run_status *status)
{
	const struct agreement_view *a = &status->view.agreement;
	if (!a->round)
		return;
	text_addf(text, "round %" PRIu64 ": ", a->round);
	if (!a->decided)
		text_add(text, "not agreed yet");
	else if (a->decision.kind == KIND_NONE)
		text_add(text, "no task has called preempt_step, there is no step to save at");
	else if (a->decision.kind == KIND_EACH)
		text_add(text, "each task saves at its own next step, then leaves");
	else
		text_addf(text, "all save at step %" PRIu64 ", then %s", a->decision.step,
			a->decision.kind == KIND_EXIT ? "leave" : "train on");
	text_addf(text,
		"\n  of %" PRIu64 ": %" PRIu64 " reported, %" PRIu64 " acked, %" PRIu64 " saved\n",
		status->view.attempt.tasks, count_of(status, has_reported),
		count_of(status, has_acked), count_of(status, has_saved));
}

static void add_trouble(struct text *text, const struct run_status *status)
{
	const struct view *view = &status->view;
	if (*view->seal && strcmp(view->seal, "claim") != 0 && *view->seal_text) {
		text_add(text, "broken: ");
		text_add_escaped(text, view->seal_text);
		text_add(text, "\n");
	}
	if (view->error.present) {
		text_addf(text, "error: task %" PRIu64 " on ", view->error.task);
		text_add_escaped(text, view->error.host);
		text_addf(text, ", code %d: ", view->error.code);
		text_add_escaped(text, view->error.line);
		text_add(text, "\n");
	}
	if (status->outcome.refused) {
		text_add(text, "not run again: ");
		text_add_escaped(text, status->outcome.why);
		text_add(text, "\n");
	}
}

/* ---- The tasks ---- */

/* Add the time since the round was opened; at least 0, because clocks of machines differ. */
static void add_after(struct text *text, const struct run_status *status, int64_t utc)
{
	const int64_t opened = status->round_opened;
	add_cell(text, 5, utc && opened, utc > opened ? utc - opened : 0);
}

static void add_task(struct text *text, const struct run_status *status,
	const struct table_style *style, uint64_t i)
{
	const struct run_task *task = &status->tasks[i];
	const char *host = status->view.members[i].agent.host;
	char shown[4 * sizeof(status->view.members[i].agent.host)];
	text_escape(shown, sizeof(shown), host, strlen(host));
	text_addf(text, "%5" PRIu64 " %-12.12s", i, *shown ? shown : "-");
	add_state(text, style, task->state);
	add_step(text, task->has_step, task->step);
	add_rate(text, task->rate);
	add_cell(text, 6, task->silent >= 0, task->silent);
	add_after(text, status, task->reported);
	add_after(text, status, task->acked);
	add_after(text, status, task->saved);
	add_cell(text, 5, task->saved != 0, task->took);
	text_add(text, "\n");
}

struct chosen {
	const struct run_status *status;
	enum task_state state;
};

static bool is_in_state(const void *context, uint64_t task)
{
	const struct chosen *chosen = context;
	return chosen->status->tasks[task].state == chosen->state;
}

/* Add one row for all tasks in a state: how many, their steps, the longest silence, which. */
static void add_group(struct text *text, const struct run_status *status,
	const struct table_style *style, enum task_state state)
{
	uint64_t count = 0, least = UINT64_MAX, most = 0;
	int64_t silent = -1;
	struct text set = {0};
	const struct chosen chosen = {status, state};
	for (uint64_t i = 0; i < status->view.attempt.tasks; i++) {
		const struct run_task *task = &status->tasks[i];
		if (task->state != state)
			continue;
		count++;
		silent = task->silent > silent ? task->silent : silent;
		if (task->has_step && task->step < least)
			least = task->step;
		if (task->has_step && task->step > most)
			most = task->step;
	}
	if (!count)
		return;
	keys_write_set(status->view.attempt.tasks, is_in_state, &chosen, &set);
	text_addf(text, "%6" PRIu64, count);
	add_state(text, style, state);
	add_step(text, least != UINT64_MAX, least);
	add_step(text, least != UINT64_MAX, most);
	add_cell(text, 6, silent >= 0, silent);
	text_addf(text, "  %s\n", text_string(&set));
	text_release(&set);
}

static void add_tasks(
	struct text *text, const struct run_status *status, const struct table_style *style)
{
	const uint64_t tasks = status->view.attempt.tasks;
	if (tasks <= TABLE_TASKS || style->all) {
		text_addf(text, "%5s %-12s %-8s %9s %6s %6s %5s %5s %5s %5s\n", "TASK", "HOST",
			"STATE", "STEP", "STEP/S", "BEAT", "HELD", "ACKED", "SAVED", "TOOK");
		for (uint64_t i = 0; i < tasks; i++)
			add_task(text, status, style, i);
		return;
	}
	text_addf(text, "%6s %-8s %9s %9s %6s  %s\n", "TASKS", "STATE", "STEP", "TO", "BEAT",
		"WHICH");
	for (enum task_state state = 0; state < TASK_STATES; state++)
		add_group(text, status, style, state);
}

static void add_past(
	struct text *text, const struct run_status *status, const struct table_style *style)
{
	const struct history *history = &status->history;
	size_t first = style->all || history->count <= PAST_SHOWN ? 0 : history->count - PAST_SHOWN;
	if (!history->count)
		return;
	text_addf(text, "%7s %-10s %9s %8s\n", "ATTEMPT", "ENDED", "SAVED", "LASTED");
	if (first)
		text_addf(text, "%7s (-a shows all %zu)\n", "...", history->count);
	for (size_t i = first; i < history->count; i++) {
		const struct outcome *past = &history->past[i];
		text_addf(text, "%7" PRIu64 " %-10s", past->attempt, outcome_word(past->cause));
		add_step(text, past->has_saved, past->saved);
		add_cell(text, 8, past->lasted >= 0, past->lasted);
		text_add(text, *past->text ? "  " : "");
		text_add_escaped(text, past->text);
		text_add(text, "\n");
	}
}

/* Cut lines to this width. Colours, and the continuation bytes of UTF-8, have no width. */
static void add_cut(struct text *text, const char *from, size_t width)
{
	size_t column = 0;
	for (; *from; from++) {
		if (*from == '\033') {
			size_t length = strcspn(from, "m") + 1;
			text_add_bytes(text, from, length);
			from += length - 1;
			continue;
		}
		bool counts = ((unsigned char)*from & 0xc0) != 0x80;
		if (*from == '\n')
			column = 0;
		else if (counts)
			column++;
		if (column <= width)
			text_add_bytes(text, from, 1);
	}
}

void table_add(struct text *text, const struct run_status *status, const struct table_style *style)
{
	struct text whole = {0};
	add_title(&whole, status, style);
	add_claim(&whole, status, style);
	add_deadline(&whole, status, style);
	add_round(&whole, status);
	add_trouble(&whole, status);
	add_tasks(&whole, status, style);
	add_past(&whole, status, style);
	if (style->width)
		add_cut(text, text_string(&whole), style->width);
	else
		text_add(text, text_string(&whole));
	text_release(&whole);
}
