/* SPDX-License-Identifier: MIT */
#include "status/run_status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "live/heartbeat.h"
#include "run/attempt.h"

static const struct {
	const char *word;
	bool bad;
} states[TASK_STATES] = {[TASK_MISSING] = {"missing", false},
	[TASK_JOINED] = {"joined", false},
	[TASK_RUNNING] = {"running", false},
	[TASK_HELD] = {"held", false},
	[TASK_SAVING] = {"saving", false},
	[TASK_SAVED] = {"saved", false},
	[TASK_SILENT] = {"silent", true},
	[TASK_DEAD] = {"dead", true},
	[TASK_FINISHED] = {"finished", false},
	[TASK_LEFT_SAVED] = {"left", false},
	[TASK_LEFT_UNSAVED] = {"unsaved", true},
	[TASK_FAILED] = {"failed", true},
	[TASK_ENDED] = {"ended", false}};

const char *task_state_word(enum task_state state)
{
	return states[state].word;
}

bool task_state_is_bad(enum task_state state)
{
	return states[state].bad;
}

/* ---- The entries ---- */

/* Return the rest of name after `kind`; NULL: name does not begin with it. */
static const char *behind(const char *name, const char *kind)
{
	size_t length = strlen(kind);
	return strncmp(name, kind, length) == 0 ? name + length : NULL;
}

/* Read kind, task and round of a mark from its key. False: this key is not an event. */
static bool name_mark(const char *name, struct run_mark *mark)
{
	static const struct {
		const char *kind;
		enum mark_kind mark;
		const char *numbers; /* r: round, t: task */
	} kinds[] = {{"TASK/", MARK_JOINED, "t"}, {"TERMINATED_WORKER", MARK_CLAIM, ""},
		{"ROUND/", MARK_ROUND, "r"}, {"STEP/", MARK_REPORT, "rt"},
		{"RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_", MARK_ACK, "t"},
		{"RECEIVED_SIGNAL_LAST_RUN_TO_CHECKPOINT/", MARK_ACK, "rt"},
		{"RUN_TO_CHECKPOINT", MARK_DECISION, ""},
		{"LAST_RUN_TO_CHECKPOINT/", MARK_DECISION, "r"}, {"SAVED/", MARK_SAVED, "rt"},
		{"ALL_SAVED/", MARK_ALL_SAVED, "r"}, {"DEAD/", MARK_DEAD, "t"},
		{"LEFT/", MARK_LEFT, "t"}, {"SEAL", MARK_SEAL, ""}, {"CLOSED", MARK_CLOSED, ""}};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *at = behind(name, kinds[i].kind);
		if (!at)
			continue;
		/* Keys of these kinds do not contain the round if it is round 1. */
		const bool first = kinds[i].mark == MARK_ACK || kinds[i].mark == MARK_DECISION;
		*mark = (struct run_mark){
			.kind = kinds[i].mark, .task = MARK_OF_RUN, .round = first};
		for (const char *number = kinds[i].numbers; *number; number++) {
			char *end;
			uint64_t value = strtoull(at, &end, 10);
			if (end == at)
				return false;
			*(*number == 'r' ? &mark->round : &mark->task) = value;
			at = end + (*end == '/' || *end == '_');
		}
		return *at == '\0';
	}
	return false;
}

