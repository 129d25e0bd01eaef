/* SPDX-License-Identifier: MIT */
#include "store/etcd/gateway.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process/descriptor.h"
#include "base/text.h"
#include "store/etcd/wire.h"

/* All in milliseconds. */
#define CONNECT	      1000 /* to one endpoint */
#define FIRST_ATTEMPT 3000 /* a member that is stopped takes the request and sends no answer */
#define LATER_ATTEMPT 8000 /* longer than a server's own limit of 7 s for one request */
#define SLOW_MOST     3	   /* how many times these two may be doubled */
#define PAUSE	      500  /* at most, after all endpoints failed */

#define ANSWER_MOST ((size_t)256 << 20)

#define VARIABLE  "PREEMPT_ETCD_CREDENTIALS"
#define FILE_MOST 1024 /* bytes of a file with credentials */

/* How one request to one endpoint ended. */
enum fate {
	FATE_ANSWERED,
	FATE_REFUSED,	/* another endpoint would refuse it, too */
	FATE_STRANGER,	/* the server does not know us: log in, and ask again */
	FATE_UNTRUSTED, /* the endpoint's certificate or ours was not accepted: ask another one */
	FATE_FAILED,	/* ask another endpoint, or this one later */
	FATE_ENDED,	/* by gateway->wake */
};

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

/* ---- One request to one endpoint ---- */

