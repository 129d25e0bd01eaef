/* SPDX-License-Identifier: MIT */
/*
 * The terminal that we were started from, and which process group may use it: a command in a group
 * of its own gets it from us as a job gets it from a shell. Without a terminal nothing happens.
 * Everything from one thread, in which terminal_open blocks TTOU.
 */
#ifndef BASE_PROCESS_TERMINAL_H
#define BASE_PROCESS_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
	int descriptor; /* of /dev/tty; -1: there is none */
};

void terminal_open(struct terminal *terminal);
/* Takes it back from what is gone, and closes it. */
void terminal_close(struct terminal *terminal);

/* We are in its foreground now. */
bool terminal_is_ours(const struct terminal *terminal);
/* This group is. */
bool terminal_is_of(const struct terminal *terminal, pid_t group);
/* It has hung up. */
bool terminal_is_gone(const struct terminal *terminal);
/* What we start would be used from the terminal: stdin and stdout are it, and we have it. */
bool terminal_is_used(const struct terminal *terminal);

/* Give it to this group if we have it; true: it has it now. */
bool terminal_lend(const struct terminal *terminal, pid_t group);
/* Take it back if this group has it, or if the group that has it is gone. */
void terminal_take_back(const struct terminal *terminal, pid_t group);

/*
 * Stop with our whole group, as a job of a shell does that was stopped by this signal. False: we
 * were not stopped, because no shell would continue us.
 */
bool terminal_stop(int signal);

#endif
