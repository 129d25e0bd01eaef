/* SPDX-License-Identifier: MIT */
/*
 * A stream of the changes of some keys. It is kept open from one wait to the next as long as they
 * are for the same keys.
 */
#ifndef STORE_ETCD_WATCH_H
#define STORE_ETCD_WATCH_H

#include <stdbool.h>

#include "base/http/http.h"
#include "store/etcd/gateway.h"
#include "store/etcd/wire.h"

/* Revisions are the server's here. */
struct watch {
	struct http *http; /* NULL: never opened */
	bool open;
	size_t endpoint; /* of the gateway: a stream whose endpoint no longer answers is left */
	struct wire_keys keys;
	store_revision from;	 /* its first event may have this revision */
	store_revision changed;	 /* of the newest event; 0: none */
	store_revision answered; /* of the newest message */
	int64_t version;	 /* of the key, by that event; 0: it was deleted */
};

enum watch_state {
	WATCH_FLOWS,
	WATCH_ENDED, /* it has to be opened again, at the next endpoint; err says why */
	WATCH_GAP,   /* the events since `from` are not all there: compacted, or set back */
};

/* What is told of each event, in order. May be NULL. */
struct watch_reader {
	void (*tell)(void *context, struct json_object *event);
	void *context;
};

/* With the endpoint that the gateway asks now. */
bool watch_is_open_for(
	const struct watch *watch, const struct gateway *gateway, const struct wire_keys *keys);
enum status watch_open(struct watch *watch, struct gateway *gateway, const struct wire_keys *keys,
	store_revision from, struct error *err);
/* Read what has come, without waiting. */
enum watch_state watch_read(struct watch *watch, struct gateway *gateway,
	const struct watch_reader *reader, struct error *err);
/* Wait until there is something to read, wake (-1: none) is readable, or until. */
void watch_sleep(const struct watch *watch, int wake, int64_t until);
void watch_close(struct watch *watch);
void watch_release(struct watch *watch);

#endif
