/* SPDX-License-Identifier: MIT */
/*
 * What preempt-status makes of the keys and the beats of an attempt: marks, states, silence, rates;
 * and the table, the JSON, the metrics and the timeline of it.
 */
#include <stdlib.h>
#include <string.h>

#include "live/heartbeat.h"
#include "status/run_status.h"
#include "status/table.h"
#include "status/timeline_of.h"
#include "unit.h"

#define TASKS 3
#define START INT64_C(1700000000000)

/* Keys of run r, attempt 2, as they are given. */
struct keys {
	struct store_entry entries[32];
	struct store_answer answer;
};

static void put(struct keys *keys, const char *name, const char *value)
{
	char key[KEYS_MAX];
	snprintf(key, sizeof(key), "run/r/000002/%s", name);
	keys->answer.revision++;
	keys->entries[keys->answer.count++] = (struct store_entry){.key = strdup(key),
		.value = strdup(value),
		.length = strlen(value),
		.revision = keys->answer.revision};
	keys->answer.entries = keys->entries;
}

/* What is known of these keys; of the tasks' beats, too, where they are given. */
static void feed(struct run_status *status, uint64_t tasks, const struct keys *keys,
	const struct store_beat_reading *beats)
{
	struct attempt attempt;
	*status = (struct run_status){0};
	attempt_name(&attempt, "r", 2, tasks);
	view_init(&status->view, &attempt);
	run_status_feed(status, &keys->answer, 1000);
	if (beats)
		run_status_take_beats(status, NULL, beats, 1000);
}

/* Whether the table, or the JSON, has these words. */
static bool shows(
	const struct run_status *status, const struct table_style *style, const char *words)
{
	struct text text = {0};
	table_add(&text, status, style);
	bool found = strstr(text_string(&text), words) != NULL;
	if (!found)
		printf("# %s\n", text_string(&text));
	text_release(&text);
	return found;
}

static void release(struct keys *keys)
{
	for (size_t i = 0; i < keys->answer.count; i++) {
		free(keys->entries[i].key);
		free(keys->entries[i].value);
	}
}

static void put_joined(struct keys *keys)
{
	put(keys, "OPEN", "{\"tasks\":3,\"launch\":\"\",\"life\":\"a\",\"utc\":1700000000000}");
	for (int i = 0; i < TASKS; i++) {
		char name[32], value[200];
		snprintf(name, sizeof(name), "TASK/%d", i);
		snprintf(value, sizeof(value),
			"{\"host\":\"n%d\",\"boot\":\"b\",\"pidns\":1,\"pid\":7,\"start\":1,"
			"\"utc\":%lld}",
			i, (long long)START + i);
		put(keys, name, value);
	}
	put(keys, "ALL_JOINED", "{\"utc\":1700000000010}");
}

/* A run of one task, whose agent writes no ALL_JOINED. */
static void check_alone(void)
{
	struct keys keys = {0};
	struct run_status status;
	put(&keys, "OPEN", "{\"tasks\":1}");
	TEST("a task that is alone: joining, and running as soon as it has joined")
	{
		feed(&status, 1, &keys, NULL);
		CHECK_TEXT(run_status_word(&status), "joining");
		CHECK_EQ(status.tasks[0].state, TASK_MISSING);
		run_status_release(&status);
		put(&keys, "TASK/0",
			"{\"host\":\"n\",\"boot\":\"b\",\"pidns\":1,\"pid\":7,\"start\":1,\"utc\":1}");
		feed(&status, 1, &keys, NULL);
		CHECK_TEXT(run_status_word(&status), "running");
		CHECK_EQ(status.tasks[0].state, TASK_RUNNING);
		run_status_release(&status);
	}
	release(&keys);
}

static struct store_beat_reading beat(uint64_t count, uint64_t step)
{
	return (struct store_beat_reading){.status = STATUS_OK,
		.beat = {.token = 1, .sequence = heartbeat_sequence(count, 5000), .step = step}};
}

