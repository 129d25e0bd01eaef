/* SPDX-License-Identifier: MIT */
/*
 * The scratch directory .preempt-doctor-NAME, mode 0700, in the examined directory. NAME identifies
 * the process that made it, or is a hash of the session of several nodes.
 */
#ifndef DOCTOR_SCRATCH_H
#define DOCTOR_SCRATCH_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

#define DOCTOR_SCRATCH_PREFIX ".preempt-doctor-"
#define DOCTOR_SCRATCH_NAME   80

/* Make the name. session: NULL: one node. False: there is no /proc. */
bool doctor_scratch_name(const char *session, char name[DOCTOR_SCRATCH_NAME]);
/*
 * Make the directory, in place of one of the same name. Also remove directories that other doctors
 * left: those of processes of this machine that are gone, and those that are older than a day by
 * the clock of the filesystem.
 */
enum status doctor_scratch_make(const char *path, struct error *err);
/*
 * Rename the directory, so that no side finds it, and remove it. Repeat that for up to two seconds,
 * because NFS keeps names of removed files that are open.
 */
void doctor_scratch_remove(const char *path);

#endif
