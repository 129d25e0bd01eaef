/* SPDX-License-Identifier: MIT */
/*
 * The inside of struct http: its two transports, curl.c (with libcurl) and plain.c. Each registers
 * its sockets in epoll, with the socket as data.fd, and sets its due time.
 */
#ifndef BASE_HTTP_TRANSPORT_H
#define BASE_HTTP_TRANSPORT_H

#include <sys/socket.h>

#include "base/http/http.h"

#define HTTP_CONNECT 5000L /* ms, if the request does not set it */
#define HTTP_AGENT   "preempt-tools/" PREEMPT_VERSION

struct http_curl;
struct http_plain;

struct http {
	int epoll;
	int64_t curl_due, plain_due; /* when to step each in any case */
	bool light, busy;
	size_t most; /* most bytes of an answer */
	struct http_answer answer;
	struct http_curl *curl;	  /* NULL: not needed yet */
	struct http_plain *plain; /* NULL: not needed yet */
	bool plainly;		  /* the last request was sent by plain.c */
};

/* Add to the body. False: the answer is too long. */
bool http_add_body(struct http *http, const char *bytes, size_t length);

/* curl.c can send every request. STATUS_NOT_FOUND: libcurl is not installed. */
enum status http_curl_open(struct http *http, struct error *err);
enum status http_curl_start(
	struct http *http, const struct http_request *request, struct error *err);
void http_curl_stop(struct http *http);
enum http_state http_curl_step(struct http *http, int64_t now, struct error *err);
void http_curl_close(struct http_curl *curl);

struct http_address {
	struct sockaddr_storage address;
	socklen_t length;
};
/* True if plain.c can send to url, because it has a numeric address, *place, and no TLS. */
bool http_plain_carries(const char *url, struct http_address *place);
enum status http_plain_start(struct http *http, const struct http_request *request,
	const struct http_address *place, struct error *err);
void http_plain_stop(struct http *http);
enum http_state http_plain_step(struct http *http, int64_t now, struct error *err);
void http_plain_close(struct http_plain *plain);

#endif
