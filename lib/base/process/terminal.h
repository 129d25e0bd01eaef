/* SPDX-License-Identifier: MIT */
/*
 * The terminal that we were started from, and the process group in its foreground: a command in a
 * group of its own gets the foreground from us, as a job gets it from a shell. Without a terminal
 * nothing happens. Call all functions from one thread: terminal_open blocks TTOU in it.
 */
#ifndef BASE_PROCESS_TERMINAL_H
#define BASE_PROCESS_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
	int descriptor; /* of /dev/tty; -1: there is none */
};

void terminal_open(struct terminal *terminal);
/* Takes the foreground back from a group that is gone, and closes the terminal. */
void terminal_close(struct terminal *terminal);

/* Whether our group is in the foreground. */
bool terminal_is_ours(const struct terminal *terminal);
/* Whether this group is in the foreground. */
bool terminal_is_of(const struct terminal *terminal, pid_t group);
/* Whether the terminal has hung up. */
bool terminal_is_gone(const struct terminal *terminal);
/* Whether stdin and stdout are a terminal, and our group is in the foreground. */
bool terminal_is_used(const struct terminal *terminal);

/* Give the foreground to this group if our group has it. True: the group has it now. */
bool terminal_lend(const struct terminal *terminal, pid_t group);
/* Take the foreground back from this group (0: no group), or from a group that is gone. */
void terminal_take_back(const struct terminal *terminal, pid_t group);

/*
 * Stop our whole group by this signal, like a job of a shell. The caller must have blocked CONT: it
 * is pending if we were stopped and continued. False: we were not stopped, because no shell would
 * continue us.
 */
bool terminal_stop(int signal);

#endif
