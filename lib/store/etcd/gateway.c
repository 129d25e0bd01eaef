/* SPDX-License-Identifier: MIT */
#include "store/etcd/gateway.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/process/descriptor.h"
#include "base/text.h"
#include "store/etcd/credentials.h"
#include "store/etcd/wire.h"

/* All in milliseconds. */
#define CONNECT	      1000 /* to one endpoint */
#define FIRST_ATTEMPT 3000 /* a member that is stopped takes the request and sends no answer */
#define LATER_ATTEMPT 8000 /* longer than a server's own limit of 7 s for one request */
#define SLOW_MOST     3	   /* how many times these two may be doubled */
#define ALIVE	      1000 /* a member that takes longer to say its status may be stopped */
#define PAUSE	      500  /* at most, after all endpoints failed */

#define ANSWER_MOST ((size_t)256 << 20)

enum status gateway_open(struct gateway *gateway, const struct etcd_options *options,
	const char *where, struct error *err)
{
	*gateway = (struct gateway){.options = options,
		.where = where,
		.wake = -1,
		.at = (size_t)getpid() % options->count};
	enum status status = http_open(&gateway->http, err);
	return status_is_error(status) ? error_prefix(err, "store %s", where) : status;
}

void gateway_close(struct gateway *gateway)
{
	http_close(gateway->http);
	*gateway = (struct gateway){0};
}

void gateway_reply_release(struct gateway_reply *reply)
{
	json_object_put(reply->object);
	*reply = (struct gateway_reply){0};
}

void gateway_turn(struct gateway *gateway)
{
	gateway->at = (gateway->at + 1) % gateway->options->count;
}

static enum status start(struct gateway *gateway, struct http *http,
	const struct gateway_request *request, int64_t timeout, struct error *err)
{
	struct text url = {0};
	text_addf(&url, "%s://%s%s", gateway->options->tls ? "https" : "http",
		gateway->options->endpoints[gateway->at], request->path);
	struct http_request post = {.method = "POST",
		.url = text_string(&url),
		/* With hasleader a member without a leader refuses at once, and ends a watch. */
		.headers = {"Content-Type: application/json", "Grpc-Metadata-hasleader: true",
			*gateway->header ? gateway->header : NULL},
		.body = request->body,
		.most = ANSWER_MOST,
		.once = !request->repeatable,
		.connect = CONNECT,
		.timeout = timeout,
		.tls = &gateway->options->files};
	enum status status = http_start(http, &post, err);
	text_release(&url);
	return status;
}

enum status gateway_begin(struct gateway *gateway, struct http *http, const char *path,
	const struct text *body, struct error *err)
{
	struct gateway_request request = {
		.path = path, .body = text_string(body), .repeatable = true};
	return start(gateway, http, &request, 0, err);
}

/* HTTP_PENDING: wake has ended it. */
static enum http_state finish(struct gateway *gateway, struct error *err)
{
	struct http *http = gateway->http;
	for (;;) {
		enum http_state state = http_step(http, clock_now(), err);
		if (state != HTTP_PENDING || descriptor_is_ready(gateway->wake))
			return state;
		struct pollfd polled[] = {{.fd = http_descriptor(http), .events = POLLIN},
			{.fd = gateway->wake, .events = POLLIN}};
		(void)poll(polled, 2, clock_poll_timeout(http_due(http)));
	}
}

enum status gateway_refusal(
	const struct gateway *gateway, enum gateway_code code, const char *text, struct error *err)
{
	const char *where = gateway->where;
	bool no_token = strstr(text, "user name is empty") || strstr(text, "invalid auth token") ||
			strstr(text, "revision of auth store is old");
	switch (code) {
	case GATEWAY_NOT_FOUND:
	case GATEWAY_RANGE: return error_set(err, STATUS_NO, "store %s: %s", where, text);
	case GATEWAY_DENIED:
		return error_set(err, STATUS_PERMISSION,
			"store %s: its server refuses this user (%s): grant the user readwrite on "
			"all keys that begin with \"%s/\"",
			where, text, gateway->options->prefix);
	case GATEWAY_UNKNOWN_USER:
		return error_set(err, STATUS_PERMISSION,
			"store %s: its server does not know us: %s", where, text);
	case GATEWAY_INVALID:
		if (no_token)
			return error_set(err, STATUS_PERMISSION,
				"store %s: its server wants a user and a password (%s): give "
				"credentials=FILE",
				where, text);
		if (strstr(text, "authentication failed"))
			return error_set(err, STATUS_PERMISSION,
				"store %s: %s: check the credentials", where, text);
		return error_set(
			err, STATUS_USAGE, "store %s: its server refuses this: %s", where, text);
	case GATEWAY_EXHAUSTED:
		if (strstr(text, "space"))
			return error_set(err, STATUS_TEMPORARY,
				"store %s: its server is full (%s): compact and defragment it, then "
				"disarm its alarm",
				where, text);
		break;
	case GATEWAY_LOST:
		return error_set(
			err, STATUS_DAMAGED, "store %s: its server is damaged: %s", where, text);
	default: break;
	}
	return error_set(
		err, STATUS_TEMPORARY, "store %s: its server cannot answer now: %s", where, text);
}

