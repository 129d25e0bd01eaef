/* SPDX-License-Identifier: MIT */
/* Who watches whom: the ring of workers, with beats in files and a clock that this test moves. */
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scratch_queue.h"
#include "unit.h"

#define PERIOD 5000
#define LIMIT  3
enum { WORKERS = 6 };

static struct queue_worker worker[WORKERS];
static uint64_t sequence = 1;
static int64_t ahead; /* ms that the clocks are ahead */

int clock_gettime(clockid_t id, struct timespec *t)
{
	long result = syscall(SYS_clock_gettime, id, t);
	t->tv_sec += ahead / 1000;
	return (int)result;
}

static void enter(struct queue_worker *one)
{
	*one = (struct queue_worker){
		.index = UINT64_MAX, .slots = 1, .period = PERIOD, .limit = LIMIT};
	CHECK_EQ(queue_register(&queue, one, &err), STATUS_OK);
}

/* A period passes; the workers of the bit mask beat. */
static void pass(unsigned beating)
{
	char group[QUEUE_BEATS];
	queue_beats(&queue, group);
	ahead += PERIOD;
	sequence++;
	for (unsigned i = 0; i < WORKERS; i++) {
		const struct store_beat beat = {
			.token = queue_beat_token(&worker[i]), .sequence = sequence};
		if (beating & 1u << i)
			CHECK_EQ(
				store_beat(store, group, worker[i].number, &beat, &err), STATUS_OK);
	}
}

static enum status look(struct queue_ring *ring, const struct queue_worker *self)
{
	uint64_t back;
	return queue_ring_look(ring, &queue, self, sequence, &back, &err);
}

/* Which of the workers are registered, as a bit mask. */
static unsigned registered(void)
{
	struct queue_worker *list = NULL;
	size_t count = 0;
	unsigned found = 0;
	CHECK_EQ(queue_workers(&queue, &list, &count, &err), STATUS_OK);
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < WORKERS; k++)
			found |= !strcmp(list[i].token, worker[k].token) ? 1u << k : 0;
	free(list);
	return found;
}

static void begin(void)
{
	char group[QUEUE_BEATS];
	queue_beats(&queue, group);
	for (int i = 0; i < WORKERS; i++)
		if (!(registered() & 1u << i))
			enter(&worker[i]);
	CHECK_EQ(store_beats_prepare(store, group, WORKERS, &err), STATUS_OK);
}

/* One that registers in a process that ends at once. */
static void enter_and_die(struct queue_worker *one)
{
	int ends[2];
	if (pipe(ends) < 0)
		exit(99);
	pid_t pid = fork();
	if (pid == 0) {
		reopen("ring.db");
		enter(one);
		_exit(write(ends[1], one, sizeof(*one)) == sizeof(*one) ? 0 : 1);
	}
	CHECK(read(ends[0], one, sizeof(*one)) == sizeof(*one));
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

static void cases(void)
{
	struct queue_ring ring = {0}, second = {0};
	TEST("each gets the lowest free number, also for {per-worker:...}")
	{
		begin();
		for (unsigned i = 0; i < WORKERS; i++) {
			CHECK_EQ(worker[i].number, i);
			CHECK_EQ(worker[i].index, i);
		}
	}
	TEST("those that live stay; two that die at once go at once, and no other")
	{
		for (int i = 0; i < 2 * LIMIT; i++) {
			pass(0x3f);
			CHECK_EQ(look(&ring, &worker[1]), STATUS_OK);
		}
		CHECK_EQ(registered(), 0x3f);
		for (int i = 0; i < LIMIT - 1; i++) {
			pass(0x33);
			CHECK_EQ(look(&ring, &worker[1]), STATUS_OK);
		}
		CHECK_EQ(registered(), 0x3f);
		for (int i = 0; i < 2; i++) {
			pass(0x33);
			CHECK_EQ(look(&ring, &worker[1]), STATUS_OK);
		}
		CHECK_EQ(registered(), 0x33);
	}
	TEST("the last one watches the first one")
	{
		struct queue_ring last = {0};
		for (int i = 0; i < LIMIT + 2; i++) {
			pass(0x32);
			CHECK_EQ(look(&last, &worker[5]), STATUS_OK);
		}
		CHECK_EQ(registered(), 0x32);
		CHECK_EQ(look(&last, &worker[0]), STATUS_NO);
		queue_ring_release(&last);
	}
	TEST("one that does not beat itself, or was stopped, says nothing of others")
	{
		for (int i = 0; i < 3 * LIMIT; i++) {
			ahead += PERIOD;
			CHECK_EQ(look(&ring, &worker[1]), STATUS_OK);
		}
		CHECK_EQ(registered(), 0x32);
		for (int i = 0; i < 3 * LIMIT; i++) {
			ahead += 10 * PERIOD;
			sequence++;
			CHECK_EQ(look(&ring, &worker[1]), STATUS_OK);
		}
		CHECK_EQ(registered(), 0x32);
	}
	TEST("a number is used again, and the beats of the former one are silence")
	{
		begin();
		CHECK_EQ(worker[0].number, 0);
		CHECK_EQ(worker[3].number, 3);
		for (int i = 0; i < LIMIT + 2; i++) {
			pass(0x37);
			CHECK_EQ(look(&second, &worker[2]), STATUS_OK);
		}
		CHECK_EQ(registered() & 0x0f, 0x07);
		CHECK(registered() & 1u << 4 && registered() & 1u << 5);
	}
	TEST("one whose process is gone from this machine goes at once, and another one counts")
	{
		size_t all, alive;
		struct queue_ring waiting = {0};
		enter_and_die(&worker[3]);
		CHECK_EQ(worker[3].number, 3);
		CHECK_EQ(queue_ring_alive(&waiting, &queue, &all, &alive, &err), STATUS_OK);
		CHECK_EQ(all, WORKERS);
		CHECK_EQ(alive, WORKERS - 1);
		pass(0x37);
		CHECK_EQ(look(&second, &worker[2]), STATUS_OK);
		CHECK_EQ(registered(), 0x37);
		CHECK_EQ(queue_ring_alive(&waiting, &queue, &all, &alive, &err), STATUS_OK);
		CHECK_EQ(alive, 5);
		/* A pause of the one who looks makes nobody dead. */
		ahead += 10 * LIMIT * PERIOD;
		CHECK_EQ(queue_ring_alive(&waiting, &queue, &all, &alive, &err), STATUS_OK);
		CHECK_EQ(alive, 5);
		for (int i = 0; i < LIMIT + 1; i++) {
			pass(0x06);
			CHECK_EQ(queue_ring_alive(&waiting, &queue, &all, &alive, &err), STATUS_OK);
		}
		CHECK_EQ(all, 5);
		CHECK_EQ(alive, 2);
		queue_ring_release(&waiting);
	}
	queue_ring_release(&ring);
	queue_ring_release(&second);
}

int main(void)
{
	scratch_make();
	reopen("ring.db");
	cases();
	close_all();
	scratch_remove();
	return unit_end();
}
