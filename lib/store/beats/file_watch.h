/* SPDX-License-Identifier: MIT */
/*
 * How a process learns that a file which contains a counter has changed. On a filesystem of this
 * machine inotify tells it. On others each process polls the counter, at random intervals.
 */
#ifndef STORE_BEATS_FILE_WATCH_H
#define STORE_BEATS_FILE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct sqlite_store;

struct file_watch {
	int inotify;	/* stays open between waits, so that no change is missed; -1: none */
	int descriptor; /* the watch of inotify; -1: none */
	int64_t arm_at; /* when to try inotify again: a user can have only few instances of it */
};

enum counter_reading { READING_RIGHT, READING_FAILED, READING_BUSY };

/* A file with a counter, which each change of the file increments. */
struct watched_file {
	const char *path;
	bool local; /* only this machine changes it */
	struct sqlite_store *store;
	/* Read the counter without a lock. */
	enum counter_reading (*read)(struct sqlite_store *store, uint32_t *counter);
	int64_t every; /* ms between two readings without inotify, +- a quarter */
};

/* Whether the counter still has the known value; HINT_BUSY: not known. */
enum hint { HINT_SAME, HINT_DIFFERENT, HINT_BUSY };
struct counter_state {
	enum hint hint;
	uint32_t counter; /* 0: it could not be read */
	int64_t as_of;	  /* a time at which the hint was surely true */
	int64_t next;	  /* when to look again; 0: at once */
};

void file_watch_init(struct file_watch *watch);
void file_watch_release(struct file_watch *watch);
struct counter_state file_watch_check(
	struct file_watch *watch, const struct watched_file *watched, uint32_t known);
/* Sleep until the file may have changed, wake is readable, or the deadline has come. */
void file_watch_sleep(const struct file_watch *watch, int64_t deadline, int wake);

#endif
