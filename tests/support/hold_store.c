/* SPDX-License-Identifier: MIT */
/*
 * hold_store URL KEY begin|journal|write|database: put KEY, and stop itself (SIGSTOP) on the way.
 * begin: before the commit; journal: after the journal was synced; write: after the last check,
 * just before a page of keys is written; database: after the database was synced. Continued, it
 * ends the transaction, prints "known" or "unknown" (the outcome) if that failed, and exits with
 * the status.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sqlite/session.h"

#define FIRST_KEYS 8192 /* offset of the first page of keys: after the schema and meta */

/* Stop at the next sync of, or write to, a file whose path ends with this; NULL: do not stop. */
static const char *stop_at_sync, *stop_at_write;

static void stop_if(const char **end, int descriptor)
{
	char link[64], path[512];
	if (!*end)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	size_t length = strlen(path), most = strlen(*end);
	if (length < most || strcmp(path + length - most, *end) != 0)
		return;
	*end = NULL;
	raise(SIGSTOP);
}

/* Replaces libc's function. */
int fdatasync(int descriptor)
{
	int result = (int)syscall(SYS_fdatasync, descriptor);
	stop_if(&stop_at_sync, descriptor);
	return result;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset)
{
	if (offset >= FIRST_KEYS)
		stop_if(&stop_at_write, descriptor);
	return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

int main(int argc, char **argv)
{
	struct store *store;
	struct session session;
	struct error err;
	char sql[256];
	bool known = true;
	if (argc != 4)
		return 2;
	enum status status = store_open(&store, argv[1], 0, clock_after(5000), &err);
	if (status == STATUS_OK)
		status = session_begin(
			&session, (struct sqlite_store *)store, true, clock_after(5000), &err);
	if (status != STATUS_OK) {
		fprintf(stderr, "hold_store: %s\n", err.text);
		return (int)status;
	}
	snprintf(sql, sizeof(sql),
		"INSERT INTO keys SELECT CAST('%s' AS BLOB), x'76', revision+1 FROM meta;"
		"UPDATE meta SET revision=revision+1",
		argv[2]);
	session.changed = true;
	if (sqlite3_exec(session.database, sql, NULL, NULL, NULL) != SQLITE_OK)
		return 99;
	if (!strcmp(argv[3], "begin"))
		raise(SIGSTOP);
	else if (!strcmp(argv[3], "write"))
		stop_at_write = session.path;
	else
		stop_at_sync = strcmp(argv[3], "journal") ? session.path : "-journal";
	status = session_end(&session, STATUS_OK, &known, &err);
	if (status != STATUS_OK) {
		fprintf(stderr, "hold_store: %s\n", err.text);
		puts(known ? "known" : "unknown");
	}
	store_close(store);
	return (int)status;
}
