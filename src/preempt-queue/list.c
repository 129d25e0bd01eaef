/* SPDX-License-Identifier: MIT */
/* list, show, workers: print what is known of commands and workers. */
#include <inttypes.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "client.h"
#include "queue/say.h"
#include "queue/spec.h"

/* ---- The table ---- */

/* Why a command is in its state, as "  (ended with exit code 3)"; nothing if that is plain. */
static void add_reason(struct text *text, const struct queue_view *view)
{
	const struct queue_ending *ending = &view->result.ending;
	char how[64];
	if (view->state == QUEUE_FAILED) {
		queue_ending_describe(ending, how);
		text_addf(text, "  (%s%s", how, *ending->text ? ": " : "");
		text_add_escaped(text, ending->text);
		text_add(text, ")");
	} else if (view->state == QUEUE_CANCELLED && view->because) {
		text_addf(text, "  (because of command %" PRIu64 ")", view->because);
	} else if (view->state == QUEUE_BLOCKED) {
		text_addf(text, "  (after %s)", view->after ? view->after : "");
	} else if (view->state == QUEUE_DAMAGED) {
		text_add(text, "  (its row cannot be read; forget it)");
	}
}

/* "1.2s", "3m05s"; "-": it has not run. */
static void add_runtime(struct text *text, const struct queue_view *view)
{
	int64_t took = view->result.ended - view->result.started;
	if (view->state == QUEUE_RUNNING)
		took = clock_utc() - view->since;
	else if (!view->result.started)
		took = -1;
	if (took < 0)
		text_add(text, "-");
	else if (took < 60000)
		text_addf(text, "%d.%ds", (int)(took / 1000), (int)(took % 1000 / 100));
	else
		text_add_age(text, took);
}

static void rows_heading(struct text *text)
{
	text_addf(text, "%7s %-9s %5s %6s %-10s %-8s %s\n", "ID", "STATE", "TRIES", "TIME",
		"WORKER", "TAG", "COMMAND");
}

/* width: columns; 0: any. */
static void rows_add(struct text *text, const struct queue_view *view, size_t width)
{
	struct text row = {0}, worker = {0}, tag = {0}, took = {0}, command = {0}, reason = {0};
	const char *name = view->result.worker;
	text_add_escaped(&worker, *name ? name : "-");
	text_add_escaped(&tag, view->item.tag ? view->item.tag : "-");
	add_runtime(&took, view);
	joblog_command(&command, &view->item);
	add_reason(&reason, view);
	text_addf(&row, "%7" PRIu64 " %-9s %5" PRIu64 " %6s %-10s %-8s ", view->item.id,
		view->told ? "ending" : queue_state_word(view->state), view->history.starts,
		text_string(&took), text_string(&worker), text_string(&tag));
	/* The command is cut, so that the reason stays; if that is too long, too, the row. */
	size_t rest = say_characters(text_string(&row)) + say_characters(text_string(&reason));
	if (width)
		say_cut(&command, width > rest + 8 ? width - rest : 8);
	text_addf(&row, "%s%s", text_string(&command), text_string(&reason));
	say_cut(&row, width);
	text_addf(text, "%s\n", text_string(&row));
	struct text *const all[] = {&row, &worker, &tag, &took, &command, &reason};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		text_release(all[i]);
}

/* ---- JSON ---- */

/* One line, with a newline. Takes the object over. */
static void rows_json(struct text *text, struct json_object *object)
{
	json_add_line(object, text);
	text_add(text, "\n");
	json_object_put(object);
}

/* "name value" lines. Takes the object over. */
static void rows_describe(struct text *text, struct json_object *object)
{
	json_object_object_foreach(object, name, value)
	{
		bool several = json_object_is_type(value, json_type_array);
		size_t count = several ? json_object_array_length(value) : 1;
		text_addf(text, "%-13s", name);
		for (size_t i = 0; i < count; i++) {
			struct json_object *one =
				several ? json_object_array_get_idx(value, i) : value;
			struct text word = {0};
			/* The words of a command, and variables, could be typed again. */
			if (several)
				text_add_shell_word(&word, json_object_get_string(one));
			else
				text_add(&word, json_object_get_string(one));
			text_add(text, " ");
			text_add_escaped(text, text_string(&word));
			text_release(&word);
		}
		text_add(text, "\n");
	}
	json_object_put(object);
}

/* ---- list ---- */

void list_totals(struct text *text, const uint64_t in[QUEUE_STATES])
{
	uint64_t all = 0;
	const char *between = ": ";
	for (size_t i = 0; i < QUEUE_STATES; i++)
		all += in[i];
	text_addf(text, "%" PRIu64 " command%s", all, all == 1 ? "" : "s");
	for (size_t i = 0; i < QUEUE_STATES; i++) {
		/* What is over comes first. */
		enum queue_state state = (QUEUE_SUCCEEDED + i) % QUEUE_STATES;
		if (!in[state])
			continue;
		text_addf(text, "%s%" PRIu64 " %s", between, in[state], queue_state_word(state));
		between = ", ";
	}
}

static enum status print_row(void *context, const struct queue_view *view)
{
	struct lister *lister = context;
	struct text row = {0};
	if (options.joblog && !view->result.started)
		return STATUS_OK;
	if (options.joblog)
		joblog_row(&row, &view->item, &view->result);
	else if (options.json)
		rows_json(&row, spec_show_view(view));
	else
		rows_add(&row, view, say_width(STDOUT_FILENO));
	message_progress(NULL);
	fputs(text_string(&row), stdout);
	text_release(&row);
	lister->in[view->state]++;
	if (++lister->rows % 256 == 0 && client_stdout_lost())
		return error_set(lister->err, STATUS_TEMPORARY, "cannot write to stdout");
	/* This ends the visit. */
	return lister->rows == options.most || client_interrupted() ? STATUS_NO : STATUS_OK;
}

