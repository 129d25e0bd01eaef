/* SPDX-License-Identifier: MIT */
/* What the store shows, decoded; garbage in every key (SY-11); what is written is read back. */
#include "proto/view.h"

#include <stdlib.h>

#include "agent/ack.h"
#include "agent/task/board.h"
#include "base/json.h"
#include "proto/claim.h"
#include "proto/writes.h"
#include "run/attempt.h"
#include "run/outcome.h"
#include "scratch_store.h"
#include "unit.h"

static struct attempt attempt;
static store_revision revision;
static struct view_reading reading;

static void fresh(struct view *view)
{
	revision = 0;
	reading = (struct view_reading){.began = 1000000, .ended = 1000000};
	view_init(view, &attempt);
}

/* One key of the attempt, as the store would show it. */
static void feed_bytes(struct view *view, const char *rest, const char *value, size_t length)
{
	char key[KEYS_MAX];
	struct store_entry entry = {.length = length, .revision = ++revision};
	keys_of(&attempt, key, "%s", rest);
	entry.key = strdup(key);
	entry.value = calloc(1, length + 1);
	memcpy(entry.value, value, length);
	struct store_answer answer = {.entries = &entry, .count = 1, .revision = revision};
	view_feed(view, &answer, &reading);
	free(entry.key);
	free(entry.value);
}

static void feed(struct view *view, const char *rest, const char *value)
{
	feed_bytes(view, rest, value, strlen(value));
}

static void decoded(void)
{
	struct view view;
	TEST("each key is read into its place")
	{
		fresh(&view);
		feed(&view, "TASK/2",
			"{\"host\":\"h\",\"boot\":\"b\",\"pidns\":7,\"pid\":12,\"start\":3}");
		CHECK(view_has_joined(&view, 2) && view.members[2].agent.pid == 12);
		CHECK_EQ(view_joined(&view), 1);
		feed(&view, "TERMINATED_WORKER",
			"{\"task\":3,\"then\":\"stop\",\"host\":\"n\",\"source\":\"s\",\"reason\":\"r\"}");
		feed(&view, "ROUND/1", "{\"final\":false}");
		CHECK(view.agreement.claimed && view.claim.task == 3 && !view.claim.outside);
		CHECK_EQ(view.agreement.claim_then, THEN_STOP);
		feed(&view, "STEP/1/0", "{\"step\":4,\"next\":6,\"step_ms\":9}");
		CHECK(view.agreement.peers[0].reported && view.agreement.peers[0].next == 6);
		feed(&view, "RUN_TO_CHECKPOINT",
			"{\"kind\":\"exit\",\"then\":\"exit\",\"step\":6,\"members\":\"0-2\"}");
		CHECK(view.agreement.decided && view.agreement.decision.step == 6);
		CHECK(view.agreement.peers[2].member && !view.agreement.peers[3].member);
		feed(&view, "RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_1", "{}");
		CHECK(view.members[1].acked && !view.members[0].acked);
		feed(&view, "SAVED/1/1", "{\"step\":6,\"ms\":50}");
		CHECK(view.agreement.peers[1].saved && view.agreement.peers[1].saved_step == 6);
		feed(&view, "DEAD/0", "{}");
		CHECK(view.agreement.peers[0].dead);
		feed(&view, "LEFT/1", "{\"reason\":\"saved\",\"code\":42}");
		CHECK_EQ(view.agreement.peers[1].left, REASON_SAVED);
		CHECK_EQ(view.damaged, 0);
		view_release(&view);
	}
	TEST("a record tells which checkpoint is complete: the newest counts; other versions' do not")
	{
		fresh(&view);
		feed(&view, "ALL_SAVED/1", "{\"complete\":true}");
		CHECK(!view.agreement.has_complete && view.agreement.all_saved == 1);
		feed(&view, "LEFT/1", "{\"reason\":\"saved\",\"complete\":7}");
		feed(&view, "ALL_SAVED/2", "{\"complete\":5}");
		CHECK(view.agreement.has_complete && view.agreement.complete_step == 7);
		CHECK(view.agreement.all_saved_complete && view.agreement.all_saved == 2);
		view_release(&view);
	}
	TEST("PH-22 keys of other attempts and runs are not seen")
	{
		struct store_entry entry = {.value = (char[]){"{}"}, .length = 2, .revision = 9};
		struct store_answer answer = {.entries = &entry, .count = 1, .revision = 9};
		const char *others[] = {"run/r/000001/TERMINATED_WORKER", "run/r/000001/DEADLINE",
			"run/r/000003/SEAL", "run/r2/000002/CLOSED", "TERMINATED_WORKER",
			"run/r/LAST", ""};
		fresh(&view);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			char key[64];
			strcpy(key, others[i]);
			entry.key = key;
			view_feed(&view, &answer, &reading);
		}
		CHECK(!view.agreement.claimed && !*view.seal && !view.agreement.closed);
		CHECK(view.agreement.deadline_told == CLOCK_NEVER);
		CHECK_EQ(view.damaged, 0);
		view_release(&view);
	}
}

