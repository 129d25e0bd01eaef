/* SPDX-License-Identifier: MIT */
/*
 * Finding out whether a transaction whose answer was lost was carried out. First we fence our
 * client: we put a key that every transaction of this client requires to be absent, so that a
 * transaction cannot be carried out after that. Then we read the history up to the fence: if the
 * transaction is not in it, it was not carried out.
 */
#ifndef STORE_ETCD_OUTCOME_H
#define STORE_ETCD_OUTCOME_H

#include "store/etcd/session.h"

struct outcome {
	store_revision since; /* a revision of the server before the transaction was sent */
	/* Set by outcome_find: */
	bool done, then;	 /* it was carried out; by the branch `then` */
	store_revision revision; /* of the transaction, as the server counts */
};

/* Add the compare that requires the fence to be absent. */
void outcome_write_fence(const struct etcd_store *store, struct text *body);
/* Become a new client, which is not fenced. */
void outcome_new_client(struct etcd_store *store);
/* Find the outcome of the last transaction. Not STATUS_OK: it is not known. */
enum status outcome_find(struct etcd_store *store, int64_t deadline, struct outcome *outcome);

#endif
