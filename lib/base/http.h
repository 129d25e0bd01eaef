/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/1.1 client for metadata servers and etcd, by libcurl, which the first http_open loads:
 *one request at a time, never blocking.
 *
 *	http_start(http, &request, &err);
 *	do
 *		poll(2) http_descriptor for reading, until http_due
 *	while (http_step(http, clock_now(), &err) == HTTP_PENDING);
 *
 * Connections are kept for the next request. Only http and https, without proxies and redirects.
 */
#ifndef BASE_HTTP_H
#define BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct http;

#define HTTP_HEADERS 4

/* The texts need not live longer than http_start. */
struct http_request {
	const char *method; /* "GET", "PUT", "POST" */
	const char *url;
	const char *headers[HTTP_HEADERS]; /* "Name: value"; ended by NULL if there are fewer */
	const char *body;		   /* NULL: none */
	size_t most;			   /* most bytes of an answer; 0: 64 KiB */
	/* Never send it twice. Without `once`, it is sent again if a connection that was kept ends
	 * before the answer. */
	bool once;
	int64_t connect;	    /* most ms to connect; 0: 5 s */
	int64_t timeout;	    /* ms for the whole request; 0: no limit, for a stream */
	const struct http_tls *tls; /* NULL: the defaults of libcurl */
};

/* Paths of PEM files. NULL: no certificate and key; the authorities of the machine. */
struct http_tls {
	const char *authorities, *certificate, *key;
};

enum http_failure {
	HTTP_BROKEN,	/* no connection, or it ended */
	HTTP_UNTRUSTED, /* a certificate is not accepted by the other side, or cannot be read */
	HTTP_EMPTY,	/* connected, and the server sent nothing: it may want TLS */
};

/* Valid until the next http_start. */
struct http_answer {
	int code;		   /* 200, 404, ... */
	enum http_failure failure; /* HTTP_FAILED only */
	bool sent;	  /* the server may have got the request, even if there is no answer */
	struct text body; /* while it is pending: what has come so far */
	char etag[128];	  /* empty: none */
	int64_t date_utc; /* the server's clock, ms since 1970; 0: not given */
};

enum http_state {
	HTTP_IDLE,    /* no request, or its end was returned already */
	HTTP_PENDING, /* not ended yet */
	HTTP_DONE,    /* there is an answer, with any code */
	HTTP_FAILED,  /* there is no answer; the error is filled */
};

/* STATUS_NOT_FOUND: libcurl is not installed, or this build cannot load it. STATUS_TEMPORARY. */
enum status http_open(struct http **http, struct error *err);
/* Stops a pending request. NULL is legal. */
void http_close(struct http *http);

enum status http_start(struct http *http, const struct http_request *request, struct error *err);
/* Stop the pending request, if there is one. */
void http_stop(struct http *http);
/* The descriptor never changes; it is readable when http_step has something to do. */
int http_descriptor(const struct http *http);
/* When to call http_step in any case; CLOCK_NEVER: only when the descriptor is readable. */
int64_t http_due(const struct http *http);
/* Returns HTTP_DONE or HTTP_FAILED once for each request. */
enum http_state http_step(struct http *http, int64_t now, struct error *err);
/* Read one header line of length bytes into answer: the etag and the date. */
void http_take_header(struct http_answer *answer, const char *bytes, size_t length);
const struct http_answer *http_answer(const struct http *http);
/* Remove the first length bytes of the body: those that the caller has read from a stream. */
void http_forget(struct http *http, size_t length);

#endif