static int by_time(const void *a, const void *b)
{
	const struct run_mark *x = a, *y = b;
	if (x->utc != y->utc)
		return x->utc < y->utc ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

/* Note a mark in its task. A mark that belongs to a round is ignored unless `newest` is true. */
static void note_mark(struct run_task *task, const struct run_mark *mark, bool newest)
{
	switch (mark->kind) {
	case MARK_JOINED: task->joined = mark->utc; break;
	case MARK_LEFT: task->left = mark->utc; break;
	case MARK_DEAD: task->dead = mark->utc; break;
	case MARK_REPORT: task->reported = newest ? mark->utc : task->reported; break;
	case MARK_ACK: task->acked = newest ? mark->utc : task->acked; break;
	case MARK_SAVED:
		task->saved = newest ? mark->utc : task->saved;
		task->took = newest ? mark->took : task->took;
		break;
	default: break;
	}
}

static void feed_entry(struct run_status *status, const struct store_entry *entry)
{
	const struct attempt *attempt = &status->view.attempt;
	struct run_mark mark;
	const char *name = behind(entry->key, attempt->prefix);
	struct json_object *json = name ? json_parse(entry->value, entry->length) : NULL;
	int64_t utc = 0;
	(void)json_get_time(json, "utc", &utc);
	if (name && strcmp(name, "OPEN") == 0)
		status->opened = utc;
	if (name && strcmp(name, "DEADLINE") == 0)
		status->deadline_utc = utc;
	if (name && strcmp(name, "CLOSED") == 0)
		(void)outcome_read(json, &status->outcome);
	if (utc && name && name_mark(name, &mark) &&
		(mark.task == MARK_OF_RUN || mark.task < attempt->tasks)) {
		mark.utc = utc;
		(void)json_get_unsigned(
			json, mark.kind == MARK_REPORT ? "next" : "step", &mark.step);
		(void)json_get_time(json, "ms", &mark.took);
		status->marks[status->mark_count++] = mark;
		bool newest = mark.round == status->view.agreement.round;
		if (mark.task != MARK_OF_RUN)
			note_mark(&status->tasks[mark.task], &mark, newest);
		else if (mark.kind == MARK_ROUND && newest)
			status->round_opened = utc;
	}
	json_object_put(json);
}

static enum task_state left_state(enum agreement_reason reason)
{
	switch (reason) {
	case REASON_COMPLETED: return TASK_FINISHED;
	case REASON_SAVED: return TASK_LEFT_SAVED;
	case REASON_PREEMPTED: return TASK_LEFT_UNSAVED;
	case REASON_FAILED: return TASK_FAILED;
	default: return TASK_ENDED;
	}
}

bool run_status_has_joined(const struct run_status *status)
{
	const struct view *view = &status->view;
	return view->all_joined || (view->attempt.tasks == 1 && view_has_joined(view, 0));
}

/* The state of a task, as all records except the beats show it. */
static enum task_state state_of(const struct run_status *status, uint64_t i)
{
	const struct view *view = &status->view;
	const struct agreement_view *a = &view->agreement;
	const struct agreement_peer *peer = &a->peers[i];
	if (peer->left != REASON_NONE)
		return left_state(peer->left);
	if (peer->dead)
		return TASK_DEAD;
	if (!view_has_joined(view, i))
		return TASK_MISSING;
	if (a->closed)
		return TASK_ENDED;
	if (!run_status_has_joined(status))
		return TASK_JOINED;
	if (a->decided && peer->member && a->decision.kind != KIND_NONE) {
		bool runs_on = a->decision.kind == KIND_SAVE;
		return !peer->saved ? TASK_SAVING : runs_on ? TASK_RUNNING : TASK_SAVED;
	}
	return a->round && !a->decided && peer->reported ? TASK_HELD : TASK_RUNNING;
}

/*
 * Set the newest step of a task that the records show. A task that is to save at the boundary that
 * it reported as its next one is shown at that step: it saves there.
 */
static void find_step(const struct run_status *status, uint64_t i, struct run_task *task)
{
	const struct agreement_view *a = &status->view.agreement;
	const struct agreement_peer *peer = &a->peers[i];
	const struct view_member *member = &status->view.members[i];
	bool reported = peer->reported && !peer->none;
	bool at_next = task->state == TASK_SAVING && a->decision.kind != KIND_EACH &&
		       peer->next >= a->decision.step;
	task->has_step = member->left_called || peer->saved || reported;
	task->step = member->left_called ? member->left_step
		     : peer->saved	 ? peer->saved_step
		     : at_next		 ? peer->next
					 : peer->step;
}

void run_status_feed(struct run_status *status, const struct store_answer *answer, int64_t now)
{
	struct view *view = &status->view;
	const struct view_reading when = {.began = now, .ended = now};
	status->marks = xcalloc(answer->count + 1, sizeof(*status->marks));
	status->tasks = xcalloc(view->attempt.tasks + 1, sizeof(*status->tasks));
	view_feed(view, answer, &when);
	outcome_of_view(view, NULL, &status->outcome);
	for (size_t i = 0; i < answer->count; i++)
		feed_entry(status, &answer->entries[i]);
	if (status->mark_count)
		qsort(status->marks, status->mark_count, sizeof(*status->marks), by_time);
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		struct run_task *task = &status->tasks[i];
		task->state = state_of(status, i);
		task->silent = -1;
		find_step(status, i, task);
	}
}

/* ---- The beats ---- */

