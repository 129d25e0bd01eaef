/* SPDX-License-Identifier: MIT */
/*
 * The writer of a checkpoint, so that no pruner removes the directory of a living one.
 *
 * "ckpt-rotate begin" itself is gone at once, so it records the process that started it and its
 * process group: a script and all its subshells share one group, preempt-run gives its command a
 * group of its own, and a program that calls begin itself is the parent. The writer is gone when
 * both are, or when the machine (host name and /etc/machine-id) has started again since. What
 * happens on another machine, or in another PID namespace, cannot be told.
 */
#ifndef CKPT_WRITER_H
#define CKPT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process/process.h"

struct writer {
	struct process_identity parent; /* pid 0: not known (another namespace, or init) */
	struct process_identity group;	/* the leader; start 0: it was gone already */
	char machine[64];		/* /etc/machine-id; empty: has none */
	bool sharded;
	uint64_t tasks;
};

/* The one that started us. */
void writer_identify(struct writer *writer);

bool writer_is_same(const struct writer *a, const struct writer *b);
enum process_state writer_check(const struct writer *writer);

/* Whole, and durable: after a crash of the machine it shows that the writer is gone. */
enum status writer_save(const char *path, const struct writer *writer, struct error *err);
/* STATUS_NO: there is none that can be read. */
enum status writer_load(const char *path, struct writer *writer, struct error *err);

#endif
