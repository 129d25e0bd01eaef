/* SPDX-License-Identifier: MIT */
/* The queue of processes: order, deadlines, and what happens when those in it are killed. */
#include "store/machine/ticket_queue.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit.h"

enum { PEOPLE = 40 };

static struct shared {
	struct ticket_queue queue;
	_Atomic int served;	   /* how many had their turn */
	_Atomic int order[PEOPLE]; /* who, in order */
	_Atomic int inside, most_inside;
} * shared;

static int enter_queue(struct ticket_queue *queue, struct queue_ticket *ticket, int64_t deadline)
{
	int result = ticket_queue_draw(queue, ticket, deadline);
	if (result != 0 || !ticket->place)
		return result;
	result = ticket_queue_wait(queue, ticket, deadline);
	if (result != 0)
		ticket_queue_leave(ticket);
	return result;
}

/* A process that enters, notes its turn, and leaves, or stays for ever. */
static pid_t enter(int who, int64_t patience, bool stays)
{
	uint64_t next = shared->queue.next;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct queue_ticket ticket = {0};
		int result = enter_queue(&shared->queue, &ticket, clock_after(patience));
		if (result != 0)
			_exit(result == ETIMEDOUT ? 2 : 3);
		if (++shared->inside > 1)
			shared->most_inside = shared->inside;
		shared->order[shared->served++] = who;
		while (stays)
			pause();
		poll(NULL, 0, 2);
		shared->inside--;
		ticket_queue_leave(&ticket);
		_exit(0);
	}
	/* Until it has drawn its ticket, so that the order is known. */
	int64_t deadline = clock_after(60000);
	while (shared->queue.next == next && clock_now() < deadline)
		poll(NULL, 0, 1);
	return pid;
}

static int end_of(pid_t pid)
{
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void start_again(void)
{
	memset(shared, 0, sizeof(*shared));
	ticket_queue_init(&shared->queue);
}

int main(void)
{
	pid_t pids[PEOPLE];
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	TEST("those that wait are served in the order in which they came, one at a time")
	{
		struct queue_ticket ticket = {0};
		start_again();
		CHECK_EQ(enter_queue(&shared->queue, &ticket, clock_after(60000)), 0);
		for (int i = 0; i < PEOPLE; i++)
			pids[i] = enter(i, 120000, false);
		CHECK_EQ(shared->served, 0);
		ticket_queue_leave(&ticket);
		for (int i = 0; i < PEOPLE; i++)
			CHECK_EQ(end_of(pids[i]), 0);
		for (int i = 0; i < PEOPLE; i++)
			CHECK_EQ(shared->order[i], i);
		CHECK_EQ(shared->most_inside, 0);
	}
	TEST("who leaves and comes again goes behind those that wait")
	{
		struct queue_ticket ticket = {0};
		start_again();
		CHECK_EQ(enter_queue(&shared->queue, &ticket, clock_after(60000)), 0);
		for (int i = 0; i < 5; i++)
			pids[i] = enter(i, 120000, false);
		ticket_queue_leave(&ticket);
		CHECK_EQ(enter_queue(&shared->queue, &ticket, clock_after(120000)), 0);
		CHECK_EQ(shared->served, 5);
		ticket_queue_leave(&ticket);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(end_of(pids[i]), 0);
	}
	TEST("one that gives up, and one that is killed while it waits, let no worker in early")
	{
		struct queue_ticket ticket = {0};
		start_again();
		CHECK_EQ(enter_queue(&shared->queue, &ticket, clock_after(60000)), 0);
		pids[0] = enter(0, 100, false);
		pids[1] = enter(1, 120000, false);
		pids[2] = enter(2, 120000, false);
		CHECK_EQ(end_of(pids[0]), 2);
		kill(pids[1], SIGKILL);
		CHECK_EQ(end_of(pids[1]), 128 + SIGKILL);
		/* Long enough for it to come in, if it wrongly could. */
		poll(NULL, 0, 50);
		CHECK_EQ(shared->served, 0);
		ticket_queue_leave(&ticket);
		CHECK_EQ(end_of(pids[2]), 0);
	}
	TEST("one that is killed in its turn: the next is served at once")
	{
		start_again();
		pids[0] = enter(0, 120000, true);
		pids[1] = enter(1, 120000, false);
		int64_t deadline = clock_after(60000);
		while (shared->served < 1 && clock_now() < deadline)
			poll(NULL, 0, 1);
		kill(pids[0], SIGKILL);
		/* Else its patience ends. */
		CHECK_EQ(end_of(pids[1]), 0);
		CHECK_EQ(end_of(pids[0]), 128 + SIGKILL);
		CHECK_EQ(shared->order[1], 1);
	}
	TEST("killed at any moment, 300 times, it goes on, and more often than it has places")
	{
		start_again();
		/* On a busy machine many are killed before they do anything: then more of them. */
		for (int i = 0; i < 300 || shared->queue.next <= TICKET_QUEUE_PLACES * 3; i++) {
			fflush(stdout);
			pid_t pid = fork();
			if (pid == 0)
				for (;;) {
					struct queue_ticket mine = {0};
					if (enter_queue(&shared->queue, &mine, CLOCK_NEVER) != 0)
						_exit(1);
					ticket_queue_leave(&mine);
				}
			struct timespec moment = {.tv_nsec = (long)clock_jitter(2000) * 1000};
			nanosleep(&moment, NULL);
			kill(pid, SIGKILL);
			CHECK_EQ(end_of(pid), 128 + SIGKILL);
			struct queue_ticket ticket = {0};
			if (!CHECK_EQ(enter_queue(&shared->queue, &ticket, clock_after(60000)), 0))
				break;
			ticket_queue_leave(&ticket);
		}
	}
	return unit_end();
}
