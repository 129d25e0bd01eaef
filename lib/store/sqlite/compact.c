/* SPDX-License-Identifier: MIT */
/*
 * The table gone remembers deleted keys for REMEMBERED revisions. After that, transactions that
 * delete something remove the old rows, a few each, so that none of them takes long. The floor is
 * the revision up to which rows may have been removed: a wait that begins below the floor is told
 * that something has changed. A key that is put again keeps its row in gone: a process that has not
 * seen the deletion has not seen the put either, and has to learn of a change in any case.
 */
#include "store/sqlite/session.h"

/*
 * More than the commits between two polls of a waiting process (1 s). A process that polls less
 * often may list the keys once without need.
 */
#define REMEMBERED 512
/* Remove rows only when this many revisions are too old: most deletions then remove none. */
#define GATHERED 16

/* The oldest rows, up to revision ?1, at most ?2 of them. */
#define OLDEST "SELECT revision, key FROM gone WHERE revision<=?1 ORDER BY revision, key LIMIT ?2"

enum status compact_bury(struct session *session, const char *key, struct error *err)
{
	sqlite3_stmt *statement = session_keep(session, STATEMENT_BURY, key, err);
	if (!statement)
		return err->status;
	sqlite3_bind_int64(statement, 2, session->revision + 1);
	return session_finish(session, statement, err);
}

/* Run a query that returns one number; NULL becomes 0. It need not use ?1 and ?2. */
static enum status ask_revision(struct session *session, const char *sql, store_revision up_to,
	int64_t most, store_revision *revision, struct error *err)
{
	sqlite3_stmt *statement = session_prepare(session, sql, err);
	if (!statement)
		return err->status;
	(void)sqlite3_bind_int64(statement, 1, up_to);
	(void)sqlite3_bind_int64(statement, 2, most);
	enum status status = session_take_number(session, statement, revision, err);
	sqlite3_finalize(statement);
	return status;
}

static enum status forget(
	struct session *session, store_revision up_to, int64_t most, struct error *err)
{
	sqlite3_stmt *statement = session_prepare(
		session, "DELETE FROM gone WHERE (revision, key) IN (" OLDEST ")", err);
	if (!statement)
		return err->status;
	sqlite3_bind_int64(statement, 1, up_to);
	sqlite3_bind_int64(statement, 2, most);
	enum status status = session_finish(session, statement, err);
	sqlite3_finalize(statement);
	return status;
}

enum status compact_some(struct session *session, struct error *err)
{
	store_revision oldest = 0, last = 0, up_to = session->revision - REMEMBERED;
	int64_t most = 2 * (int64_t)session->deleted + GATHERED;
	if (up_to <= GATHERED)
		return STATUS_OK;
	enum status status =
		ask_revision(session, "SELECT min(revision) FROM gone", 0, 0, &oldest, err);
	if (status != STATUS_OK || oldest == 0 || oldest > up_to - GATHERED)
		return status;
	status = ask_revision(
		session, "SELECT max(revision) FROM (" OLDEST ")", up_to, most, &last, err);
	if (status == STATUS_OK)
		status = forget(session, up_to, most, err);
	if (status == STATUS_OK && last > session->floor)
		session->floor = last;
	return status;
}