static enum status start(struct gateway *gateway, struct http *http, enum gateway_kind kind,
	const char *path, const char *body, int64_t timeout, struct error *err)
{
	struct text url = {0};
	text_addf(&url, "%s://%s%s", gateway->options->tls ? "https" : "http",
		gateway->options->endpoints[gateway->at], path);
	struct http_request post = {.method = "POST",
		.url = text_string(&url),
		/* With hasleader a member without a leader refuses at once, and ends a watch. */
		.headers = {"Content-Type: application/json", "Grpc-Metadata-hasleader: true",
			*gateway->header ? gateway->header : NULL},
		.body = body,
		.most = ANSWER_MOST,
		.once = kind == GATEWAY_ONCE,
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
	return start(gateway, http, GATEWAY_READ, path, text_string(body), 0, err);
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

/* What a server's refusal means, by its gRPC code and a part of its text; the first row counts. */
struct refusal {
	int code; /* -1: any */
	const char *text;
	enum fate fate;
	bool known; /* the server did not begin to carry out the request */
	enum status status;
	const char *says; /* what we say of the server */
	const char *cure;
};
static const struct refusal refusals[] = {
	{3, "user name is empty", FATE_STRANGER, true, STATUS_PERMISSION,
		"wants a user and a password", ": give credentials=FILE"},
	{3, "invalid auth token", FATE_STRANGER, true, STATUS_PERMISSION,
		"wants a user and a password", ": give credentials=FILE"},
	{3, "revision of auth store is old", FATE_STRANGER, true, STATUS_PERMISSION,
		"wants a user and a password", ": give credentials=FILE"},
	{3, "authentication failed", FATE_STRANGER, true, STATUS_PERMISSION, "does not know us",
		": check the credentials"},
	{3, "", FATE_REFUSED, true, STATUS_USAGE, "refuses this", ""},
	{5, "", FATE_REFUSED, true, STATUS_NO, "does not have this", ""},
	{7, "", FATE_REFUSED, true, STATUS_PERMISSION, "refuses this user",
		": grant the user readwrite on all keys that begin with "},
	{8, "space", FATE_REFUSED, true, STATUS_TEMPORARY, "is full",
		": compact and defragment it, then disarm its alarm"},
	{8, "", FATE_FAILED, true, STATUS_TEMPORARY, "cannot answer now",
		""}, /* too many requests */
	{9, "", FATE_FAILED, true, STATUS_TEMPORARY, "cannot answer now", ""}, /* a learner */
	{11, "", FATE_REFUSED, true, STATUS_NO, "has no such revision", ""},   /* or not any more */
	{15, "", FATE_REFUSED, false, STATUS_DAMAGED, "is damaged", ""},
	{16, "", FATE_STRANGER, true, STATUS_PERMISSION, "does not know us", ""},
	{-1, "no leader", FATE_FAILED, true, STATUS_TEMPORARY, "cannot answer now", ""},
	{-1, "", FATE_FAILED, false, STATUS_TEMPORARY, "cannot answer now", ""},
};

/* Read what came with another HTTP status than 200. */
static enum fate read_refusal(
	struct gateway *gateway, struct gateway_reply *reply, struct error *err)
{
	const struct http_answer *answer = http_answer(gateway->http);
	struct json_object *inner = wire_object(reply->object, "error");
	struct json_object *said = inner ? inner : reply->object;
	const struct refusal *row = refusals;
	const char *text = "";
	int64_t code = wire_number(said, "code");
	if (inner && !code)
		code = wire_number(said, "grpc_code");
	if (!json_get_text(said, "message", &text) && !json_get_text(said, "error", &text))
		code = 0;
	if (code == 0) {
		reply->known = answer->code >= 400 && answer->code < 500;
		error_set(err, reply->known ? STATUS_USAGE : STATUS_TEMPORARY,
			"store %s: endpoint %s answered with HTTP status %d: is it an etcd of version "
			"3.4 or later, with its JSON gateway on?",
			gateway->where, gateway->options->endpoints[gateway->at], answer->code);
		return reply->known ? FATE_REFUSED : FATE_FAILED;
	}
	while ((row->code >= 0 && row->code != code) || !strstr(text, row->text))
		row++;
	bool denied = row->code == 7;
	reply->known = row->known;
	error_set(err, row->status, "store %s: its server %s (%s)%s%s%s%s", gateway->where,
		row->says, text, row->cure, denied ? "\"" : "",
		denied ? gateway->options->prefix : "", denied ? "/\"" : "");
	return row->fate;
}

/*
 * Complete err, which says why there is no answer. If the request was sent, drop the token: a
 * server waits for the log index in it, in a cluster that was replaced perhaps for ever.
 */
static enum fate explain(struct gateway *gateway, const struct http_answer *answer,
	struct gateway_reply *reply, struct error *err)
{
	bool untrusted = answer->failure == HTTP_UNTRUSTED;
	bool unspoken = answer->failure == HTTP_EMPTY && !gateway->options->tls;
	struct error said = *err;
	reply->known = untrusted || !answer->sent;
	if (answer->sent)
		*gateway->header = '\0';
	error_set(err, untrusted ? STATUS_PERMISSION : STATUS_TEMPORARY,
		"store %s: endpoint %s: %s%s", gateway->where,
		gateway->options->endpoints[gateway->at], said.text,
		untrusted  ? ": check ca=FILE, and cert=FILE with key=FILE"
		: unspoken ? ": if it wants TLS, add ca=FILE or tls"
			   : "");
	return untrusted ? FATE_UNTRUSTED : FATE_FAILED;
}

/* Send the request to the present endpoint, once. */
static enum fate attempt(struct gateway *gateway, enum gateway_kind kind, const char *path,
	const char *body, int64_t timeout, struct gateway_reply *reply, struct error *err)
{
	gateway_reply_release(reply);
	reply->known = true;
	if (start(gateway, gateway->http, kind, path, body, timeout, err) != STATUS_OK)
		return FATE_FAILED;
	enum http_state state = finish(gateway, err);
	const struct http_answer *answer = http_answer(gateway->http);
	if (state == HTTP_PENDING) {
		http_stop(gateway->http);
		reply->known = !answer->sent;
		error_set(err, STATUS_TEMPORARY, "store %s: request interrupted", gateway->where);
		return FATE_ENDED;
	}
	if (state == HTTP_FAILED)
		return explain(gateway, answer, reply, err);
	reply->object = json_parse_limited(answer->body.data, answer->body.length, ANSWER_MOST);
	if (answer->code != 200)
		return read_refusal(gateway, reply, err);
	if (json_object_is_type(reply->object, json_type_object))
		return FATE_ANSWERED;
	reply->known = false;
	error_set(err, STATUS_TEMPORARY, "store %s: endpoint %s answered, but not in JSON",
		gateway->where, gateway->options->endpoints[gateway->at]);
	return FATE_FAILED;
}

/* ---- The user ---- */

bool gateway_has_user(const struct etcd_options *options)
{
	const char *value = getenv(VARIABLE);
	return options->credentials || (value && *value);
}

/* Read the line USER:PASSWORD from the file or the environment. */
static enum status read_credentials(const char *file, struct text *line, struct error *err)
{
	struct stat st;
	if (!file) {
		text_add(line, getenv(VARIABLE));
		return STATUS_OK;
	}
	if (file_stat(AT_FDCWD, file, 0, &st) == 0 && (st.st_mode & 077))
		return error_set(err, STATUS_PERMISSION,
			"%s: other users may read the password: run chmod 600 on it", file);
	enum status status = file_read_whole(file, FILE_MOST, line, err);
	return status == STATUS_NO ? error_set(err, STATUS_PERMISSION, "%s: it is missing", file)
				   : status;
}

/* Keep the token as a header, if it is printable and not too long. */
static enum status keep_token(struct gateway *gateway, const char *token, struct error *err)
{
	bool plain = *token;
	for (const char *s = token; *s; s++)
		plain &= *s > ' ' && *s < 0x7f;
	int length = snprintf(gateway->header, sizeof(gateway->header), "Authorization: %s", token);
	if (plain && (size_t)length < sizeof(gateway->header))
		return STATUS_OK;
	*gateway->header = '\0';
	return error_set(
		err, STATUS_TEMPORARY, "store %s: its server gave no usable token", gateway->where);
}

/* Get a token. STATUS_PERMISSION: the credentials are wrong, or others can read the file. */
static enum status log_in(struct gateway *gateway, int64_t deadline, struct error *err)
{
	const char *file = gateway->options->credentials, *token = "";
	struct text line = {0}, body = {0};
	struct gateway_reply reply = {0};
	enum status status = read_credentials(file, &line, err);
	char *user = line.data, *password = user ? strchr(user, ':') : NULL;
	*gateway->header = '\0';
	if (status == STATUS_OK && (!password || password == user))
		status = error_set(err, STATUS_USAGE, "%s: it has to be USER:PASSWORD",
			file ? file : VARIABLE);
	if (status == STATUS_OK) {
		password[strcspn(password, "\r\n")] = '\0';
		*password++ = '\0';
		text_add(&body, "{\"name\":");
		text_add_json_string(&body, user);
		text_add(&body, ",\"password\":");
		text_add_json_string(&body, password);
		text_add(&body, "}");
		status = gateway_ask(gateway, GATEWAY_LOGIN, "/v3/auth/authenticate",
			text_string(&body), deadline, &reply, err);
	}
	if (status == STATUS_OK) {
		(void)json_get_text(reply.object, "token", &token);
		status = keep_token(gateway, token, err);
	}
	gateway_reply_release(&reply);
	text_release(&line);
	text_release(&body);
	return status;
}

/* ---- One endpoint after the other ---- */

/*
 * The time for one attempt, ms: less in the first round, so that an endpoint that does not answer
 * leaves time for the others.
 */
static int64_t time_for(const struct gateway *gateway, size_t turn, int64_t deadline)
{
	int64_t left = clock_later(deadline - clock_now(), 3);
	if (turn > gateway->options->count || gateway->options->count == 1)
		return clock_earlier(left, LATER_ATTEMPT << gateway->slow);
	return clock_earlier(left / 3, FIRST_ATTEMPT << gateway->slow);
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

enum status gateway_ask(struct gateway *gateway, enum gateway_kind kind, const char *path,
	const char *body, int64_t deadline, struct gateway_reply *reply, struct error *err)
{
	size_t endpoints = gateway->options->count;
	bool known = true, logged_in = false;
	for (size_t turn = 1;; turn++) {
		bool bare = !*gateway->header; /* a lost answer has cost the token (explain) */
		int64_t began = clock_now(), most = time_for(gateway, turn, deadline);
		enum fate fate = attempt(gateway, kind, path, body, most, reply, err);
		note_time(gateway, clock_now() - began, most);
		known &= reply->known;
		reply->known = known;
		switch (fate) {
		case FATE_ANSWERED: return STATUS_OK;
		case FATE_STRANGER:
			if ((logged_in && !bare) || kind == GATEWAY_LOGIN ||
				!gateway_has_user(gateway->options))
				return err->status;
			logged_in = true;
			if (log_in(gateway, deadline, err) != STATUS_OK)
				return err->status;
			continue;
		case FATE_UNTRUSTED:
			if (turn >= endpoints)
				return err->status;
			break;
		case FATE_FAILED: break;
		case FATE_REFUSED:
		case FATE_ENDED: return err->status;
		}
		if (descriptor_is_ready(gateway->wake))
			return err->status;
		gateway_turn(gateway);
		if (!known && kind == GATEWAY_ONCE)
			return err->status;
		if (turn % endpoints == 0)
			(void)descriptor_wait(gateway->wake,
				clock_earlier(deadline, clock_after(clock_jitter(PAUSE))));
		if (clock_now() >= deadline)
			return err->status;
	}
}
