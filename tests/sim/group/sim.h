/* SPDX-License-Identifier: MIT */
/*
 * A deterministic world in which the agents of lib/agent run as they are (agent.c, agent_task.c,
 * store_thread.c, pulse.c, attempt.c, view.c, writes.c, agreement.c, ...), over the store in
 * memory. What the world stands in for: the machines (../kernel.h), boards (board.c), the training
 * processes (training.c, processes.c), and what an agent does not need here (standins.c). A world
 * is a function of its struct schedule, and a random schedule is a function of its seed.
 *
 * Times in a schedule are milliseconds; inside the world they are microseconds.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "../kernel.h"
#include "../runner.h"
#include "../training.h"
#include "agent/loop/loop.h"

#define MOST_TASKS  64
#define MOST_NODES  (MOST_TASKS + 32)
#define MOST_ROUNDS 24
#define MOST_ACTS   16
#define SAVE_LOG    128
#define NOBODY	    (-1)
#define EVERYBODY   (-2)
#define NEVER_STEP  UINT64_MAX

/* ---- What happens in a world: drawn beforehand, so that it can be shrunk ---- */

enum trigger { /* the first time that this happens to the subject (or to any task) */
	AT_START,
	AT_WAIT,     /* hold = wait was written */
	AT_CLAIM,    /* committed */
	AT_REPORT,   /* committed */
	AT_DECISION, /* committed */
	AT_ORDER,    /* hold = save or exit was written */
	AT_SAVING,   /* a save that was asked for begins */
	AT_SAVED,    /* it is done */
	AT_LEAVE,    /* hold = leave was written */
	TRIGGERS,
};

enum deed {
	NOTHING,
	NOTICE,		/* to task `who`; deadline in `amount` ms (negative: not known) */
	CLAIM_OUTSIDE,	/* a person or a cron job claims */
	ON_DEMAND,	/* a task opens a round without a claim */
	MOVE_DEADLINE,	/* from outside, to `amount` ms from now */
	KILL_AGENT,	/* of task `who`; its training processes die with it */
	PAUSE_AGENT,	/* for `amount` ms */
	KILL_TRAINING,	/* it crashes */
	PAUSE_TRAINING, /* for `amount` ms */
	CUT_OFF,	/* the agent of `who` from the store for `amount` ms */
	RESTART,	/* the agent is killed; its next incarnation comes `amount` ms later */
	DECLARE_DEAD,	/* the heartbeat calls `who` dead after `amount` ms, if paused or dead */
	LOSE_BOARD,	/* a task removes the board of `who` */
	GARBAGE,	/* an unreadable decision appears in the newest round */
	GARBAGE_CLAIM,	/* without a round */
	GARBAGE_REPORT, /* of `who`, in the newest round or the one to come */
	GARBAGE_NAMES,	/* in all kinds of keys, also ones that there are not */
	FULL_STORE,	/* no task can write to it for `amount` ms, beats neither */
	SET_CLOCK,	/* the wall clock of the machine of `who` is `amount` ms ahead */
	DEEDS,
};

struct act {
	enum trigger trigger;
	int subject; /* whose trigger; NOBODY: any task's */
	int64_t delay;
	enum deed deed;
	int who; /* a task; NOBODY: the subject that pulled the trigger; EVERYBODY: all tasks */
	int64_t amount;
	enum agreement_then then;
};

enum failing { FAIL_NEVER, FAIL_AT_STEP, FAIL_IN_SAVE, FAIL_AFTER_SAVE };

struct trainee {
	int64_t startup;   /* ms until the first call; CLOCK_NEVER: it does nothing by itself */
	uint64_t start;	   /* first step */
	uint64_t total;	   /* ends with 0 after so many */
	uint64_t stride;   /* boundaries are so many steps apart */
	uint64_t offset;   /* the first one after the start comes so many steps early */
	uint64_t uneven;   /* not 0: boundaries are 1 to 2 x stride - 1 steps apart, as this says */
	bool silent;	   /* asks without NEXT: "the next boundary is the next step" */
	int64_t step_us;   /* one step, us */
	int64_t uneven_us; /* at most so long in addition */
	int64_t look_us;   /* at most between writing step and looking at hold */
	int64_t react;	   /* ms, at most, until a sleeping one sees a new hold */
	int64_t save;	   /* ms */
	uint64_t periodic; /* saves by itself every so many boundaries; 0 never */
	enum failing failing;
	uint64_t fails_at;
	bool ignores_term, ignores_leave;
};

