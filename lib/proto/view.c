/* SPDX-License-Identifier: MIT */
/* Decode the records of an attempt, one function each, also values that cannot be parsed. */
#include "proto/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "proto/agreement/tally.h"

#define DEADLINE_FARTHEST (INT64_C(366) * 86400000) /* ms */

/* Remember the newest round of save and run on: resume from it if no final save happens. */
static void remember_standing(
	struct agreement_view *a, uint64_t round, const struct agreement_decision *decision)
{
	if (decision->kind != KIND_SAVE || decision->then == THEN_CONTINUE ||
		round <= a->standing_round)
		return;
	a->standing_round = round;
	for (uint64_t i = 0; i < a->tasks; i++) {
		a->peers[i].stood = round == a->round && a->peers[i].saved;
		a->peers[i].stood_step = a->peers[i].saved_step;
	}
}

/* A record tells of a complete checkpoint. */
static void note_complete(struct agreement_view *a, uint64_t step)
{
	if (!a->has_complete || step > a->complete_step)
		a->complete_step = step;
	a->has_complete = true;
}

/* A newer round was opened: discard what was known about the older one. */
static void enter_round(struct view *view, uint64_t round)
{
	struct agreement_view *a = &view->agreement;
	if (round <= a->round)
		return;
	if (a->decided)
		remember_standing(a, a->round, &a->decision);
	uint64_t former = a->round;
	a->round = round;
	a->round_final = a->decided = a->unreadable = false;
	a->round_try = 1;
	a->decision = (struct agreement_decision){0};
	/* Before the first round there is nothing to discard. */
	for (uint64_t i = 0; former && i < a->tasks; i++) {
		struct agreement_peer *peer = &a->peers[i];
		*peer = (struct agreement_peer){.left = peer->left,
			.dead = peer->dead,
			.stood = peer->stood,
			.stood_step = peer->stood_step};
		view->members[i].acked = false;
		view->members[i].save_time = 0;
		view->members[i].unreadable = 0;
		view->members[i].unreported = false;
		view->members[i].shown[RECORD_STEP] = view->members[i].shown[RECORD_SAVED] = false;
	}
	view->shown[RECORD_STEP] = view->shown[RECORD_SAVED] = 0;
	view->surplus[RECORD_STEP] = view->surplus[RECORD_SAVED] = 0;
	view->counted[RECORD_STEP] = view->counted[RECORD_SAVED] = (struct view_record_count){0};
	view->reported_at = view->saved_at = 0;
}

struct reading {
	const struct store_entry *entry;
	struct json_object *json; /* NULL: the value is not JSON */
	const struct view_reading *when;
	uint64_t round;
	uint64_t task;
};

static void note_shown(struct view *view, uint64_t task, enum view_record kind)
{
	view->shown[kind] += !view->members[task].shown[kind];
	view->members[task].shown[kind] = true;
}

/* Note when the task wrote this, by its own clock. */
static void note_time(struct view *view, const struct reading *r)
{
	struct view_member *member = &view->members[r->task];
	int64_t utc;
	if (json_get_time(r->json, "utc", &utc) && utc > member->newest_utc)
		member->newest_utc = utc;
}

/* Get a number of finished steps, or a boundary. False: there is none, or it is too large. */
static bool get_step(const struct json_object *json, const char *member, uint64_t *step)
{
	uint64_t found;
	if (!json_get_unsigned(json, member, &found) || found > KEYS_STEP_MAX)
		return false;
	*step = found;
	return true;
}

static bool read_step(struct view *view, const struct reading *r)
{
	struct agreement_peer *peer = &view->agreement.peers[r->task];
	uint64_t step = 0, next = 0;
	int64_t step_time = 0;
	bool none = false;
	if (r->round < view->agreement.round)
		return true;
	(void)json_get_time(r->json, "step_ms", &step_time);
	(void)json_get_bool(r->json, "none", &none);
	note_shown(view, r->task, RECORD_STEP);
	view->members[r->task].unreadable = r->entry->revision;
	if (!none && (!get_step(r->json, "step", &step) || !get_step(r->json, "next", &next) ||
			     next <= step))
		return false; /* treat a report that cannot be parsed as missing */
	peer->none = none;
	peer->step = step;
	peer->next = next;
	peer->step_time = step_time;
	peer->reported = true;
	view->members[r->task].unreadable = 0;
	if (r->entry->revision >= view->reported_at) {
		view->reported_at = r->entry->revision;
		view->agreement.last_reporter = r->task;
	}
	return true;
}