/* ---- Records that are counted ---- */

/* ---- Deadlines ---- */

/* A reading from began to ended; the store was known to be unchanged at unchanged. */
static void read_at(
	struct view *view, int64_t unchanged, int64_t began, int64_t ended, const char *deadline)
{
	reading = (struct view_reading){unchanged, began, ended};
	if (deadline)
		feed(view, "DEADLINE", deadline);
	else
		feed(view, "OPEN", "{}");
}

static bool is_known(const struct view *view, int64_t earliest, int64_t latest)
{
	return view->agreement.deadline == earliest && view->agreement.deadline_latest == latest &&
	       !view->agreement.deadline_doubted;
}

static void deadlines(void)
{
	/* Readings, where value is what DEADLINE holds then, if anything new; and what is known at
	 * the end. */
	static const struct {
		const char *title;
		struct view_reading readings[3];
		const char *values[3];
		int64_t earliest, latest;
		bool doubted;
	} rows[] = {
		{"a deadline is what was left when it was written; no wall clock moves it",
			{{0, 1000000, 1000010}, {0, 1004000, 1004010}},
			{NULL, "{\"left\":30000,\"utc\":1}"}, 1030000, 1034010, false},
		{"nor one that is garbage", {{0, 1000000, 1000010}, {0, 1004000, 1004010}},
			{NULL, "{\"left\":30000,\"utc\":\"garbage\"}"}, 1030000, 1034010, false},
		{"written after the last reading without it; what the store knows is later",
			{{0, 1000000, 1000010}, {1003500, 1004000, 1004010}},
			{NULL, "{\"left\":30000}"}, 1033500, 1034010, false},
		{"who reads it first thing counts from there", {{0, 1004000, 1004010}},
			{"{\"left\":30000}"}, 1034010, 1034010, false},
		{"it only moves earlier, in whatever order the values are read",
			{{0, 1000000, 1000000}, {0, 1001000, 1001000}, {0, 1002000, 1002500}},
			{"{\"left\":30000}", "{\"left\":90000}", "{\"left\":10000}"}, 1011000,
			1012500, false},
		{"one that may be over when it is first seen is doubted, and moves nothing",
			{{0, 1000000, 1000010}, {0, 1003000, 1003010}, {0, 1008000, 1008010}},
			{"{\"left\":60000}", NULL, "{\"left\":5010}"}, 1060010, 1060010, true},
		{"the same where there is no other", {{0, 1008000, 1008010}}, {"{\"left\":0}"},
			CLOCK_NEVER, CLOCK_NEVER, true},
	};
	struct view view;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fresh(&view);
		for (int k = 0; k < 3 && rows[i].readings[k].ended; k++) {
			reading = rows[i].readings[k];
			feed(&view, rows[i].values[k] ? "DEADLINE" : "OPEN",
				rows[i].values[k] ? rows[i].values[k] : "{}");
		}
		CHECK(view.agreement.deadline == rows[i].earliest &&
				view.agreement.deadline_latest == rows[i].latest &&
				view.agreement.deadline_doubted == rows[i].doubted,
			"%s", rows[i].title);
		view_release(&view);
	}
	TEST("one that was written over ours is later than ours")
	{
		char key[KEYS_MAX];
		static const char ours[] = "{\"left\":90000}";
		struct store_op op = {.kind = STORE_PUT, .key = key, .value = ours};
		op.length = strlen(ours);
		struct write write = {.transaction = {.ops = &op, .op_count = 1}, .revision = 2};
		keys_of(&attempt, key, "DEADLINE");
		fresh(&view);
		read_at(&view, 0, 1000000, 1000010, NULL);
		view_feed_written(&view, &write.transaction, write.revision,
			&(struct view_reading){0, 1007000, 1007300});
		revision = 2;
		read_at(&view, 0, 1008000, 1008010, "{\"left\":30000}");
		CHECK(is_known(&view, 1037000, 1038010));
		view_release(&view);
	}
	TEST("a writer with our own monotonic clock says it exactly, any other does not")
	{
		struct process_identity self;
		char value[256];
		CHECK(process_identify(0, &self, NULL) == STATUS_OK);
		for (int other = 0; other < 3; other++) {
			fresh(&view);
			read_at(&view, 0, 1000000, 1000010, NULL);
			snprintf(value, sizeof(value),
				"{\"left\":30000,\"at\":1031234,\"boot\":\"%s%s\",\"timens\":%llu}",
				self.boot, other == 1 ? "x" : "",
				(unsigned long long)self.time_namespace + (other == 2));
			read_at(&view, 0, 1004000, 1004010, value);
			CHECK(other ? is_known(&view, 1030000, 1034010)
				    : is_known(&view, 1031234, 1031234),
				"%d", other);
			CHECK_EQ(view.agreement.deadline_told, 1034010);
			view_release(&view);
		}
	}
}