struct schedule {
	uint64_t seed; /* of everything that is not drawn beforehand: latencies, unevenness */
	int tasks, per_agent, agents_per_machine;
	bool launched; /* a launcher gives all of them the id of the launch */
	bool synchronous;
	struct trainee trainee[MOST_TASKS];
	int acts;
	struct act act[MOST_ACTS];
	/* The store: latencies and notification in ms, at most; chances in thousandths. */
	int64_t latency, notify, give_up;
	int lost_before, lost_after, late_commit;
	/* By how much the clock of each machine is off, ms: no other task may notice. */
	int64_t clock[MOST_TASKS];
	int64_t remembered_save;
	bool launcher_kills; /* all others, when the first agent exits */
	bool watches_peers;  /* agents notice peers that died on their machine */
	int64_t report_timeout, save_timeout, startup, kill_after;
	bool savers_chief, complete_chief, per_task, store_loss_ends;
	bool early;		  /* what AT_START triggers counts from before the agents join */
	int64_t beat_period;	  /* ms; 0: the agents do not beat */
	int64_t progress_timeout; /* ms; 0: no task hangs, however long it stands still */
};

/* Everything from one seed. */
void schedule_draw(struct schedule *s, uint64_t seed);
/* text.c */
const char *deed_name(enum deed deed);
void schedule_print(const struct schedule *s, FILE *out);
/* All as usual, with no task and no act. */
void schedule_usual(struct schedule *s);
/* Read one line of it. False: it cannot be read. */
bool schedule_read(struct schedule *s, const char *line);
/* Make thing number `at` as usual; false: there are not so many. */
bool schedule_simplify(struct schedule *s, int at);
/* Whether the line is as the form says: # there is a number, and * at its end the rest. */
bool line_fits(const char *line, const char *form, int64_t *number, const char **rest);
/* The next of the parts of a line, which ", " separates; NULL: there is none. */
char *next_part(char **line);

int schedule_agents(const struct schedule *s);
int schedule_agent_of(const struct schedule *s, int task);
int schedule_machine_of(const struct schedule *s, int agent);

/* ---- What stands in the store: the keys of one attempt, read when they are committed ---- */

enum seal { SEAL_NONE, SEAL_CLAIM, SEAL_ERROR, SEAL_DEAD };

struct round_keys {
	bool reported[MOST_TASKS], none[MOST_TASKS];
	uint64_t step[MOST_TASKS], next[MOST_TASKS];
	bool decided;
	int64_t decided_at;
	struct agreement_decision decision;
	uint64_t members; /* a bit per task */
	uint64_t unheard; /* of these, without a report when it was decided */
	uint64_t acked;
	uint64_t saved;
	uint64_t saved_step[MOST_TASKS];
	int64_t saved_at; /* the last of them */
};

struct keys {
	uint64_t attempt; /* whose keys these are; 0: none was opened */
	uint64_t joined;  /* a bit per task */
	bool claimed;
	int claimer; /* NOBODY: from outside */
	int64_t claimed_at;
	enum agreement_then then;
	enum seal seal;
	bool closed;
	bool has_deadline;
	int64_t deadline; /* us, the earliest that was announced, as fate knows it */
	int64_t deadline_changed_at;
	uint64_t deadlines; /* how often the key was written; of the last time: */
	store_revision deadline_revision;
	int deadline_machine;	      /* where; MOST_TASKS: not where an agent is */
	int64_t deadline_written;     /* us */
	int64_t deadline_latest;      /* us: what left counts from when it was committed */
	int64_t deadline_earliest;    /* us: the least of these two, ever */
	uint64_t rounds, claim_round; /* the round that a claim opened */
	enum agreement_reason left[MOST_TASKS];
	int64_t left_at[MOST_TASKS];
	uint64_t dead; /* a bit per task */
	uint64_t hung; /* of these, as their own agents said */
	int64_t dead_at[MOST_TASKS];
	struct round_keys round[MOST_ROUNDS + 1]; /* filled when opened; 0: of none */
};

struct world;

/* Those of no round, which hold nothing, where there is no such round. */
static inline const struct round_keys *round_keys(const struct keys *k, uint64_t round)
{
	return &k->round[round <= k->rounds ? round : 0];
}

/* Have the keys of a world filled from now on. */
void observer_begin(struct world *w);

/* ---- The world ---- */

