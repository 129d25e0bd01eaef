/* SPDX-License-Identifier: MIT */
/* Joining an attempt, and waiting there for the other tasks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "live/outage.h"
#include "run/attempt.h"
#include "store/builder.h"

#define CHECK_EVERY 4000 /* ms between two checks, at most: the sender of the news may be dead */

static bool is_ours(const struct attempt_entry *entry, uint64_t task)
{
	return task >= entry->first && task - entry->first < entry->count;
}

static bool same_process(const struct process_identity *a, const struct process_identity *b)
{
	return a->pid == b->pid && a->start == b->start && a->pid_namespace == b->pid_namespace &&
	       !strcmp(a->boot, b->boot);
}

static enum membership read_membership(
	const struct view *view, uint64_t task, const struct process_identity *us)
{
	const struct view_member *member = &view->members[task];
	const struct agreement_peer *peer = &view->agreement.peers[task];
	if (!view_has_joined(view, task))
		return MEMBERSHIP_FREE;
	if (peer->left != REASON_NONE)
		return MEMBERSHIP_LEFT;
	if (peer->dead)
		return MEMBERSHIP_DEAD;
	if (same_process(&member->agent, us))
		return MEMBERSHIP_OURS;
	switch (process_check(&member->agent)) {
	case PROCESS_ALIVE: return MEMBERSHIP_ALIVE;
	case PROCESS_GONE: return MEMBERSHIP_DEAD;
	case PROCESS_ELSEWHERE: break;
	}
	/* If our host has rebooted since, every process that ran there is gone. */
	bool rebooted =
		!strcmp(member->agent.host, us->host) && strcmp(member->agent.boot, us->boot);
	return rebooted ? MEMBERSHIP_DEAD : MEMBERSHIP_UNKNOWN;
}

static void describe(const struct view *view, const struct attempt_entry *entry,
	struct attempt_join_state *state)
{
	const char *launch = view->attempt.launch;
	static const int weight[] = {[MEMBERSHIP_OURS] = 0,
		[MEMBERSHIP_FREE] = 1,
		[MEMBERSHIP_LEFT] = 2,
		[MEMBERSHIP_DEAD] = 3,
		[MEMBERSHIP_UNKNOWN] = 4,
		[MEMBERSHIP_ALIVE] = 5};
	*state = (struct attempt_join_state){.exists = true,
		.closed = view->agreement.closed,
		.sealed = *view->seal != '\0',
		.claimed = view->agreement.claimed,
		.all_through = view_all_through(view),
		.tasks = view->attempt.tasks,
		.launch = attempt_compare_launch(entry->launch, launch),
		.same_launch = *launch && !strcmp(entry->launch, launch),
		.membership = MEMBERSHIP_OURS,
		.others = MEMBERSHIP_OURS};
	bool any = false, lives = false;
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		bool ours = is_ours(entry, i);
		enum membership membership = read_membership(view, i, &entry->agent);
		enum membership *worst = ours ? &state->membership : &state->others;
		if (membership == MEMBERSHIP_FREE && !ours)
			continue;
		any |= ours;
		if (!ours && membership != MEMBERSHIP_LEFT && view_is_surely_dead(view, i))
			state->lost = true;
		else if (!ours && membership != MEMBERSHIP_LEFT)
			lives = true;
		if (weight[membership] > weight[*worst])
			*worst = membership;
	}
	state->deserted = state->others != MEMBERSHIP_OURS && !lives;
	if (!any)
		state->membership = MEMBERSHIP_FREE;
}

/* ---- Carrying out the decision ---- */

static struct json_object *task_value(const struct attempt_entry *entry)
{
	const struct process_identity *agent = &entry->agent;
	struct json_object *json = json_object_new_object();
	json_put_text(json, "host", agent->host);
	json_put_text(json, "boot", agent->boot);
	json_put_unsigned(json, "pidns", agent->pid_namespace);
	json_put_signed(json, "pid", agent->pid);
	json_put_unsigned(json, "start", agent->start);
	json_put_unsigned(json, "timens", agent->time_namespace);
	json_put_signed(json, "utc", clock_utc());
	if (entry->beatless)
		json_put_bool(json, "beats", false);
	return json;
}

