/* SPDX-License-Identifier: MIT */
/* Random numbers, events, and the trace of them. */
#include "kernel.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "support/backends/memory.h"

#define MOST_EVENTS_RUN 30000000

struct kernel kernel;

/* ---- Random numbers: splitmix64 ---- */

uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int64_t random_in(struct random *r, int64_t least, int64_t most)
{
	if (most <= least)
		return least;
	return least + (int64_t)(random_next(r) % (uint64_t)(most - least + 1));
}

bool random_chance(struct random *r, int permille)
{
	return permille > 0 && random_in(r, 0, 999) < permille;
}

/* ---- A heap of events, in order of their time, then of their making ---- */

static bool sooner(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void *kernel_room(void *array, int count, int *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 256;
	array = realloc(array, (size_t)*room * size);
	if (!array)
		abort();
	return array;
}

static void push(struct event event)
{
	struct kernel *k = &kernel;
	event.order = k->order++;
	k->heap = kernel_room(k->heap, k->events, &k->capacity, sizeof(*k->heap));
	int at = k->events++;
	while (at > 0 && sooner(&event, &k->heap[(at - 1) / 2])) {
		k->heap[at] = k->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	k->heap[at] = event;
}

static struct event pop(void)
{
	struct kernel *k = &kernel;
	struct event first = k->heap[0], last = k->heap[--k->events];
	int at = 0;
	for (;;) {
		int child = 2 * at + 1;
		if (child >= k->events)
			break;
		if (child + 1 < k->events && sooner(&k->heap[child + 1], &k->heap[child]))
			child++;
		if (!sooner(&k->heap[child], &last))
			break;
		k->heap[at] = k->heap[child];
		at = child;
	}
	k->heap[at] = last;
	return first;
}

void kernel_at(int64_t time, int kind, int who, uint32_t epoch)
{
	push((struct event){.time = time > kernel.now ? time : kernel.now,
		.kind = (uint8_t)kind,
		.who = (int16_t)who,
		.epoch = epoch});
}

int64_t kernel_next(void)
{
	return kernel.events ? kernel.heap[0].time : CLOCK_NEVER;
}

/* ---- Carrying out events ---- */

static int64_t deferred(const struct event *event)
{
	if (event->kind == KERNEL_THREAD)
		return kernel.process[event->who / MOST_THREADS]->paused_until;
	return event->kind >= KERNEL_EVENTS && kernel.world->deferred
		       ? kernel.world->deferred(event)
		       : 0;
}

void kernel_step(void)
{
	struct event event = pop();
	if (event.time > kernel.now)
		kernel.spins = 0;
	kernel.now = event.time;
	int64_t until = deferred(&event);
	if (until > kernel.now) {
		/* An event of a stopped process waits until the process goes on. */
		event.time = until;
		push(event);
	} else if (event.kind == KERNEL_THREAD) {
		thread_run(event.who, event.epoch);
	} else if (event.kind == KERNEL_LATE) {
		kernel.late[event.who].run(kernel.late[event.who].what);
	} else {
		kernel.world->happen(&event);
	}
	if (++kernel.happened > MOST_EVENTS_RUN)
		kernel_violate("endless", "more than %d events", MOST_EVENTS_RUN);
}

/* ---- The trace, and violated invariants ---- */

void kernel_trace_list(const char *subject, const char *format, va_list args)
{
	fprintf(kernel.trace, "%10.3f %-7s ", (double)kernel.now / MS, subject);
	vfprintf(kernel.trace, format, args);
	fputc('\n', kernel.trace);
}

void kernel_trace(const char *subject, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	kernel_trace_list(subject, format, args);
	va_end(args);
}

void kernel_violate_list(const char *invariant, const char *format, va_list args)
{
	if (kernel.violated)
		return;
	kernel.violated = invariant;
	vsnprintf(kernel.detail, sizeof(kernel.detail), format, args);
	if (kernel.trace)
		fprintf(kernel.trace, "%10.3f         VIOLATED %s: %s\n", (double)kernel.now / MS,
			invariant, kernel.detail);
}

void kernel_violate(const char *invariant, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	kernel_violate_list(invariant, format, args);
	va_end(args);
}

/* ---- Worlds, one after another ---- */

static void make_store(const char *name)
{
	static bool registered;
	char url[64];
	if (!registered) {
		store_register(&store_memory);
		/* json-c draws a random number at its first use: now, before the seed counts. */
		json_object_put(json_parse("{\"a\":1}", 7));
	}
	registered = true;
	memory_forget();
	way_install();
	snprintf(url, sizeof(url), "memory:%s", name);
	if (store_open(&kernel.store, url, STORE_CREATE, CLOCK_NEVER, NULL) != STATUS_OK)
		abort();
}

void kernel_begin(const struct kernel_world *world, const char *store, const struct way *way,
	uint64_t seed, FILE *trace)
{
	struct kernel former = kernel;
	memset(&kernel, 0, sizeof(kernel));
	kernel.heap = former.heap;
	kernel.capacity = former.capacity;
	kernel.process = former.process;
	kernel.process_room = former.process_room;
	kernel.bell = former.bell;
	kernel.bell_room = former.bell_room;
	kernel.world = world;
	kernel.way = *way;
	kernel.random.state = seed;
	kernel.outside.state = 7;
	kernel.trace = trace;
	kernel.now = 1000 * MS; /* not 0, which means "never" to the agreement */
	make_store(store);
}

void kernel_end(void)
{
	for (int i = 0; i < kernel.processes; i++)
		process_kill(kernel.process[i]);
	store_close(kernel.store);
	kernel.store = NULL;
}
