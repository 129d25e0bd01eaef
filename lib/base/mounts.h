/* SPDX-License-Identifier: MIT */
/* PREEMPT_MOUNTS=/a:/b names the mount points without which nothing may be read or made. */
#ifndef BASE_MOUNTS_H
#define BASE_MOUNTS_H

#include "base/error.h"

/*
 * To be called before a store or a checkpoint directory is looked at or made. STATUS_TEMPORARY: on
 * a directory that PREEMPT_MOUNTS names, nothing is mounted. (Whether a path leads there is not
 * asked: so no symbolic link can lead around the check.)
 */
enum status mounts_check(struct error *err);

#endif
