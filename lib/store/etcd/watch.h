/* SPDX-License-Identifier: MIT */
/*
 * A stream of the changes of a range of keys. It stays open between two waits for the same range.
 */
#ifndef STORE_ETCD_WATCH_H
#define STORE_ETCD_WATCH_H

#include <stdbool.h>

#include "base/http.h"
#include "store/etcd/gateway.h"
#include "store/etcd/wire.h"

/* All revisions are the server's, without the offset of struct etcd_store (session.h). */
struct watch {
	struct http *http; /* NULL: never opened */
	bool open;
	int64_t began;	 /* when it was opened */
	size_t endpoint; /* gateway->at when it was opened: if that has changed, the stream is given
			    up */
	struct wire_keys keys;
	store_revision from;	 /* the stream begins with this revision */
	store_revision changed;	 /* revision of the newest event; 0: there was none */
	store_revision answered; /* revision of the newest message */
	int64_t version;	 /* version of the key in the newest event; 0: it was deleted */
};

enum watch_state {
	WATCH_FLOWS,
	WATCH_ENDED, /* open it again, at the next endpoint; err says why it has ended */
	WATCH_GAP,   /* events after `from` are missing: the server was compacted or set back */
};

/* `tell` is called for each event, in order. Without a reader only struct watch is updated. */
struct watch_reader {
	void (*tell)(void *context, struct json_object *event);
	void *context;
};

/* Whether the stream is open, for this range, and to the endpoint that the gateway asks now. */
bool watch_is_open_for(
	const struct watch *watch, const struct gateway *gateway, const struct wire_keys *keys);
/* Open a stream from revision `from` on, after closing the present one. */
enum status watch_open(struct watch *watch, struct gateway *gateway, const struct wire_keys *keys,
	store_revision from, struct error *err);
/* Read the messages that have arrived, without waiting. */
enum watch_state watch_read(struct watch *watch, struct gateway *gateway,
	const struct watch_reader *reader, struct error *err);
/* Wait until a message arrives, wake (-1: none) is readable, or the time `until` has come. */
void watch_sleep(const struct watch *watch, int wake, int64_t until);
/* Close the stream, and free everything. */
void watch_release(struct watch *watch);

#endif