static void check_running(void)
{
	struct keys keys = {0};
	struct run_status status, later;
	const struct store_beat_reading no_beat = {.status = STATUS_NO},
					beats[TASKS] = {beat(11, 500), beat(11, 250), no_beat};
	put_joined(&keys);
	feed(&status, TASKS, &keys, beats);
	TEST("running, with steps and rates; a task without beats is not silent")
	{
		CHECK_TEXT(run_status_word(&status), "running");
		CHECK_EQ(status.tasks[0].state, TASK_RUNNING);
		CHECK_EQ(status.tasks[2].state, TASK_RUNNING);
		CHECK_EQ(status.tasks[2].silent, -1);
		CHECK(status.tasks[0].rate > 9.99 && status.tasks[0].rate < 10.01);
		CHECK(status.tasks[1].rate > 4.99 && status.tasks[1].rate < 5.01);
		CHECK_EQ(run_status_code(&status), 0);
		CHECK_EQ(status.mark_count, (size_t)3);
	}
	TEST("silence is counted from one reading to the next, on our clock")
	{
		feed(&later, TASKS, &keys, NULL);
		struct store_beat_reading next[TASKS] = {beat(12, 550), beat(11, 250), no_beat};
		CHECK(!run_status_is_proved(&status));
		run_status_take_beats(&later, &status, next, 15000);
		CHECK(!run_status_is_proved(&later));
		CHECK_EQ(later.tasks[0].silent, 0);
		CHECK_EQ(later.tasks[1].silent, 14000);
		CHECK_EQ(later.tasks[1].state, TASK_RUNNING);
		/* In place: only the beats were read again. */
		next[0] = beat(18, 700);
		run_status_take_beats(&later, &later, next, 40000);
		CHECK_EQ(later.tasks[0].state, TASK_RUNNING);
		CHECK_EQ(later.tasks[1].state, TASK_SILENT);
		CHECK_EQ(run_status_code(&later), 44);
		CHECK(run_status_is_proved(&later));
		run_status_release(&later);
	}
	TEST("no beat, or one that has vanished, is silence, too; a first beat is a change")
	{
		feed(&later, TASKS, &keys, NULL);
		struct store_beat_reading next[TASKS] = {beat(12, 550), no_beat, no_beat};
		run_status_take_beats(&later, &status, next, 15000);
		next[0] = beat(13, 600);
		run_status_take_beats(&later, &later, next, 20000);
		CHECK_EQ(later.tasks[1].silent, 19000);
		CHECK_EQ(later.tasks[2].silent, 19000);
		CHECK_EQ(run_status_code(&later), 0);
		CHECK(!run_status_is_proved(&later));
		next[0] = beat(15, 700);
		run_status_take_beats(&later, &later, next, 31001);
		CHECK_EQ(later.tasks[0].state, TASK_RUNNING);
		CHECK_EQ(later.tasks[1].state, TASK_SILENT);
		CHECK_EQ(later.tasks[2].state, TASK_SILENT);
		CHECK_EQ(run_status_code(&later), 44);
		CHECK(run_status_is_proved(&later));
		next[1] = beat(12, 300);
		next[2] = beat(1, 0);
		run_status_take_beats(&later, &later, next, 32000);
		CHECK_EQ(run_status_code(&later), 0);
		CHECK_EQ(later.tasks[2].silent, 0);
		CHECK(run_status_is_proved(&later));
		run_status_release(&later);
	}
	TEST("a task that never beats is not silent")
	{
		put(&keys, "TASK/2", "{\"beats\":false,\"utc\":1700000000002}");
		feed(&later, TASKS, &keys, NULL);
		struct store_beat_reading next[TASKS] = {beat(12, 550), beat(12, 300), no_beat};
		run_status_take_beats(&later, &status, next, 40000);
		CHECK_EQ(later.tasks[2].state, TASK_RUNNING);
		CHECK_EQ(later.tasks[2].silent, -1);
		CHECK(run_status_is_proved(&later));
		run_status_release(&later);
	}
	run_status_release(&status);
	release(&keys);
}

