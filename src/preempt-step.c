/* SPDX-License-Identifier: MIT
 *
 * preempt-step N [NEXT]: N steps are finished; run on (0), save now (10), leave (any other code).
 * preempt-step --saved N: the checkpoint of N is complete; run on (0), leave (any other code).
 * preempt-step --section NAME: what the training is at from now on.
 *
 * The board's client as a program, for shells and languages without one. It speaks for its parent
 * process, which is the owner of the board, and keeps what was answered in the board's file
 * `answered` (three times "step + 1", 0 for none: asked to save, asked to save and exit, at which
 * boundary).
 */
#include "client/board.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: preempt-step N [NEXT]\n"
	"       preempt-step --saved N\n"
	"       preempt-step --section NAME\n"
	"\n"
	"N steps are finished: say so to this task's agent (the board in PREEMPT_DIR), and ask what to\n"
	"do next. NEXT: the step at which it will be asked again, if that is not N+1.\n"
	"\n"
	"      --saved N   the checkpoint of step N is complete and durable; after the final one, wait\n"
	"                  until every task has saved\n"
	"      --section NAME   what the training is at from now on: save, eval, any name; step is\n"
	"                  the training itself\n"
	"  -h, --help      show this and exit\n"
	"  -V, --version   show the version and exit\n"
	"\n"
	"exit code: 0 run on; 10 save a checkpoint now, then call --saved; 2 wrong use;\n"
	"           anything else: leave with that code (42 saved, 43 the agent is gone)\n"
	"\n"
	"    for ((s = start; s < total; s++)); do\n"
	"        preempt-step $s || case $? in\n"
	"        10) { save $s && preempt-step --saved $s; } || exit ;;\n"
	"        *) exit ;;\n"
	"        esac\n"
	"        train $s\n"
	"    done\n";

struct request {
	bool saved;
	const char *section;
	uint64_t n, next;
};

static bool number(const char *text, uint64_t *value)
{
	return preempt_board_number(&text, false, BOARD_STEP_MAX, value) && *text == '\0';
}

/* True: *request is filled; else *code is the program's answer. */
static bool arguments(int argc, char **argv, struct request *request, int *code)
{
	const char *words[2];
	int count = 0;
	bool options = true;
	*code = 2;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		if (options && strcmp(word, "--") == 0) {
			options = false;
		} else if (options && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
			*code = fputs(usage, stdout) < 0 || fflush(stdout) != 0;
			return false;
		} else if (options && (!strcmp(word, "--version") || !strcmp(word, "-V"))) {
			*code = puts("preempt-step " PREEMPT_VERSION) < 0 || fflush(stdout) != 0;
			return false;
		} else if (options && strcmp(word, "--saved") == 0) {
			request->saved = true;
		} else if (options && strncmp(word, "--saved=", 8) == 0 && count < 2) {
			request->saved = true;
			words[count++] = word + 8;
		} else if (options && strcmp(word, "--section") == 0 && i + 1 < argc) {
			request->section = argv[++i];
		} else if (options && strncmp(word, "--section=", 10) == 0) {
			request->section = word + 10;
		} else if (options && *word == '-' && (word[1] < '0' || word[1] > '9')) {
			preempt_board_say("preempt-step", "unknown option %s; try --help", word);
			return false;
		} else if (count == 2) {
			preempt_board_say("preempt-step", "too many arguments; try --help");
			return false;
		} else {
			words[count++] = word;
		}
	}
	if (request->section && count == 0 && !request->saved)
		return true;
	if (count == 0 || request->section || (request->saved && count > 1)) {
		preempt_board_say("preempt-step",
			"which step? N [NEXT], --saved N, or --section NAME; try --help");
		return false;
	}
	uint64_t *values[] = {&request->n, &request->next};
	for (int i = 0; i < count; i++) {
		if (!number(words[i], values[i])) {
			preempt_board_say("preempt-step",
				"'%s' is not a step number: 0 to 999999999999999999, decimal, no "
				"leading zeros",
				words[i]);
			return false;
		}
	}
	if (count == 1)
		request->next = request->n + 1;
	return true;
}

/* A damaged or missing memory means "nothing answered": at worst a save is asked for twice. */
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

static int step(struct preempt_board *board, const struct request *request)
{
	bool held = false;
	int answer = preempt_board_step(board, request->n, request->next, &held);
	if (!held)
		return answer;
	answers_read(board, &board->answers);
	answer = preempt_board_answer(board, request->n);
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

int main(int argc, char **argv)
{
	static struct preempt_board board = {.name = "preempt-step"};
	struct request request = {0};
	int answer;
	if (!arguments(argc, argv, &request, &answer))
		return answer;

	answer = preempt_board_attach(&board, getppid());
	if (answer == 0)
		preempt_board_say(board.name, BOARD_NONE);
	if (answer == 1 && request.section)
		answer = preempt_board_section(&board, request.section);
	else if (answer == 1)
		answer = request.saved ? saved(&board, request.n) : step(&board, &request);
	preempt_board_release(&board);
	return answer >= BOARD_LEAVE ? answer - BOARD_LEAVE : answer;
}
