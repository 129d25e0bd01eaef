/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the loop, and by nobody else: loop.c (the loop), start.c (joining
 * and starting), restart.c (between two attempts), events.c (what happens), heart.c
 * (beats and progress), terminal.c (a job of a shell), rehearse.c (a notice to
 * oneself), say.c (what people are told), ack.c (for a training that another program
 * has started).
 */
#ifndef AGENT_LOOP_INSIDE_H
#define AGENT_LOOP_INSIDE_H

#include <poll.h>

#include "agent/agent.h"
#include "agent/signal_only.h"
#include "agent/task/agent_task.h"
#include "base/terminal.h"
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
	uint64_t said_round, said_decision, said_alone, said_dead;
	bool said_claim, said_broken;
	bool goodbye_done;
	bool unstarted; /* leaves without having started its commands: nothing is tried again */
	bool failure_told;
	int passed_on; /* a signal like INT that was passed on; 0 */
};

/* agent.c */

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

/* start.c */
enum status agent_open_signals(struct agent *agent, struct error *err);
/* Wait until all have joined; a notice or INT ends that early. */
enum status agent_join(struct agent *agent, struct error *err);
/* The exit code of an agent that could not join; says why. */
int agent_not_joined(struct agent *agent, enum status status, const struct error *err);
/* Make the boards, start the commands. */
enum status agent_start(struct agent *agent, struct error *err);
/* Leave an attempt whose commands were never started; the others are told why, if it is an error.
 */
void agent_leave_unstarted(
	struct agent *agent, enum agreement_reason reason, int code, const char *why);

/* events.c */
void agent_check_sources(struct agent *agent, const struct pollfd *polled);
void agent_take_notice(struct agent *agent, const struct notice *notice);
/* Notices that a source has caught, and holds back until more is known of them. */
void agent_take_held(struct agent *agent);
/* Whether one of the sources has this signal for a notice. */
bool agent_watches_signal(const struct agent *agent, int number);
void agent_take_signals(struct agent *agent, int64_t now);
/* A guard that was killed is replaced. */
void agent_keep_reaper(struct agent *agent);
/* Tell the tasks of commands that have ended, as soon as it is clear what they have died of. */
void agent_tell_ends(struct agent *agent, int64_t now, int64_t *wake);
void agent_take_result(struct agent *agent, struct result *result);

/* heart.c */
enum status agent_open_pulse(struct agent *agent, struct error *err);
/* The heartbeat of all tasks of this agent; *pulse stays as it is where there is none to be. */
enum status agent_start_pulse(
	const struct agent_options *options, struct pulse **pulse, struct error *err);
/* About once a second, after the boards were sampled: tell how far we are; does it hang, or is it
 * cut off from the store? */
void agent_check_progress(struct agent *agent, int64_t now);
/* In a round, now and then: is one that it waits for gone? */
void agent_check_gone(struct agent *agent, int64_t now);
/*
 * Declare the peers whose processes ran on this machine and exist no more, of all or of those that
 * the round waits for; whether there are any.
 */
bool agent_declare_gone(struct agent *agent, bool awaited_only);

/* terminal.c */

/* The descriptor of the terminal that a command is to have from its start; 0: none. */
int agent_terminal_for(struct agent *agent);
/* A command that was stopped stops us with it, or gets the terminal that it asked for. */
void agent_check_stopped(struct agent *agent);
/* We were stopped, and are continued. */
void agent_continued(struct agent *agent);
/* A command has ended: the terminal is ours again. */
void agent_terminal_ended(struct agent *agent, const struct command *command);

/* rehearse.c */
void agent_rehearse(struct agent *agent, int64_t now, int64_t *wake);
/* Say how it went; whether it passed. */
bool agent_check_rehearsal(const struct agent *agent, int code);

/* say.c */
void agent_say_news(struct agent *agent);
void agent_say_saves(struct agent *agent);
void agent_say_end(const struct agent *agent, int code);

#endif