static bool is_selected(const struct queue_item *item)
{
	const struct queue_selection *set = &options.set;
	bool found = !set->ids;
	for (size_t i = 0; i < set->count && !found; i++)
		found = set->ids[i] == item->id;
	return found && (!set->tag || (item->tag && !strcmp(set->tag, item->tag)));
}

static enum status print_end(void *context, const struct queue_view *view)
{
	const struct lister *lister = context;
	/* It may have been put back since, and even be over again. */
	bool is_meant = view->over > lister->over && view->over <= lister->until &&
			is_selected(&view->item);
	return is_meant ? print_row(context, view) : STATUS_OK;
}

enum status list_ended(struct queue *queue, struct lister *lister, uint64_t over, struct error *err)
{
	const struct queue_selection set = {.beyond = &lister->over};
	enum status status = STATUS_OK;
	lister->err = err;
	lister->until = over;
	if (lister->begun && over > lister->over)
		status = queue_visit(queue, &set, print_end, lister, err);
	lister->begun = true;
	if (status == STATUS_OK)
		lister->over = over;
	if (status == STATUS_OK && client_stdout_lost())
		return error_set(err, STATUS_TEMPORARY, "cannot write to stdout");
	return status;
}

static enum status list(struct queue *queue, void *context, struct error *err)
{
	struct lister *lister = context;
	struct text text = {0};
	lister->err = err;
	if (options.joblog)
		text_add(&text, JOBLOG_HEADING);
	else if (!options.json)
		rows_heading(&text);
	fputs(text_string(&text), stdout);
	enum status status = queue_visit(queue, &options.set, print_row, lister, err);
	if (status == STATUS_NO)
		status = STATUS_OK;
	text.length = 0;
	/* Only for people: programs read one row for each command. */
	if (status == STATUS_OK && isatty(STDOUT_FILENO) && !options.json && !options.joblog) {
		list_totals(&text, lister->in);
		printf("%s\n", text_string(&text));
	}
	text_release(&text);
	return status;
}

/* Parse names of states, separated by commas. */
static enum status parse_states(unsigned *states, struct error *err)
{
	char *copy = xstrdup(options.states), *rest = copy;
	enum status status = STATUS_OK;
	for (char *word; status == STATUS_OK && (word = strsep(&rest, ","));) {
		enum queue_state state;
		if (!strcmp(word, "any"))
			*states |= ~0u;
		else if (queue_state_parse(word, &state))
			*states |= 1u << state;
		else
			status = error_set(err, STATUS_USAGE,
				"--state: \"%s\" is not waiting, running, blocked, succeeded, failed, "
				"cancelled or damaged; see preempt-queue list --help",
				word);
	}
	free(copy);
	return status;
}

int run_list(const struct args_rest *rest)
{
	struct error err;
	struct lister lister = {0};
	if (options.states && parse_states(&options.set.states, &err) != STATUS_OK)
		return message_fail(&err);
	if (options.joblog && options.json)
		return client_refuse("--joblog and --json exclude each other");
	return client_run(rest, 0, list, &lister);
}

/* ---- show ---- */

static enum status show(struct queue *queue, void *context, struct error *err)
{
	(void)context;
	for (size_t i = 0; i < options.set.count; i++) {
		struct queue_view view;
		struct text text = {0};
		enum status status = queue_inspect(queue, options.set.ids[i], &view, err);
		if (status == STATUS_NO)
			return error_set(err, status, "queue %s: there is no command %" PRIu64,
				queue->name, options.set.ids[i]);
		if (status != STATUS_OK)
			return status;
		text_add(&text, i && !options.json ? "\n" : "");
		if (options.json)
			rows_json(&text, spec_show_view(&view));
		else
			rows_describe(&text, spec_show_view(&view));
		fputs(text_string(&text), stdout);
		text_release(&text);
		queue_view_release(&view);
	}
	return STATUS_OK;
}

int run_show(const struct args_rest *rest)
{
	return client_run(rest, 0, show, NULL);
}

/* ---- workers ---- */

static void print_worker(const struct queue_worker *worker)
{
	char started[32];
	struct text text = {0}, name = {0}, host = {0};
	if (options.json) {
		rows_json(&text, spec_show_worker(worker));
	} else {
		text_add_escaped(&name, worker->name);
		text_add_escaped(&host, worker->process.host);
		clock_format_utc(worker->started, started);
		text_addf(&text, "%-24s %5" PRIu64 " %5" PRIu64 " %7" PRIu64 " %-16s %8d %s\n",
			text_string(&name), worker->index, worker->slots, worker->running,
			text_string(&host), (int)worker->process.pid, started);
	}
	fputs(text_string(&text), stdout);
	text_release(&text);
	text_release(&name);
	text_release(&host);
}

static enum status show_workers(struct queue *queue, void *context, struct error *err)
{
	struct queue_worker *workers = NULL;
	size_t count = 0;
	(void)context;
	enum status status = queue_workers(queue, &workers, &count, err);
	if (status == STATUS_OK && !options.json)
		printf("%-24s %5s %5s %7s %-16s %8s %s\n", "WORKER", "INDEX", "SLOTS", "RUNNING",
			"HOST", "PID", "STARTED");
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		print_worker(&workers[i]);
	free(workers);
	return status;
}

int run_workers(const struct args_rest *rest)
{
	return client_run(rest, 0, show_workers, NULL);
}
