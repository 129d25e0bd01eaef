/* SPDX-License-Identifier: MIT */
#include "store/sqlite/write_guard.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "store/lock/lock.h"

#define VFS_NAME	"preempt-write-guard"
#define SET_WRITE_GUARD 0x50726d74 /* our own operation of xFileControl */

struct guarded {
	sqlite3_file base;
	struct write_guard *write_guard;
	bool main;	     /* this is the database itself */
	bool synced;	     /* we have synced it, and not written to it since */
	sqlite3_file real[]; /* the file of the VFS below */
};

static sqlite3_vfs *below;

static struct guarded *of(sqlite3_file *file)
{
	return (struct guarded *)file;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
	return of(file)->real;
}

static bool may_write(sqlite3_file *file)
{
	struct guarded *guarded = of(file);
	if (!guarded->write_guard)
		return true;
	if (!lock_confirm(guarded->write_guard->lock, false))
		return false;
	guarded->write_guard->touched |= guarded->main;
	return true;
}

static int guarded_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static int guarded_read(sqlite3_file *file, void *to, int count, sqlite3_int64 at)
{
	struct write_guard *write_guard = of(file)->write_guard;
	/* This also renews the lock during a long read. */
	if (write_guard && !lock_confirm(write_guard->lock, false))
		return SQLITE_IOERR_READ;
	return real_of(file)->pMethods->xRead(real_of(file), to, count, at);
}

static int guarded_write(sqlite3_file *file, const void *from, int count, sqlite3_int64 at)
{
	if (!may_write(file))
		return SQLITE_IOERR_WRITE;
	of(file)->synced = false;
	return real_of(file)->pMethods->xWrite(real_of(file), from, count, at);
}

static int guarded_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	if (!may_write(file))
		return SQLITE_IOERR_TRUNCATE;
	of(file)->synced = false;
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int guarded_sync(sqlite3_file *file, int flags)
{
	if (!may_write(file))
		return SQLITE_IOERR_FSYNC;
	/* SQLite syncs a journal again when it closes it, which would flush the disk again. */
	if (of(file)->synced)
		return SQLITE_OK;
	int code = real_of(file)->pMethods->xSync(real_of(file), flags);
	of(file)->synced = code == SQLITE_OK;
	return code;
}

static int guarded_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static bool is_lockless(sqlite3_file *file)
{
	return of(file)->write_guard && of(file)->write_guard->lockless;
}

static int guarded_lock(sqlite3_file *file, int level)
{
	if (is_lockless(file))
		return SQLITE_OK;
	return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int guarded_unlock(sqlite3_file *file, int level)
{
	if (is_lockless(file))
		return SQLITE_OK;
	return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int guarded_check(sqlite3_file *file, int *reserved)
{
	*reserved = 0;
	if (is_lockless(file))
		return SQLITE_OK;
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), reserved);
}

static int guarded_control(sqlite3_file *file, int operation, void *argument)
{
	if (operation == SET_WRITE_GUARD) {
		of(file)->write_guard = argument;
		return SQLITE_OK;
	}
	/* This may make the file larger. */
	if (operation == SQLITE_FCNTL_SIZE_HINT && !may_write(file))
		return SQLITE_IOERR_WRITE;
	return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int guarded_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int guarded_device(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

/* Version 1 has no shared memory and no mapping, which would bypass the guard. */
static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = guarded_close,
	.xRead = guarded_read,
	.xWrite = guarded_write,
	.xTruncate = guarded_truncate,
	.xSync = guarded_sync,
	.xFileSize = guarded_size,
	.xLock = guarded_lock,
	.xUnlock = guarded_unlock,
	.xCheckReservedLock = guarded_check,
	.xFileControl = guarded_control,
	.xSectorSize = guarded_sector,
	.xDeviceCharacteristics = guarded_device,
};

static bool is_begun(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && st.st_size > 0;
}

/*
 * With SQLITE_OPEN_CREATE, SQLite syncs the directory in each transaction. It is enough to sync it
 * once, before anything is written to the journal: a journal that is not empty has a durable name,
 * and is opened without that flag.
 */
static int open_journal(const char *name, sqlite3_file *file, int flags, int *given)
{
	if (!(flags & SQLITE_OPEN_CREATE))
		return below->xOpen(below, name, file, flags, given);
	if (is_begun(name))
		return below->xOpen(below, name, file, flags & ~SQLITE_OPEN_CREATE, given);
	int code = below->xOpen(below, name, file, flags, given);
	char *directory = file_directory_of(name);
	if (code == SQLITE_OK && file_sync_directory(directory, NULL) != STATUS_OK) {
		(void)file->pMethods->xClose(file);
		file->pMethods = NULL;
		code = SQLITE_IOERR_DIR_FSYNC;
	}
	free(directory);
	return code;
}

/* SQLite has opened the journal for writing: close it again if we do not hold the lock. */
static int prove(struct guarded *guarded, int code)
{
	struct write_guard *write_guard = guarded->write_guard;
	if (code != SQLITE_OK || !write_guard || lock_confirm(write_guard->lock, true))
		return code;
	(void)guarded->real->pMethods->xClose(guarded->real);
	guarded->real->pMethods = NULL;
	return SQLITE_IOERR;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given)
{
	struct guarded *guarded = of(file);
	int code;
	(void)vfs;
	guarded->base.pMethods = NULL;
	guarded->write_guard = NULL;
	guarded->main = flags & SQLITE_OPEN_MAIN_DB;
	/* A process that was killed may have written to the file without syncing it. */
	guarded->synced = false;
	if (flags & SQLITE_OPEN_MAIN_JOURNAL) {
		/* The guard of its database. */
		guarded->write_guard = of(sqlite3_database_file_object(name))->write_guard;
		code = open_journal(name, guarded->real, flags, given);
		if (flags & SQLITE_OPEN_READWRITE)
			code = prove(guarded, code);
	} else {
		code = below->xOpen(below, name, guarded->real, flags, given);
	}
	if (guarded->real->pMethods)
		guarded->base.pMethods = &methods;
	return code;
}

/* SQLite never has to delete a file here: the journal stays (PERSIST). */
static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)name;
	(void)sync;
	return SQLITE_IOERR_DELETE;
}

/* Register a copy of the default VFS with other functions for files. */
static void register_once(void)
{
	static sqlite3_vfs ours;
	below = sqlite3_vfs_find(NULL);
	if (!below)
		return;
	ours = *below;
	ours.iVersion = 1;
	ours.pNext = NULL;
	ours.zName = VFS_NAME;
	ours.szOsFile += (int)sizeof(struct guarded);
	ours.xOpen = vfs_open;
	ours.xDelete = vfs_delete;
	if (sqlite3_vfs_register(&ours, 0) != SQLITE_OK)
		below = NULL;
}

int write_guard_open(
	const char *path, int flags, struct write_guard *write_guard, sqlite3 **database)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, register_once);
	if (!below)
		return SQLITE_NOMEM;
	int code = sqlite3_open_v2(path, database, flags, VFS_NAME);
	if (code == SQLITE_OK && lock_can_be_lost(write_guard->lock) &&
		sqlite3_file_control(*database, "main", SET_WRITE_GUARD, write_guard) != SQLITE_OK)
		code = SQLITE_INTERNAL;
	return code;
}