static enum status run_and_release(struct transaction *t, struct store *store, struct error *err)
{
	enum status status = transaction_run(t, store, err);
	transaction_release(t);
	return status;
}

static void take_memberships(
	struct write *write, const struct view *view, const struct attempt_entry *entry)
{
	struct transaction *t = &write->transaction;
	char key[KEYS_MAX];
	for (uint64_t i = entry->first; i < entry->first + entry->count; i++) {
		keys_of(&view->attempt, key, "TASK/%llu", (unsigned long long)i);
		const char *owned = transaction_own(t, key);
		transaction_require(t, owned, 0);
		transaction_put(t, owned, task_value(entry));
	}
	write_count(write, view);
}

/* Run the transaction that joins our tasks; the view then shows them. STATUS_NO: another
 * process was faster. */
static enum status take_part(
	struct write *write, bool opens, struct store *store, struct view *view, struct error *err)
{
	int64_t began = clock_now();
	enum agreement_outcome outcome = write_carry_out(write, store, err);
	if (outcome == OUTCOME_DONE) {
		if (opens) /* no key of the attempt is older */
			view->revision = view->seen = write->revision - 1;
		view->heard = view->heard ? view->heard : write->news;
		write_feed(
			write, view, &(struct view_reading){.began = began, .ended = clock_now()});
	}
	write_release(write);
	return outcome == OUTCOME_DONE	    ? STATUS_OK
	       : outcome == OUTCOME_REFUSED ? STATUS_NO
					    : err->status;
}

/*
 * Open the attempt that follows the view's (zeroed: the first one), and let the view show it. It
 * has a new life.
 */
static enum status open_next(struct store *store, const struct attempt_entry *entry,
	store_revision last_revision, struct view *view, struct error *err)
{
	struct write write = {0};
	struct transaction *t = &write.transaction;
	char key[KEYS_MAX], group[KEYS_GROUP], life[LIFE_SIZE];
	struct attempt next, *attempt = &next;
	attempt_name(attempt, entry->run, view->attempt.number + 1, entry->tasks);
	if (!life_draw(life))
		return error_set(err, STATUS_TEMPORARY, "the kernel gives no random numbers");
	memcpy(attempt->life, life, sizeof(life));
	snprintf(attempt->launch, sizeof(attempt->launch), "%s", entry->launch);
	/* Make the files of the beats first: an NFS client may cache "no such file". */
	keys_group(attempt, group);
	enum status status = store_beats_prepare(store, group, entry->tasks, err);
	if (status != STATUS_OK)
		return status;

	view_release(view);
	view_init(view, attempt);
	struct json_object *number = json_object_new_object();
	json_put_unsigned(number, "attempt", attempt->number);
	snprintf(key, sizeof(key), "run/%s/LAST", entry->run);
	transaction_require(t, transaction_own(t, key), last_revision);
	transaction_put(t, transaction_own(t, key), number);

	keys_of(attempt, key, "OPEN");
	transaction_require(t, transaction_own(t, key), 0);
	transaction_put(t, transaction_own(t, key), attempt_open_value(attempt));
	take_memberships(&write, view, entry);
	write_news(t, attempt, false);
	return take_part(&write, true, store, view, err);
}

static enum status join_this(struct store *store, const struct attempt_entry *entry,
	struct view *view, struct error *err)
{
	struct write write = {0};
	struct transaction *t = &write.transaction;
	char key[KEYS_MAX];
	keys_of(&view->attempt, key, "SEAL");
	transaction_require(t, transaction_own(t, key), 0);
	keys_of(&view->attempt, key, "CLOSED");
	transaction_require(t, transaction_own(t, key), 0);
	take_memberships(&write, view, entry);
	write_news(t, &view->attempt, false); /* only read the count of news */
	return take_part(&write, false, store, view, err);
}

