/* SPDX-License-Identifier: MIT */
/* The environment that a command under an agent sees. Private to lib/agent. */
#ifndef AGENT_ENVIRONMENT_H
#define AGENT_ENVIRONMENT_H

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
	uint64_t local;		    /* the command's number among those of this agent */
	bool ranks;		    /* the command starts identity->count ranks itself */
	bool spread;		    /* -n: set RANK, WORLD_SIZE and the like */
	const char *resume;	    /* PREEMPT_RESUME; NULL: do not set it */
	const char *const *sources; /* their signals become PREEMPT_SIGNALS */
	size_t source_count;
};

/* Copy our own environment and add what the command needs. Free with environment_free. */
char **environment_build(const struct command_environment *what);
void environment_free(char **environment);

#endif
