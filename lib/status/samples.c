/* SPDX-License-Identifier: MIT */
/* Prometheus wants all samples of a metric together, so each metric has a text of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "status/table.h"

enum metric {
	METRIC_ATTEMPT,
	METRIC_STATE,
	METRIC_TASKS,
	METRIC_STEP_MIN,
	METRIC_STEP_MAX,
	METRIC_SAVED,
	METRIC_SILENT,
	METRIC_DEADLINE,
	METRIC_ENDED,
	METRIC_TASK_STEP,
	METRICS,
};

static const struct {
	const char *name, *type, *help;
} about[METRICS] = {{"preempt_run_attempt", "gauge", "Number of the newest attempt."},
	{"preempt_run_state", "gauge", "1 for the state of the newest attempt."},
	{"preempt_run_tasks", "gauge", "Tasks of the newest attempt by state."},
	{"preempt_run_step_min", "gauge", "Lowest known step of a task."},
	{"preempt_run_step_max", "gauge", "Highest known step of a task."},
	{"preempt_run_saved_step", "gauge", "Newest saved step of the newest attempt."},
	{"preempt_run_silent_seconds", "gauge", "Longest time without a heartbeat of a task."},
	{"preempt_run_deadline_seconds", "gauge", "Time left until the machine goes away."},
	{"preempt_run_ended_attempts_total", "counter", "Attempts that have ended, by cause."},
	{"preempt_task_step", "gauge", "Step of each task, in jobs of up to 64 tasks."}};

struct sample_page {
	struct text samples[METRICS];
};

struct sample_page *samples_begin(void)
{
	return xcalloc(1, sizeof(struct sample_page));
}

/* Begin a sample. Names of runs, states and causes have no character that must be escaped. */
static void sample(struct sample_page *page, enum metric metric, const struct run_status *status,
	const char *label, const char *value)
{
	struct text *text = &page->samples[metric];
	text_addf(text, "%s{run=\"%s\"", about[metric].name, status->view.attempt.run);
	if (label)
		text_addf(text, ",%s=\"%s\"", label, value);
	text_add(text, "} ");
}

static void add_number(struct sample_page *page, enum metric metric,
	const struct run_status *status, uint64_t number)
{
	sample(page, metric, status, NULL, NULL);
	text_addf(&page->samples[metric], "%" PRIu64 "\n", number);
}

static void add_seconds(struct sample_page *page, enum metric metric,
	const struct run_status *status, int64_t milliseconds)
{
	sample(page, metric, status, NULL, NULL);
	text_addf(&page->samples[metric], "%.3f\n", (double)milliseconds / 1000);
}

static void add_tasks(struct sample_page *page, const struct run_status *status)
{
	const uint64_t tasks = status->view.attempt.tasks;
	uint64_t counts[TASK_STATES] = {0}, least = UINT64_MAX, most = 0;
	int64_t silent = -1;
	for (uint64_t i = 0; i < tasks; i++) {
		const struct run_task *task = &status->tasks[i];
		counts[task->state]++;
		silent = task->silent > silent ? task->silent : silent;
		if (!task->has_step)
			continue;
		least = task->step < least ? task->step : least;
		most = task->step > most ? task->step : most;
		if (tasks <= TABLE_TASKS) {
			char number[24];
			snprintf(number, sizeof(number), "%" PRIu64, i);
			sample(page, METRIC_TASK_STEP, status, "task", number);
			text_addf(&page->samples[METRIC_TASK_STEP], "%" PRIu64 "\n", task->step);
		}
	}
	for (enum task_state state = 0; state < TASK_STATES; state++) {
		sample(page, METRIC_TASKS, status, "state", task_state_word(state));
		text_addf(&page->samples[METRIC_TASKS], "%" PRIu64 "\n", counts[state]);
	}
	if (least != UINT64_MAX) {
		add_number(page, METRIC_STEP_MIN, status, least);
		add_number(page, METRIC_STEP_MAX, status, most);
	}
	if (silent >= 0)
		add_seconds(page, METRIC_SILENT, status, silent);
}

void samples_add(struct sample_page *page, const struct run_status *status, int64_t utc)
{
	const struct agreement_view *a = &status->view.agreement;
	uint64_t ended[CAUSE_KINDS] = {0};
	add_number(page, METRIC_ATTEMPT, status, status->view.attempt.number);
	sample(page, METRIC_STATE, status, "state", run_status_word(status));
	text_add(&page->samples[METRIC_STATE], "1\n");
	add_tasks(page, status);
	if (status->outcome.has_saved)
		add_number(page, METRIC_SAVED, status, status->outcome.saved);
	if (!a->closed && status->deadline_utc)
		add_seconds(page, METRIC_DEADLINE, status,
			status->deadline_utc > utc ? status->deadline_utc - utc : 0);
	for (size_t i = 0; i < status->history.count; i++)
		ended[status->history.past[i].cause]++;
	ended[status->outcome.cause] += a->closed;
	for (enum outcome_cause cause = CAUSE_COMPLETED; cause < CAUSE_KINDS; cause++) {
		sample(page, METRIC_ENDED, status, "cause", outcome_word(cause));
		text_addf(&page->samples[METRIC_ENDED], "%" PRIu64 "\n", ended[cause]);
	}
}

void samples_end(struct sample_page *page, struct text *text)
{
	for (enum metric metric = 0; metric < METRICS; metric++) {
		if (page->samples[metric].length)
			text_addf(text, "# HELP %s %s\n# TYPE %s %s\n%s", about[metric].name,
				about[metric].help, about[metric].name, about[metric].type,
				text_string(&page->samples[metric]));
		text_release(&page->samples[metric]);
	}
	free(page);
}
