/* SPDX-License-Identifier: MIT */
/*
 * The board of a task: what a training process writes there, what the agent keeps there, and how
 * both read it. The first byte of an input says which file the rest is: 'h' hold, 's' step, 'S'
 * saved, 'o' owner, 'd' deadline, 'n' notice, 'e' error, 'a' agent, 'A' answered.
 */
#include "agent/task/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/board.h"
#include "support/fuzz.h"

/* ---- As the agent reads it ---- */

static void check_hold(const struct board *board)
{
	struct agreement_hold hold, again;
	int64_t written;
	if (board_told(board, &hold, &written, NULL) != STATUS_OK)
		return;
	FUZZ_HOLDS(hold.order != ORDER_LEAVE || (hold.code >= 1 && hold.code <= 255));
	FUZZ_HOLDS(board_tell(board, &hold, NULL) == STATUS_OK);
	FUZZ_HOLDS(board_told(board, &again, &written, NULL) == STATUS_OK);
	FUZZ_HOLDS(board_same_hold(&hold, &again));
}

static void check_agent(const struct board *board)
{
	struct board_step step;
	struct board_owner owner;
	struct board_deadline known = {.revision = 3, .earliest = 10, .latest = 20};
	struct notice notice;
	struct error err;
	uint64_t saved;
	int64_t written;
	char line[512];
	if (board_read_step(board, &step, NULL) == STATUS_OK)
		FUZZ_HOLDS(!step.started || step.next > step.step);
	(void)board_read_saved(board, &saved, &written, NULL);
	if (board_read_owner(board, &owner) == STATUS_OK)
		FUZZ_HOLDS(memchr(owner.line, '\0', sizeof(owner.line)));
	board_keep_deadline(board, &known);
	FUZZ_HOLDS(known.revision == 3);
	board_read_error(fuzz_path(), line, sizeof(line));
	if (board_read_notice(fuzz_path(), &notice, &err) == STATUS_OK)
		FUZZ_HOLDS(*notice.source);
	check_hold(board);
}

/* ---- As a training process reads it ---- */

/* There is one spelling of each line, but that save and exit may go without a process. */
static void check_order(const uint8_t *data, size_t size)
{
	struct board_hold hold = {.word = HOLD_NONE};
	char again[96] = "", watch[16] = "";
	memcpy(hold.line, data, size < sizeof(hold.line) - 1 ? size : sizeof(hold.line) - 1);
	if (!preempt_board_hold(&hold))
		return;
	unsigned long long number = hold.number;
	if (hold.watch)
		snprintf(watch, sizeof(watch), " %d", (int)hold.watch);
	switch (hold.word) {
	case HOLD_NONE: FUZZ_HOLDS(false);
	case HOLD_WAIT: snprintf(again, sizeof(again), "wait%s\n", watch); break;
	case HOLD_LEAVE: snprintf(again, sizeof(again), "leave %llu\n", number); break;
	case HOLD_SAVE: snprintf(again, sizeof(again), "save %llu%s\n", number, watch); break;
	case HOLD_EXIT: snprintf(again, sizeof(again), "exit %llu%s\n", number, watch); break;
	}
	FUZZ_HOLDS(strcmp(again, hold.line) == 0);
	FUZZ_HOLDS(hold.word != HOLD_LEAVE || (number >= 1 && number <= 255));
	FUZZ_HOLDS(number <= BOARD_STEP_MAX);
}

static void check_lines(const char *line)
{
	struct board_process process = {0}, other = {0};
	struct board_answers answers;
	uint64_t finished;
	if (preempt_board_agent(line, &process.pid))
		FUZZ_HOLDS(process.pid > 0);
	if (preempt_board_owner(line, &other))
		FUZZ_HOLDS(other.pid >= 0);
	if (preempt_board_last(line, &finished))
		FUZZ_HOLDS(finished <= BOARD_STEP_MAX);
	if (preempt_board_answered(line, &answers))
		FUZZ_HOLDS(answers.any <= BOARD_STEP_MAX + 1 && answers.at <= BOARD_STEP_MAX + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char letters[] = "hsSodneaA";
	static const char *const files[] = {"hold", "step", "saved", "owner", "deadline", "notice",
		"error", "agent", "answered"};
	const char *letter = size && *data ? strchr(letters, *data) : NULL;
	if (!letter)
		return 0;
	struct board board = {
		.path = (char *)fuzz_path(), .directory = fuzz_directory(), .agent = 77};
	char *text = fuzz_text(data + 1, size - 1);
	if (*letter == 'h')
		check_order(data + 1, size - 1);
	check_lines(text);
	free(text);
	for (size_t i = 1; i < 4; i++)
		FUZZ_HOLDS(fuzz_write(files[i], "", 0));
	FUZZ_HOLDS(fuzz_write("hold.0", "", 0) && fuzz_write("hold.1", "", 0));
	FUZZ_HOLDS(fuzz_write(files[letter - letters], data + 1, size - 1));
	check_agent(&board);
	fuzz_clear();
	return 0;
}
