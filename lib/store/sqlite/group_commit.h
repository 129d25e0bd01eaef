/* SPDX-License-Identifier: MIT */
/* Requests of several processes of one machine in one transaction: what transaction.c calls. */
#ifndef STORE_SQLITE_GROUP_COMMIT_H
#define STORE_SQLITE_GROUP_COMMIT_H

#include "store/machine/posts.h"
#include "store/sqlite/session.h"

/* What others asked and we have run in a transaction of ours; zeroed: nothing. */
struct group_commit {
	struct posts *posts;
	uint64_t seed, mark;
	store_revision floor; /* when the transaction began */
	struct gathered *items;
	size_t count;
};
/*
 * Wait for our turn among the processes of this machine, with the request posted so that another
 * may carry it out. STATUS_NO: it is our turn, or there is no queue; session_begin goes on from
 * there. Then with FATE_CHECK group_commit_find_outcome says whether it was carried out, else we
 * are to run it. Any other status: so it ended.
 */
enum status group_commit_enter(struct sqlite_store *store, const struct store_request *request,
	struct post *post, int64_t deadline, struct store_answer *answer, struct error *err);
/*
 * In a session that may write. *committed: it was carried out; once this session is committed, so
 * that it is synced, group_commit_read_answer has the answer. Else post becomes FATE_OURS.
 */
enum status group_commit_find_outcome(
	struct session *session, struct post *post, bool *committed, struct error *err);
enum status group_commit_read_answer(struct sqlite_store *store,
	const struct store_request *request, const struct post *post, struct store_answer *answer,
	struct error *err);

/* It is our turn: whether others have posted requests. */
bool group_commit_is_wanted(struct sqlite_store *store);
/*
 * In a session that may write, after our own request: run those of others. After STATUS_OK as after
 * an error group_commit_answer is called once.
 */
enum status group_commit_run_others(
	struct group_commit *others, struct session *session, struct error *err);
/* Right before the commit. */
void group_commit_announce(struct group_commit *others, const struct session *session);
/* Answer them; status and known are what session_commit said. Before lock_leave_queue. */
void group_commit_answer(
	struct group_commit *others, const struct session *session, enum status status, bool known);

#endif
