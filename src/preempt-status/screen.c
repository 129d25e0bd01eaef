/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "base/process/descriptor.h"

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static struct {
	bool terminal, keys; /* stdout is a terminal to draw on; stdin gives us the user's keys */
	struct loop loop;
	int signal; /* the signal that ended the screen; 0: none */
	struct termios before;
} screen = {.loop = LOOP_CLOSED};

bool screen_is_there(void)
{
	const char *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void screen_size(size_t *width, size_t *height)
{
	struct winsize size;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
	*width = known ? size.ws_col : 80;
	*height = known ? size.ws_row : 24;
}

static void put(const char *string)
{
	(void)file_write_all(STDOUT_FILENO, string, strlen(string));
}

static void enter(void)
{
	struct termios raw;
	put(ENTER);
	screen.keys = tcgetattr(STDIN_FILENO, &screen.before) == 0;
	if (!screen.keys)
		return;
	raw = screen.before;
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void leave(void)
{
	put(LEAVE);
	if (screen.keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

int screen_begin(bool terminal, struct error *err)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
	screen.terminal = terminal;
	if (loop_open(&screen.loop, err) != STATUS_OK ||
		loop_open_signals(&screen.loop, numbers, sizeof(numbers) / sizeof(numbers[0]),
			err) != STATUS_OK)
		return -1;
	if (terminal)
		enter();
	loop_watch(&screen.loop, screen.keys ? STDIN_FILENO : -1);
	return screen.loop.descriptor;
}

/* Stop as TSTP demands, outside of the alternate screen, until CONT. */
static void stop(void)
{
	if (screen.terminal)
		leave();
	raise(SIGSTOP);
	if (screen.terminal)
		enter();
}

enum screen_event screen_take(void)
{
	enum screen_event event = SCREEN_NOTHING;
	for (int number; (number = loop_take_signal(&screen.loop, NULL));) {
		event = SCREEN_REDRAW;
		if (number == SIGTSTP) {
			stop();
		} else if (number != SIGWINCH) {
			screen.signal = number;
			return SCREEN_END;
		}
	}
	while (screen.keys && descriptor_is_ready(STDIN_FILENO)) {
		char letter;
		if (read(STDIN_FILENO, &letter, 1) != 1 || letter == 'q' || letter == 'Q')
			return SCREEN_END;
	}
	return event;
}

void screen_draw(const struct text *text)
{
	size_t width, height, rows = 1;
	struct text page = {0};
	screen_size(&width, &height);
	text_add(&page, "\033[H");
	for (const char *line = text_string(text); *line; rows++) {
		const char *end = strchr(line, '\n');
		size_t length = end ? (size_t)(end - line) : strlen(line);
		if (rows > height)
			break;
		text_addf(&page, "%s%.*s\033[0m\033[K", rows > 1 ? "\r\n" : "", (int)length, line);
		line += length + (end != NULL);
	}
	text_add(&page, "\033[J");
	put(text_string(&page));
	text_release(&page);
}

void screen_end(void)
{
	if (screen.terminal)
		leave();
	loop_close(&screen.loop);
}

int screen_signal(void)
{
	return screen.signal;
}