static bool read_saved(struct view *view, const struct reading *r)
{
	struct agreement_peer *peer = &view->agreement.peers[r->task];
	int64_t milliseconds = 0;
	uint64_t step;
	note_time(view, r);
	if (r->round >= view->agreement.round)
		note_shown(view, r->task, RECORD_SAVED);
	if (!get_step(r->json, "step", &step))
		return false;
	if (r->round == view->agreement.standing_round) {
		peer->stood = true;
		peer->stood_step = step;
	}
	if (r->round < view->agreement.round)
		return true;
	peer->saved_step = step;
	(void)json_get_time(r->json, "ms", &milliseconds);
	view->members[r->task].save_time = milliseconds;
	peer->saved = true;
	if (r->entry->revision >= view->saved_at) {
		view->saved_at = r->entry->revision;
		view->agreement.last_saver = r->task;
	}
	return true;
}

/* Ignore a decision that cannot be parsed: the next round replaces it. */
static bool read_decision(struct view *view, const struct reading *r)
{
	struct agreement_view *a = &view->agreement;
	struct agreement_decision decision = {0};
	const char *kind, *then, *members;
	bool *set = xcalloc(a->tasks, sizeof(*set));
	bool right =
		json_get_text(r->json, "kind", &kind) && keys_kind_parse(kind, &decision.kind) &&
		json_get_text(r->json, "then", &then) && keys_then_parse(then, &decision.then) &&
		json_get_text(r->json, "members", &members) &&
		keys_read_set(members, a->tasks, set) &&
		(decision.kind == KIND_NONE || decision.kind == KIND_EACH ||
			get_step(r->json, "step", &decision.step));
	bool over = r->round < a->round;
	if (over && right)
		remember_standing(a, r->round, &decision);
	if (!over) {
		a->unreadable = !right;
		a->decided = right;
	}
	if (right && !over) {
		a->decision = decision;
		for (uint64_t i = 0; i < a->tasks; i++)
			a->peers[i].member = set[i];
		memset(set, 0, a->tasks * sizeof(*set));
		bool told = json_get_text(r->json, "missing", &members) &&
			    keys_read_set(members, a->tasks, set);
		for (uint64_t i = 0; told && i < a->tasks; i++)
			view->members[i].unreported = set[i];
	}
	free(set);
	return right || over;
}

static bool read_claim(struct view *view, const struct reading *r)
{
	struct view_claim *claim = &view->claim;
	const char *then;
	/* The key exists, so there is a claim. Treat a claim that cannot be parsed as an
	 * ordinary preemption. */
	view->agreement.claimed = true;
	view->agreement.claim_then = THEN_EXIT;
	claim->outside = claim->unreadable = true;
	if (!r->json)
		return false;
	enum agreement_then wanted;
	claim->outside = !json_get_unsigned(r->json, "task", &claim->task);
	(void)json_get_unsigned(r->json, "pid", &claim->pid);
	json_copy_text(r->json, "host", claim->host, sizeof(claim->host));
	json_copy_text(r->json, "source", claim->source, sizeof(claim->source));
	json_copy_text(r->json, "reason", claim->reason, sizeof(claim->reason));
	(void)json_get_time(r->json, "utc", &claim->utc);
	claim->unreadable = !json_get_text(r->json, "then", &then) ||
			    !keys_then_parse(then, &wanted) || wanted == THEN_CONTINUE;
	if (!claim->unreadable)
		view->agreement.claim_then = wanted;
	return !claim->unreadable;
}

/* The deadline itself, if its writer had our monotonic clock (boot and time namespace); else 0. */
static int64_t exact_deadline(struct json_object *json)
{
	struct process_identity self;
	const char *boot;
	uint64_t time_namespace;
	int64_t exact;
	if (process_identify(0, &self, NULL) != STATUS_OK || !*self.boot ||
		!json_get_text(json, "boot", &boot) || strcmp(boot, self.boot) != 0 ||
		!json_get_unsigned(json, "timens", &time_namespace) ||
		time_namespace != self.time_namespace)
		return 0;
	return json_get_time(json, "at", &exact) ? exact : 0;
}

static bool read_deadline(struct view *view, const struct reading *r)
{
	struct agreement_sighting sighting = {.seen = r->when->ended};
	if (r->entry->revision == view->deadline_revision)
		return true;
	view->deadline_revision = r->entry->revision; /* even if it cannot be parsed */
	if (!json_get_time(r->json, "left", &sighting.left) || sighting.left > DEADLINE_FARTHEST)
		return false; /* as if there were none */
	sighting.exact = exact_deadline(r->json);
	sighting.absent = clock_later(view->unchanged, view->deadline_unchanged);
	sighting.absent = clock_later(sighting.absent, r->when->unchanged);
	agreement_learn_deadline(&view->agreement, &sighting);
	return true;
}

