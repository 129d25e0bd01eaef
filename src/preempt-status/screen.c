/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static struct {
	bool terminal, keys; /* stdout is a terminal to draw on; stdin gives us the user's keys */
	int poll, signals;
	int signal; /* the signal that ended the screen; 0: none */
	struct termios before;
} screen = {.poll = -1, .signals = -1};

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
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < 6; i++)
		sigaddset(&set,
			(const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	screen.terminal = terminal;
	screen.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	screen.poll = epoll_create1(EPOLL_CLOEXEC);
	if (screen.signals < 0 || screen.poll < 0 ||
		epoll_ctl(screen.poll, EPOLL_CTL_ADD, screen.signals, &event) < 0) {
		error_errno(err, errno, "wait for %s", "signals");
		return -1;
	}
	if (terminal)
		enter();
	if (terminal && screen.keys)
		(void)epoll_ctl(screen.poll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
	return screen.poll;
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
	struct signalfd_siginfo got;
	struct pollfd key = {.fd = screen.keys ? STDIN_FILENO : -1, .events = POLLIN};
	enum screen_event event = SCREEN_NOTHING;
	while (read(screen.signals, &got, sizeof(got)) == (ssize_t)sizeof(got)) {
		event = SCREEN_REDRAW;
		if (got.ssi_signo == SIGTSTP) {
			stop();
		} else if (got.ssi_signo != SIGWINCH) {
			screen.signal = (int)got.ssi_signo;
			return SCREEN_END;
		}
	}
	while (poll(&key, 1, 0) > 0) {
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
	close(screen.signals);
	close(screen.poll);
}

int screen_signal(void)
{
	return screen.signal;
}