/* What the goodbyes of three tasks say, and what the attempt has saved. */
static void saved_by_all(void)
{
	static const struct {
		const char *left[3];
		bool claimed, saved, measured;
	} rows[] = {
		{{"{\"saved\":9}", "{\"saved\":9}", "{\"saved\":9}"}, false, true, true},
		{{"{\"step\":12,\"saved\":9}", "{\"step\":12}", "{\"step\":12}"}, true, false,
			true},
		{{"{\"step\":12,\"saved\":9}", "{\"step\":12}", "{\"step\":12}"}, false, false,
			false},
		{{"{\"step\":12,\"saved\":9}", "{\"saved\":9}", "{\"saved\":6}"}, true, false,
			true},
		{{"{\"step\":12,\"saved\":9}", "{\"saved\":9}", NULL}, true, false, false},
		{{"{\"step\":12,\"saved\":9,\"chief\":true}", "{\"step\":9}", NULL}, false, true,
			true},
		{{"{\"step\":12,\"saved\":9,\"complete\":9}", NULL, NULL}, true, true, true},
		{{"{\"step\":12}", "{\"step\":12}", NULL}, false, false, true},
	};
	TEST("a step counts as saved if all that must save have saved it, and one at least did")
	{
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct view view;
			struct outcome outcome;
			fresh(&view);
			if (rows[i].claimed)
				feed(&view, "TERMINATED_WORKER", "{\"then\":\"exit\"}");
			for (int k = 0; k < 3; k++) {
				char key[16];
				snprintf(key, sizeof(key), "LEFT/%d", k);
				if (rows[i].left[k])
					feed(&view, key, rows[i].left[k]);
			}
			feed(&view, "LEFT/3", rows[i].left[1] ? rows[i].left[1] : "{\"step\":1}");
			outcome_of_view(&view, NULL, &outcome);
			CHECK(outcome.has_saved == rows[i].saved, "row %zu", i);
			CHECK(!outcome.has_saved || outcome.saved == 9, "row %zu", i);
			CHECK(outcome.has_saved || outcome.measured == rows[i].measured, "row %zu",
				i);
			view_release(&view);
		}
	}
}

static enum outcome_cause cause_of(
	const struct view *view, const struct outcome_finding *finding, bool *saved)
{
	struct outcome outcome;
	outcome_of_view(view, finding, &outcome);
	*saved = outcome.has_saved;
	return outcome.cause;
}

