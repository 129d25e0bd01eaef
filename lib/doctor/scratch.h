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
 * Make it, in the place of one that is there. Then remove what other doctors left: what a process
 * of this machine made that is gone, and what is older than a day by the clock of the filesystem.
 */
enum status doctor_scratch_make(const char *path, struct error *err);
/*
 * For all sides it is gone at once. Tries for two seconds to remove what is in it: NFS may keep
 * names of files that were open.
 */
void doctor_scratch_remove(const char *path);

#endif
