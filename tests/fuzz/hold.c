/* SPDX-License-Identifier: MIT */
/*
 * What a training process reads of its board. The first byte of an input says which file the rest
 * is: 'h' hold, 'a' agent, 'o' owner, 's' step, 'A' answered.
 */
#include "client/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz.h"

static void check_hold(const uint8_t *data, size_t size)
{
	struct board_hold hold = {.word = HOLD_NONE};
	char again[96] = "";
	size_t length = size < sizeof(hold.line) - 1 ? size : sizeof(hold.line) - 1;
	memcpy(hold.line, data, length);
	if (!preempt_board_hold(&hold))
		return;
	/* There is one spelling of each line, but that save and exit may go without a process. */
	unsigned long long number = hold.number;
	const char *word = hold.word == HOLD_SAVE ? "save" : "exit";
	switch (hold.word) {
	case HOLD_NONE: FUZZ_HOLDS(false);
	case HOLD_WAIT: snprintf(again, sizeof(again), "wait %d\n", (int)hold.watch); break;
	case HOLD_LEAVE: snprintf(again, sizeof(again), "leave %llu\n", number); break;
	case HOLD_SAVE:
	case HOLD_EXIT:
		if (hold.watch)
			snprintf(again, sizeof(again), "%s %llu %d\n", word, number,
				(int)hold.watch);
		else
			snprintf(again, sizeof(again), "%s %llu\n", word, number);
		break;
	}
	FUZZ_HOLDS(strcmp(again, hold.line) == 0);
	FUZZ_HOLDS(hold.word != HOLD_LEAVE || (hold.number >= 1 && hold.number <= 255));
	FUZZ_HOLDS(hold.number <= BOARD_STEP_MAX);
}

static void check_process(const char *line, bool agent)
{
	struct board_process process = {0}, again;
	char written[64];
	if (agent) {
		if (preempt_board_agent(line, &process.pid))
			FUZZ_HOLDS(process.pid > 0);
		return;
	}
	if (!preempt_board_owner(line, &process))
		return;
	FUZZ_HOLDS(process.pid >= 0);
	snprintf(written, sizeof(written), "%d %llu\n", (int)process.pid,
		(unsigned long long)process.started);
	FUZZ_HOLDS(preempt_board_owner(written, &again));
	FUZZ_HOLDS(again.pid == process.pid && again.started == process.started);
}

static void check_numbers(const char *line)
{
	uint64_t finished, last;
	struct board_answers answers, again;
	char written[80];
	if (preempt_board_last(line, &finished)) {
		FUZZ_HOLDS(finished <= BOARD_STEP_MAX);
		snprintf(written, sizeof(written), "%020llu %020llu\n",
			(unsigned long long)finished, (unsigned long long)finished + 1);
		FUZZ_HOLDS(preempt_board_last(written, &last) && last == finished);
	}
	if (preempt_board_answered(line, &answers)) {
		FUZZ_HOLDS(answers.any <= BOARD_STEP_MAX + 1 && answers.at <= BOARD_STEP_MAX + 1);
		snprintf(written, sizeof(written), "%020llu %020llu %020llu\n",
			(unsigned long long)answers.any, (unsigned long long)answers.final,
			(unsigned long long)answers.at);
		FUZZ_HOLDS(preempt_board_answered(written, &again));
		FUZZ_HOLDS(answers.any == again.any && answers.final == again.final &&
			   answers.at == again.at);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *text = fuzz_text(data + 1, size - 1);
	switch (*data) {
	case 'h': check_hold(data + 1, size - 1); break;
	case 'a':
	case 'o': check_process(text, *data == 'a'); break;
	case 's':
	case 'A': check_numbers(text); break;
	}
	free(text);
	return 0;
}
