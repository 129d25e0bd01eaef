/* SPDX-License-Identifier: MIT */
/*
 * How a process learns that a file has changed which has a counter in it:
 * - on a filesystem of this machine: by inotify;
 * - else one process of this machine polls the counter and tells the others through a doorbell
 *   (doorbell.h), as does every process that changes it. inotify watches the doorbell.
 */
#ifndef STORE_BEATS_FILE_WATCH_H
#define STORE_BEATS_FILE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "store/machine/doorbell.h"

struct sqlite_store;

struct file_watch {
	int inotify; /* kept open between waits, so that nothing between them is missed; -1: none */
	int descriptor; /* its watch; -1: none */
	int64_t arm_at; /* when to try again to have one; few belong to one user */
	struct doorbell doorbell;
	bool asked; /* whether there is a doorbell */
};

enum counter_reading { READING_RIGHT, READING_FAILED, READING_BUSY };

/* A file with a counter that each change of it changes. */
struct watched_file {
	const char *path;
	bool local;		 /* only this machine changes it */
	const char *named_after; /* the file that the doorbell is named after */
	struct sqlite_store *store;
	/* Read the counter, without any lock. */
	enum counter_reading (*read)(struct sqlite_store *store, uint32_t *counter);
	int64_t every; /* ms between two readings without inotify, +- a quarter */
};

/* A hint whether the counter is still the known one. */
enum hint { HINT_SAME, HINT_DIFFERENT, HINT_BUSY };
struct counter_state {
	enum hint hint;
	uint32_t counter; /* 0: it could not be read */
	int64_t as_of;	  /* the time at which the hint was surely true */
	int64_t next;	  /* until when it may be used; 0: look again at once */
};

void file_watch_init(struct file_watch *watch);
void file_watch_release(struct file_watch *watch);
struct counter_state file_watch_check(
	struct file_watch *watch, const struct watched_file *watched, uint32_t known);
/* Until the file may have changed, wake is readable, or the deadline. */
void file_watch_sleep(const struct file_watch *watch, int64_t deadline, int wake);
/* We have just seen or made this counter: tell the other processes of this machine. */
void file_watch_tell(
	struct file_watch *watch, const struct watched_file *watched, uint32_t counter);
/* We wait no longer: another process polls for this machine. */
void file_watch_stop(struct file_watch *watch);

#endif