/* Whether a refusal shows that the server did not begin to carry out the request. */
static bool was_refused(enum gateway_code code, const char *text)
{
	switch (code) {
	case GATEWAY_INVALID:
	case GATEWAY_NOT_FOUND:
	case GATEWAY_DENIED:
	case GATEWAY_EXHAUSTED:
	case GATEWAY_PRECONDITION:
	case GATEWAY_RANGE:
	case GATEWAY_UNKNOWN_USER: return true;
	default: return strstr(text, "no leader") != NULL;
	}
}

/* Read what came with another HTTP status than 200. */
static enum status read_refusal(
	struct gateway *gateway, struct gateway_reply *reply, struct error *err)
{
	const struct http_answer *answer = http_answer(gateway->http);
	struct json_object *inner = wire_object(reply->object, "error");
	struct json_object *said = inner ? inner : reply->object;
	const char *text = "";
	int64_t code = wire_number(said, "code");
	if (inner && !code)
		code = wire_number(said, "grpc_code");
	if (!json_get_text(said, "message", &text) && !json_get_text(said, "error", &text))
		code = 0;
	if (code == 0) {
		reply->known = answer->code >= 400 && answer->code < 500;
		return error_set(err, reply->known ? STATUS_USAGE : STATUS_TEMPORARY,
			"store %s: endpoint %s answered with HTTP status %d: is it an etcd of version "
			"3.4 or later, with its JSON gateway on?",
			gateway->where, gateway->options->endpoints[gateway->at], answer->code);
	}
	reply->code = (enum gateway_code)code;
	reply->known = was_refused(reply->code, text);
	return gateway_refusal(gateway, reply->code, text, err);
}

/*
 * Complete err, which says why there is no answer. If the request was sent, drop the token: a
 * server waits for the log index in it, in a cluster that was replaced perhaps for ever.
 */
static enum status explain(struct gateway *gateway, const struct http_answer *answer,
	struct gateway_reply *reply, struct error *err)
{
	const char *endpoint = gateway->options->endpoints[gateway->at];
	struct error said = *err;
	bool unspoken = answer->failure == HTTP_EMPTY && !gateway->options->tls;
	reply->untrusted = answer->failure == HTTP_UNTRUSTED;
	reply->known = reply->untrusted || !answer->sent;
	if (answer->sent)
		*gateway->header = '\0';
	if (reply->untrusted)
		return error_set(err, STATUS_PERMISSION,
			"store %s: endpoint %s: %s: check ca=FILE, and cert=FILE with key=FILE",
			gateway->where, endpoint, said.text);
	return error_set(err, STATUS_TEMPORARY, "store %s: endpoint %s: %s%s", gateway->where,
		endpoint, said.text, unspoken ? ": if it wants TLS, add ca=FILE or tls" : "");
}

/* Send the request to the present endpoint, once. */
static enum status attempt(struct gateway *gateway, const struct gateway_request *request,
	int64_t timeout, struct gateway_reply *reply, struct error *err)
{
	*reply = (struct gateway_reply){.known = true};
	enum status status = start(gateway, gateway->http, request, timeout, err);
	if (status != STATUS_OK)
		return status;
	enum http_state state = finish(gateway, err);
	const struct http_answer *answer = http_answer(gateway->http);
	if (state == HTTP_PENDING) {
		http_stop(gateway->http);
		reply->known = !answer->sent;
		return error_set(
			err, STATUS_TEMPORARY, "store %s: request interrupted", gateway->where);
	}
	if (state == HTTP_FAILED)
		return explain(gateway, answer, reply, err);
	reply->object = json_parse_limited(answer->body.data, answer->body.length, ANSWER_MOST);
	if (answer->code != 200)
		return read_refusal(gateway, reply, err);
	reply->known = true;
	if (json_object_is_type(reply->object, json_type_object))
		return STATUS_OK;
	reply->known = false;
	return error_set(err, STATUS_TEMPORARY, "store %s: endpoint %s answered, but not in JSON",
		gateway->where, gateway->options->endpoints[gateway->at]);
}