/* What a board says. */
struct panel {
	struct agreement_hold hold;
	bool ordered_alone;		  /* the hold is not of an agreed step */
	uint64_t order_round, order_from; /* the round; where the task was when it was told */
	bool started;
	uint64_t step, next;
	int64_t step_at;   /* us: when it was written, */
	int64_t step_wall; /* ms: and how much the wall clock was ahead then */
	bool has_saved;
	uint64_t saved;
	int64_t saved_at, saved_wall;
	bool lost;
};

struct training {
	enum training_state state;
	uint32_t epoch;	   /* events of an earlier state are void */
	uint64_t boundary; /* at which it has called last */
	uint64_t position; /* finished steps */
	/* As in lib/client/board.c: the step + 1 of what was answered, and of the final save. */
	uint64_t answered, answered_final, answered_at;
	uint64_t staying_for;
	enum agreement_order saving_for; /* ORDER_RUN: a periodic save */
	bool saves_unasked;		 /* between two calls of preempt_step */
	bool saving_agreed;
	uint64_t saving_round;
	int64_t paused_until;
	bool unreaped; /* it has ended, and its agent has not taken note */
	int code;
	int64_t ended_at;
	/* For the checks. */
	int64_t own_save_until; /* us; the last one that no task asked for. CLOCK_NEVER: in it */
	uint64_t saves;
	uint64_t saved_step[SAVE_LOG]; /* the newest of them */
	uint64_t asked_saves, asked_step[SAVE_LOG];
	uint64_t saved_alone; /* the step + 1 of a final save that no task agreed on */
	bool went_on;
	uint64_t farthest; /* largest boundary from which it went on to train */
};

struct task {
	const struct agent_task
		*agent_task; /* in the agent that has started it; NULL: none lives */
	struct panel panel;
	struct training training;
	bool finished; /* the agent is done with it */
	int code;
	int64_t finished_at;
	bool noticed;
	int64_t last_noticed, own_deadline; /* us */
	bool stopping;			    /* TERM was sent, KILL follows */
	bool faulted; /* something was done to it, its agent, or its way to the store */
	int64_t first_order_at;
	int64_t deadline_latest; /* us; as its agent saw it last */
	bool solo;		 /* it follows its own agent's agreement */
};

/* A process of ours: an agent, or a program that a task runs beside them. */
struct node {
	struct process process;
	struct world *world;
	int agent;  /* NOBODY: it is no agent */
	bool ghost; /* a later incarnation of an agent */
	int code;
	struct agent *self; /* from reaper_start to reaper_stop */
	struct agent_options options;
	struct identity identity;
	const struct act *act;	 /* of a program, */
	int about;		 /* and the task that it is about */
	size_t boards, commands; /* so many were made and started */
	store_revision deadline_seen;
	bool has_read; /* the attempt, when it was last inspected */
};

struct statistics {
	uint64_t events;
	uint64_t claimed, on_demand, broken, untouched;
	uint64_t synchronous, tasks_64, several_per_agent;
	uint64_t rounds[8]; /* schedules by number of rounds */
	uint64_t kinds[4];
	uint64_t deeds[DEEDS];
	uint64_t codes[8]; /* 0, 42, 43, 44, 93, own, killed, unfinished */
	uint64_t lost_answers, late_commits, solo, complete, comfortable;
};

struct world {
	const struct schedule *schedule;
	int64_t horizon, calm_horizon; /* us */
	bool timed_out;		       /* it ran until the horizon */
	struct keys keys;
	uint64_t newest_attempt;
	struct task task[MOST_TASKS];
	struct node node[MOST_NODES]; /* first one for each agent, then the others */
	int nodes;
	int started;	    /* agents that have started their commands */
	struct shim before; /* what all had asked the store for when the last one had */
	bool pulled[MOST_ACTS];
	int pulled_by[MOST_ACTS];
	struct statistics *statistics;
	bool store_faults, slow_store;
	bool save_unmeasured; /* a clock was set during it */
	bool exits_begun;
};

enum event_kind {
	EVENT_ACT = KERNEL_EVENTS, /* who: the act */
	EVENT_TRAINING,		   /* who: the task; it goes on from its state */
	EVENT_HOLD,		   /* a sleeping training process sees that hold changed */
	EVENT_ENDED,		   /* the agent is told that the command ended */
	EVENT_RETURN,		   /* who: an agent; its next incarnation comes */
	EVENT_DECLARE,	/* who: the act, epoch: the task; a task concludes that it is dead */
	EVENT_LAUNCHER, /* the launcher kills whichever task is left */
};

