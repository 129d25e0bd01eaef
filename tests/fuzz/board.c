/* SPDX-License-Identifier: MIT */
/*
 * What a training process writes on its board, and what the agent keeps there. The first byte of an
 * input says which file the rest is: 'h' hold, 's' step, 'S' saved, 'c' section, 'o' owner, 'd'
 * deadline, 'n' notice, 'e' error.
 */
#include "agent/task/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "support/fuzz.h"

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

static void check_progress(const struct board *board)
{
	struct board_step step;
	struct board_section section;
	struct board_owner owner;
	uint64_t saved;
	int64_t written;
	if (board_read_step(board, &step, NULL) == STATUS_OK)
		FUZZ_HOLDS(!step.started || step.next > step.step);
	(void)board_read_saved(board, &saved, &written, NULL);
	if (board_read_section(board, &section) == STATUS_OK && *section.name)
		FUZZ_HOLDS(parse_name(section.name, "section", NULL) == STATUS_OK);
	if (board_read_owner(board, &owner) == STATUS_OK)
		FUZZ_HOLDS(memchr(owner.line, '\0', sizeof(owner.line)));
}

static void check_kept(const struct board *board)
{
	struct notice notice;
	struct error err;
	char line[512];
	struct board_deadline known = {.revision = 3, .earliest = 10, .latest = 20};
	board_keep_deadline(board, &known);
	FUZZ_HOLDS(known.revision == 3);
	board_read_error(fuzz_path(), line, sizeof(line));
	if (board_read_notice(fuzz_path(), &notice, &err) == STATUS_OK)
		FUZZ_HOLDS(*notice.source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char letters[] = "hsScodne";
	static const char *const files[] = {
		"hold", "step", "saved", "section", "owner", "deadline", "notice", "error"};
	struct board board = {
		.path = (char *)fuzz_path(), .directory = fuzz_directory(), .agent = 77};
	const char *letter = size && *data ? strchr(letters, *data) : NULL;
	if (!letter)
		return 0;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (i != 0 && i < 5)
			FUZZ_HOLDS(fuzz_write(files[i], "", 0));
	FUZZ_HOLDS(fuzz_write("hold.0", "", 0) && fuzz_write("hold.1", "", 0));
	FUZZ_HOLDS(fuzz_write(files[letter - letters], data + 1, size - 1));
	check_progress(&board);
	check_kept(&board);
	check_hold(&board);
	FUZZ_HOLDS(fuzz_write("deadline", "", 0));
	fuzz_clear();
	(void)unlinkat(fuzz_directory(), "hold", 0);
	return 0;
}