/*
 * Go to the next endpoint that says its status; if there is none, to the next. A status costs a
 * server little, so it comes soon also from one that is slow because it has too much to do.
 */
static void move_on(struct gateway *gateway, int64_t deadline)
{
	struct gateway_request status = {
		.path = "/v3/maintenance/status", .body = "{}", .reads = true};
	struct gateway_reply reply;
	struct error unused;
	size_t endpoints = gateway->options->count;
	for (size_t i = 0; endpoints > 1 && i < endpoints; i++) {
		int64_t left = clock_later(deadline - clock_now(), 1);
		gateway_turn(gateway);
		(void)attempt(gateway, &status, clock_earlier(left, ALIVE), &reply, &unused);
		gateway_reply_release(&reply);
		if (http_answer(gateway->http)->code)
			return;
	}
	gateway_turn(gateway);
}

/* Whether another endpoint may answer, or this one later. A full server stays full. */
static bool may_pass(enum status status, const struct gateway_reply *reply, const struct error *err)
{
	return status == STATUS_TEMPORARY &&
	       !(reply->code == GATEWAY_EXHAUSTED && strstr(err->text, "space"));
}

/* How long an attempt may take: less for the first endpoint, if there are others to ask. */
static int64_t time_for(const struct gateway *gateway, size_t turn, int64_t deadline)
{
	int64_t left = clock_later(deadline - clock_now(), 1);
	if (turn > 1 || gateway->options->count == 1)
		return clock_earlier(left, LATER_ATTEMPT << gateway->slow);
	return clock_later(clock_earlier(left / 3, FIRST_ATTEMPT << gateway->slow), 1);
}

/*
 * After an answer that came too late, double the time limit: a server that is slow because it has
 * too much to do gets even more to do if it is asked again. After a fast answer, halve the limit.
 */
static void note_time(struct gateway *gateway, int64_t took, int64_t most)
{
	if (took >= most && most >= FIRST_ATTEMPT && gateway->slow < SLOW_MOST)
		gateway->slow++;
	else if (took < most / 4 && gateway->slow > 0)
		gateway->slow--;
}

enum status gateway_ask(struct gateway *gateway, const struct gateway_request *request,
	struct gateway_reply *reply, struct error *err)
{
	size_t endpoints = gateway->options->count;
	bool known = true, asked_again = false;
	for (size_t turn = 1;; turn++) {
		gateway_reply_release(reply);
		bool bare = !*gateway->header; /* a lost answer has cost the token (explain) */
		int64_t began = clock_now(), most = time_for(gateway, turn, request->deadline);
		enum status status = attempt(gateway, request, most, reply, err);
		note_time(gateway, clock_now() - began, most);
		known &= reply->known;
		reply->known = known;
		bool stranger = reply->code == GATEWAY_UNKNOWN_USER ||
				(reply->code == GATEWAY_INVALID && status == STATUS_PERMISSION);
		if (stranger && (bare || !asked_again) && !request->introduces &&
			credentials_given(gateway->options)) {
			asked_again = true;
			status = credentials_show(gateway, request->deadline, err);
			if (status == STATUS_OK)
				continue;
		}
		bool others = reply->untrusted && turn < endpoints;
		if (status == STATUS_OK || (!others && !may_pass(status, reply, err)) ||
			descriptor_is_ready(gateway->wake))
			return status;
		move_on(gateway, request->deadline);
		if (!known && !request->repeatable)
			return status;
		if (turn % endpoints == 0)
			(void)descriptor_wait(gateway->wake,
				clock_earlier(request->deadline, clock_after(clock_jitter(PAUSE))));
		if (clock_now() >= request->deadline)
			return status;
	}
}

enum status gateway_repeat(struct gateway *gateway, const char *path, const char *body,
	int64_t deadline, struct gateway_reply *reply, struct error *err)
{
	struct gateway_request request = {
		.path = path, .body = body, .repeatable = true, .deadline = deadline};
	return gateway_ask(gateway, &request, reply, err);
}

enum status gateway_grant(
	struct gateway *gateway, int seconds, int64_t deadline, int64_t *lease, struct error *err)
{
	char body[40];
	struct gateway_reply reply = {0};
	snprintf(body, sizeof(body), "{\"TTL\":\"%d\"}", seconds);
	enum status status =
		gateway_repeat(gateway, "/v3/lease/grant", body, deadline, &reply, err);
	if (status == STATUS_OK)
		*lease = wire_number(reply.object, "ID");
	gateway_reply_release(&reply);
	return status;
}