static bool read_task(struct view *view, const struct reading *r)
{
	struct view_member *member = &view->members[r->task];
	struct process_identity agent = {0};
	uint64_t pid;
	bool beats = true;
	note_shown(view, r->task, RECORD_TASK);
	(void)json_get_bool(r->json, "beats", &beats);
	member->beatless = !beats;
	(void)json_get_time(r->json, "utc", &member->joined_utc);
	json_copy_text(r->json, "host", agent.host, sizeof(agent.host));
	json_copy_text(r->json, "boot", agent.boot, sizeof(agent.boot));
	(void)json_get_unsigned(r->json, "timens", &agent.time_namespace);
	/* Keep the known identity if the new one is incomplete: its process would look dead. */
	if (!json_get_unsigned(r->json, "pidns", &agent.pid_namespace) ||
		!json_get_unsigned(r->json, "start", &agent.start) ||
		!json_get_unsigned(r->json, "pid", &pid) || pid == 0 || pid > INT32_MAX)
		return false;
	agent.pid = (pid_t)pid;
	member->agent = agent;
	return true;
}

static bool read_left(struct view *view, const struct reading *r)
{
	const char *word;
	/* The key exists, so the task has left. If the reason is unknown, assume that it has
	 * not saved. */
	view->agreement.peers[r->task].left = REASON_PREEMPTED;
	note_time(view, r);
	struct view_member *member = &view->members[r->task];
	note_shown(view, r->task, RECORD_LEFT);
	member->left_code = 0;
	(void)json_get_code(r->json, "code", &member->left_code);
	member->left_called = get_step(r->json, "step", &member->left_step);
	member->left_saved = get_step(r->json, "saved", &member->left_saved_step);
	uint64_t step;
	bool chief;
	if (json_get_bool(r->json, "chief", &chief))
		view->chief_saves = chief;
	if (get_step(r->json, "complete", &step))
		note_complete(&view->agreement, step);
	int64_t save;
	if (json_get_time(r->json, "save_ms", &save) && save > view->longest_save)
		view->longest_save = save;
	return json_get_text(r->json, "reason", &word) &&
	       keys_reason_parse(word, &view->agreement.peers[r->task].left);
}

static bool read_dead(struct view *view, const struct reading *r)
{
	/* The key exists, so the task was declared dead, even if the value cannot be parsed. */
	view->agreement.peers[r->task].dead = true;
	return true;
}

static bool read_error(struct view *view, const struct reading *r)
{
	view->error.present = true;
	view->error.revision = r->entry->revision;
	if (!json_get_code(r->json, "code", &view->error.code))
		view->error.code = 1;
	json_copy_text(r->json, "host", view->error.host, sizeof(view->error.host));
	json_copy_text(r->json, "line", view->error.line, sizeof(view->error.line));
	json_copy_text(r->json, "class", view->error.class, sizeof(view->error.class));
	view->agreement.error = json_get_unsigned(r->json, "task", &view->error.task);
	view->agreement.error_task = view->error.task;
	return view->agreement.error;
}

static bool read_seal(struct view *view, const struct reading *r)
{
	strcpy(view->seal, "unknown");
	bool right = json_copy_text(r->json, "by", view->seal, sizeof(view->seal));
	json_copy_text(r->json, "text", view->seal_text, sizeof(view->seal_text));
	view->agreement.broken = strcmp(view->seal, "claim") != 0;
	return right;
}

static bool read_all_saved(struct view *view, const struct reading *r)
{
	struct agreement_view *a = &view->agreement;
	uint64_t step;
	bool complete = get_step(r->json, "complete", &step);
	if (complete)
		note_complete(a, step);
	if (r->round < a->all_saved)
		return true;
	a->all_saved = r->round;
	a->all_saved_complete = complete;
	return r->json;
}

static bool read_round(struct view *view, const struct reading *r)
{
	struct agreement_view *a = &view->agreement;
	if (!json_get_unsigned(r->json, "try", &a->round_try) || a->round_try == 0)
		a->round_try = 1;
	return json_get_bool(r->json, "final", &a->round_final);
}

static bool read_all_joined(struct view *view, const struct reading *r)
{
	view->all_joined = view->all_there = true;
	return r->json;
}

static bool read_resume(struct view *view, const struct reading *r)
{
	view->resume_known = json_copy_text(r->json, "path", view->resume, sizeof(view->resume)) &&
			     get_step(r->json, "step", &view->resume_step);
	return view->resume_known;
}

static bool read_closed(struct view *view, const struct reading *r)
{
	strcpy(view->closed, "unknown");
	view->agreement.closed = true;
	return json_copy_text(r->json, "state", view->closed, sizeof(view->closed));
}

