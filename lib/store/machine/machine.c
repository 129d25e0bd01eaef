/* SPDX-License-Identifier: MIT */
#include "store/machine/machine.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/machine/shared_page.h"

struct machine_page {
	struct shared_page head; /* used: when a process last came to the head of the queue */
	_Atomic int32_t holder;
	struct staleness staleness;
	struct handoff handoff;
	struct ticket_queue queue;
	struct posts posts;
};

#define POSTS offsetof(struct machine_page, posts)

static void init_page(void *page)
{
	ticket_queue_init(&((struct machine_page *)page)->queue);
}

static const struct shared_page_kind kind = {.name = "page6",
	.size = sizeof(struct machine_page),
	.sparse_from = POSTS + offsetof(struct posts, rooms),
	.init = init_page};

bool machine_open(struct machine *machine, dev_t device, ino_t inode, const char *nonce)
{
	const struct shared_page_file file = {device, inode, nonce};
	*machine = (struct machine){.descriptor = -1};
	machine->page = shared_page_open(&kind, &file, &machine->descriptor, machine->path);
	return machine->page;
}

void machine_close(struct machine *machine)
{
	if (machine->page)
		munmap(machine->page, sizeof(*machine->page));
	if (machine->descriptor >= 0)
		close(machine->descriptor);
	*machine = (struct machine){.descriptor = -1};
}

/*
 * Wait for our turn. If others are before us, post our request, so that the process at the head may
 * carry it out. If all places are taken, return 0 without a place: do not wait here.
 */
static int wait_in_queue(struct machine *machine, struct post *post, int64_t deadline)
{
	struct machine_page *page = machine->page;
	struct queue_ticket *ticket = &machine->ticket;
	int result = ticket_queue_draw(&page->queue, ticket, deadline);
	if (result != 0 || !ticket->place)
		return result;
	/* Usually no process is before us; then nothing is posted. */
	result = ticket_queue_wait(&page->queue, ticket, TICKET_QUEUE_AT_ONCE);
	bool waits = result == ETIMEDOUT;
	if (!waits || !post ||
		!posts_post(&page->posts, machine->descriptor, POSTS, ticket->number, post))
		post = NULL;
	if (waits)
		result = ticket_queue_wait(&page->queue, ticket, deadline);
	if (post)
		posts_end(&page->posts, ticket->number, result == 0, post);
	bool over = post && (post->fate == FATE_ANSWERED || post->fate == FATE_UNKNOWN);
	if (over && (result == 0 || result == ETIMEDOUT))
		result = EALREADY;
	if (result != 0)
		ticket_queue_leave(ticket);
	return result;
}

int machine_enter(
	struct machine *machine, struct post *post, int64_t deadline, pid_t *holder, int64_t *since)
{
	*holder = 0;
	if (!machine->page)
		return 0;
	int result = wait_in_queue(machine, post, deadline);
	if (result == 0 && machine->ticket.place) {
		machine->page->holder = getpid();
		machine->page->head.used = clock_now();
	} else if (result == ETIMEDOUT) {
		*holder = machine->page->holder;
		*since = machine->page->head.used;
	} else if (result != EALREADY) {
		/* The page is damaged: go on without it. */
		machine_close(machine);
		result = post && post->posted && post->fate != FATE_OURS ? EALREADY : 0;
	}
	return result;
}

void machine_leave(struct machine *machine)
{
	if (!machine->page || !machine->ticket.place)
		return;
	machine->page->holder = 0;
	ticket_queue_leave(&machine->ticket);
}

struct posts *machine_posts(struct machine *machine, uint64_t *first, uint64_t *end)
{
	if (!machine->page || !machine->ticket.place)
		return NULL;
	*first = machine->ticket.number + 1;
	*end = machine->page->queue.next;
	return &machine->page->posts;
}

struct staleness *machine_staleness(struct machine *machine)
{
	return machine->page ? &machine->page->staleness : NULL;
}

struct handoff *machine_handoff(struct machine *machine)
{
	return machine->page ? &machine->page->handoff : NULL;
}
