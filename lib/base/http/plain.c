/* SPDX-License-Identifier: MIT */
/* One connection to a numeric address. It is kept for further requests to the same address. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http/reader.h"
#include "base/http/transport.h"
#include "base/xalloc.h"

#define ALIVE 60 /* seconds without traffic before a keepalive probe, and between two probes */

struct http_plain {
	int socket; /* -1: none */
	struct http_address place;
	bool connected;
	bool kept;  /* it has carried an earlier request */
	bool added; /* a request is under way */
	bool once;
	struct text request;
	size_t sent;			  /* bytes of request */
	int64_t connect, connect_by, end; /* ms; connect_by, end: the instants to give up */
	struct http_reader reader;
};

/* For instance "http://127.0.0.1:2379/PATH" or "http://[::1]:2379/PATH". */
bool http_plain_carries(const char *url, struct http_address *place)
{
	char host[64], port[8] = "80";
	struct addrinfo *found,
		hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	if (strncmp(url, "http://", 7) != 0)
		return false;
	const char *begin = url + 7 + (url[7] == '[');
	size_t length = strcspn(begin, url[7] == '[' ? "]" : ":/");
	const char *rest = begin + length + (url[7] == '[' && begin[length]);
	size_t digits = *rest == ':' ? strcspn(rest + 1, "/") : 0;
	if (length >= sizeof(host) || digits >= sizeof(port))
		return false;
	memcpy(host, begin, length);
	host[length] = '\0';
	if (digits) {
		memcpy(port, rest + 1, digits);
		port[digits] = '\0';
	}
	if (getaddrinfo(host, port, &hints, &found) != 0)
		return false;
	*place = (struct http_address){.length = found->ai_addrlen};
	memcpy(&place->address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return true;
}

static void hang_up(struct http_plain *self)
{
	if (self->socket >= 0)
		close(self->socket); /* epoll forgets it */
	self->socket = -1;
}

void http_plain_stop(struct http *http)
{
	struct http_plain *self = http->plain;
	if (self->added && (self->reader.at != HTTP_READ_ENDED || !self->reader.keeps))
		hang_up(self);
	self->added = false;
	http->plain_due = CLOCK_NEVER;
}

void http_plain_close(struct http_plain *self)
{
	if (!self)
		return;
	hang_up(self);
	text_release(&self->request);
	http_reader_release(&self->reader);
	free(self);
}

static void write_request(const struct http_request *request, struct text *text)
{
	const char *host = request->url + strlen("http://");
	int length = (int)strcspn(host, "/");
	text_addf(text, "%s %s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: %s\r\nAccept: */*\r\n",
		request->method, host[length] ? host + length : "/", length, host, HTTP_AGENT);
	for (size_t i = 0; i < HTTP_HEADERS && request->headers[i]; i++)
		text_addf(text, "%s\r\n", request->headers[i]);
	if (request->body)
		text_addf(text, "Content-Length: %zu\r\n", request->length);
	text_add(text, "\r\n");
	if (request->body)
		text_add_bytes(text, request->body, request->length);
}

static bool await(struct http *http, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = http->plain->socket};
	return epoll_ctl(http->epoll, EPOLL_CTL_MOD, event.data.fd, &event) == 0 ||
	       epoll_ctl(http->epoll, EPOLL_CTL_ADD, event.data.fd, &event) == 0;
}