static bool has_said_farewell(const struct run_task *task)
{
	return task->beats && heartbeat_is_farewell(task->beat.sequence);
}

/* ms from its first beat to this one, by the number of beats; -1: no beat, or a farewell. */
static int64_t beating(const struct run_task *task)
{
	if (!task->beats || has_said_farewell(task))
		return -1;
	return ((int64_t)heartbeat_count(task->beat.sequence) - 1) *
	       heartbeat_period(task->beat.sequence);
}

/* Steps per second since the task's first beat; if the attempt is over, since its start. */
static double rate_of(const struct run_status *status, const struct run_task *task, uint64_t from)
{
	bool over = status->view.agreement.closed;
	int64_t time = over ? status->outcome.lasted : beating(task);
	uint64_t step = over ? task->step : task->beat.step;
	if (time <= 0 || !task->has_step || step == HEARTBEAT_NO_STEP || step <= from)
		return 0;
	return (double)(step - from) * 1000 / (double)time;
}

/* The step that the attempt resumed from; if that is not known, the newest step that an earlier
 * attempt saved; else 0. */
static uint64_t began_from(const struct run_status *status)
{
	uint64_t step = status->view.resume_known ? status->view.resume_step : 0;
	for (size_t i = 0; i < status->history.count && !status->view.resume_known; i++)
		if (status->history.past[i].has_saved && status->history.past[i].saved > step)
			step = status->history.past[i].saved;
	return step;
}

/* Whether a task in this state should beat, if it is one that beats. */
static bool is_there(enum task_state state)
{
	return state >= TASK_RUNNING && state <= TASK_SILENT;
}

static bool should_beat(const struct run_status *status, uint64_t i)
{
	const struct run_task *task = &status->tasks[i];
	return is_there(task->state) && (task->beats || !status->view.members[i].beatless);
}

static bool is_same(const struct store_beat *a, const struct store_beat *b)
{
	return a->token == b->token && a->sequence == b->sequence;
}

void run_status_take_beats(struct run_status *status, const struct run_status *before,
	const struct store_beat_reading *beats, int64_t now)
{
	const uint64_t tasks = status->view.attempt.tasks;
	const uint64_t from = began_from(status);
	const bool same = before && before->view.attempt.number == status->view.attempt.number &&
			  before->view.attempt.tasks == tasks;
	for (uint64_t i = 0; i < tasks; i++) {
		struct run_task *task = &status->tasks[i];
		const struct run_task *then = same ? &before->tasks[i] : NULL;
		const bool found = beats[i].status == STATUS_OK;
		/* A beat that has vanished is one that does not change. Before its first beat, a
		 * task is silent only while it should beat. */
		bool same_beat =
			then && (then->beats ? !found || is_same(&then->beat, &beats[i].beat)
					     : !found && is_there(then->state));
		task->state = state_of(status, i);
		task->silent = -1;
		task->proved = same_beat ? then->proved : then && found;
		task->changed = same_beat ? then->changed : now;
		task->beats = found || (then && then->beats);
		if (found)
			task->beat = beats[i].beat;
		else if (task->beats)
			task->beat = then->beat;
		if (task->beats && task->beat.step != HEARTBEAT_NO_STEP &&
			!status->view.members[i].left_called &&
			(!task->has_step || task->beat.step > task->step)) {
			task->has_step = true;
			task->step = task->beat.step;
		}
		task->rate = rate_of(status, task, from);
		if (!should_beat(status, i) || has_said_farewell(task))
			continue;
		const int64_t period =
			task->beats ? heartbeat_period(task->beat.sequence) : HEARTBEAT_PERIOD;
		int64_t unchanged = now - task->changed;
		/* Until a change was seen or two periods have passed, nothing is known. */
		task->silent = task->proved || unchanged > 2 * period ? unchanged : -1;
		if (task->silent > (HEARTBEAT_LIMIT + 3) * period)
			task->state = TASK_SILENT;
	}
}

bool run_status_is_proved(const struct run_status *status)
{
	for (uint64_t i = 0; i < status->view.attempt.tasks; i++) {
		const struct run_task *task = &status->tasks[i];
		if (should_beat(status, i) && task->state != TASK_SILENT && !task->proved &&
			!has_said_farewell(task))
			return false;
	}
	return true;
}

/* ---- Reading ---- */

