/* SPDX-License-Identifier: MIT */
/* preempt-status: what a run is doing. See preempt-status(1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/process/descriptor.h"
#include "base/xalloc.h"
#include "preempt-status/page.h"
#include "preempt-status/screen.h"
#include "proto/runs.h"
#include "run/options.h"
#include "status/run_status.h"
#include "status/table.h"

#define EVERY  1000  /* ms between two readings of the beats */
#define SELDOM 15000 /* ms after which the keys are read even without news */

static bool follow, all, with_code, metrics;
static const char *timeline;

static const struct args_option options[] = {
	{"follow", NULL, "show it again whenever it changes; q ends", ARGS_FLAG, .target = &follow,
		.letter = 'f'},
	{"all", NULL, "a row for each task, and all earlier attempts", ARGS_FLAG, .target = &all,
		.letter = 'a'},
	{"metrics", NULL, "print Prometheus's text format", ARGS_FLAG, .target = &metrics},
	{"timeline", "FILE", "write a page, FILE.svg or FILE.html, with a lane per task", ARGS_TEXT,
		.target = &timeline},
	{"exit-code", NULL, "exit with the code of the attempt: 0 runs or finished, 42, 43, 44, 93",
		ARGS_FLAG, .target = &with_code},
	{0},
};
static const struct args_option common[] = {
	GROUP_STORE_ROW,
	GROUP_RUN_ROW("only this run (default: all of --store, else the scheduler's job)"),
	{"attempt", "K", "which attempt (default: the newest)", ARGS_UNSIGNED,
		.target = &group_options.attempt, .environment = "PREEMPT_ATTEMPT",
		.given = &group_options.attempt_given, .min = 1, .max = 999999999},
	GROUP_TIMEOUT_ROW("how long to try to reach the store (10s)"),
	GROUP_JSON_ROW("print JSON, an object per run"),
	{0},
};

/* The runs that are shown, as last read. */
struct session {
	struct store *store;
	char run[129]; /* the only run to show; empty: all runs of the store */
	struct run_status *runs;
	size_t count;
	int64_t read_at;
};

static enum status open_session(struct session *session, struct error *err)
{
	struct group_run own = {0};
	enum status status = STATUS_OK;
	const bool whole_store = !group_options.run && group_options.store;
	if (whole_store) {
		status = group_store_url("", false, own.url, sizeof(own.url), err);
	} else {
		status = group_find(IDENTITY_RUN, false, &own, err);
		snprintf(session->run, sizeof(session->run), "%s", own.identity.run);
	}
	if (status == STATUS_OK)
		status = store_open_patient(
			&session->store, own.url, STORE_READ_ONLY, group_timeout(10000), err);
	return status;
}

static void release_runs(struct run_status *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		run_status_release(&runs[i]);
	free(runs);
}

/* Return the earlier reading of this run; NULL: there is none. */
static const struct run_status *earlier(const struct session *session, const char *run)
{
	for (size_t i = 0; i < session->count; i++)
		if (strcmp(session->runs[i].view.attempt.run, run) == 0)
			return &session->runs[i];
	return NULL;
}

/* Read all runs again. If that fails, the earlier readings stay. */
static enum status read_session(struct session *session, struct error *err)
{
	struct run_summary run = {0};
	struct run_status *runs = NULL;
	size_t count = 0;
	enum status status = STATUS_OK;
	bool more = true;
	while (more && status == STATUS_OK) {
		const char *name = session->run;
		if (!*session->run) {
			status = runs_next(session->store, *run.name ? run.name : NULL, &run, err);
			name = run.name;
		}
		if (status != STATUS_OK)
			break;
		runs = xrealloc(runs, count + 1, sizeof(*runs));
		status = run_status_read(session->store, name, group_asked_attempt(),
			earlier(session, name), &runs[count], err);
		count += status == STATUS_OK;
		/* Skip a run that was deleted after it was listed, or has no such attempt. */
		if (status == STATUS_NO && !*session->run)
			status = STATUS_OK;
		more = !*session->run;
	}
	if (status == STATUS_NO && !*session->run)
		status = count ? STATUS_OK
			       : error_set(err, STATUS_NO, "%s: there is no run in this store",
					 store_where(session->store));
	if (status != STATUS_OK) {
		release_runs(runs, count);
		return status;
	}
	release_runs(session->runs, session->count);
	session->runs = runs;
	session->count = count;
	session->read_at = clock_now();
	return STATUS_OK;
}

static void render(
	const struct session *session, const struct table_style *style, struct text *text)
{
	struct sample_page *page = metrics ? samples_begin() : NULL;
	for (size_t i = 0; i < session->count; i++) {
		if (metrics) {
			samples_add(page, &session->runs[i], style->utc);
		} else if (group_options.json) {
			table_add_json(text, &session->runs[i], style);
		} else {
			text_add(text, i ? "\n" : "");
			table_add(text, &session->runs[i], style);
		}
	}
	if (metrics)
		samples_end(page, text);
}

/* False: stdout is lost, and a message has told why. */
static bool print(const struct session *session, bool terminal, const struct error *trouble)
{
	bool printed = true;
	size_t width = 0, height;
	struct text text = {0};
	const char *no_colour = getenv("NO_COLOR");
	if (terminal)
		screen_size(&width, &height);
	const struct table_style style = {.colour = terminal && !(no_colour && *no_colour),
		.all = all,
		.width = width,
		.utc = clock_utc()};
	if (trouble) {
		text_add(&text, "not up to date: ");
		text_add_escaped(&text, trouble->text);
		text_add(&text, "\n");
	}
	render(session, &style, &text);
	if (follow && terminal)
		screen_draw(&text);
	else
		printed = message_print(text_string(&text));
	text_release(&text);
	return printed;
}

