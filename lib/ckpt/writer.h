/* SPDX-License-Identifier: MIT */
/*
 * The writer of a checkpoint, recorded so that no pruner removes the directory of a live writer.
 *
 * "ckpt-rotate begin" ends at once, so it records its parent process and its process group: a
 * script and all its subshells share a group, preempt-run gives its command a group of its own, and
 * a program that calls begin itself is the parent. Several programs in one group, such as the ranks
 * of a script or of a Python program, are told apart by their parents. The writer is gone if both
 * are gone, or if the machine (host name and /etc/machine-id) was booted since. Of another machine
 * or another PID namespace we cannot know.
 */
#ifndef CKPT_WRITER_H
#define CKPT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process/process.h"

struct writer {
	struct process_identity parent; /* pid 0: not known (another namespace, or init) */
	struct process_identity group;	/* the leader of the group; start 0: it was gone already */
	char machine[64];		/* /etc/machine-id; empty: none */
	bool sharded;
	uint64_t tasks;
};

/* The process that started us, and its group. */
void writer_identify(struct writer *writer);

bool writer_is_same(const struct writer *a, const struct writer *b);
/*
 * Whether the recorded writer lives and is not the one that calls us. In one group that is so if
 * the process that called begin lives, and neither it nor the one that calls us has started the
 * other; short-lived processes of a script, which call one after another, are one writer.
 */
bool writer_is_rival(const struct writer *recorded, const struct writer *self);
enum process_state writer_check(const struct writer *writer);

/* Write the record durably: after a crash of the machine it shows that the writer is gone. */
enum status writer_save(const char *path, const struct writer *writer, struct error *err);
/* STATUS_NO: there is no readable record. */
enum status writer_load(const char *path, struct writer *writer, struct error *err);

#endif