/* If the beat of a task that should beat cannot be read, status stays as it was. */
static enum status read_beats(struct store *store, struct run_status *status,
	const struct run_status *before, struct error *err)
{
	const uint64_t tasks = status->view.attempt.tasks;
	char group[KEYS_GROUP];
	struct store_beat_reading *beats = xcalloc(tasks + 1, sizeof(*beats));
	keys_group(&status->view.attempt, group);
	for (uint64_t first = 0; first < tasks; first += STORE_BEATS_READ) {
		uint64_t count =
			tasks - first < STORE_BEATS_READ ? tasks - first : STORE_BEATS_READ;
		store_beats_read(store, group, first, beats + first, (size_t)count);
	}
	enum status result = STATUS_OK;
	for (uint64_t i = 0; i < tasks && !status_is_error(result); i++)
		if (status_is_error(beats[i].status) && should_beat(status, i)) /* once more */
			result = beats[i].status =
				store_beat_read(store, group, i, &beats[i].beat, err);
	if (!status_is_error(result))
		run_status_take_beats(status, before, beats, clock_now());
	free(beats);
	return status_is_error(result) ? result : STATUS_OK;
}

enum status run_status_read_beats(struct store *store, struct run_status *status, struct error *err)
{
	return read_beats(store, status, status, err);
}

/* Read how the attempts before this one ended; if `before` shows the same attempt, copy its
 * history instead. */
static enum status read_history(struct store *store, const struct run_status *before,
	struct run_status *status, struct error *err)
{
	const struct attempt *attempt = &status->view.attempt;
	struct history *history = &status->history;
	if (attempt->number <= 1)
		return STATUS_OK;
	if (!before || before->view.attempt.number != attempt->number)
		return history_read(store, attempt->run, attempt->number - 1, history, err);
	*history = before->history;
	history->past = xcalloc(history->count + 1, sizeof(*history->past));
	memcpy(history->past, before->history.past, history->count * sizeof(*history->past));
	return STATUS_OK;
}

enum status run_status_read(struct store *store, const char *run, uint64_t number,
	const struct run_status *before, struct run_status *status, struct error *err)
{
	struct attempt attempt;
	struct store_answer answer = {0};
	*status = (struct run_status){0};
	enum status answered = attempt_find(store, run, number, &attempt, err);
	if (answered != STATUS_OK)
		return answered;
	char group[KEYS_GROUP];
	view_init(&status->view, &attempt);
	keys_group(&attempt, group);
	status->view.heard = store_news(store, group);
	answered = store_list(store, &(struct store_range){.prefix = attempt.prefix}, &answer, err);
	if (answered == STATUS_OK) {
		run_status_feed(status, &answer, clock_now());
		store_answer_release(&answer);
		answered = read_history(store, before, status, err);
	}
	if (answered == STATUS_OK)
		answered = read_beats(store, status, before, err);
	if (answered != STATUS_OK)
		run_status_release(status);
	return answered;
}

void run_status_release(struct run_status *status)
{
	view_release(&status->view);
	history_release(&status->history);
	free(status->tasks);
	free(status->marks);
	*status = (struct run_status){0};
}

/* ---- The attempt in one word ---- */

const char *run_status_word(const struct run_status *status)
{
	const struct agreement_view *a = &status->view.agreement;
	if (a->closed)
		return outcome_word(status->outcome.cause);
	if (a->broken)
		return "breaking";
	if (a->claimed)
		return a->decided ? "saving" : "agreeing";
	if (a->round && !a->decided)
		return "agreeing";
	return run_status_has_joined(status) ? "running" : "joining";
}

int run_status_code(const struct run_status *status)
{
	switch (status->outcome.cause) {
	case CAUSE_COMPLETED:
	case CAUSE_LEFT: return 0;
	case CAUSE_STOPPED: return CODE_DECIDED;
	case CAUSE_PREEMPTED:
	case CAUSE_UNSAVED:
		if (!status->view.agreement.closed)
			break;
		return status->outcome.cause == CAUSE_PREEMPTED ? CODE_SAVED : CODE_PREEMPTED;
	case CAUSE_OPEN: break;
	default: return status->outcome.refused ? CODE_DECIDED : CODE_BROKEN;
	}
	for (uint64_t i = 0; i < status->view.attempt.tasks; i++)
		if (status->tasks[i].state == TASK_SILENT || status->tasks[i].state == TASK_DEAD)
			return CODE_BROKEN;
	return 0;
}