static void judged_by_checkpoints(void)
{
	static const char *const left[] = {"LEFT/0", "LEFT/1", "LEFT/2", "LEFT/3"};
	const struct outcome_finding none = {0}, done = {.finished = true},
				     newer = {.newer = true, .step = 7};
	struct view view;
	bool saved;
	fresh(&view);
	feed(&view, "TERMINATED_WORKER",
		"{\"task\":0,\"then\":\"exit\",\"host\":\"n\",\"source\":\"x\",\"reason\":\"\",\"utc\":1}");
	for (size_t i = 0; i < 4; i++)
		feed(&view, left[i], "{\"reason\":\"saved\",\"code\":42,\"step\":9,\"saved\":9}");
	TEST("without --checkpoints the tasks tell what was saved")
	{
		CHECK(cause_of(&view, &none, &saved) == CAUSE_PREEMPTED && saved);
	}
	feed(&view, "RESUME", "{\"path\":\"\",\"step\":0}");
	TEST("with --checkpoints only a newer one there is a save, whatever the tasks say")
	{
		CHECK(cause_of(&view, &none, &saved) == CAUSE_UNSAVED && !saved);
		CHECK(cause_of(&view, NULL, &saved) == CAUSE_UNSAVED && !saved);
		CHECK(cause_of(&view, &newer, &saved) == CAUSE_PREEMPTED && saved);
	}
	for (size_t i = 0; i < 4; i++)
		feed(&view, left[i], "{\"reason\":\"completed\",\"code\":0}");
	TEST("programs that ended with 0 after a claim have finished only if their agent says so")
	{
		CHECK(cause_of(&view, NULL, &saved) == CAUSE_COMPLETED);
		CHECK(cause_of(&view, &done, &saved) == CAUSE_COMPLETED);
		CHECK(cause_of(&view, &none, &saved) == CAUSE_UNSAVED && !saved);
		CHECK(cause_of(&view, &newer, &saved) == CAUSE_PREEMPTED && saved);
	}
	view_release(&view);
}

/* What has to hold whatever a key says. */
static bool sound(const struct view *view)
{
	const struct agreement_view *a = &view->agreement;
	bool right = a->tasks == 4 && view->attempt.tasks == 4 && (!a->decided || !a->unreadable) &&
		     memchr(view->claim.host, 0, 65) &&
		     memchr(view->claim.reason, 0, sizeof(view->claim.reason)) &&
		     a->claim_then <= THEN_STOP && a->decision.kind <= KIND_NONE;
	for (uint64_t i = 0; i < 4; i++)
		right &= a->peers[i].left <= REASON_PEER;
	return right;
}