/* Begin to connect; the request is then sent from its start. False and errno on failure. */
static bool dial(struct http *http)
{
	struct http_plain *self = http->plain;
	const int yes = 1, alive = ALIVE;
	hang_up(self);
	self->connected = self->kept = false;
	self->sent = 0;
	self->connect_by = clock_after(self->connect);
	self->socket = socket(self->place.address.ss_family,
		SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (self->socket < 0)
		return false;
	(void)setsockopt(self->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(self->socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	(void)setsockopt(self->socket, IPPROTO_TCP, TCP_KEEPIDLE, &alive, sizeof(alive));
	(void)setsockopt(self->socket, IPPROTO_TCP, TCP_KEEPINTVL, &alive, sizeof(alive));
	if (connect(self->socket, (struct sockaddr *)&self->place.address, self->place.length) <
			0 &&
		errno != EINPROGRESS)
		return false;
	return await(http, EPOLLOUT);
}

/* True if the kept connection can be used: the server has neither ended it nor sent anything. */
static bool is_quiet(const struct http_plain *self)
{
	char byte;
	return recv(self->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       (errno == EAGAIN || errno == EWOULDBLOCK);
}

enum status http_plain_start(struct http *http, const struct http_request *request,
	const struct http_address *place, struct error *err)
{
	struct http_plain *self = http->plain;
	if (!self) {
		self = http->plain = xcalloc(1, sizeof(*self));
		self->socket = -1;
	}
	bool same = self->socket >= 0 && place->length == self->place.length &&
		    !memcmp(&place->address, &self->place.address, place->length);
	self->place = *place;
	self->once = request->once;
	self->connect = request->connect ? request->connect : HTTP_CONNECT;
	self->end = request->timeout ? clock_after(request->timeout) : CLOCK_NEVER;
	text_release(&self->request);
	self->request.limit = request->length + TEXT_LIMIT;
	write_request(request, &self->request);
	http_reader_start(&self->reader);
	self->sent = 0;
	self->kept = same && is_quiet(self);
	if (self->kept ? !await(http, EPOLLOUT) : !dial(http)) {
		int number = errno;
		hang_up(self);
		return error_errno(err, number, "cannot connect");
	}
	self->added = true;
	http->plain_due = clock_now();
	return STATUS_OK;
}

/* The result of a step. */
enum step {
	STEP_WAITS,
	STEP_DONE,
	STEP_FAILED, /* errno says why; 0: the connection has ended, or the answer is wrong */
};

static enum step connect_on(struct http_plain *self)
{
	struct pollfd polled = {.fd = self->socket, .events = POLLOUT};
	int number = 0;
	socklen_t size = sizeof(number);
	if (self->connected)
		return STEP_DONE;
	if (poll(&polled, 1, 0) <= 0)
		return STEP_WAITS;
	if (getsockopt(self->socket, SOL_SOCKET, SO_ERROR, &number, &size) < 0)
		return STEP_FAILED;
	errno = number;
	self->connected = number == 0;
	return number ? STEP_FAILED : STEP_DONE;
}

static bool would_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static enum step send_on(struct http *http)
{
	struct http_plain *self = http->plain;
	while (self->sent < self->request.length) {
		ssize_t sent = send(self->socket, self->request.data + self->sent,
			self->request.length - self->sent, MSG_NOSIGNAL);
		if (sent < 0)
			return would_wait() ? STEP_WAITS : STEP_FAILED;
		self->sent += (size_t)sent;
		http->answer.sent = true;
		if (self->sent == self->request.length && !await(http, EPOLLIN))
			return STEP_FAILED;
	}
	return STEP_DONE;
}

static bool add_body(void *context, const char *bytes, size_t length)
{
	return http_add_body(context, bytes, length);
}

static enum step receive_on(struct http *http)
{
	struct http_plain *self = http->plain;
	struct http_reader *reader = &self->reader;
	char bytes[16384];
	for (;;) {
		ssize_t got = recv(self->socket, bytes, sizeof(bytes), 0);
		if (got < 0)
			return would_wait() ? STEP_WAITS : STEP_FAILED;
		errno = 0;
		if (got == 0)
			return http_reader_end(reader) ? STEP_DONE : STEP_FAILED;
		size_t used = http_reader_take(reader, bytes, (size_t)got, add_body, http);
		if (used < (size_t)got)
			reader->keeps = false;
		if (reader->at == HTTP_READ_WRONG)
			return STEP_FAILED;
		if (reader->at == HTTP_READ_ENDED)
			return STEP_DONE;
	}
}

static enum step go_on(struct http *http)
{
	enum step step = connect_on(http->plain);
	if (step == STEP_DONE)
		step = send_on(http);
	/* A server may answer, to refuse a request, before it has read all of it. */
	if (step == STEP_DONE || (step == STEP_WAITS && http->plain->sent))
		step = receive_on(http);
	return step;
}

/* True if no byte of the answer has come. */
static bool has_nothing(const struct http_reader *reader)
{
	return reader->at == HTTP_READ_STATUS && reader->head == 0;
}

static enum http_state fail(struct http *http, int number, struct error *err)
{
	struct http_plain *self = http->plain;
	const struct http_reader *reader = &self->reader;
	bool nothing = has_nothing(reader);
	http->answer.failure = self->connected && nothing && !number ? HTTP_EMPTY : HTTP_BROKEN;
	if (reader->at == HTTP_READ_WRONG)
		error_set(err, STATUS_TEMPORARY,
			http->answer.body.too_long ? "the answer is too long"
						   : "its answer is not HTTP");
	else if (number)
		error_set(err, STATUS_TEMPORARY, "%s", strerror(number));
	else
		error_set(err, STATUS_TEMPORARY, "it ended the connection without %s",
			nothing ? "an answer" : "the rest of its answer");
	hang_up(self);
	return HTTP_FAILED;
}

/* True if the request may be sent again by a new connection: the kept one ended without answer. */
static bool may_begin_again(const struct http_plain *self)
{
	return self->kept && has_nothing(&self->reader) && (!self->once || self->sent == 0);
}

enum http_state http_plain_step(struct http *http, int64_t now, struct error *err)
{
	struct http_plain *self = http->plain;
	if (!self->added) {
		if (self->socket >= 0 && !is_quiet(self))
			hang_up(self);
		return HTTP_IDLE;
	}
	enum step step = go_on(http);
	int number = errno;
	if (step == STEP_FAILED && may_begin_again(self)) {
		step = dial(http) ? STEP_WAITS : STEP_FAILED;
		number = errno;
	}
	int64_t due = self->connected ? self->end : clock_earlier(self->connect_by, self->end);
	if (step == STEP_WAITS && now >= due) {
		step = STEP_FAILED;
		number = ETIMEDOUT;
	}
	http->plain_due = due;
	if (step == STEP_WAITS)
		return HTTP_PENDING;
	if (step == STEP_FAILED)
		fail(http, number, err);
	http->answer.code = self->reader.code;
	http_plain_stop(http);
	return step == STEP_DONE ? HTTP_DONE : HTTP_FAILED;
}
