/* SPDX-License-Identifier: MIT */
#include "store/etcd/watch.h"

#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

#define MESSAGE_MOST ((size_t)256 << 20)

static bool same_key(const struct wire_key *a, const struct wire_key *b)
{
	return a->length == b->length && !memcmp(a->bytes, b->bytes, a->length);
}

bool watch_is_open_for(
	const struct watch *watch, const struct gateway *gateway, const struct wire_keys *keys)
{
	return watch->open && watch->endpoint == gateway->at &&
	       same_key(&watch->keys.first, &keys->first) && same_key(&watch->keys.end, &keys->end);
}

/* Close the stream; it may be opened again. */
static void close_stream(struct watch *watch)
{
	if (watch->open)
		http_stop(watch->http);
	watch->open = false;
}

enum status watch_open(struct watch *watch, struct gateway *gateway, const struct wire_keys *keys,
	store_revision from, struct error *err)
{
	struct text body = {0};
	close_stream(watch);
	enum status status = watch->http ? STATUS_OK : http_open(&watch->http, err);
	if (status != STATUS_OK)
		return status;
	watch->keys = *keys;
	watch->began = clock_now();
	watch->endpoint = gateway->at;
	watch->from = from;
	watch->changed = watch->answered = 0;
	text_add(&body, "{\"create_request\":{");
	wire_add_keys(&body, keys);
	wire_add_number(&body, "start_revision", from);
	text_add(&body, "}}\n");
	status = gateway_begin(gateway, watch->http, "/v3/watch", &body, err);
	watch->open = status == STATUS_OK;
	text_release(&body);
	return status;
}

static enum watch_state read_events(
	struct watch *watch, struct json_object *result, const struct watch_reader *reader)
{
	for (size_t i = 0; i < wire_count(result, "events"); i++) {
		struct json_object *event = wire_element(result, "events", i);
		struct json_object *kv = wire_object(event, "kv");
		watch->changed = wire_number(kv, "mod_revision");
		watch->version = wire_number(kv, "version");
		if (reader)
			reader->tell(reader->context, event);
	}
	return WATCH_FLOWS;
}

static enum watch_state refused(
	const struct gateway *gateway, struct json_object *said, struct error *err)
{
	const char *text = "the watch was ended";
	int64_t code = wire_number(said, "code");
	(void)json_get_text(said, "message", &text);
	gateway_refusal(gateway, (enum gateway_code)(code ? code : wire_number(said, "grpc_code")),
		text, err);
	return WATCH_ENDED;
}

/* Read a message, which is a line of the stream. */
static enum watch_state read_message(struct watch *watch, const struct gateway *gateway,
	struct json_object *message, const struct watch_reader *reader, struct error *err)
{
	struct json_object *result = wire_object(message, "result");
	const char *reason = "";
	if (!result) {
		struct json_object *said = wire_object(message, "error");
		return refused(gateway, said ? said : message, err);
	}
	store_revision revision = wire_number(wire_object(result, "header"), "revision");
	watch->answered = clock_later(watch->answered, revision);
	if (wire_flag(result, "canceled")) {
		if (wire_number(result, "compact_revision"))
			return WATCH_GAP;
		(void)json_get_text(result, "cancel_reason", &reason);
		gateway_refusal(gateway,
			strstr(reason, "ermission") ? GATEWAY_DENIED : GATEWAY_UNAVAILABLE, reason,
			err);
		return WATCH_ENDED;
	}
	/* A server whose revision is lower than ours was set back. */
	if (wire_flag(result, "created") && revision + 1 < watch->from)
		return WATCH_GAP;
	return read_events(watch, result, reader);
}

static enum watch_state read_lines(struct watch *watch, const struct gateway *gateway,
	const struct watch_reader *reader, struct error *err)
{
	const struct text *body = &http_answer(watch->http)->body;
	enum watch_state state = WATCH_FLOWS;
	size_t begin = 0;
	for (const char *end; state == WATCH_FLOWS && begin < body->length; begin++) {
		end = memchr(body->data + begin, '\n', body->length - begin);
		if (!end)
			break;
		size_t length = (size_t)(end - body->data) - begin;
		struct json_object *message =
			json_parse_limited(body->data + begin, length, MESSAGE_MOST);
		if (length)
			state = read_message(watch, gateway, message, reader, err);
		json_object_put(message);
		begin += length;
	}
	if (begin)
		http_forget(watch->http, begin < body->length ? begin : body->length);
	return state;
}

enum watch_state watch_read(struct watch *watch, struct gateway *gateway,
	const struct watch_reader *reader, struct error *err)
{
	enum http_state http = http_step(watch->http, clock_now(), err);
	enum watch_state state = WATCH_FLOWS;
	if (http != HTTP_FAILED)
		state = read_lines(watch, gateway, reader, err);
	if (http == HTTP_DONE && state == WATCH_FLOWS) {
		error_set(err, STATUS_TEMPORARY, "store %s: its server ended the watch",
			gateway->where);
		state = WATCH_ENDED;
	}
	if (http == HTTP_FAILED) {
		error_prefix(err, "store %s", gateway->where);
		state = WATCH_ENDED;
	}
	if (state != WATCH_FLOWS)
		close_stream(watch);
	return state;
}

void watch_sleep(const struct watch *watch, int wake, int64_t until)
{
	struct pollfd polled[] = {{.fd = wake, .events = POLLIN},
		{.fd = watch->open ? http_descriptor(watch->http) : -1, .events = POLLIN}};
	if (watch->open)
		until = clock_earlier(until, http_due(watch->http));
	(void)poll(polled, 2, clock_poll_timeout(until));
}

void watch_release(struct watch *watch)
{
	http_close(watch->http);
	*watch = (struct watch){0};
}
