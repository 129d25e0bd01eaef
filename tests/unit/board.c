/* SPDX-License-Identifier: MIT */
/*
 * The agent's side of a board when the training is started again below its command: who trains, and
 * what is then forgotten.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "group/agreement.h"
#include "group/board.h"
#include "unit.h"

static void sign(const struct board *board, const char *line)
{
	char path[4200];
	snprintf(path, sizeof(path), "%s/owner", board->path);
	FILE *file = fopen(path, "w");
	if (file)
		fputs(line, file);
	if (file)
		fclose(file);
}

static bool is_owner(const struct board *board, const char *line)
{
	struct board_owner owner = {{0}};
	return board_read_owner(board, &owner) == STATUS_OK && !strcmp(owner.line, line);
}

static void owners(void)
{
	struct board board;
	struct board_owner owner;
	struct error err;
	char parent[] = "/tmp/unit-board-XXXXXX";
	CHECK(mkdtemp(parent) != NULL, "a place");
	CHECK(board_create(&board, parent, getpid(), &err) == STATUS_OK, "a board");
	CHECK(board_read_owner(&board, &owner) == STATUS_NO, "nobody yet");
	sign(&board, "");
	CHECK(board_read_owner(&board, &owner) == STATUS_NO, "a file that is filled in a moment");
	sign(&board, "12 34");
	CHECK(board_read_owner(&board, &owner) == STATUS_NO, "half a line");
	sign(&board, "12 345\n");
	CHECK(is_owner(&board, "12 345\n"), "a process and its start");
	sign(&board, "12\n");
	CHECK(is_owner(&board, "12\n"), "a process");
	board_release(&board, true);
	CHECK(rmdir(parent) == 0, "removed");
}

static void restarted(void)
{
	struct agreement_config config = {0};
	struct agreement_view view = {0};
	struct agreement a;
	struct agreement_hold exit_50 = {.order = ORDER_EXIT, .step = 50};
	agreement_init(&a, &config, &view, 0);
	agreement_read(&a, true, 60, 61, 0);
	agreement_saved(&a, 60);
	agreement_restarted(&a);
	CHECK(!a.called, "it has not called");
	agreement_told(&a, &exit_50, 0);
	CHECK(!a.has_saved, "a save of the former process is not the one asked for");
	agreement_saved(&a, 50);
	CHECK(a.has_saved && a.saved_step == 50, "its own lower save counts");
	agreement_restarted(&a);
	CHECK(a.has_saved && a.saved_step == 50, "the final save stands");
}

int main(void)
{
	owners();
	restarted();
	return unit_end();
}
