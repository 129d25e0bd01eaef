/* SPDX-License-Identifier: MIT */
/*
 * hold_store URL KEY begin|journal|database: puts KEY, and stops itself (SIGSTOP) on the way:
 * before the commit, after its journal was synced, or after the database was. Once it is continued
 * it goes on, prints "known" or "unknown" where that failed, and exits with the status.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sqlite.h"

static const char *stop_at;

/* In the place of libc's. */
int fdatasync(int descriptor)
{
	char link[64], path[512];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	int result = (int)syscall(SYS_fdatasync, descriptor);
	path[n < 0 ? 0 : n] = '\0';
	size_t length = strlen(path), end = stop_at ? strlen(stop_at) : 0;
	if (end && length > end && !strcmp(path + length - end, stop_at)) {
		stop_at = NULL;
		raise(SIGSTOP);
	}
	return result;
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
	else
		stop_at = strcmp(argv[3], "journal") ? ".db" : "-journal";
	status = session_end(&session, STATUS_OK, &known, &err);
	if (status != STATUS_OK) {
		fprintf(stderr, "hold_store: %s\n", err.text);
		puts(known ? "known" : "unknown");
	}
	store_close(store);
	return (int)status;
}