/* Parse a number and the character `stop` after it; move *at behind both. */
static bool take_number(const char **at, char stop, uint64_t *number)
{
	char digits[24];
	size_t length = strspn(*at, "0123456789");
	if (length == 0 || length >= sizeof(digits) || (*at)[length] != stop)
		return false;
	memcpy(digits, *at, length);
	digits[length] = '\0';
	*at += length + (stop != '\0');
	return parse_decimal(digits, number);
}

/* The same for the number of a round, at least 1. */
static bool take_round(const char **at, char stop, uint64_t *round)
{
	return take_number(at, stop, round) && *round > 0;
}

/* "<decision>_<task>" (keys_decision) */
static bool feed_ack(struct view *view, struct reading *r, const char *name)
{
	const char *at = name;
	r->round = 1;
	if (!strncmp(name, "RUN_TO_CHECKPOINT_", 18))
		at += 18;
	else if (!strncmp(name, "LAST_RUN_TO_CHECKPOINT/", 23))
		at += 23;
	else
		return false;
	if (at - name == 23 && !take_round(&at, '_', &r->round))
		return false;
	if (!take_number(&at, '\0', &r->task) || r->task >= view->agreement.tasks)
		return false;
	enter_round(view, r->round);
	if (r->round == view->agreement.round)
		view->members[r->task].acked = true;
	return true;
}

static bool feed_entry(struct view *view, struct reading *r, const char *name)
{
	struct agreement_view *a = &view->agreement;
	static const struct {
		const char *name;
		bool (*read)(struct view *view, const struct reading *r);
	} single[] =
		{
			{"SEAL", read_seal},
			{"TERMINATED_WORKER", read_claim},
			{"DEADLINE", read_deadline},
			{"ERROR", read_error},
			{"CLOSED", read_closed},
			{"RESUME", read_resume},
			{"ALL_JOINED", read_all_joined},
		},
	  of_task[] = {{"TASK/", read_task}, {"LEFT/", read_left}, {"DEAD/", read_dead}},
	  of_round[] = {{"STEP/", read_step}, {"SAVED/", read_saved}};
	const char *at;

	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		if (!strcmp(name, single[i].name))
			return single[i].read(view, r);
	for (size_t i = 0; i < sizeof(of_task) / sizeof(of_task[0]); i++) {
		at = name + strlen(of_task[i].name);
		if (!strncmp(name, of_task[i].name, strlen(of_task[i].name)))
			return take_number(&at, '\0', &r->task) && r->task < a->tasks &&
			       of_task[i].read(view, r);
	}
	for (size_t i = 0; i < sizeof(of_round) / sizeof(of_round[0]); i++) {
		at = name + strlen(of_round[i].name);
		if (strncmp(name, of_round[i].name, strlen(of_round[i].name)))
			continue;
		if (!take_round(&at, '/', &r->round) || !take_number(&at, '\0', &r->task) ||
			r->task >= a->tasks)
			return false;
		enter_round(view, r->round);
		return of_round[i].read(view, r);
	}
	if (!strncmp(name, "ROUND/", 6)) {
		at = name + 6;
		if (!take_round(&at, '\0', &r->round))
			return false;
		enter_round(view, r->round);
		return r->round < a->round || read_round(view, r);
	}
	if (!strncmp(name, "ALL_SAVED/", 10)) {
		at = name + 10;
		if (!take_round(&at, '\0', &r->round))
			return false;
		enter_round(view, r->round);
		return read_all_saved(view, r);
	}
	bool first = !strcmp(name, "RUN_TO_CHECKPOINT");
	if (first || !strncmp(name, "LAST_RUN_TO_CHECKPOINT/", 23)) {
		at = name + 23;
		r->round = 1;
		if (!first && !take_round(&at, '\0', &r->round))
			return false;
		enter_round(view, r->round);
		return read_decision(view, r);
	}
	if (!strncmp(name, "RECEIVED_SIGNAL_", 16))
		return feed_ack(view, r, name + 16);
	return true; /* OPEN, NEXT, REFUSED, and keys of a newer version */
}

void view_feed_entry(
	struct view *view, const struct store_entry *entry, const struct view_reading *when)
{
	size_t length = strlen(view->attempt.prefix);
	if (strncmp(entry->key, view->attempt.prefix, length) || !entry->value)
		return;
	struct reading r = {.entry = entry, .when = when};
	view->agreement.tally->known = false;
	r.json = json_parse(entry->value, entry->length);
	if (!feed_entry(view, &r, entry->key + length))
		view->damaged++;
	json_object_put(r.json);
}