static void garbage(void)
{
	static const char *const keys[] = {"TASK/0", "SEAL", "TERMINATED_WORKER", "DEADLINE",
		"ROUND/1", "STEP/1/0", "RUN_TO_CHECKPOINT", "LAST_RUN_TO_CHECKPOINT/2",
		"RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_0", "SAVED/1/0", "RESUME", "ERROR", "DEAD/0",
		"LEFT/0", "CLOSED"};
	static const char *const values[] = {"", " ", "{", "{}", "[]", "null", "-1", "\"x\"",
		"garbage", "{\"then\":5,\"kind\":[],\"step\":\"7\",\"members\":7,\"task\":-4}",
		"{\"kind\":\"exit\",\"then\":\"exit\",\"step\":6,\"members\":\"0-9\"}",
		"{\"kind\":\"exit\",\"then\":\"exit\",\"step\":-6,\"members\":\"0-3\"}",
		"{\"step\":18446744073709551616,\"next\":99999999999999999999999}",
		"{\"step\":5,\"next\":5}", "{\"utc\":0,\"left\":-1}",
		"{\"utc\":9223372036854775807,\"left\":9223372036854775807}",
		"{\"left\":7,\"boot\":[],\"timens\":-1,\"at\":\"x\"}",
		"{\"pid\":99999999999,\"start\":-1,\"pidns\":{}}",
		"{\"task\":99,\"then\":\"continue\"}", "{\"reason\":\"\",\"code\":-9}",
		"{\"by\":null,\"text\":{}}", "\xff\xfe\x00", "{\"host\":\"\xc3\x28\"}"};
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		struct view view;
		bool right = true;
		view_init(&view, &attempt);
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]) && right; v++) {
			feed(&view, keys[k], values[v]);
			right &= sound(&view);
		}
		char long_value[4096];
		memset(long_value, '[', sizeof(long_value));
		feed_bytes(&view, keys[k], long_value, sizeof(long_value)); /* too deep */
		feed_bytes(&view, keys[k], "{}\0{}", 5);
		CHECK(right && sound(&view), "SY-11 garbage in %s", keys[k]);
		view_release(&view);
	}
	static const char *const names[] = {"TASK/", "TASK/4", "TASK/-1", "TASK/01", "TASK/0x",
		"TASK/99999999999999999999999999", "STEP/1", "STEP/1/", "STEP/1/4", "STEP/x/0",
		"STEP//0", "SAVED/1/0/0", "ROUND/", "ROUND/one", "LAST_RUN_TO_CHECKPOINT/",
		"LEFT/4", "DEAD/9", "RECEIVED_SIGNAL_", "RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_",
		"RECEIVED_SIGNAL_X_1", "RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_4",
		"RECEIVED_SIGNAL_LAST_RUN_TO_CHECKPOINT/_1"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct view view;
		fresh(&view);
		feed(&view, names[i],
			"{\"step\":1,\"next\":2,\"reason\":\"saved\",\"final\":true}");
		CHECK(sound(&view) && view.damaged == 1 && view.agreement.round == 0 &&
				view_joined(&view) == 0,
			"SY-11 a key that is none: %s", names[i]);
		view_release(&view);
	}
	struct view view;
	TEST("SY-11 a claim that cannot be read is an ordinary preemption")
	{
		static const char *const claims[] = {
			"", "[]", "garbage", "{\"then\":\"pause\"}", "{\"then\":\"continue\"}"};
		for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
			fresh(&view);
			feed(&view, "TERMINATED_WORKER", claims[i]);
			CHECK(view.agreement.claimed && view.claim.unreadable, "%s", claims[i]);
			CHECK_EQ(view.agreement.claim_then, THEN_EXIT);
			view_release(&view);
		}
	}
	TEST("SY-11 an exit code that is none is not treated as 0")
	{
		struct outcome outcome;
		static const char *const codes[] = {"4294967296", "-256", "256", "\"0\"", "{}"};
		for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
			char value[96];
			fresh(&view);
			snprintf(value, sizeof(value), "{\"task\":1,\"code\":%s}", codes[i]);
			feed(&view, "ERROR", value);
			CHECK_EQ(view.error.code, 1);
			snprintf(value, sizeof(value), "{\"cause\":\"crashed\",\"code\":%s}",
				codes[i]);
			struct json_object *closed = json_parse(value, strlen(value));
			CHECK(outcome_read(closed, &outcome) && outcome.code == 1);
			json_object_put(closed);
			view_release(&view);
		}
	}
	TEST("SY-11 a decision that cannot be read is none, and the next round is healthy")
	{
		fresh(&view);
		feed(&view, "ROUND/1", "{\"final\":false}");
		feed(&view, "RUN_TO_CHECKPOINT", "{\"kind\":\"exit\"}");
		CHECK(!view.agreement.decided && view.agreement.unreadable);
		feed(&view, "ROUND/2", "{\"final\":true}");
		CHECK(!view.agreement.unreadable && view.agreement.round_final);
		feed(&view, "LAST_RUN_TO_CHECKPOINT/2",
			"{\"kind\":\"exit\",\"then\":\"exit\",\"step\":6,\"members\":\"0-3\"}");
		CHECK(view.agreement.decided && view.agreement.decision.step == 6);
		view_release(&view);
	}
	TEST("SY-11 a deadline that cannot be read is none, and is replaced by its revision")
	{
		fresh(&view);
		feed(&view, "DEADLINE", "garbage");
		CHECK(view.agreement.deadline == CLOCK_NEVER);
		CHECK_EQ(view.deadline_revision, revision);
		view_release(&view);
	}
	TEST("SY-11 keys of a newer version are skipped")
	{
		fresh(&view);
		feed(&view, "WEATHER/1", "garbage");
		CHECK_EQ(view.damaged, 0);
		view_release(&view);
	}
}

/* ---- Sets of tasks ---- */

