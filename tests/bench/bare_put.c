/* SPDX-License-Identifier: MIT */
/*
 * bare_put DATABASE KEY VALUE: what preempt-store put --if-absent is measured against: the same one
 * synced SQLite transaction on the same table, and nothing else. Exit 1 where the key is there.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	sqlite3 *database;
	sqlite3_stmt *put;
	if (argc != 4 || sqlite3_open(argv[1], &database) != SQLITE_OK)
		return 2;
	sqlite3_busy_timeout(database, 30000);
	if (sqlite3_exec(database,
		    "PRAGMA journal_mode=PERSIST; PRAGMA synchronous=FULL;"
		    "CREATE TABLE IF NOT EXISTS keys(key BLOB NOT NULL PRIMARY KEY, value BLOB,"
		    " revision INTEGER NOT NULL) WITHOUT ROWID; BEGIN IMMEDIATE",
		    NULL, NULL, NULL) != SQLITE_OK ||
		sqlite3_prepare_v2(database, "INSERT OR IGNORE INTO keys VALUES(?, ?, 1)", -1, &put,
			NULL) != SQLITE_OK)
		return 75;
	sqlite3_bind_blob(put, 1, argv[2], (int)strlen(argv[2]), SQLITE_STATIC);
	sqlite3_bind_blob(put, 2, argv[3], (int)strlen(argv[3]), SQLITE_STATIC);
	if (sqlite3_step(put) != SQLITE_DONE)
		return 75;
	int changes = sqlite3_changes(database);
	sqlite3_finalize(put);
	if (sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return 75;
	sqlite3_close(database);
	return changes == 0;
}