/* Find the dead tasks of the attempt, and the tasks with our numbers; DEATHS_MOST at most. */
static size_t find_predecessors(
	const struct view *view, const struct attempt_entry *entry, struct death *deaths)
{
	size_t count = 0;
	for (uint64_t i = 0; i < view->attempt.tasks && count < DEATHS_MOST; i++) {
		enum membership membership = read_membership(view, i, &entry->agent);
		bool ours = is_ours(entry, i);
		bool dead =
			membership == MEMBERSHIP_DEAD || (ours && membership != MEMBERSHIP_FREE);
		if (!dead || view->agreement.peers[i].dead ||
			view->agreement.peers[i].left != REASON_NONE)
			continue;
		deaths[count++] = (struct death){.task = i,
			.cause = ours ? DEATH_RESTARTED : DEATH_GONE,
			.since_utc = clock_utc()};
	}
	return count;
}

/*
 * Declare our predecessors dead and close their attempt. Write the seal first: tasks that are
 * still joining that attempt then see a restart, and join the next one.
 */
static enum status seal_as_dead(struct store *store, const struct attempt_entry *entry,
	struct view *view, struct error *err)
{
	char text[96] = "a new launch has taken over";
	if (entry->first < view->attempt.tasks && view_has_joined(view, entry->first))
		snprintf(text, sizeof(text), "task %llu was restarted",
			(unsigned long long)entry->first);
	enum status status = attempt_seal(store, &view->attempt, "restart", text, err);
	if (status == STATUS_OK)
		status = view_refresh(view, store, err);
	if (status != STATUS_OK)
		return status;
	struct death *deaths = xcalloc(view->attempt.tasks, sizeof(*deaths));
	/* If a write is refused, another process was faster: the view shows what is left to do. */
	for (uint64_t tries = view->attempt.tasks; tries > 0 && status == STATUS_OK; tries--) {
		size_t count = find_predecessors(view, entry, deaths);
		if (count == 0)
			break;
		if (write_deaths(store, view, BY_NO_TASK, deaths, count, err) == OUTCOME_UNKNOWN)
			status = STATUS_TEMPORARY;
		else
			status = view_refresh(view, store, err);
	}
	free(deaths);
	if (status != STATUS_OK)
		return status;
	status = attempt_close(store, view, NULL, err);
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status refuse(const struct attempt_entry *entry, enum attempt_join_decision decision,
	const struct view *view, struct error *err)
{
	const char *launch = view->attempt.launch;
	uint64_t number = view->attempt.number;
	if (decision == ATTEMPT_REFUSE_LINGERING)
		return error_set(err, STATUS_USAGE,
			"run %s: attempt %llu belongs to launch %s, and this is %s, which is older; "
			"end this process",
			entry->run, (unsigned long long)number, launch, entry->launch);
	if (decision == ATTEMPT_REFUSE_TASKS)
		return error_set(err, STATUS_USAGE,
			"run %s: attempt %llu is open with %llu tasks, and this says %llu; two jobs "
			"need two names (--run)",
			entry->run, (unsigned long long)number,
			(unsigned long long)view->attempt.tasks, (unsigned long long)entry->tasks);
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		if (read_membership(view, i, &entry->agent) == MEMBERSHIP_ALIVE)
			return error_set(err, STATUS_USAGE,
				"run %s: task %llu of attempt %llu%s%s is running (pid %d on %s)%s%s; "
				"two jobs need two names (--run)",
				entry->run, (unsigned long long)i, (unsigned long long)number,
				*launch ? ", launch " : "", launch, (int)view->members[i].agent.pid,
				view->members[i].agent.host,
				*entry->launch ? ", and this is launch " : "", entry->launch);
	return error_set(err, STATUS_USAGE, "run %s is running", entry->run);
}

/* Wait for news of the attempt, or for some seconds. STATUS_TIMEOUT: the deadline has passed. */
static enum status wait_for_news(
	struct store *store, struct view *view, int64_t deadline, int cancel, struct error *err)
{
	int64_t look = clock_after(CHECK_EVERY / 2 + clock_jitter(CHECK_EVERY / 2));
	enum status status =
		view_wait_for_news(view, store, clock_earlier(look, deadline), cancel, err);
	if (status == STATUS_NO)
		return error_set(
			err, STATUS_NO, "run %s: joining was cancelled", view->attempt.run);
	return status == STATUS_TIMEOUT && look < deadline ? STATUS_OK : status;
}

/* STATUS_USAGE: an attempt was requested, and the decision is about another one. */
static enum status check_number(const struct attempt_entry *entry,
	enum attempt_join_decision decision, uint64_t last, struct error *err)
{
	bool opens = decision == ATTEMPT_OPEN || decision == ATTEMPT_DECLARE_DEAD;
	uint64_t next = opens ? last + 1 : last;
	if (entry->number == 0 || entry->number == next)
		return STATUS_OK;
	return error_set(err, STATUS_USAGE,
		"run %s: attempt %llu was requested, but the next one is %llu: leave out "
		"--attempt, or unset PREEMPT_ATTEMPT",
		entry->run, (unsigned long long)entry->number, (unsigned long long)next);
}

/*
 * Join attempt `last` without reading who else has joined, if that is certainly right: it is of
 * this launch and not sealed, and our tasks have not joined. STATUS_NO: decide by the whole view.
 */
static enum status join_at_once(struct store *store, const struct attempt_entry *entry,
	uint64_t last, struct view *view, struct error *err)
{
	struct attempt attempt;
	if (!*entry->launch || (entry->number && entry->number != last))
		return STATUS_NO;
	enum status status = attempt_find(store, entry->run, last, &attempt, err);
	if (status != STATUS_OK)
		return status;
	if (strcmp(attempt.launch, entry->launch) != 0 || attempt.tasks != entry->tasks)
		return STATUS_NO;
	view_init(view, &attempt);
	status = join_this(store, entry, view, err);
	if (status != STATUS_OK)
		view_release(view);
	return status;
}

/* attempt_join, once: STATUS_TEMPORARY as soon as the store does not answer. */
static enum status try_join(struct store *store, const struct attempt_entry *entry,
	struct view *view, struct error *err)
{
	enum status status;
	int64_t say_at = clock_after(SAY_WAITING);
	for (;;) {
		uint64_t last;
		store_revision last_revision;
		struct attempt_join_state state = {0};

		status = attempt_newest(store, entry->run, &last, &last_revision, err);
		if (status == STATUS_OK && last) {
			status = join_at_once(store, entry, last, view, err);
			if (status == STATUS_OK)
				return STATUS_OK;
			if (status == STATUS_NO)
				status = attempt_view(store, entry->run, last, view, err);
		}
		if (status != STATUS_OK)
			goto out;
		if (last)
			describe(view, entry, &state);

		enum attempt_join_decision decision = attempt_decide_join(&state, entry->tasks);
		status = check_number(entry, decision, last, err);
		if (status != STATUS_OK)
			goto out;
		/* STATUS_NO: another process was faster, or the attempt changed: decide again. */
		switch (decision) {
		case ATTEMPT_JOINED: break;
		case ATTEMPT_JOIN: status = join_this(store, entry, view, err); break;
		case ATTEMPT_DECLARE_DEAD:
			status = seal_as_dead(store, entry, view, err);
			if (status != STATUS_OK)
				goto out;
			status = open_next(store, entry, last_revision, view, err);
			break;
		case ATTEMPT_OPEN:
			if (state.exists && !state.closed)
				(void)attempt_close(store, view, NULL, NULL);
			status = open_next(store, entry, last_revision, view, err);
			break;
		case ATTEMPT_WAIT:
			if (clock_now() >= say_at && entry->first == 0)
				message_info("waiting for attempt %llu to close",
					(unsigned long long)last);
			say_at = clock_now() >= say_at ? CLOCK_NEVER : say_at;
			status = wait_for_news(store, view, entry->deadline, entry->cancel, err);
			if (status == STATUS_TIMEOUT)
				error_set(err, STATUS_TIMEOUT,
					"run %s: attempt %llu has not closed; if nothing of it runs any "
					"more: preempt-store close --run %s",
					entry->run, (unsigned long long)last, entry->run);
			if (status != STATUS_OK)
				goto out;
			status = STATUS_NO;
			break;
		case ATTEMPT_TOO_LATE:
			view_release(view);
			view->agreement.claimed = true; /* see attempt_is_preempted */
			return error_set(err, STATUS_NO,
				"run %s: attempt %llu was preempted before this task joined",
				entry->run, (unsigned long long)last);
		case ATTEMPT_REFUSE_ALIVE:
		case ATTEMPT_REFUSE_LINGERING:
		case ATTEMPT_REFUSE_TASKS: status = refuse(entry, decision, view, err); goto out;
		}
		if (status != STATUS_NO)
			break;
		view_release(view);
		if (clock_now() >= entry->deadline)
			return error_set(
				err, STATUS_TIMEOUT, "run %s: could not join in time", entry->run);
	}
out:
	if (status != STATUS_OK)
		view_release(view);
	return status;
}

#define JOIN_OTHER 8 /* operations, and compares, of joining in addition to one for each task */

enum status attempt_join(struct store *store, const struct attempt_entry *entry, struct view *view,
	struct error *err)
{
	if (entry->count + JOIN_OTHER > store_operations(store))
		return error_set(err, STATUS_USAGE,
			"store %s takes at most %zu tasks of one agent, and this one has %llu: start "
			"more agents with fewer tasks each",
			store_where(store), store_operations(store) - JOIN_OTHER,
			(unsigned long long)entry->count);
	struct outage outage = {.deadline = entry->deadline, .cancel = entry->cancel};
	enum status status;
	*view = (struct view){0};
	do
		status = try_join(store, entry, view, err);
	while (outage_retry(&outage, &status, err));
	return status;
}

/*
 * Notify the other tasks that all have joined. If that fails, they find it out by counting, and one
 * of them notifies the others.
 */
static void tell_all_joined(struct store *store, const struct view *view)
{
	struct transaction t = {0};
	char key[KEYS_MAX];
	struct json_object *json = json_object_new_object();
	json_put_signed(json, "utc", clock_utc());
	keys_of(&view->attempt, key, "ALL_JOINED");
	transaction_put_new(&t, transaction_own(&t, key), json);
	write_news(&t, &view->attempt, true);
	(void)run_and_release(&t, store, NULL);
}

/* Not STATUS_OK: err says what ended the attempt before all tasks had joined. */
static enum status check_gathering(const struct view *view, struct error *err)
{
	const char *run = view->attempt.run;
	if (view->agreement.claimed)
		return error_set(err, STATUS_NO, "run %s was preempted before all had joined", run);
	if (!strcmp(view->seal, "timeout"))
		return error_set(
			err, STATUS_TIMEOUT, "run %s: %s (--join-timeout)", run, view->seal_text);
	if (view->error.present)
		return error_set(err, STATUS_BROKEN, "run %s: task %llu failed on %s with %d%s%s",
			run, (unsigned long long)view->error.task, view->error.host,
			view->error.code, *view->error.line ? ": " : "", view->error.line);
	if (*view->seal)
		return error_set(err, STATUS_BROKEN, "run %s: %s", run, view_why(view));
	return STATUS_OK;
}

/* Too few tasks have joined in time: seal the attempt. STATUS_OK: the last have joined just now. */
static enum status give_up_gathering(struct store *store, struct view *view, struct error *err)
{
	struct text missing = {0};
	char why[256];
	enum status status = view_refresh(view, store, err);
	if (status == STATUS_OK)
		status = check_gathering(view, err);
	if (status != STATUS_OK || view_is_gathered(view))
		return status;
	uint64_t count = view_name_missing(view, &missing);
	snprintf(why, sizeof(why), "%llu of %llu tasks have joined; missing: %s",
		(unsigned long long)(view->attempt.tasks - count),
		(unsigned long long)view->attempt.tasks, text_string(&missing));
	text_release(&missing);
	if (attempt_seal(store, &view->attempt, "timeout", why, NULL) == STATUS_OK)
		(void)view_refresh_news(view, store, NULL);
	return error_set(
		err, STATUS_TIMEOUT, "run %s: %s (--join-timeout)", view->attempt.run, why);
}

/* Say which tasks are missing: the agent of the first task that has joined does so for all. */
static void say_missing(const struct view *view)
{
	struct process_identity self;
	struct text missing = {0};
	const unsigned long long tasks = view->attempt.tasks;
	uint64_t first = 0;
	while (first < tasks && !view->members[first].shown[RECORD_TASK])
		first++;
	if (first == tasks || (view_is_large(view) && first > 0) ||
		process_identify(0, &self, NULL) != STATUS_OK ||
		!same_process(&view->members[first].agent, &self))
		return;
	if (view_is_large(view)) {
		text_addf(&missing, "%llu of %llu tasks",
			tasks - (unsigned long long)view_joined(view), tasks);
	} else {
		text_add(&missing, "task ");
		view_name_missing(view, &missing);
	}
	message_info("waiting for %s to join", text_string(&missing));
	text_release(&missing);
}

/*
 * Whether to read all: by the counts all tasks have joined, but only the records show whether that
 * is true, and whether a task whose process is gone has left. Read them once after each change.
 */
static bool lacks_records(const struct view *view)
{
	bool unread =
		view->revision < view->seen || view->revision < view->counted[RECORD_TASK].revision;
	return !view_is_large(view) && view_joined(view) == view->attempt.tasks && unread;
}

#define GIVE_UP_OVER 5000 /* ms over which a large attempt's tasks give up */

/*
 * Few give up early and most late: while one reads who is missing and seals for all, which takes
 * as long as the machine makes it, only a few others begin to read, however many tasks there are.
 */
static int64_t give_up_later(uint64_t tasks)
{
	return (int64_t)(GIVE_UP_OVER * log((double)clock_jitter((int64_t)tasks)) /
			 log((double)tasks));
}

enum status attempt_gather(
	struct store *store, struct view *view, int64_t deadline, int cancel, struct error *err)
{
	bool large = view_is_large(view);
	enum status status = STATUS_OK;
	int64_t say_at = clock_after(SAY_WAITING);
	if (large && deadline != CLOCK_NEVER)
		deadline += give_up_later(view->attempt.tasks);
	struct outage outage = {.deadline = deadline, .cancel = cancel};
	for (;;) {
		while (outage_retry(&outage, &status, err))
			status = view_refresh_news(view, store, err);
		if (status == STATUS_OK)
			status = check_gathering(view, err);
		if (status != STATUS_OK)
			return status;
		if (large && view_joined(view) == view->attempt.tasks)
			view->all_there = true;
		bool shown = view->shown[RECORD_TASK] >= view->attempt.tasks;
		bool gathered = large ? view->all_there : view_is_gathered(view);
		if (lacks_records(view) && !(shown && gathered)) {
			status = view_refresh(view, store, err);
			continue;
		}
		if (gathered) {
			if (!view->all_joined && view->attempt.tasks > 1)
				tell_all_joined(store, view);
			return STATUS_OK;
		}
		if (clock_now() >= say_at) {
			say_missing(view);
			say_at = CLOCK_NEVER;
		}
		status = wait_for_news(store, view, deadline, cancel, err);
		if (status == STATUS_OK)
			status = view_refresh_news(view, store, err);
		else if (status == STATUS_TIMEOUT)
			status = give_up_gathering(store, view, err);
	}
}

bool attempt_is_superseded(const struct view *view)
{
	return !strcmp(view->seal, "restart");
}