static void sets(void)
{
	TEST("all sets of 6 tasks are read back") for (unsigned bits = 0; bits < 64; bits++)
	{
		bool set[6], again[6] = {false};
		struct text text = {0};
		for (unsigned i = 0; i < 6; i++)
			set[i] = bits >> i & 1;
		keys_write_marks(6, set, &text);
		CHECK(keys_read_set(text_string(&text), 6, again) && !memcmp(set, again, 6),
			"set \"%s\"", text_string(&text));
		text_release(&text);
	}
	static const char *const wrong[] = {"6", "0-6", "-", "0-", "-1", ",", "0,", ",0", "2-1",
		"0 1", "a", "0-1-2", "99999999999999999999", "0x1", "+1", "1,,2"};
	TEST("what is no set") for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		bool set[6] = {false};
		CHECK(!keys_read_set(wrong[i], 6, set), "no set: \"%s\"", wrong[i]);
	}
}

/* ---- Through a store ---- */

static void join_as(struct store *store, uint64_t tasks, uint64_t first, uint64_t count,
	const char *launch, struct view *view)
{
	struct attempt_entry entry = {.run = "s",
		.tasks = tasks,
		.first = first,
		.count = count,
		.launch = launch,
		.deadline = clock_after(30000),
		.cancel = -1};
	CHECK(process_identify(0, &entry.agent, &err) == STATUS_OK);
	CHECK(attempt_join(store, &entry, view, &err) == STATUS_OK);
}

static void join_all(struct store *store, uint64_t tasks, struct attempt *joined)
{
	for (uint64_t i = 0; i < tasks; i++) {
		struct view view;
		join_as(store, tasks, i, 1, "", &view);
		*joined = view.attempt;
		view_release(&view);
	}
}

/* The life of each attempt: the same for all its tasks, and never the same again. */
static void lives(void)
{
	struct store *store = scratch_store("lives.db"), *other = scratch_store("other.db");
	struct attempt first, second, found, elsewhere;
	struct view view = {0};
	join_all(store, 1, &first);
	join_all(other, 1, &elsewhere);
	CHECK(life_is_valid(first.life) && life_is_valid(elsewhere.life) &&
			strcmp(first.life, elsewhere.life) != 0,
		"attempt 1 of one name in two stores: two lives");
	CHECK(attempt_find(store, "s", 0, &found, &err) == STATUS_OK &&
			!strcmp(found.life, first.life),
		"who joins and who reads know the same life");
	struct process_identity self;
	CHECK(attempt_view(store, "s", 0, &view, &err) == STATUS_OK &&
			process_identify(0, &self, &err) == STATUS_OK &&
			view.members[0].agent.time_namespace == self.time_namespace,
		"a task's record names its time namespace");
	CHECK(attempt_close_by_hand(store, &view, &err) == STATUS_OK);
	view_release(&view);
	join_all(store, 1, &second);
	CHECK(second.number == 2 && strcmp(second.life, first.life) != 0,
		"the next attempt has another life");
	CHECK(store_put(store, "run/s/000009/OPEN", "{\"tasks\":1,\"launch\":\"\",\"utc\":5}", NULL,
		      &err) == STATUS_OK &&
			attempt_find(store, "s", 9, &found, &err) == STATUS_DAMAGED,
		"a record without a life is damaged");
	store_close(store);
	store_close(other);
}

/* Deaths of every cause, through the store. */
static void deaths(void)
{
	struct store *store = scratch_store("deaths.db");
	struct view view = {0};
	struct attempt joined;
	join_all(store, 4, &joined);
	CHECK(attempt_view(store, "s", 0, &view, &err) == STATUS_OK);
	for (uint64_t i = 0; i < 4; i++) {
		struct death death = {.task = i, .cause = (enum death_cause)i};
		struct write write;
		write_build_deaths(&write, &view, BY_NO_TASK, &death, 1);
		CHECK_EQ(write_carry_out(&write, store, &err), OUTCOME_DONE);
		write_release(&write);
		CHECK(view_refresh(&view, store, &err) == STATUS_OK);
	}
	for (uint64_t i = 0; i < 4; i++)
		CHECK(view.agreement.peers[i].dead, "a task that is dead: %s",
			keys_death_word((enum death_cause)i));
	CHECK_TEXT(view.seal, "death");
	view_release(&view);
	store_close(store);
}

