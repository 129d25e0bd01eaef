/* SPDX-License-Identifier: MIT */
/* The environment that a command under an agent sees. Private to lib/agent. */
#ifndef AGENT_ENVIRONMENT_H
#define AGENT_ENVIRONMENT_H

#include <signal.h>

#include "agent/listen.h"
#include "proto/keys.h"
#include "run/identity.h"

struct command_environment {
	const struct identity *identity;
	const struct attempt *attempt;
	const char *store;
	const char *mark;  /* REAPER_MARK */
	const char *board; /* PREEMPT_DIR */
	uint64_t task;
	uint64_t local;		    /* which of the commands of this machine */
	bool ranks;		    /* the command starts identity->count ranks itself */
	bool spread;		    /* -n: RANK, WORLD_SIZE and the like are ours to say */
	const char *resume;	    /* PREEMPT_RESUME; NULL: not looked for */
	const char *const *sources; /* their signals become PREEMPT_SIGNALS */
	size_t source_count;
};

/* Ours with what the command needs. Free with environment_free. */
char **environment_build(const struct command_environment *what);
void environment_free(char **environment);

/* PREEMPT_SIGNALS: the signals of all sources that catch some, "TERM,USR1"; empty: none does. */
void environment_signals(const char *const *sources, size_t count, char names[LISTEN_SIGNALS_SIZE]);

/* Adds the signals of "TERM,USR1" (NULL: none) to the set. what: who names them, for an error. */
enum status environment_signal_set(
	const char *names, const char *what, sigset_t *set, struct error *err);

#endif
