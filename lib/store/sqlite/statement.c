/* SPDX-License-Identifier: MIT */
/*
 * Prepared statements. Preparing takes longer than running, and a transaction may have hundreds of
 * operations: so statements for one key are prepared once and kept until the database is closed.
 */
#include <string.h>

#include "store/sqlite/session.h"

static const char *const texts[STATEMENT_COUNT] = {
	[STATEMENT_COMPARE] = "SELECT revision FROM keys WHERE key=?1",
	[STATEMENT_GET] = "SELECT value, revision FROM keys WHERE key=?1",
	/* The same as an upsert here, and faster to prepare. */
	[STATEMENT_PUT] = "REPLACE INTO keys(key, value, revision) VALUES(?1, ?2, ?3)",
	[STATEMENT_DELETE] = "DELETE FROM keys WHERE key=?1",
	[STATEMENT_BURY] = "INSERT OR IGNORE INTO gone(key, revision) VALUES(?1, ?2)",
};

sqlite3_stmt *session_prepare(struct session *session, const char *sql, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(session->database, sql, -1, &statement, NULL);
	if (code != SQLITE_OK)
		session_failed(session, "read", code, err);
	return statement;
}

sqlite3_stmt *session_keep(
	struct session *session, enum statement which, const char *key, struct error *err)
{
	sqlite3_stmt **kept = &session->statements[which];
	if (!*kept)
		*kept = session_prepare(session, texts[which], err);
	if (*kept)
		sqlite3_bind_blob(*kept, 1, key, (int)strlen(key), SQLITE_STATIC);
	return *kept;
}

enum status session_finish(struct session *session, sqlite3_stmt *statement, struct error *err)
{
	int code = sqlite3_step(statement);
	enum status status =
		code == SQLITE_DONE ? STATUS_OK : session_failed(session, "change", code, err);
	sqlite3_reset(statement);
	return status;
}

enum status session_take_number(
	struct session *session, sqlite3_stmt *statement, int64_t *number, struct error *err)
{
	int code = sqlite3_step(statement);
	enum status status = STATUS_OK;
	if (code == SQLITE_ROW || code == SQLITE_DONE)
		*number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
	else
		status = session_failed(session, "read", code, err);
	sqlite3_reset(statement);
	return status;
}

void session_drop_statements(struct session *session)
{
	for (size_t i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(session->statements[i]);
	memset(session->statements, 0, sizeof(session->statements));
}
