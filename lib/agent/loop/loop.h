/* SPDX-License-Identifier: MIT */
/* The agent: what it owns, and the loop that all its tasks share. */
#ifndef AGENT_LOOP_LOOP_H
#define AGENT_LOOP_LOOP_H

#include "agent/agent.h"
#include "agent/announce.h"
#include "agent/signal_only.h"
#include "agent/task/agent_task.h"
#include "base/loop.h"
#include "base/process/terminal.h"
#include "live/cut_off.h"
#include "notice/source_set.h"

struct agent {
	struct group group;
	const struct agent_options *options;
	struct reaper reaper;
	struct stderr_relay *relay;
	struct source_set watch; /* the sources of notices */
	struct loop loop;	 /* also takes CHLD, and the signals that are passed on */
	sigset_t mask;		 /* the signals that are blocked while it runs */
	uint64_t asked;		 /* the attempt to join; 0: the newest one, or the next */
	struct agent_end end;	 /* of the attempt */
	bool hangs;		 /* a store thread hangs, and was left alone */
	int served;		 /* a pidfd of the process that ack_serve serves; -1: none */
	struct terminal terminal;
	bool terminal_lent; /* to a command, now or before */
	struct command *commands;
	size_t command_count;
	struct agent_task *tasks;
	size_t task_count;
	struct board boards; /* with --ranks: the directory above the boards; no path: none */
	int64_t sample_at, deaths_at;	   /* when next to read the boards; to look for deaths */
	uint64_t deaths_round;		   /* the round for which deaths_at was set */
	int64_t rehearse_at, rehearsed_at; /* 0: not yet */
	uint64_t rehearsed_from;      /* the first step that was not complete before the signal */
	struct tree_process launcher; /* it handles the signal that is rehearsed; pid 0: none */
	struct cut_off cut_off;
	bool cut_off_ended;	  /* its tasks were ended because it was cut off */
	bool store_away;	  /* the store does not answer, or takes no writes */
	bool writes_away;	  /* the last write was not taken */
	struct error store_error; /* why store_away was last set */
	uint64_t speaker; /* the task whose agent spoke for all when the view was read last */
	/* The round in which each was last reported; said_dead: the number of deaths reported. */
	uint64_t said_decision, said_all_saved, said_alone, said_dead;
	bool said_notice, said_claim, said_broken, said_silence;
	/* What the newest round waits for (agent_say_waiting), and since when; 0: it was said. */
	uint64_t stage;
	int64_t stage_at;
	bool joined;	      /* agent_join is over */
	bool gave_up_joining; /* the store thread did not answer in time after a cancellation */
	bool declared;	      /* it has declared tasks of other agents dead */
	int64_t lost; /* ms since the notice or claim in which the first task did not train, */
	int64_t lost_since; /* until then; 0: it trains, or there is neither */
	bool goodbye_done;
	bool unstarted; /* leaves without having started its commands: no write is tried again */
	size_t unstarted_writes; /* number of its writes that have no result yet */
	bool unstarted_unsure;	 /* one of them was not made, or may not have been */
	bool failure_told;	 /* the failure of a command was told to its tasks */
	int passed_on;		 /* a signal like INT that was passed on; 0: none */
};

static inline bool agent_has_task(const struct agent *agent, uint64_t task)
{
	return identity_has_task(agent->options->identity, task);
}

/* Whether every task has finished. */
bool agent_is_through(const struct agent *agent);
/* Do what is wanted now. Returns when to call it again if nothing happens before. */
int64_t agent_act(struct agent *agent);
/* agent_act, then wait for the next event and take it in. */
void agent_advance(struct agent *agent);
/* Wait for signals, notices and results, at most until wake; take in all but the results. */
void agent_wait_for_events(struct agent *agent, int64_t wake);
/* The same, and take in the results of the store thread. */
void agent_await(struct agent *agent, int64_t wake);
/* Close the attempt if we are the last, within a bounded time. code: the agent's exit code. */
void agent_say_goodbye(struct agent *agent, int code);

/* One that owns nothing. */
struct agent agent_blank(const struct agent_options *options);
/* Take signals and notices from now on, over all attempts. Call agent_close even if it fails. */
enum status agent_open(struct agent *agent, const struct agent_options *options, struct error *err);
/*
 * Run one attempt, and fill agent->end. Returns the exit code, and reports on stderr what happens.
 * All signals are blocked when it returns; only the heartbeat goes on.
 */
int agent_attempt(struct agent *agent);
/* End all that runs in the attempt, but for the heartbeat. */
void agent_end_attempt(struct agent *agent);
/* End the heartbeat, and forget the attempt: the next one follows. */
void agent_next(struct agent *agent);
/* End what runs, and free everything. False: a store thread hangs, and still uses the options. */
bool agent_close(struct agent *agent);
/* Block all signals: a later one stays pending until they are unblocked, or the next start. */
void agent_block_signals(const struct agent *agent, bool block);

#endif
