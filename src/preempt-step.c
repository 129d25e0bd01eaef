/* SPDX-License-Identifier: MIT
 *
 * preempt-step N [NEXT]: report that N steps are finished. Exit code 0: run on; 10: save now; any
 * other: leave with it. --saved N: report that the checkpoint of step N is complete. Exit code 0:
 * run on; any other: leave with it.
 *
 * This is libpreempt as a program, for shells and languages without a client. It acts for its
 * parent process, which owns the board. The board's file `answered` keeps the three numbers of
 * struct board_answers.
 */
#include "client/board.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/args.h"
#include "base/message.h"

static const char *saved_step;

static const struct args_option options[] = {
	{"saved", "N", "the checkpoint of step N is complete and durable", ARGS_TEXT,
		.target = &saved_step},
	{0},
};

/* Read a step: at most 18 digits without leading zeros. False, with a message: it is not one. */
static bool read_step(const char *text, uint64_t *step)
{
	const char *end = text;
	if (preempt_board_number(&end, false, BOARD_STEP_MAX, step) && !*end)
		return true;
	message_error("'%s' is not a step number: 0 to 999999999999999999, decimal, no leading "
		      "zeros",
		text);
	return false;
}

/* A damaged or missing file means "no answer yet": at worst, the same save is asked for twice. */
static void answers_read(const struct preempt_board *board, struct board_answers *answers)
{
	char path[PATH_MAX], line[80];
	if (preempt_board_path(board, "answered", path) &&
		preempt_board_read(path, line, sizeof line) > 0)
		(void)preempt_board_answered(line, answers);
}

static bool answers_write(const struct preempt_board *board)
{
	char path[PATH_MAX], line[80];
	int length = snprintf(line, sizeof line, "%020llu %020llu %020llu\n",
		(unsigned long long)board->answers.any, (unsigned long long)board->answers.final,
		(unsigned long long)board->answers.at);
	if (!preempt_board_path(board, "answered", path))
		return false;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool done = pwrite(fd, line, (size_t)length, 0) == length;
	close(fd);
	return done;
}

static int step(struct preempt_board *board, uint64_t n, uint64_t next)
{
	bool held = false;
	int answer = preempt_board_step(board, n, next, &held);
	if (!held)
		return answer;
	answers_read(board, &board->answers);
	answer = preempt_board_answer(board, n);
	if (answer == BOARD_SAVE && !answers_write(board))
		preempt_board_say(board->name,
			"cannot write answered on the board %s: this save may be asked for again",
			board->path);
	return answer;
}

static int saved(const struct preempt_board *board, uint64_t n)
{
	bool held = false;
	int answer = preempt_board_saved(board, n, &held);
	return held ? preempt_board_barrier(board, n) : answer;
}

static int run(const struct args_rest *rest)
{
	static struct preempt_board board = {.name = "preempt-step"};
	uint64_t n = 0, next;
	if ((saved_step != NULL) == (rest->count > 0)) {
		message_error("give one of N [NEXT], --saved N; see preempt-step --help");
		return CODE_USAGE;
	}
	if (!read_step(saved_step ? saved_step : rest->words[0], &n))
		return CODE_USAGE;
	next = n + 1;
	if (rest->count > 1 && !read_step(rest->words[1], &next))
		return CODE_USAGE;

	int answer = preempt_board_attach(&board, getppid());
	if (answer == 0)
		preempt_board_say(board.name, BOARD_NONE);
	if (answer == 1)
		answer = saved_step ? saved(&board, n) : step(&board, n, next);
	preempt_board_release(&board);
	return answer >= BOARD_LEAVE ? answer - BOARD_LEAVE : answer;
}

static const struct args_command commands[] = {
	{NULL, "N [NEXT] | --saved N", NULL, options, NULL, 0, 2, false, false, run},
	{0},
};

int main(int argc, char **argv)
{
	return args_main(
		&(struct args_program){"preempt-step",
			"Report that N steps are finished, and ask what to do next. NEXT: the step at "
			"which the\nprogram will ask again, if that is not N+1.",
			commands,
			"exit codes: 0 run on; 10 save a checkpoint now, then call --saved; 2 wrong "
			"use;\n"
			"anything else: leave with that code (42 saved, 43 the agent is gone)\n"
			"\n"
			"    for ((s = start; s < total; s++)); do\n"
			"        preempt-step $s || case $? in\n"
			"        10) { save $s && preempt-step --saved $s; } || exit ;;\n"
			"        *) exit ;;\n"
			"        esac\n"
			"        train $s\n"
			"    done\n"},
		argc, argv);
}
