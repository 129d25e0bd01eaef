/* SPDX-License-Identifier: MIT */
/*
 * What all simulated worlds use: events in the order of a simulated clock, processes whose threads
 * are fibers, bells, poll, chance, and the way to the store, which is in memory. Some functions
 * replace those of the same name in libc and in lib/base. There is one kernel, and it runs one
 * world after another, in one real thread, without a real clock or I/O.
 *
 * Times are in microseconds, so that events within one millisecond of lib/ can interleave, too.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/process/process.h"
#include "base/process/reaper.h"
#include "fiber.h"
#include "notice/notice.h"
#include "store/store.h"
#include "support/backends/shim.h"

#define MS	   1000	   /* microseconds */
#define FIRST_BELL 1000000 /* no real descriptor has such a number */

enum {
	MOST_THREADS = 4,
	MOST_PROCESSES = INT16_MAX / MOST_THREADS, /* event.who must hold each thread's number */
	MOST_LATE = 1024,
	MOST_WAITS = 8
};
enum { MOST_WATCHED = 16, MOST_NOTICES = 16 };

/* ms that the machines' clocks show at simulated time 0: not 0, which often means "never". */
#define CLOCK_ZERO INT64_C(200000000)

/* ---- Random numbers ---- */

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *r);
int64_t random_in(struct random *r, int64_t least, int64_t most); /* least and most included */
bool random_chance(struct random *r, int permille);

/* ---- Processes ---- */

struct thread {
	struct fiber *fiber; /* NULL: this thread was not started, or has ended */
	struct process *process;
	void *(*work)(void *context);
	void *context;
	uint32_t epoch;		  /* a wake-up of another epoch is ignored */
	int waits_on[MOST_WAITS]; /* bells that it polls now */
	int waits;
	int finished; /* bell: it has ended */
};

/* The first member of a world's own struct for a process. */
struct process {
	int index;
	int64_t clock; /* ms that its machine's clocks are ahead */
	int64_t wall;  /* ms that its wall clock is ahead, beyond that */
	bool alive, exited;
	bool sees_others;      /* can check whether processes of its machine live */
	uint64_t bytes;	       /* of keys and values that the store has answered */
	bool has_short_way;    /* its calls of the store are quick, without faults */
	int64_t paused_until;  /* until then none of its threads runs */
	int64_t cut_off_until; /* until then it does not reach the store */
	struct process_identity who;
	struct thread thread[MOST_THREADS];
	int signals; /* bell for its main thread: a signal or a notice; 0: not opened */
	int signal;  /* the signal that was sent, but not read yet; 0: none */
	struct notice notices[MOST_NOTICES]; /* not yet taken */
	size_t notice_count;
};

/* Fill a new process on machine number `machine`; the rest is zeroed. False: there is no room. */
bool process_new(struct process *process, int machine, int64_t clock);
struct thread *process_new_thread(
	struct process *process, void *(*work)(void *context), void *context);
/* Stop all its threads where they are. Their memory is not freed. */
void process_kill(struct process *process);
/* Called by its main thread as the last step: all its threads end when that thread returns. */
void process_exit(struct process *process);
/* Give it a notice, `left` ms before the end (negative: not known). False: it has too many. */
bool process_give_notice(struct process *process, int64_t left);
/* Wake the main thread, as a signal does. */
void process_poke(struct process *process);
/* The process that runs; NULL: the world itself. */
struct process *process_current(void);

static inline bool process_lives(const struct process *process)
{
	return process->alive && !process->exited;
}

/* ---- Events ---- */

enum { KERNEL_THREAD, KERNEL_LATE, KERNEL_EVENTS }; /* a world's own begin at KERNEL_EVENTS */

struct event {
	int64_t time;
	uint64_t order;
	uint8_t kind;
	int16_t who;
	uint32_t epoch;
};

/* The functions of a world. */
struct kernel_world {
	void (*happen)(const struct event *event); /* an event of the world's own */
	/* Until when an event waits because its process is stopped; 0: it is not. May be NULL. */
	int64_t (*deferred)(const struct event *event);
	/* The process that runs has started its reaper; reaper NULL: has stopped it. */
	void (*guarded)(struct process *process, struct reaper *reaper);
	/* Called by poll, for main threads that are about to wait. May be NULL. */
	void (*inspect)(struct process *process);
};

/* ---- The way to the store ---- */

/* The longest times, in ms; chances in thousandths. */
struct way {
	int64_t latency, notify;
	int64_t give_up; /* a call that would take longer fails instead */
	int lost_before, lost_after, late_commit;
};

struct bell {
	struct process *process;
	uint64_t count;
	bool signals; /* poll empties it */
	bool closed;
	int watched[MOST_WATCHED]; /* of epoll: it is rung when one of these is */
	int watches;
};

struct kernel {
	const struct kernel_world *world;
	struct random random;
	struct random outside; /* random numbers outside all processes */
	int64_t now;
	uint64_t order; /* of the next event */
	struct event *heap;
	int events, capacity;
	uint64_t happened; /* events that were carried out */
	struct process **process;
	int processes, process_room;
	struct thread *running; /* NULL: the world itself */
	struct bell *bell;
	int bells, bell_room;
	uint64_t spins; /* polls at one instant (machine_spin) */
	struct way way;
	int64_t full_until; /* until then no process can write to the store, not even beats */
	uint64_t lost_answers, late_commits;
	struct shim shim;
	struct {
		void (*run)(void *what);
		void *what;
	} late[MOST_LATE]; /* commits that follow after the caller has given up */
	int lates;
	struct store *store; /* for the world itself: answers at once */
	FILE *trace;
	/* The result. */
	const char *violated; /* an invariant's name; NULL: all held */
	char detail[256];
};
extern struct kernel kernel;

/* Begin a world with an empty store: its processes open it as "shim:memory:NAME". */
void kernel_begin(const struct kernel_world *world, const char *store, const struct way *way,
	uint64_t seed, FILE *trace);
/* When the next event comes; CLOCK_NEVER: none does. */
int64_t kernel_next(void);
/* Carry out the next event. */
void kernel_step(void);
/* Kill the processes that are left, and close kernel.store. */
void kernel_end(void);

/* Make room for one more than count elements of that size. Returns the array, which may move. */
void *kernel_room(void *array, int count, int *room, size_t size);
void kernel_at(int64_t time, int kind, int who, uint32_t epoch);
/* Let time pass for the thread that runs. */
void kernel_sleep(int64_t microseconds);
/* Report that an invariant does not hold; the first report counts. */
void kernel_violate(const char *invariant, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void kernel_violate_list(const char *invariant, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
/* Print a line of the trace; kernel.trace is not NULL. subject: what the line is about, or "". */
void kernel_trace(const char *subject, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void kernel_trace_list(const char *subject, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* machine.c: let thread number `who` run, unless it has been woken again since. */
void thread_run(int who, uint32_t epoch);
/* machine.c: count calls that take no simulated time: too many in a row are a busy loop. */
void machine_spin(void);
/* way.c: make the shim (../backends/) follow kernel.way. */
void way_install(void);

#endif
