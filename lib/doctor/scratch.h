/* SPDX-License-Identifier: MIT */
/*
 * The scratch directory .preempt-doctor-NAME, mode 0700, in the examined directory. NAME says which
 * process made it, or for several nodes it is a hash of their session.
 */
#ifndef DOCTOR_SCRATCH_H
#define DOCTOR_SCRATCH_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

#define DOCTOR_SCRATCH_PREFIX ".preempt-doctor-"
#define DOCTOR_SCRATCH_NAME   80

/* Its name. session: NULL: of this process alone. False: there is no /proc. */
bool doctor_scratch_name(const char *session, char name[DOCTOR_SCRATCH_NAME]);
/*
 * Make it; one of that name is removed first. Then remove the directories of doctors that ended
 * without doing so: of processes of this machine that are gone, and those older than a day by the
 * clock of the filesystem.
 */
enum status doctor_scratch_make(const char *path, struct error *err);
/*
 * Rename it, so that all sides miss it at once, and remove it. Tries that for two seconds: NFS may
 * keep names of files that were open.
 */
void doctor_scratch_remove(const char *path);

#endif
