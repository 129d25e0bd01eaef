/* SPDX-License-Identifier: MIT */
/* The agent: what it owns, and the loop that all its tasks share. */
#ifndef AGENT_LOOP_LOOP_H
#define AGENT_LOOP_LOOP_H

#include "agent/agent.h"
#include "agent/announce.h"
#include "agent/signal_only.h"
#include "agent/task/agent_task.h"
#include "base/process/terminal.h"
#include "live/cut_off.h"
#include "notice/source_set.h"

struct agent {
	struct group group;
	const struct agent_options *options;
	struct reaper reaper;
	struct stderr_relay *relay;
	struct source_set watch; /* the sources of notices */
	int signals;		 /* signalfd: CHLD, and what is passed on */
	int served;		 /* a pidfd of the process that ack_serve serves; -1: none */
	struct terminal terminal;
	bool terminal_lent; /* the command has used it */
	struct command *commands;
	size_t command_count;
	struct agent_task *tasks;
	size_t task_count;
	struct board boards; /* with --ranks: the directory above the boards; no path: none */
	int64_t sample_at, deaths_at;
	uint64_t deaths_round;		   /* the one in which deaths were looked for last */
	int64_t rehearse_at, rehearsed_at; /* 0: not yet */
	struct cut_off cut_off;
	bool cut_off_ended;	      /* its tasks are ended because of that */
	bool store_away, writes_away; /* the latter: it answers when asked, and takes nothing */
	struct error store_error;     /* why it did not, the last time */
	uint64_t speaker; /* the task whose agent spoke for all when the view was read last */
	uint64_t said_decision, said_all_saved, said_alone, said_dead;
	bool said_notice, said_claim, said_broken;
	bool joined;	      /* the view is the loop's, no longer the store thread's */
	bool declared;	      /* it has declared tasks of others dead, */
	int64_t preempted_at; /* and has seen a notice or a claim then; 0: not yet */
	bool goodbye_done;
	bool unstarted; /* leaves without having started its commands: nothing is tried again */
	size_t unstarted_writes; /* of such an agent, those that were not answered yet, */
	bool unstarted_unsure;	 /* and whether one was not taken, or may not have been */
	bool failure_told;
	int passed_on; /* a signal like INT that was passed on; 0 */
};

/* Every task is. */
bool agent_is_through(const struct agent *agent);
/* Do what is wanted now; returns when to do so again, if nothing happens before. */
int64_t agent_act(struct agent *agent);
/* agent_act, then wait for the next event and take it in. */
void agent_advance(struct agent *agent);
/* Wait for signals, sources and the store thread until wake; take in all but the latter's results.
 */
void agent_wait_for_events(struct agent *agent, int64_t wake);
void agent_take_results(struct agent *agent);
/* Close the attempt if we are the last, within a bounded time. code: what we leave with. */
void agent_say_goodbye(struct agent *agent, int code);
/* End what runs, and free everything. */
void agent_release(struct agent *agent);

#endif
