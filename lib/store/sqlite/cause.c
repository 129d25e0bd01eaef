/* SPDX-License-Identifier: MIT */
/* The cause of an error that SQLite returned, and what the user can do about it. */
#include <errno.h>
#include <string.h>

#include "base/xalloc.h"
#include "store/failure.h"
#include "store/sqlite/session.h"
#include "store/sqlite/syscalls.h"

/* The last errno of the database or its journal; 0: none. */
static int errno_of_file(sqlite3 *database, int which)
{
	int number = 0;
	sqlite3_file *file = NULL;
	if (database && sqlite3_file_control(database, "main", which, &file) == SQLITE_OK && file &&
		file->pMethods)
		(void)file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number);
	return number;
}

/* The errno behind the error code; 0: not known. */
static int errno_of(sqlite3 *database, int code)
{
	int number = 0;
	/* syscalls.c does not see fsync, but SQLite's files keep its errno. */
	bool synced = code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC;
	if (synced)
		number = errno_of_file(database, SQLITE_FCNTL_FILE_POINTER);
	if (synced && !number)
		number = errno_of_file(database, SQLITE_FCNTL_JOURNAL_POINTER);
	if (!number)
		number = syscalls_failed();
	if (!number && (code & 0xff) == SQLITE_IOERR)
		number = syscalls_lock_failed();
	if (!number && database)
		number = sqlite3_system_errno(database);
	return number;
}

static enum status code_status(int code, int number)
{
	switch (code & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
	case SQLITE_TOOBIG:
	case SQLITE_MISMATCH:
	case SQLITE_ERROR: return STATUS_DAMAGED;
	case SQLITE_PERM:
	case SQLITE_AUTH: return STATUS_PERMISSION;
	/* If SQLite cannot open a file for writing, for any reason, it opens it for reading. */
	case SQLITE_READONLY:
		if (code == SQLITE_READONLY_DBMOVED && !number)
			return STATUS_TEMPORARY;
		return number ? error_status_of_errno(number) : STATUS_PERMISSION;
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR: return error_status_of_errno(number);
	default: return STATUS_TEMPORARY;
	}
}

static enum status busy(
	const char *where, const char *action, enum status status, struct error *err)
{
	int number = syscalls_lock_failed();
	if (number && number != EAGAIN)
		return error_set(err, status, "cannot lock store %s: %s%s", where, strerror(number),
			store_cure(number));
	return error_set(err, status,
		"cannot %s store %s: another program has it open (sqlite3?); close that program and "
		"try again",
		action, where);
}

enum status session_failed(struct session *session, const char *action, int code, struct error *err)
{
	const char *where = session->store->base.where;
	int number = errno_of(session->database, code);
	enum status status = code_status(code, number);
	session->busy = (code & 0xff) == SQLITE_BUSY;
	session->dropped = number == EIO || number == ESTALE;
	switch (code & 0xff) {
	case SQLITE_FULL: number = number ? number : ENOSPC; break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return busy(where, action, status, err);
	case SQLITE_NOMEM: xalloc_failed();
	case SQLITE_READONLY:
		if ((code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY) &&
			(!number || session->store->lock.read_only))
			return error_set(err, status,
				"cannot %s store %s: a writer was killed in a transaction, and "
				"only a program with write permission can roll it back",
				action, where);
		if (code == SQLITE_READONLY_DBMOVED && !number)
			return error_set(err, status,
				"cannot %s store %s: it was moved or deleted while it was open; try again",
				action, where);
		break;
	default: break;
	}
	if (status == STATUS_DAMAGED)
		return error_set(err, status,
			"store %s is damaged or not a store (%s): not used; restore it, or move it away "
			"together with its .lock, -journal and .beats",
			where,
			session->database ? sqlite3_errmsg(session->database)
					  : sqlite3_errstr(code));
	return error_set(err, status, "cannot %s store %s: %s (SQLite %d)%s", action, where,
		number ? strerror(number) : sqlite3_errstr(code), code, store_cure(number));
}
