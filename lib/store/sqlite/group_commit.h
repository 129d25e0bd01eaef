/* SPDX-License-Identifier: MIT */
/* Running the requests of several processes of one machine in one transaction. */
#ifndef STORE_SQLITE_GROUP_COMMIT_H
#define STORE_SQLITE_GROUP_COMMIT_H

#include "store/machine/posts.h"
#include "store/sqlite/session.h"

/* The requests of others in a transaction of ours; zeroed: none. */
struct group_commit {
	struct posts *posts;
	uint64_t seed, mark;
	store_revision floor; /* as it was when the transaction began */
	struct gathered *items;
	size_t count;
};
/*
 * Wait for our turn among the processes of this machine. Post the request, so that another process
 * may carry it out. STATUS_NO: it is our turn (or there is no queue): call session_begin. Then,
 * if post->fate is FATE_CHECK, call group_commit_find_outcome; if FATE_OURS, run the request. Any
 * other status is the result of the request.
 */
enum status group_commit_enter(struct sqlite_store *store, const struct store_request *request,
	struct post *post, int64_t deadline, struct store_answer *answer, struct error *err);
/*
 * In a session that may write: find out whether the posted request was committed. If so, *committed
 * is true; commit this session, which syncs that transaction, too, and then call
 * group_commit_read_answer. If not, post->fate becomes FATE_OURS.
 */
enum status group_commit_find_outcome(
	struct session *session, struct post *post, bool *committed, struct error *err);
enum status group_commit_read_answer(struct sqlite_store *store,
	const struct store_request *request, const struct post *post, struct store_answer *answer,
	struct error *err);

/* Whether others have posted requests; called when it is our turn. */
bool group_commit_is_wanted(struct sqlite_store *store);
/*
 * In a session that may write, after our own request: run the requests of others. Then call
 * group_commit_answer once, also after an error.
 */
enum status group_commit_run_others(
	struct group_commit *others, struct session *session, struct error *err);
/* Right before the commit: set the requests that have changed something to COMMITTING. */
void group_commit_announce(struct group_commit *others, const struct session *session);
/* Answer the requests, before lock_leave_queue. status and known are from session_commit. */
void group_commit_answer(
	struct group_commit *others, const struct session *session, enum status status, bool known);

#endif
