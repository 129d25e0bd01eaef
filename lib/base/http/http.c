/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http/transport.h"
#include "base/xalloc.h"

#define ANSWER_MAX ((size_t)64 << 10)

enum status http_open(struct http **opened, bool light, struct error *err)
{
	struct http *http = xcalloc(1, sizeof(*http));
	enum status status = STATUS_OK;
	http->light = light;
	http->curl_due = http->plain_due = CLOCK_NEVER;
	http->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (http->epoll < 0)
		status = error_set(err, STATUS_TEMPORARY, "cannot speak HTTP: %s", strerror(errno));
	else if (!light)
		status = http_curl_open(http, err);
	if (status == STATUS_OK)
		*opened = http;
	else
		http_close(http);
	return status;
}

void http_stop(struct http *http)
{
	http->busy = false;
	if (http->curl)
		http_curl_stop(http);
	if (http->plain)
		http_plain_stop(http);
}

void http_close(struct http *http)
{
	if (!http)
		return;
	http_stop(http);
	http_curl_close(http->curl);
	http_plain_close(http->plain);
	if (http->epoll >= 0)
		close(http->epoll);
	text_release(&http->answer.body);
	free(http);
}

enum status http_start(struct http *http, const struct http_request *request, struct error *err)
{
	enum status status = STATUS_OK;
	struct http_address place;
	http_stop(http);
	text_release(&http->answer.body);
	http->most = request->most ? request->most : ANSWER_MAX;
	http->answer = (struct http_answer){.body.limit = http->most + 1};
	http->plainly = http->light && http_plain_carries(request->url, &place);
	if (http->plainly)
		status = http_plain_start(http, request, &place, err);
	else if (http->curl || (status = http_curl_open(http, err)) == STATUS_OK)
		status = http_curl_start(http, request, err);
	http->busy = status == STATUS_OK;
	return status;
}

int http_descriptor(const struct http *http)
{
	return http->epoll;
}

int64_t http_due(const struct http *http)
{
	return http->busy ? clock_earlier(http->curl_due, http->plain_due) : CLOCK_NEVER;
}

/* Steps both transports, even without a request, to notice that a kept connection was closed. */
enum http_state http_step(struct http *http, int64_t now, struct error *err)
{
	enum http_state curl = HTTP_IDLE, plain = HTTP_IDLE;
	if (http->curl)
		curl = http_curl_step(http, now, err);
	if (http->plain)
		plain = http_plain_step(http, now, err);
	enum http_state state = http->plainly ? plain : curl;
	if (!http->busy)
		return HTTP_IDLE;
	http->busy = state == HTTP_PENDING;
	return state;
}

const struct http_answer *http_answer(const struct http *http)
{
	return &http->answer;
}

bool http_add_body(struct http *http, const char *bytes, size_t length)
{
	if (http->answer.body.length + length <= http->most)
		text_add_bytes(&http->answer.body, bytes, length);
	else
		http->answer.body.too_long = true;
	return !http->answer.body.too_long;
}

void http_forget(struct http *http, size_t length)
{
	struct text *body = &http->answer.body;
	memmove(body->data, body->data + length, body->length - length + 1);
	body->length -= length;
}