static void check_preemption(void)
{
	struct keys keys = {0};
	struct run_status status;
	struct text text = {0};
	struct table_style style = {.utc = START + 60000};
	struct store_beat_reading beats[TASKS] = {beat(2, 9), beat(2, 9), beat(2, 9)};
	put_joined(&keys);
	put(&keys, "SEAL", "{\"by\":\"claim\",\"text\":\"x\",\"utc\":1700000050000}");
	put(&keys, "TERMINATED_WORKER",
		"{\"task\":1,\"then\":\"exit\",\"host\":\"n1\",\"source\":\"signal:TERM\",\"reason\":\"a\\u001bb\","
		"\"utc\":1700000050000}");
	put(&keys, "DEADLINE", "{\"left\":30000,\"utc\":1700000080000}");
	put(&keys, "ROUND/1", "{\"utc\":1700000050001,\"final\":false}");
	put(&keys, "STEP/1/0",
		"{\"none\":false,\"step\":9,\"next\":10,\"step_ms\":1,\"utc\":1700000050100}");
	feed(&status, TASKS, &keys, beats);
	TEST("a task that has reported is held")
	{
		CHECK_TEXT(run_status_word(&status), "agreeing");
		CHECK_EQ(status.tasks[0].state, TASK_HELD);
		CHECK_EQ(status.tasks[0].reported, START + 50100);
		CHECK_EQ(status.tasks[1].state, TASK_RUNNING);
		CHECK_EQ(status.deadline_utc, START + 80000);
	}
	run_status_release(&status);
	put(&keys, "STEP/1/1",
		"{\"none\":false,\"step\":9,\"next\":10,\"step_ms\":1,\"utc\":1700000050100}");
	put(&keys, "RUN_TO_CHECKPOINT",
		"{\"kind\":\"exit\",\"then\":\"exit\",\"step\":10,\"members\":\"0-2\",\"missing\":\"\",\"utc\":1700000050200}");
	put(&keys, "SAVED/1/0", "{\"step\":10,\"ms\":1500,\"utc\":1700000053000}");
	put(&keys, "RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_0", "{\"utc\":1700000053000}");
	put(&keys, "LEFT/2", "{\"reason\":\"failed\",\"code\":1,\"step\":8,\"utc\":1700000054000}");
	feed(&status, TASKS, &keys, beats);
	TEST("saving, saved, failed; the table shows claim, deadline, round and escapes")
	{
		CHECK_EQ(status.tasks[0].state, TASK_SAVED);
		CHECK_EQ(status.tasks[0].took, 1500);
		CHECK_EQ(status.tasks[1].state, TASK_SAVING);
		CHECK_EQ(status.tasks[2].state, TASK_FAILED);
		CHECK(shows(
			&status, &style, "claim: task 1 on n1, 10s ago: signal:TERM: a\\x1bb\n"));
		CHECK(shows(&status, &style, "deadline: 2023-11-14T22:14:40.000Z, 20s left\n"));
		CHECK(shows(&status, &style,
			"round 1: all save at step 10, then leave\n  of 3: 2 reported, 1 acked, 1 saved\n"));
		CHECK(shows(&status, &style,
			"    0 n0           saved           10   1.80      -  0.0s  2.9s  2.9s  1.5s\n"));
	}
	TEST("tasks that save one step show one step; what one of three saved is no save of the run")
	{
		CHECK_EQ(status.tasks[0].step, 10);
		CHECK_EQ(status.tasks[1].step, 10); /* it has reported 10 as its next boundary */
		CHECK_EQ(status.tasks[2].step, 8);  /* as it says itself; its last beat says 9 */
		table_add(&text, &status, &style);
		CHECK(strstr(text_string(&text), "saved step") == NULL, "%s", text_string(&text));
		text_release(&text);
		table_add_json(&text, &status, &style);
		CHECK(strstr(text_string(&text), "\"saved\":10") == NULL, "%s", text_string(&text));
		text_release(&text);
	}
	TEST("metrics: one heading for each metric, however many runs")
	{
		struct sample_page *page = samples_begin();
		samples_add(page, &status, START + 60000);
		samples_add(page, &status, START + 60000);
		samples_end(page, &text);
		const char *type = strstr(text_string(&text), "# TYPE preempt_run_tasks gauge\n");
		CHECK(type && !strstr(type + 1, "# TYPE preempt_run_tasks "));
		CHECK(strstr(text_string(&text),
			      "preempt_run_tasks{run=\"r\",state=\"failed\"} 1\n") != NULL);
		CHECK(strstr(text_string(&text),
			      "preempt_run_deadline_seconds{run=\"r\"} 20.000\n") != NULL);
		text_release(&text);
	}
	run_status_release(&status);
	release(&keys);
}

