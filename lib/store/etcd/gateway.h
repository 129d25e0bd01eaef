/* SPDX-License-Identifier: MIT */
/*
 * Requests to the JSON gateway of an etcd cluster, with our certificate, and with a token that is
 * got for a user and a password. A request goes to one endpoint after the other until one answers.
 * Not thread-safe.
 */
#ifndef STORE_ETCD_GATEWAY_H
#define STORE_ETCD_GATEWAY_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/http.h"
#include "store/etcd/options.h"

struct gateway {
	const struct etcd_options *options;
	const char *where; /* the store, for messages */
	struct http *http;
	size_t at;	  /* the endpoint that is asked first */
	unsigned slow;	  /* how many times the time limit was doubled */
	int wake;	  /* a descriptor that ends a request when it becomes readable; -1: none */
	char header[600]; /* "Authorization: TOKEN"; empty: none */
};

enum gateway_kind {
	GATEWAY_READ,	/* it only reads, so the answer may be of an old state */
	GATEWAY_REPEAT, /* it is safe also if it was carried out before */
	GATEWAY_ONCE,	/* never send it twice */
	GATEWAY_LOGIN,	/* it asks for the token, so it is sent without one */
};

struct gateway_reply {
	struct json_object *object; /* gateway_reply_release */
	bool known;		    /* the outcome is known; after a failure: nothing was changed */
};

/* STATUS_NOT_FOUND: libcurl is missing. options and where must outlive gateway. */
enum status gateway_open(struct gateway *gateway, const struct etcd_options *options,
	const char *where, struct error *err);
void gateway_close(struct gateway *gateway);

/*
 * Send a request to a path like "/v3/kv/txn". STATUS_OK: reply has the answer. STATUS_NO: the
 * server refused because a revision is compacted, or in the future. STATUS_TEMPORARY: no endpoint
 * answered before the deadline, or wake became readable.
 */
enum status gateway_ask(struct gateway *gateway, enum gateway_kind kind, const char *path,
	const char *body, int64_t deadline, struct gateway_reply *reply, struct error *err);
void gateway_reply_release(struct gateway_reply *reply);

/* Begin a request whose answer is a stream, to the present endpoint, on http, not gateway->http. */
enum status gateway_begin(struct gateway *gateway, struct http *http, const char *path,
	const struct text *body, struct error *err);
/* Let the next request begin with the next endpoint. */
void gateway_turn(struct gateway *gateway);

/* Whether the URL or the environment has a user and a password. */
bool gateway_has_user(const struct etcd_options *options);

#endif
