/* SPDX-License-Identifier: MIT */
/*
 * What simulated worlds have in common: events in the order of a clock that is not real, processes
 * whose threads are fibers, bells, poll, chance, and the way to the store in memory. These
 * functions stand in for those of the same name in libc and in lib/base. There is one kernel, and
 * it runs one world after another; a world has no real clock, no I/O and one thread.
 *
 * Times are microseconds, so that what is shorter than the millisecond of lib/ interleaves too.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/shim.h"
#include "base/clock.h"
#include "base/process/process.h"
#include "base/process/reaper.h"
#include "fiber.h"
#include "notice/notice.h"
#include "store/store.h"

#define MS	   1000	   /* microseconds */
#define FIRST_BELL 1000000 /* no file has such a number */

enum {
	MOST_THREADS = 4,
	MOST_PROCESSES = INT16_MAX / MOST_THREADS, /* struct event numbers their threads */
	MOST_LATE = 1024,
	MOST_WAITS = 8
};
enum { MOST_WATCHED = 16, MOST_NOTICES = 16 };

/* The zero of the machines' clocks, ms, is far away: 0 means "never" in many places. */
#define CLOCK_ZERO INT64_C(200000000)

/* ---- Random numbers ---- */

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *r);
int64_t random_in(struct random *r, int64_t least, int64_t most); /* both included */
bool random_chance(struct random *r, int permille);

/* ---- Processes ---- */

struct thread {
	struct fiber *fiber; /* NULL: none, or over */
	struct process *process;
	void *(*work)(void *context);
	void *context;
	uint32_t epoch;		  /* of the wake-up that counts */
	int waits_on[MOST_WAITS]; /* bells, while it polls */
	int waits;
	int finished; /* bell */
};

/* First member of what a world knows of its processes. */
struct process {
	int index;
	int64_t clock; /* ms, by which the clock of its machine is off */
	int64_t wall;  /* ms, by which its wall clock was set ahead of that */
	bool alive, exited;
	bool sees_others;      /* it may look whether others on its machine live */
	bool has_short_way;    /* to the store: no faults, and quick */
	int64_t paused_until;  /* nothing of it runs */
	int64_t cut_off_until; /* from the store */
	struct process_identity who;
	struct thread thread[MOST_THREADS];
	int signals; /* bell: something for its main thread; 0: not opened */
	int signal;  /* sent to it, and not yet read; 0: none */
	struct notice notices[MOST_NOTICES]; /* not yet taken */
	size_t notice_count;
};

/* A fresh one on the machine of that number, zeroed except what is set here; false: no room. */
bool process_new(struct process *process, int machine, int64_t clock);
struct thread *process_new_thread(
	struct process *process, void *(*work)(void *context), void *context);
/* All its threads stop where they are; what they hold in memory is lost. */
void process_kill(struct process *process);
/* Called by its last act: its threads end when this one returns. */
void process_exit(struct process *process);
/* Give it a notice, ms before the end (negative: not known); false: it has too many. */
bool process_give_notice(struct process *process, int64_t left);
/* Wake the main thread, as a signal does. */
void process_poke(struct process *process);
/* The one that runs; NULL: the world itself. */
struct process *process_current(void);

static inline bool process_lives(const struct process *process)
{
	return process->alive && !process->exited;
}

/* ---- Events ---- */

enum { KERNEL_THREAD, KERNEL_LATE, KERNEL_EVENTS }; /* the kernel's; a world's are further ones */

struct event {
	int64_t time;
	uint64_t order;
	uint8_t kind;
	int16_t who;
	uint32_t epoch;
};

/* What a world does. */
struct kernel_world {
	void (*happen)(const struct event *event); /* one of its own */
	/* When an event may come that is for a process that is stopped; 0: no process is. May be
	 * NULL. */
	int64_t (*deferred)(const struct event *event);
	/* The process that runs has made itself a guard, or (NULL) has stopped it. */
	void (*guarded)(struct process *process, struct reaper *reaper);
	/* Called by poll, for main threads that are about to wait. May be NULL. */
	void (*inspect)(struct process *process);
	/* A world with more events than this runs without end; 0: the number of kernel.c. */
	uint64_t most_events;
};

/* ---- The way to the store ---- */

/* Times in ms, at most; chances in thousandths. */
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
	int watched[MOST_WATCHED]; /* it is rung where one of these is: epoll */
	int watches;
};

struct kernel {
	const struct kernel_world *world;
	struct random random;
	struct random outside; /* for what no process asks */
	int64_t now;
	uint64_t order; /* of events */
	struct event *heap;
	int events, capacity;
	uint64_t happened; /* events so far */
	struct process **process;
	int processes, process_room;
	struct thread *running; /* NULL: the world itself */
	struct bell *bell;
	int bells, bell_room;
	uint64_t spins; /* polls without time passing */
	struct way way;
	int64_t full_until; /* until then no process can write to the store, beats neither */
	uint64_t lost_answers, late_commits;
	struct shim shim;
	struct {
		void (*run)(void *what);
		void *what;
	} late[MOST_LATE]; /* committed after their answer was given up */
	int lates;
	struct store *store; /* of the world itself: answers at once */
	FILE *trace;
	/* The verdict. */
	const char *violated; /* an invariant's name; NULL: all held */
	char detail[256];
};
extern struct kernel kernel;

/* A fresh world, with a fresh store: "shim:memory:NAME" is what its processes open. */
void kernel_begin(const struct kernel_world *world, const char *store, const struct way *way,
	uint64_t seed, FILE *trace);
/* When the next event comes; CLOCK_NEVER: none does. */
int64_t kernel_next(void);
/* Let it happen. */
void kernel_step(void);
/* Kill whichever process is left, and close the world's own store. */
void kernel_end(void);
/* Give back all memory. */
void kernel_release(void);

/* The array of so many, with room for at least one more of that size; it may have moved. */
void *kernel_room(void *array, int count, int *room, size_t size);
void kernel_at(int64_t time, int kind, int who, uint32_t epoch);
/* Let time pass for the thread that runs. */
void kernel_sleep(int64_t microseconds);
/* An invariant does not hold; the first one counts. */
void kernel_violate(const char *invariant, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void kernel_violate_list(const char *invariant, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
/* A line of the trace, which there must be; subject: whom it is about, or "". */
void kernel_trace(const char *subject, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void kernel_trace_list(const char *subject, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* machine.c: thread number who goes on, unless it has been woken again since. */
void thread_run(int who, uint32_t epoch);
/* machine.c: a thread asks for something that may take no time. One that never stops is a fault. */
void machine_spin(void);
/* way.c: have the shim ask for kernel.way. */
void way_install(void);

#endif
