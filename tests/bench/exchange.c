/* SPDX-License-Identifier: MIT */
/*
 * exchange DIRECTORY COUNT: what a worker pays to hand in one command and take the next, with few
 * and with many in the queue. Prints one line each:
 *   schedule SECONDS  until 100,000 commands were scheduled, a batch in each transaction
 *   few MS            median of COUNT exchanges where 100 wait
 *   waiting MS        where 100,000 wait
 *   over MS           where 100 wait and 100,000 are over
 * The three take turns, so that all see the same disk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "queue/queue.h"

enum { FEW = 100, MANY = 100000, MOST = 10000 };

struct place {
	struct store *store;
	struct queue queue;
	struct queue_worker worker;
	struct queue_ended ended[QUEUE_BATCH]; /* commands that run */
	char tokens[QUEUE_BATCH][QUEUE_TOKEN];
	size_t held;
	double took[MOST];
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void check(enum status status, const struct error *err)
{
	if (status == STATUS_OK)
		return;
	fprintf(stderr, "exchange: %s\n", err->text);
	exit(75);
}

static void open_place(struct place *place, const char *directory, const char *name)
{
	char path[512];
	struct error err;
	snprintf(path, sizeof(path), "%s/%s.db", directory, name);
	check(store_open(&place->store, path, STORE_CREATE, clock_after(10000), &err), &err);
	check(queue_open(&place->queue, place->store, "q", NULL, &err), &err);
	place->worker = (struct queue_worker){
		.name = "w", .index = UINT64_MAX, .slots = 1, .period = 1000, .limit = 3};
	check(queue_register(&place->queue, &place->worker, &err), &err);
}

static void schedule(struct place *place, size_t count)
{
	static char name[] = "true", *words[] = {name, NULL};
	static struct queue_item items[QUEUE_BATCH];
	struct queue_schedule how = {.limit = QUEUE_LIMIT};
	struct error err;
	for (size_t done = 0, more; done < count; done += more) {
		more = count - done < QUEUE_BATCH ? count - done : QUEUE_BATCH;
		for (size_t i = 0; i < more; i++)
			items[i] = (struct queue_item){.argv = words, .scheduled = 1};
		check(queue_schedule(&place->queue, items, more, &how, &err), &err);
	}
}

/* Hand in all that runs, and take so many; the time of that. */
static double exchange(struct place *place, size_t want)
{
	struct queue_exchange x = {.worker = place->worker.token,
		.ended = place->ended,
		.ended_count = place->held,
		.want = want,
		.left = CLOCK_NEVER};
	struct error err;
	double at = now();
	check(queue_exchange(&place->queue, &x, &err), &err);
	at = now() - at;
	for (size_t i = 0; i < place->held; i++)
		if (!place->ended[i].accepted)
			exit(1);
	if (x.taken_count != want)
		exit(1);
	for (size_t i = 0; i < want; i++) {
		memcpy(place->tokens[i], x.taken[i].token, QUEUE_TOKEN);
		place->ended[i] = (struct queue_ended){.id = x.taken[i].item.id,
			.token = place->tokens[i],
			.result = {.started = 1, .ended = 1}};
	}
	place->held = want;
	queue_exchange_release(&x);
	return at;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"few", "waiting", "over"};
	static struct place places[3];
	int count = argc == 3 ? atoi(argv[2]) : 0;
	if (count < 1 || count > MOST)
		return 2;
	for (int i = 0; i < 3; i++)
		open_place(&places[i], argv[1], names[i]);
	double at = now();
	schedule(&places[1], MANY);
	printf("schedule %.2f\n", (now() - at) / 1e3);
	fflush(stdout);
	schedule(&places[2], MANY);
	at = now();
	for (size_t done = 0; done < MANY; done += QUEUE_BATCH)
		exchange(&places[2], MANY - done < QUEUE_BATCH ? MANY - done : QUEUE_BATCH);
	exchange(&places[2], 0);
	printf("finish %.2f\n", (now() - at) / 1e3);
	fflush(stdout);
	schedule(&places[0], FEW);
	schedule(&places[2], FEW);
	for (int round = -1; round < count; round++)
		for (int i = 0; i < 3; i++) {
			double took = exchange(&places[i], 1);
			if (round >= 0)
				places[i].took[round] = took;
			schedule(&places[i], 1);
		}
	for (int i = 0; i < 3; i++) {
		exchange(&places[i], 0);
		qsort(places[i].took, (size_t)count, sizeof(double), compare);
		printf("%s %.3f\n", names[i], places[i].took[count / 2]);
		queue_release(&places[i].queue);
		store_close(places[i].store);
	}
	return 0;
}
