/* SPDX-License-Identifier: MIT */
/*
 * Group commit. Locking, opening, four syncs and closing take much longer than a request. So the
 * process at the head of the queue carries out the requests of the processes behind it in its own
 * transaction, in the order of the queue, and answers them after the commit, if it held the lock
 * until then.
 *
 * If the transaction fails and nothing was changed, each owner runs its request when its turn
 * comes, and gets its own error. No process takes such a request a second time: a request that
 * cannot be written would otherwise make the others fail again and again.
 *
 * If the process is killed, or does not know whether it has committed, each owner finds out when
 * its turn comes: the transaction has written a mark into the store, a row of the table `gone` with
 * a key that no caller can have. Old marks are removed like the other rows (compact.c); if the mark
 * may have been removed, the outcome is unknown.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/sqlite/group_commit.h"

/* The limits of one turn, so that neither this process nor other machines wait long. */
#define MOST	64  /* requests */
#define LONGEST 250 /* milliseconds */

struct gathered {
	uint64_t ticket;
	bool changed;		  /* it has changed something */
	struct request_room room; /* the request, then its answer */
};

#define MARK_LENGTH (1 + sizeof(uint64_t))

/* A key with a NUL, which no caller can have. */
static void make_key(uint64_t mark, unsigned char key[MARK_LENGTH])
{
	key[0] = '\0';
	memcpy(key + 1, &mark, sizeof(mark));
}

static uint64_t seed_of(const struct sqlite_store *store)
{
	return request_room_seed(store->lock.file.nonce, store->base.where);
}

/* ---- The owner of a request ---- */

/* Let our store know what it would know if it had run the transaction itself. */
static void catch_up(struct sqlite_store *store, const struct commit_summary *end, int64_t since)
{
	if (end->floor > store->newest && store->newest)
		store->past = end->floor;
	if (end->newest > store->newest)
		store->newest = end->newest;
	if (end->counted)
		wait_heard(store, end->counter, end->newest, since);
}

static enum status is_unknown(struct sqlite_store *store, const struct post *post,
	struct store_answer *answer, struct error *err)
{
	answer->known = !post->changes;
	return error_set(err, STATUS_TEMPORARY,
		"store %s: process %d of this machine was committing this transaction together "
		"with its own and did not report the result; %s",
		store->base.where, (int)post->taker,
		post->changes
			? "whether this change was made is not known: look before you try again"
			: "try again");
}

enum status group_commit_read_answer(struct sqlite_store *store,
	const struct store_request *request, const struct post *post, struct store_answer *answer,
	struct error *err)
{
	struct commit_summary end;
	if (!request_room_read_answer(&post->room, request, answer))
		return is_unknown(store, post, answer, err);
	request_room_read_summary(&post->room, &end);
	catch_up(store, &end, post->since);
	answer->known = true;
	return STATUS_OK;
}

enum status group_commit_enter(struct sqlite_store *store, const struct store_request *request,
	struct post *post, int64_t deadline, struct store_answer *answer, struct error *err)
{
	bool may_write = !(store->base.flags & STORE_READ_ONLY) && !store->lock.file.read_only;
	/* Set each member, not all of *post: its room is large, and mostly stays unused. */
	post->seed = seed_of(store);
	post->changes = store_request_changes(request);
	post->posted = false;
	post->fate = FATE_OURS;
	if (!may_write || !store->lock.machine.page || !lock_is_open(&store->lock))
		return STATUS_NO;
	bool fits = request_room_write(&post->room, request, store->newest);
	enum status status = lock_enter_queue(&store->lock, fits ? post : NULL, deadline, err);
	if (status == STATUS_OK)
		return STATUS_NO;
	if (status == STATUS_NO)
		return post->fate == FATE_ANSWERED
			       ? group_commit_read_answer(store, request, post, answer, err)
			       : is_unknown(store, post, answer, err);
	error_prefix(err, "store %s", store->base.where);
	return status;
}

enum status group_commit_find_outcome(
	struct session *session, struct post *post, bool *committed, struct error *err)
{
	struct commit_summary end;
	unsigned char key[MARK_LENGTH];
	struct store_answer answer;
	request_room_read_summary(&post->room, &end);
	/* The mark may have been removed. */
	if (session->floor >= end.newest)
		return is_unknown(session->store, post, &answer, err);
	sqlite3_stmt *statement =
		session_prepare(session, "SELECT 1 FROM gone WHERE revision=?1 AND key=?2", err);
	if (!statement)
		return err->status;
	make_key(end.mark, key);
	sqlite3_bind_int64(statement, 1, end.newest);
	sqlite3_bind_blob(statement, 2, key, sizeof(key), SQLITE_STATIC);
	int64_t found = 0;
	enum status status = session_take_number(session, statement, &found, err);
	sqlite3_finalize(statement);
	*committed = found;
	if (status == STATUS_OK && !*committed)
		post->fate = FATE_OURS;
	/* The process that committed it may have been killed before its last sync. Our commit
	 * syncs it, too. */
	return *committed ? session_execute(
				    session, "UPDATE meta SET revision=revision", "change", err)
			  : status;
}

/* ---- The process whose turn it is ---- */

