/* SPDX-License-Identifier: MIT */
/*
 * The outcome of a transaction whose answer was lost. First its client is fenced: a key is put that
 * every transaction of this client requires to be absent, so that it cannot be carried out later
 * any more. Then the history between is read: it is in there, or it was not carried out.
 */
#ifndef STORE_ETCD_OUTCOME_H
#define STORE_ETCD_OUTCOME_H

#include "store/etcd/session.h"

struct outcome {
	store_revision since; /* the server's; it is not that old */
	/* Filled: */
	bool done, then;
	store_revision revision; /* the server's, of the transaction */
};

/* The requirement, as one of the compares. */
void outcome_write_fence(const struct etcd_store *store, struct text *body);
/* Another name for what follows: nothing that was sent before is ours any more. */
void outcome_new_client(struct etcd_store *store);
/* Of the last transaction. It is not known: any other status than STATUS_OK. */
enum status outcome_find(struct etcd_store *store, int64_t deadline, struct outcome *outcome);

#endif
