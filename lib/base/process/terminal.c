/* SPDX-License-Identifier: MIT */
#include "base/process/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
	sigset_t blocked;
	terminal->descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal->descriptor < 0)
		return;
	/* If TTOU were not blocked, taking the terminal back from the background would stop us.
	 * subprocess_start clears the mask for the command. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTTOU);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
}

void terminal_close(struct terminal *terminal)
{
	if (terminal->descriptor < 0)
		return;
	terminal_take_back(terminal, 0);
	close(terminal->descriptor);
	terminal->descriptor = -1;
}

bool terminal_is_of(const struct terminal *terminal, pid_t group)
{
	return terminal->descriptor >= 0 && tcgetpgrp(terminal->descriptor) == group;
}

bool terminal_is_ours(const struct terminal *terminal)
{
	return terminal_is_of(terminal, getpgrp());
}

bool terminal_is_gone(const struct terminal *terminal)
{
	return terminal->descriptor >= 0 && tcgetpgrp(terminal->descriptor) < 0;
}

bool terminal_is_used(const struct terminal *terminal)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal_is_ours(terminal);
}

bool terminal_lend(const struct terminal *terminal, pid_t group)
{
	return terminal_is_ours(terminal) && tcsetpgrp(terminal->descriptor, group) == 0;
}

void terminal_take_back(const struct terminal *terminal, pid_t group)
{
	if (terminal->descriptor < 0)
		return;
	/* If a shell has taken the terminal in the meantime, the shell keeps it. */
	pid_t has = tcgetpgrp(terminal->descriptor);
	bool gone = has > 0 && kill(-has, 0) < 0 && errno == ESRCH;
	if (gone || (group && has == group))
		(void)tcsetpgrp(terminal->descriptor, getpgrp());
}

bool terminal_stop(int signal)
{
	sigset_t pending, stops, before;
	sigemptyset(&stops);
	sigaddset(&stops, signal);
	sigprocmask(SIG_UNBLOCK, &stops, &before);
	kill(0, signal);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT);
}
