/* SPDX-License-Identifier: MIT */
/*
 * What the store remembers of a run across its attempts: its longest save (run/RUN/MEASURE). A
 * value that cannot be parsed counts as unknown.
 */
#ifndef PROTO_REMEMBERED_H
#define PROTO_REMEMBERED_H

#include "store/builder.h"

struct remembered {
	int64_t longest_save;	 /* ms; 0: unknown */
	store_revision revision; /* of MEASURE; 0: absent */
};

enum status remembered_read(
	struct store *store, const char *run, struct remembered *known, struct error *err);

/*
 * Add to t the duration if it is longer than known. The store then refuses t if MEASURE has changed
 * since known was read.
 */
void remembered_put(const struct remembered *known, const char *run, int64_t longest_save,
	struct transaction *t);

/* Read, then put; repeat if another process changed MEASURE in between. */
enum status remembered_add(
	struct store *store, const char *run, int64_t longest_save, struct error *err);

#endif