/* Whether the lane of this task has this phase from and to these times after the start. */
static bool is_drawn(const struct timeline_attempt *attempt, uint64_t task,
	enum timeline_phase phase, int64_t from, int64_t to)
{
	for (size_t i = 0; i < attempt->span_count; i++) {
		const struct timeline_span *span = &attempt->spans[i];
		if (span->task == task && span->phase == phase && span->from == START + from &&
			span->to == START + to)
			return true;
	}
	return false;
}

static void check_two_rounds(void)
{
	struct keys keys = {0};
	struct run_status status;
	struct timeline_attempt attempt;
	put_joined(&keys);
	put(&keys, "ROUND/1", "{\"utc\":1700000010000,\"final\":false}");
	put(&keys, "STEP/1/0",
		"{\"none\":false,\"step\":9,\"next\":10,\"step_ms\":1,\"utc\":1700000011000}");
	put(&keys, "RUN_TO_CHECKPOINT",
		"{\"kind\":\"save\",\"then\":\"exit\",\"step\":10,\"members\":\"0-2\",\"missing\":\"\",\"utc\":1700000012000}");
	put(&keys, "SAVED/1/0", "{\"step\":10,\"ms\":2000,\"utc\":1700000015000}");
	put(&keys, "ROUND/2", "{\"utc\":1700000020000,\"final\":true}");
	put(&keys, "STEP/2/0",
		"{\"none\":false,\"step\":19,\"next\":20,\"step_ms\":1,\"utc\":1700000021000}");
	put(&keys, "LAST_RUN_TO_CHECKPOINT/2",
		"{\"kind\":\"exit\",\"then\":\"exit\",\"step\":20,\"members\":\"0-2\",\"missing\":\"\",\"utc\":1700000022000}");
	put(&keys, "SAVED/2/0", "{\"step\":20,\"ms\":2000,\"utc\":1700000025000}");
	put(&keys, "LEFT/0",
		"{\"reason\":\"saved\",\"code\":42,\"step\":20,\"saved\":20,\"utc\":1700000030000}");
	feed(&status, TASKS, &keys, NULL);
	timeline_of(&status, START + 40000, &attempt);
	TEST("a lane shows the phases of each round")
	{
		CHECK(is_drawn(&attempt, 0, PHASE_TRAIN, 0, 11000));
		CHECK(is_drawn(&attempt, 0, PHASE_HOLD, 11000, 12000));
		CHECK(is_drawn(&attempt, 0, PHASE_REACH, 12000, 13000));
		CHECK(is_drawn(&attempt, 0, PHASE_SAVE, 13000, 15000));
		CHECK(is_drawn(&attempt, 0, PHASE_TRAIN, 15000, 21000));
		CHECK(is_drawn(&attempt, 0, PHASE_SAVE, 23000, 25000));
		CHECK(is_drawn(&attempt, 0, PHASE_STAY, 25000, 30000));
		CHECK(is_drawn(&attempt, 1, PHASE_TRAIN, 1, 40000));
	}
	timeline_release(&attempt);
	run_status_release(&status);
	release(&keys);
}

static void check_large(void)
{
	struct keys keys = {0};
	struct run_status status;
	struct table_style style = {0};
	put(&keys, "OPEN", "{\"tasks\":100}");
	put(&keys, "DEAD/7", "{\"by\":\"silent\",\"utc\":1700000000000}");
	put(&keys, "DEAD/9999", "{\"by\":\"silent\",\"utc\":1700000000000}");
	put(&keys, "STEP/x/1", "garbage");
	feed(&status, 100, &keys, NULL);
	TEST("many tasks: a row for each state; keys that are not understood are skipped")
	{
		CHECK(shows(&status, &style, "     1 dead             -         -      -  7\n"));
		CHECK(shows(
			&status, &style, "    99 missing          -         -      -  0-6,8-99\n"));
		style.all = true;
		CHECK(shows(&status, &style, "\n   99 -"));
	}
	run_status_release(&status);
	release(&keys);
}

int main(void)
{
	check_running();
	check_alone();
	check_preemption();
	check_two_rounds();
	check_large();
	return unit_end();
}
