/* SPDX-License-Identifier: MIT */
#include "store/sqlite/vfs.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "store/lock/lock.h"

#define VFS_NAME "preempt"
#define SET_LOCK 0x50726d74 /* our own operation of xFileControl */

struct kept {
	sqlite3_file base;
	struct lock *lock;   /* to be kept, and SQLite uses no locks of its own; NULL: neither */
	bool synced;	     /* we have synced it, and not written to it since */
	sqlite3_file real[]; /* the file of the VFS below */
};

static sqlite3_vfs *below;

static struct kept *of(sqlite3_file *file)
{
	return (struct kept *)file;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
	return of(file)->real;
}

static bool keep(sqlite3_file *file)
{
	return !of(file)->lock || lock_keep(of(file)->lock);
}

static int kept_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static int kept_read(sqlite3_file *file, void *to, int count, sqlite3_int64 at)
{
	if (!keep(file))
		return SQLITE_IOERR_READ;
	return real_of(file)->pMethods->xRead(real_of(file), to, count, at);
}

static int kept_write(sqlite3_file *file, const void *from, int count, sqlite3_int64 at)
{
	if (!keep(file))
		return SQLITE_IOERR_WRITE;
	of(file)->synced = false;
	return real_of(file)->pMethods->xWrite(real_of(file), from, count, at);
}

static int kept_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	if (!keep(file))
		return SQLITE_IOERR_TRUNCATE;
	of(file)->synced = false;
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int kept_sync(sqlite3_file *file, int flags)
{
	if (!keep(file))
		return SQLITE_IOERR_FSYNC;
	/* SQLite syncs a journal again when it closes it, which would flush the disk again. */
	if (of(file)->synced)
		return SQLITE_OK;
	int code = real_of(file)->pMethods->xSync(real_of(file), flags);
	of(file)->synced = code == SQLITE_OK;
	return code;
}

static int kept_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int kept_lock(sqlite3_file *file, int level)
{
	if (of(file)->lock)
		return SQLITE_OK;
	return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int kept_unlock(sqlite3_file *file, int level)
{
	if (of(file)->lock)
		return SQLITE_OK;
	return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int kept_check(sqlite3_file *file, int *reserved)
{
	*reserved = 0;
	if (of(file)->lock)
		return SQLITE_OK;
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), reserved);
}

static int kept_control(sqlite3_file *file, int operation, void *argument)
{
	if (operation == SET_LOCK) {
		of(file)->lock = argument;
		return SQLITE_OK;
	}
	return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int kept_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int kept_device(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

/* Version 1 has no shared memory and no mapping, in which we could not keep the lock. */
static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = kept_close,
	.xRead = kept_read,
	.xWrite = kept_write,
	.xTruncate = kept_truncate,
	.xSync = kept_sync,
	.xFileSize = kept_size,
	.xLock = kept_lock,
	.xUnlock = kept_unlock,
	.xCheckReservedLock = kept_check,
	.xFileControl = kept_control,
	.xSectorSize = kept_sector,
	.xDeviceCharacteristics = kept_device,
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

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given)
{
	struct kept *kept = of(file);
	int code;
	(void)vfs;
	kept->base.pMethods = NULL;
	kept->lock = NULL;
	/* A process that was killed may have written to the file without syncing it. */
	kept->synced = false;
	if (flags & SQLITE_OPEN_MAIN_JOURNAL) {
		kept->lock = of(sqlite3_database_file_object(name))->lock;
		code = open_journal(name, kept->real, flags, given);
	} else {
		code = below->xOpen(below, name, kept->real, flags, given);
	}
	if (kept->real->pMethods)
		kept->base.pMethods = &methods;
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
	ours.szOsFile += (int)sizeof(struct kept);
	ours.xOpen = vfs_open;
	ours.xDelete = vfs_delete;
	if (sqlite3_vfs_register(&ours, 0) != SQLITE_OK)
		below = NULL;
}

int vfs_open_database(const char *path, int flags, struct lock *lock, sqlite3 **database)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, register_once);
	if (!below)
		return SQLITE_NOMEM;
	int code = sqlite3_open_v2(path, database, flags, VFS_NAME);
	if (code == SQLITE_OK && lock->kind == LOCK_TOKEN &&
		sqlite3_file_control(*database, "main", SET_LOCK, lock) != SQLITE_OK)
		code = SQLITE_INTERNAL;
	return code;
}
