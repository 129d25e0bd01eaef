/* SPDX-License-Identifier: MIT */
/*
 * Looking at the place of a store from one machine: what can be asked without changing anything;
 * and the scratch directory in it, in which everything that is tried happens.
 */
#ifndef STORE_DOCTOR_PLACE_H
#define STORE_DOCTOR_PLACE_H

#include <json-c/json_object.h>

#include "store/doctor_findings.h"

#define DOCTOR_SCRATCH_PREFIX ".preempt-doctor-"
#define DOCTOR_MEET	      DOCTOR_SCRATCH_PREFIX "meet-" /* with our uid: where nodes meet */
#define DOCTOR_OWNER	      "owner" /* the file in it that says whose it is */

/* What is seen of directory, as JSON: a side tells it to the one that leads. */
enum status doctor_place_look(
	const char *directory, bool shared_group, struct json_object *object, struct error *err);
/* The same, read; what is missing stays zero. clock: see doctor_side. */
void doctor_place_read(const struct json_object *object, struct doctor_side *side, int64_t *utc);

/* Whether doctor_scratch_make may have made a directory of this name. What another process says is
 * a path that is worked in, and removed. */
bool doctor_scratch_is_name(const char *name);
/*
 * A new scratch directory, mode 0700, with the file that names its owner; name (of 64 bytes) is its
 * name in directory. Nothing is left when it fails.
 */
enum status doctor_scratch_make(const char *directory, char name[64], struct error *err);
/*
 * Remove it with what this machine remembers of stores in it; tries for two seconds, for a network
 * filesystem may keep names of files that were open. Nobody works in it any more. Missing is fine.
 */
void doctor_scratch_remove(const char *directory, const char *name);
/*
 * Remove what doctors left that surely are dead: on this machine the process is gone; or it is
 * older than a day by the filesystem's own clock. Gives up after patience (milliseconds).
 */
void doctor_scratch_sweep(const char *directory, int64_t patience);

#endif
