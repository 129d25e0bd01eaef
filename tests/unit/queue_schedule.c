/* SPDX-License-Identifier: MIT */
/* A scheduler loses an answer of its store, and then the store is busy. */
#include "base/clock.h"
#include "scratch_queue.h"
#include "store/backend.h"
#include "unit.h"

static enum status schedule(size_t count)
{
	static char name[] = "true", *words[] = {name, NULL};
	static const struct queue_schedule how = {.wake = -1, .deadline = CLOCK_NEVER};
	struct queue_item items[2];
	for (size_t i = 0; i < count; i++)
		items[i] = (struct queue_item){.argv = words, .scheduled = 1};
	enum status status = queue_schedule(&queue, items, count, 0, &how, &err);
	for (size_t i = 0; i < count; i++)
		free(items[i].batch);
	return status;
}

/* A transaction is made and its answer lost; the store cannot be asked by the next ones. */
static const struct store_backend *working;
static int lose_after, refuse;
static enum status lose(struct store *of, const struct store_request *request, int64_t deadline,
	struct store_answer *answer, struct error *error)
{
	if (lose_after-- > 0)
		return working->txn(of, request, deadline, answer, error);
	if (lose_after == -1) {
		working->txn(of, request, deadline, answer, error);
		store_answer_release(answer);
		return error_set(error, STATUS_TEMPORARY, "the answer is lost");
	}
	if (refuse-- <= 0)
		return working->txn(of, request, deadline, answer, error);
	answer->known = true;
	return error_set(error, STATUS_TEMPORARY, "the store is busy");
}

int main(void)
{
	scratch_make();
	reopen("q");
	working = store->backend;
	struct store_backend losing = *working;
	losing.txn = lose;
	store->backend = &losing;
	TEST("an answer to schedule is lost, and then the store is busy: it is found out all the same")
	{
		lose_after = 1; /* the first transaction reads */
		refuse = 3;
		CHECK_EQ(schedule(2), STATUS_OK);
		CHECK(refuse <= 0);
		CHECK_EQ(count_keys("item"), 2);
		CHECK(counts_agree());
	}
	TEST("it stays busy: could not ask, and the error says what is not known")
	{
		lose_after = 1;
		refuse = 100;
		CHECK_EQ(schedule(1), STATUS_TEMPORARY);
		CHECK(strstr(err.text, "cannot find out whether"));
	}
	store->backend = working;
	close_all();
	scratch_remove();
	return unit_end();
}