/* The most severe code of the runs that are shown. */
static int code_of(const struct session *session)
{
	int worst = 0;
	for (size_t i = 0; i < session->count && with_code; i++) {
		int code = run_status_code(&session->runs[i]);
		worst = code > worst ? code : worst;
	}
	return worst;
}

/* True while tasks may write records that cause no news: then read the keys each time. */
static bool is_moving(const struct run_status *run)
{
	return !run->view.agreement.closed &&
	       (run->view.agreement.round || !run_status_has_joined(run));
}

/*
 * Wait for news, at most until the beats are to be read. STATUS_OK: read the keys again; STATUS_NO:
 * only the beats; else: the store cannot be asked. trouble: the last reading failed.
 */
static enum status await_change(struct session *session, int wake, bool trouble, struct error *err)
{
	struct run_status *run = &session->runs[0];
	/* Reading a large attempt each second would overload the store. */
	int64_t every = view_is_large(&run->view) ? 5 * EVERY : EVERY;
	char group[KEYS_GROUP];
	if (trouble) { /* the store may fail at once, or repeat news that were not read */
		(void)descriptor_wait(wake, clock_after(every));
		return STATUS_OK;
	}
	keys_group(&run->view.attempt, group);
	struct store_awaited awaited = {.group = group,
		.heard = run->view.heard,
		.prefix = run->view.attempt.prefix,
		.since = run->view.revision,
		.every = every,
		.age = every};
	enum status status =
		store_await_news(session->store, &awaited, clock_after(every), wake, err);
	bool due = session->count > 1 || is_moving(run) || run->view.agreement.closed ||
		   clock_now() - session->read_at >= SELDOM;
	return status != STATUS_TIMEOUT ? status : due ? STATUS_OK : STATUS_NO;
}

/* Return a number that changes with each new record or new state of a task that is shown. */
static uint64_t hash_shown(const struct session *session)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < session->count; i++) {
		const struct run_status *run = &session->runs[i];
		hash = (hash * 31 + run->view.attempt.number) * 31 + run->mark_count;
		for (uint64_t task = 0; task < run->view.attempt.tasks; task++)
			hash = hash * 31 + run->tasks[task].state;
	}
	return hash;
}

static enum status read_beats(struct session *session, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < session->count && status == STATUS_OK; i++)
		status = run_status_read_beats(session->store, &session->runs[i], err);
	return status;
}

static int follow_runs(struct session *session, bool terminal)
{
	struct error err, *trouble = NULL;
	enum screen_event event = SCREEN_NOTHING;
	int wake = screen_begin(terminal, &err);
	if (wake < 0)
		return message_fail(&err);
	bool printed = print(session, terminal, NULL);
	while (event != SCREEN_END && printed) {
		const uint64_t shown = hash_shown(session);
		const bool troubled = trouble;
		enum status status = await_change(session, wake, troubled, &err);
		event = screen_take();
		if (event == SCREEN_END)
			break;
		if (status == STATUS_OK)
			status = read_session(session, &err);
		else if (status == STATUS_NO)
			status = read_beats(session, &err);
		trouble = status == STATUS_OK ? NULL : &err;
		if (terminal || hash_shown(session) != shown)
			printed = print(session, terminal, trouble);
		else if (trouble && !troubled)
			message_error("not up to date: %s", trouble->text);
	}
	screen_end();
	if (!printed)
		return STATUS_TEMPORARY;
	return screen_signal() ? 128 + screen_signal() : code_of(session);
}

/* With --exit-code: read the beats again until each task is known to beat or to be silent. */
static enum status await_proof(struct session *session, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < session->count; i++)
		while (status == STATUS_OK && !run_status_is_proved(&session->runs[i])) {
			clock_sleep_until(clock_after(EVERY / 2));
			status = run_status_read_beats(session->store, &session->runs[i], err);
		}
	return status;
}

static int run(const struct args_rest *rest)
{
	struct error err;
	struct session session = {0};
	int code;
	(void)rest;
	if (metrics && (follow || group_options.json)) {
		message_error("--metrics is printed once, and as text: leave out %s",
			follow ? "--follow" : "--json");
		return STATUS_USAGE;
	}
	if (timeline && (follow || metrics || group_options.json || !page_is_known(timeline))) {
		message_error(
			page_is_known(timeline)
				? "--timeline: leave out --follow, --metrics and --json"
				: "--timeline: the name of the file must end with .svg or .html");
		return STATUS_USAGE;
	}
	const bool terminal = screen_is_there() && !group_options.json && !metrics;
	enum status status = open_session(&session, &err);
	if (status == STATUS_OK)
		status = read_session(&session, &err);
	if (status == STATUS_OK && timeline)
		status =
			page_write(timeline, session.store, session.runs, session.count, all, &err);
	else if (status == STATUS_OK && with_code && !follow)
		status = await_proof(&session, &err);
	if (status != STATUS_OK) {
		code = message_fail(&err);
	} else if (timeline) {
		code = code_of(&session);
	} else if (follow) {
		code = follow_runs(&session, terminal);
	} else {
		bool printed = print(&session, terminal, NULL);
		code = code_of(&session);
		if (!printed && code == 0)
			code = STATUS_TEMPORARY;
	}
	release_runs(session.runs, session.count);
	store_close(session.store);
	return code;
}

static const struct args_command commands[] = {
	{NULL, "[OPTION...]", NULL, options, common, 0, 0, false, false, run},
	{0},
};

int main(int argc, char **argv)
{
	return args_main(
		&(struct args_program){"preempt-status",
			"Show what a run is doing: its tasks, a preemption, the earlier attempts.",
			commands,
			"watch:    preempt-status --run mymodel --follow\n"
			"monitor:  preempt-status --run mymodel --exit-code >/dev/null\n"},
		argc, argv);
}