/* Small programs that are started one after the other do not count what is left again. */
static void staged_deadline(void)
{
	static const char *const left[] = {"{\"left\":600000}", NULL, "{\"left\":60000}"};
	struct store *store = scratch_store("deadline.db");
	struct attempt joined;
	struct board board;
	struct ack_answer answer[3];
	char path[128];
	struct identity identity = {.count = 1, .tasks = 1};
	struct agent_options options = {.identity = &identity,
		.store = path,
		.grace = -1,
		.agreement = {.report_timeout = 60000, .save_timeout = 60000, .startup = 60000}};
	join_all(store, 1, &joined);
	CHECK(board_create(&board, scratch, getpid(), NULL, &err) == STATUS_OK);
	snprintf(path, sizeof(path), "%s", scratch_path("deadline.db"));
	for (int i = 0; i < 3; i++) {
		struct ack_request request = {.options = &options,
			.attempt = &joined,
			.board = board.path,
			.agent = getpid(),
			.deadline = clock_now()};
		if (left[i])
			store_put(store, "run/s/000001/DEADLINE", left[i], NULL, &err);
		CHECK(ack_run(&request, scratch_store("deadline.db"), &answer[i], &err) ==
				STATUS_NO,
			"nothing is claimed");
		clock_sleep_until(clock_after(5));
	}
	CHECK(answer[0].deadline < CLOCK_NEVER && answer[0].deadline == answer[1].deadline,
		"the second program knows the deadline as the first did");
	CHECK(answer[2].deadline < answer[0].deadline, "and an earlier one replaces it");
	board_release(&board, true);
	store_close(store);
}

/* A task fails with this code; what comes of its record. */
static enum agreement_outcome fail_with(struct store *store, int code)
{
	struct view view = {0};
	struct write write;
	struct agreement_plan plan = {0};
	CHECK(attempt_view(store, "s", 0, &view, &err) == STATUS_OK);
	write_build(&write, &view, WRITE_ERROR, 0, &plan, &(struct write_details){.code = code});
	enum agreement_outcome outcome = write_carry_out(&write, store, &err);
	write_release(&write);
	view_release(&view);
	return outcome;
}

/* What a task has put at ERROR, without the seal that a task writes with it. */
static void stray_error(void)
{
	static const char *const strays[] = {"{}", "garbage", "{\"task\":0,\"code\":9}"};
	struct store *store = scratch_store("stray.db");
	struct attempt joined;
	join_all(store, 1, &joined);
	for (size_t i = 0; i < 3; i++) {
		struct view view = {0};
		CHECK(store_put(store, "run/s/000001/ERROR", strays[i], NULL, &err) == STATUS_OK);
		CHECK_EQ(fail_with(store, 3), OUTCOME_DONE);
		CHECK(attempt_view(store, "s", 0, &view, &err) == STATUS_OK &&
				view.agreement.broken && view.error.code == 3,
			"a task that fails writes over it, and the group knows: %s", strays[i]);
		view_release(&view);
		CHECK(fail_with(store, 4) == OUTCOME_REFUSED, "a sealed one stands");
		CHECK(store_delete(store, "run/s/000001/SEAL", &err) == STATUS_OK);
	}
	store_close(store);
}

static void classes(void)
{
	static const char *const rows[][2] = {
		{"ValueError: no loss", "ValueError"},
		{"[rank1]: torch.OutOfMemoryError: CUDA out of memory.", "OutOfMemoryError"},
		{"[default0]:KeyboardInterrupt", "KeyboardInterrupt"},
		{"Exception: why", "Exception"},
		{"tensorflow.python.framework.errors_impl.UnavailableError: gone",
			"UnavailableError"},
		{"OSError", "OSError"},
		{"Killed", ""},
		{"ERROR: no data", ""},
		{"Error: no data", ""},
		{"bash: line 1: x: command not found", ""},
		{"No such file or directory", ""},
		{"StopIteration was raised", ""},
		{"", ""},
	};
	char class[64];
	TEST("the name of an exception, without its module")
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		keys_error_class(rows[i][0], class);
		CHECK_TEXT(class, rows[i][1]);
	}
}

int main(void)
{
	attempt_name(&attempt, "r", 2, 4);
	decoded();
	unit_begin(NULL);
	deadlines();
	saved_by_all();
	judged_by_checkpoints();
	garbage();
	sets();
	classes();
	unit_begin(NULL);
	scratch_make();
	lives();
	deaths();
	staged_deadline();
	stray_error();
	scratch_remove();
	return unit_end();
}
