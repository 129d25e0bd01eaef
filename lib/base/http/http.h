/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1, one request at a time and without ever blocking: for metadata servers and for etcd.
 * libcurl does it. Loading it takes 5 ms, more than all that a program asks of etcd: so plain.c
 * carries what needs neither TLS nor names, and libcurl is loaded when it is needed.
 *
 *	http_start(http, &request, &err);
 *	poll(2) http_descriptor for reading until http_due, then http_step, until it is not PENDING
 *
 * Connections are kept for the next request. Proxies and redirects are off, only http and https are
 * spoken.
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
	const char *headers[HTTP_HEADERS]; /* "Name: value"; NULL ends them early */
	const char *body;		   /* NULL: none */
	size_t length;			   /* of the body */
	size_t most;			   /* bytes that an answer may have; 0: 64 KiB */
	/*
	 * Never send it a second time. Without this it is sent again where a connection that was
	 * kept ends before the answer.
	 */
	bool once;
	int64_t connect;	    /* ms, to be connected; 0: 5 s */
	int64_t timeout;	    /* ms, for all of it; 0: none, for a stream */
	const struct http_tls *tls; /* NULL: what libcurl does by itself */
};

/* Files in PEM; NULL: none, or the machine's own authorities. They must live as long as http. */
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
	bool sent;	  /* the server may have got the request, also where there is no answer */
	struct text body; /* also while it is pending: what has come */
	char etag[128];	  /* empty: none */
	int64_t date_utc; /* the server's clock, ms since 1970; 0: it did not say */
};

enum http_state {
	HTTP_IDLE,    /* nothing was started, or its end was told already */
	HTTP_PENDING, /* not ended yet */
	HTTP_DONE,    /* there is an answer, of whatever code */
	HTTP_FAILED,  /* there is none; the error is filled */
};

/*
 * light: without libcurl where a request goes to a numeric address without TLS; http_start loads it
 * otherwise. The date of an answer is not told then. STATUS_NOT_FOUND, also of http_start: libcurl
 * is not installed. STATUS_TEMPORARY.
 */
enum status http_open(struct http **http, bool light, struct error *err);
/* Ends what is under way. NULL is legal. */
void http_close(struct http *http);

enum status http_start(struct http *http, const struct http_request *request, struct error *err);
/* Give up what is under way. */
void http_stop(struct http *http);
/* The descriptor never changes; it is readable when http_step has something to do. */
int http_descriptor(const struct http *http);
/* When http_step wants to be called in any case; CLOCK_NEVER: not at all. */
int64_t http_due(const struct http *http);
/* Returns HTTP_DONE or HTTP_FAILED once for each request. */
enum http_state http_step(struct http *http, int64_t now, struct error *err);
/*
 * Note in answer what one header line, of length bytes, says: its etag, and its date where libcurl
 * is loaded, which reads it.
 */
void http_take_header(struct http_answer *answer, const char *bytes, size_t length);
const struct http_answer *http_answer(const struct http *http);
/* Forget the first length bytes of the body: those of a stream that were read. */
void http_forget(struct http *http, size_t length);

#endif
