/* SPDX-License-Identifier: MIT */
/*
 * Requests to the JSON gateway of an etcd cluster, with our token and certificate. A request goes
 * to one endpoint after the other until one answers. Not thread-safe.
 */
#ifndef STORE_ETCD_GATEWAY_H
#define STORE_ETCD_GATEWAY_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/http.h"
#include "store/backend.h"
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

/* The codes of gRPC that etcd uses. */
enum gateway_code {
	GATEWAY_OK = 0,
	GATEWAY_INVALID = 3,
	GATEWAY_NOT_FOUND = 5, /* no such lease */
	GATEWAY_DENIED = 7,
	GATEWAY_EXHAUSTED = 8,	  /* no space, or too many requests */
	GATEWAY_PRECONDITION = 9, /* this member is a learner: ask another one */
	GATEWAY_RANGE = 11,	  /* the revision is compacted, or in the future */
	GATEWAY_UNAVAILABLE = 14,
	GATEWAY_LOST = 15, /* the server's data is damaged */
	GATEWAY_UNKNOWN_USER = 16,
};

struct gateway_request {
	const char *path; /* "/v3/kv/txn" */
	const char *body;
	/* A second request is safe even if the first was carried out. */
	bool repeatable;
	bool reads;	 /* it only reads, so the answer may be of an old state */
	bool introduces; /* it asks for the token, so it is sent without one */
	int64_t deadline;
};

struct gateway_reply {
	struct json_object *object; /* gateway_reply_release */
	enum gateway_code code;	    /* after a refusal: the server's code */
	bool known;		    /* the outcome is known; after a failure: nothing was changed */
	bool untrusted;		    /* the endpoint's certificate or ours was not accepted */
};

/* STATUS_NOT_FOUND: libcurl is missing. options and where must outlive gateway. */
enum status gateway_open(struct gateway *gateway, const struct etcd_options *options,
	const char *where, struct error *err);
void gateway_close(struct gateway *gateway);

/*
 * Send a request. STATUS_OK: reply has the answer. STATUS_NO: the server refused with
 * GATEWAY_NOT_FOUND or GATEWAY_RANGE, and err says why. STATUS_TEMPORARY: no endpoint
 * answered before the deadline, or wake became readable.
 */
enum status gateway_ask(struct gateway *gateway, const struct gateway_request *request,
	struct gateway_reply *reply, struct error *err);
/* Send a request with repeatable set and all other flags clear. */
enum status gateway_repeat(struct gateway *gateway, const char *path, const char *body,
	int64_t deadline, struct gateway_reply *reply, struct error *err);
void gateway_reply_release(struct gateway_reply *reply);

/* Make a new lease, which ends after this number of seconds unless it is renewed. */
enum status gateway_grant(
	struct gateway *gateway, int seconds, int64_t deadline, int64_t *lease, struct error *err);

/* Begin a request whose answer is a stream, to the present endpoint, on http, not gateway->http. */
enum status gateway_begin(struct gateway *gateway, struct http *http, const char *path,
	const struct text *body, struct error *err);
/* Let the next request begin with the next endpoint. */
void gateway_turn(struct gateway *gateway);

/* Set err for a refusal with this code and text. Returns err->status. */
enum status gateway_refusal(
	const struct gateway *gateway, enum gateway_code code, const char *text, struct error *err);

#endif