bool group_commit_is_wanted(struct sqlite_store *store)
{
	uint64_t first, end;
	const struct posts *posts = machine_posts(&store->lock.machine, &first, &end);
	return posts && posts_any(posts, first, end);
}

static bool is_mixed(const struct store_op *ops, size_t count)
{
	size_t gets = 0;
	for (size_t i = 0; i < count; i++)
		gets += ops[i].kind == STORE_GET;
	return gets && gets < count;
}

/*
 * Run the request of an item. *kept: its answer is in item->room. Otherwise nothing was changed:
 * the room had no valid request, its owner has seen a newer revision than the store has (session.c,
 * compare_with_past), or the answer does not fit.
 */
static enum status run_item(
	struct session *session, struct gathered *item, bool *kept, struct error *err)
{
	struct posted_request taken;
	struct store_answer answer = {0};
	enum status status = STATUS_OK;
	*kept = false;
	if (!request_room_read(&item->room, &taken) || taken.newest > session->began)
		return STATUS_OK;
	const struct store_request *request = &taken.request;
	/* If the answer of a branch does not fit, its changes are undone. */
	bool undoable = is_mixed(request->then, request->then_count) ||
			is_mixed(request->otherwise, request->otherwise_count);
	store_revision revision = session->revision;
	size_t deleted = session->deleted;
	if (undoable)
		status = session_execute(session, "SAVEPOINT item", "change", err);
	if (status == STATUS_OK)
		status = session_run_one(session, request, &answer, err);
	if (status == STATUS_OK)
		*kept = request_room_write_answer(&item->room, &answer);
	if (status == STATUS_OK && undoable)
		status = session_execute(session,
			*kept ? "RELEASE item" : "ROLLBACK TO item; RELEASE item", "change", err);
	item->changed = session->revision != revision;
	if (!*kept) {
		session->revision = revision;
		session->deleted = deleted;
	}
	store_answer_release(&answer);
	return status;
}

/* Write the mark. It counts as a deletion, so that old marks are removed. */
static enum status write_mark(
	struct group_commit *others, struct session *session, struct error *err)
{
	unsigned char key[MARK_LENGTH];
	if (getrandom(&others->mark, sizeof(others->mark), 0) != sizeof(others->mark))
		return error_set(err, STATUS_TEMPORARY, "cannot get a random number");
	make_key(others->mark, key);
	sqlite3_stmt *statement =
		session_prepare(session, "INSERT INTO gone(key, revision) VALUES(?1, ?2)", err);
	if (!statement)
		return err->status;
	sqlite3_bind_blob(statement, 1, key, sizeof(key), SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, session->revision);
	enum status status = session_finish(session, statement, err);
	sqlite3_finalize(statement);
	session->deleted++;
	return status;
}

enum status group_commit_run_others(
	struct group_commit *others, struct session *session, struct error *err)
{
	struct sqlite_store *store = session->store;
	uint64_t ticket, end;
	int64_t until = clock_after(LONGEST);
	enum status status = STATUS_OK;
	store_revision own = session->revision;
	others->posts = machine_posts(&store->lock.machine, &ticket, &end);
	if (!others->posts)
		return STATUS_OK;
	others->items = xmalloc(MOST * sizeof(*others->items));
	others->seed = seed_of(store);
	others->floor = session->floor;
	for (; ticket < end && others->count < MOST && status == STATUS_OK; ticket++) {
		bool kept = false;
		struct gathered *item = &others->items[others->count];
		if (!posts_take(others->posts, ticket, others->seed, &item->room))
			continue;
		item->ticket = ticket;
		item->changed = false;
		others->count++;
		status = run_item(session, item, &kept, err);
		if (status == STATUS_OK && !kept) {
			posts_return(others->posts, ticket);
			others->count--;
		}
		if (clock_now() >= until)
			break;
	}
	return status == STATUS_OK && session->revision != own ? write_mark(others, session, err)
							       : status;
}

static struct commit_summary end_of(
	const struct group_commit *others, const struct session *session)
{
	return (struct commit_summary){
		.newest = session->revision,
		.floor = others->floor,
		.mark = others->mark,
		.counter = session->counter,
		.counted = session->counted,
	};
}

void group_commit_announce(struct group_commit *others, const struct session *session)
{
	struct commit_summary end = end_of(others, session);
	for (size_t i = 0; i < others->count; i++) {
		struct gathered *item = &others->items[i];
		request_room_write_summary(&item->room, &end);
		if (item->changed)
			posts_answer(others->posts, item->ticket, REQUEST_COMMITTING, others->seed,
				&item->room);
	}
}

void group_commit_answer(
	struct group_commit *others, const struct session *session, enum status status, bool known)
{
	struct commit_summary end = end_of(others, session);
	for (size_t i = 0; i < others->count; i++) {
		struct gathered *item = &others->items[i];
		request_room_write_summary(&item->room, &end);
		if (status == STATUS_OK)
			posts_answer(others->posts, item->ticket, REQUEST_ANSWERED, others->seed,
				&item->room);
		else if (known || !item->changed)
			posts_return(others->posts, item->ticket);
		/* Otherwise its owner looks for the mark. */
	}
	free(others->items);
	*others = (struct group_commit){0};
}