/* Begin the world of a schedule: kernel_step lets it go on, kernel_end ends it. */
void world_begin(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace);
void world_do(struct world *w, const struct act *act, int subject);
/* Run one schedule to its end; whether all invariants held. */
bool world_run(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace);

static inline void world_at(
	struct world *w, int64_t time, enum event_kind kind, int who, uint32_t epoch)
{
	(void)w;
	kernel_at(time, (int)kind, who, epoch);
}

void world_trigger(struct world *w, enum trigger trigger, int task);
/* One more agent has started its commands. */
void world_agent_started(struct world *w);
void world_violate(struct world *w, const char *invariant, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void world_trace(struct world *w, int task, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define TRACE(w, task, ...)                                                                        \
	do {                                                                                       \
		if (kernel.trace)                                                                  \
			world_trace(w, task, __VA_ARGS__);                                         \
	} while (0)

/* What a machine's clock, ms, is ahead of the world's, and what it says in the world's us. */
static inline int64_t clock_off(const struct world *w, int agent)
{
	return CLOCK_ZERO +
	       (agent < 0 ? 0 : w->schedule->clock[schedule_machine_of(w->schedule, agent)]);
}

static inline int64_t clock_to_world(const struct world *w, int agent, int64_t instant)
{
	return instant == CLOCK_NEVER ? CLOCK_NEVER : (instant - clock_off(w, agent)) * MS;
}

static inline struct node *node_of(struct world *w, int task)
{
	return &w->node[schedule_agent_of(w->schedule, task)];
}

static inline bool node_lives(const struct node *node)
{
	return node->process.alive && !node->process.exited;
}

/* processes.c */
extern struct world *machine_world; /* the one that runs */
struct node *machine_new_node(struct world *w, int agent);
void machine_kill(struct node *node, const char *why);
void machine_guarded(struct process *process, struct reaper *reaper);
struct node *machine_current(void); /* NULL: the world itself */

/* training.c */
bool training_has_saved(const struct world *w, int task, uint64_t step);
/* Whether it has made a save that it was asked for, at this step or a later one. */
bool training_has_saved_since(const struct world *w, int task, uint64_t step);
uint64_t training_next(const struct trainee *t, uint64_t step); /* the boundary after it */
void training_start(struct world *w, int task);
void training_event(struct world *w, int task);
void training_hold_changed(struct world *w, int task);
void training_end(struct world *w, int task, int code);
/* What one does that does nothing by itself: it calls preempt_step, or saves where it stands. */
void training_call(struct world *w, int task, uint64_t step, uint64_t next);
void training_begin_save(struct world *w, int task);
void training_finish_save(struct world *w, int task);

/* agent.c: what the processes run */
void agent_begin(struct node *node);
void agent_program(struct world *w, const struct act *act, int task);
/* After each thing that it did: what its tasks have come to. */
void agent_inspect(struct node *node);

/* invariants.c */
void check_told(struct world *w, int task, const struct agreement_hold *hold);
void check_first_boundary(struct world *w, int task);
void check_rounds(struct world *w, uint64_t round, uint64_t round_try);
/* The keys show what a task has just written. */
void check_fenced(struct world *w, int task);
/* What runs has written this key of an attempt. */
void check_own_attempt(struct world *w, uint64_t attempt, const char *name);
/* A task of this node has decided. */
void check_decider(struct world *w, const struct node *node);
void check_decision(struct world *w, uint64_t round);
void check_saved(struct world *w, int task, uint64_t round);
void check_open(struct world *w, uint64_t attempt);
void check_join(struct world *w, int task);
void check_start(struct world *w, int task);
void check_closed(struct world *w);
void check_death(struct world *w, int task);
void check_believed(struct world *w, int task);
void check_claimer(struct world *w, const struct node *node);
void check_ending(struct world *w, int task);
void check_exit(struct world *w, int task);
void check_end(struct world *w);
void check_deadline_seen(struct world *w, const struct node *node);
bool checkpoint_is_complete(const struct world *w, uint64_t round);
void count_end(struct world *w);

/* scenario.c */
extern struct scenario scenarios[];
void scenarios_read(void);

/* transcript.c: whether the file is what happens; writes: make it so. What is wrong is printed. */
bool transcript(const char *path, bool writes);

/* shrink.c: w has just run s, which failed. */
void shrink(struct world *w, struct schedule *s);

#endif
