/* SPDX-License-Identifier: MIT
 *
 * Messages, small files, numbers and processes: the client library uses nothing else.
 */
#include "client/board.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void preempt_board_say(const char *name, const char *format, ...)
{
	char text[2 * PATH_MAX];
	int used = snprintf(text, sizeof text, "%s: ", name);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + used, sizeof text - (size_t)used - 1, format, arguments);
	va_end(arguments);

	size_t length = strlen(text);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] >= 0x7f)
			text[i] = '?';
	text[length++] = '\n';
	if (write(STDERR_FILENO, text, length) < 0)
		return; /* stderr is closed */
}

bool preempt_board_path(const struct preempt_board *board, const char *file, char out[PATH_MAX])
{
	int length = snprintf(out, PATH_MAX, "%s/%s", board->path, file);
	return length > 0 && length < PATH_MAX;
}

ssize_t preempt_board_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -1;
	ssize_t length = read(fd, text, size - 1);
	int why = errno;
	close(fd);
	errno = why;
	if (length >= 0)
		text[length] = '\0';
	return length;
}

bool preempt_board_number(const char **text, bool padded, uint64_t max, uint64_t *value)
{
	const char *at = *text;
	uint64_t sum = 0;
	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');
		if (sum > (max - digit) / 10)
			return false;
		sum = sum * 10 + digit;
	}
	if (at == *text || (!padded && **text == '0' && at != *text + 1))
		return false;
	*text = at;
	*value = sum;
	return true;
}

bool preempt_board_hold(struct board_hold *hold)
{
	static const struct {
		const char *word;
		enum hold_word is;
	} words[] = {
		{"wait ", HOLD_WAIT},
		{"save ", HOLD_SAVE},
		{"exit ", HOLD_EXIT},
		{"leave ", HOLD_LEAVE},
	};
	const char *text = NULL;
	uint64_t pid = 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t length = strlen(words[i].word);
		if (strncmp(hold->line, words[i].word, length) == 0) {
			hold->word = words[i].is;
			text = hold->line + length;
		}
	}
	if (!text)
		return false;
	if (hold->word == HOLD_LEAVE) {
		if (!preempt_board_number(&text, false, 255, &hold->number) || !hold->number)
			return false;
	} else if (hold->word != HOLD_WAIT) {
		if (!preempt_board_number(&text, false, BOARD_STEP_MAX, &hold->number))
			return false;
		if (*text == ' ')
			text++;
		else
			return strcmp(text, "\n") == 0;
	}
	if (hold->word != HOLD_LEAVE) {
		if (!preempt_board_number(&text, false, INT_MAX, &pid) || pid == 0)
			return false;
		hold->watch = (pid_t)pid;
	}
	return strcmp(text, "\n") == 0;
}

bool preempt_board_agent(const char *line, pid_t *pid)
{
	uint64_t number;
	if (!preempt_board_number(&line, false, INT_MAX, &number) || number == 0 ||
		(*line != '\n' && *line != ' '))
		return false;
	*pid = (pid_t)number;
	return true;
}

bool preempt_board_owner(const char *line, struct board_process *owner)
{
	uint64_t pid, started = 0;
	if (!strchr(line, '\n') || !preempt_board_number(&line, false, INT_MAX, &pid))
		return false;
	if (*line++ != ' ' || !preempt_board_number(&line, true, UINT64_MAX, &started))
		started = 0;
	*owner = (struct board_process){.pid = (pid_t)pid, .started = started};
	return true;
}

bool preempt_board_last(const char *line, uint64_t *finished)
{
	uint64_t last;
	if (!preempt_board_number(&line, true, BOARD_STEP_MAX, &last) ||
		(*line != ' ' && *line != '\n'))
		return false;
	*finished = last;
	return true;
}

bool preempt_board_answered(const char *line, struct board_answers *answers)
{
	uint64_t numbers[3];
	for (int i = 0; i < 3; i++)
		if (!preempt_board_number(&line, true, BOARD_STEP_MAX + 1, &numbers[i]) ||
			*line++ != (i < 2 ? ' ' : '\n'))
			return false;
	*answers = (struct board_answers){numbers[0], numbers[1], numbers[2]};
	return true;
}

/* Read state and start time. The name in parentheses may contain anything: count after its end. */
static bool process_read(pid_t pid, char *state, uint64_t *started)
{
	char path[32], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (preempt_board_read(path, text, sizeof text) <= 0)
		return false;
	const char *at = strrchr(text, ')');
	if (!at || at[1] != ' ')
		return false;
	at += 2;
	*state = *at;
	for (int field = 3; field < 22; field++) {
		at = strchr(at, ' ');
		if (!at)
			return false;
		at++;
	}
	return preempt_board_number(&at, true, UINT64_MAX, started);
}

uint64_t preempt_board_started(pid_t pid)
{
	char state;
	uint64_t started;
	return process_read(pid, &state, &started) ? started : 0;
}

bool preempt_board_alive(struct board_process process)
{
	char state;
	uint64_t started;
	if (!process_read(process.pid, &state, &started))
		return kill(process.pid, 0) == 0 || errno == EPERM;
	if (state == 'Z' || state == 'X')
		return false;
	return process.started == 0 || process.started == started;
}
