/* SPDX-License-Identifier: MIT */
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http/reader.h"
#include "base/http/transport.h"
#include "base/xalloc.h"

#define YEAR_9999 ((time_t)253402300799) /* its last second; a later date is invalid */

/* The functions of libcurl that we call, without their prefix curl_. */
#define FUNCTIONS(use)                                                                             \
	use(global_init) use(easy_init) use(easy_cleanup) use(easy_reset) use(easy_setopt)         \
		use(easy_getinfo) use(easy_strerror) use(slist_append) use(slist_free_all)         \
			use(getdate) use(multi_init) use(multi_cleanup) use(multi_add_handle)      \
				use(multi_remove_handle) use(multi_setopt)                         \
					use(multi_socket_action) use(multi_info_read)

/* curl.h has macros of these names, which check types and do not work with our pointers. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define DECLARE(name) __typeof__(curl_##name) *name;
static struct {
	FUNCTIONS(DECLARE)
} curl;

static char load_failure[256]; /* empty: loaded */

static void load(void)
{
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		strncpy(load_failure, dlerror(), sizeof(load_failure) - 1);
		return;
	}
#define FIND(name)                                                                                 \
	curl.name = (__typeof__(curl.name))dlsym(library, "curl_" #name);                          \
	if (!curl.name)                                                                            \
		strcpy(load_failure, "it has no curl_" #name);
	FUNCTIONS(FIND)
	if (!*load_failure && curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		strcpy(load_failure, "it does not start");
}

struct http_curl {
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	bool added;
	bool once;	   /* as in struct http_request */
	unsigned attempts; /* how many times the request was about to be sent */
	char failure[CURL_ERROR_SIZE];
};

static int socket_changed(
	CURL *easy, curl_socket_t socket, int what, void *context, void *per_socket)
{
	struct http *http = context;
	struct epoll_event event = {.data.fd = socket};
	(void)easy;
	(void)per_socket;
	if (what == CURL_POLL_REMOVE) {
		(void)epoll_ctl(http->epoll, EPOLL_CTL_DEL, socket, NULL);
		return 0;
	}
	event.events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
		       (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
	if (epoll_ctl(http->epoll, EPOLL_CTL_MOD, socket, &event) < 0 &&
		epoll_ctl(http->epoll, EPOLL_CTL_ADD, socket, &event) < 0)
		return -1;
	return 0;
}

static int timer_changed(CURLM *multi, long timeout, void *context)
{
	struct http *http = context;
	(void)multi;
	http->curl_due = timeout < 0 ? CLOCK_NEVER : clock_after(timeout);
	return 0;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	return http_add_body(context, bytes, size * count) ? size * count : 0;
}

void http_take_header(struct http_answer *answer, const char *bytes, size_t length)
{
	char line[256];
	const char *value;
	if (length >= sizeof(line))
		length = sizeof(line) - 1;
	memcpy(line, bytes, length);
	line[length] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if ((value = http_header_value(line, "ETag")) && strlen(value) < sizeof(answer->etag))
		strcpy(answer->etag, value);
	if (curl.getdate && (value = http_header_value(line, "Date"))) {
		time_t date = curl.getdate(value, NULL);
		answer->date_utc = date > 0 && date <= YEAR_9999 ? (int64_t)date * 1000 : 0;
	}
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
	struct http *http = context;
	http_take_header(&http->answer, bytes, size * count);
	return size * count;
}

/*
 * libcurl sends a request again when a connection that was kept ends before the answer. It calls
 * this function before each sending, and this function can prevent the second one.
 */
static int about_to_send(void *context, char *address, char *own_address, int port, int own_port)
{
	struct http_curl *self = context;
	(void)address;
	(void)own_address;
	(void)port;
	(void)own_port;
	return self->attempts++ && self->once ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

enum status http_curl_open(struct http *http, struct error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
	if (*load_failure)
		return error_set(err, STATUS_NOT_FOUND,
			"cannot load libcurl (%s): install the package libcurl4", load_failure);
	struct http_curl *self = http->curl = xcalloc(1, sizeof(*self));
	self->multi = curl.multi_init();
	self->easy = curl.easy_init();
	if (!self->multi || !self->easy)
		return error_set(
			err, STATUS_TEMPORARY, "cannot speak HTTP: libcurl does not start");
	curl.multi_setopt(self->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
	curl.multi_setopt(self->multi, CURLMOPT_SOCKETDATA, http);
	curl.multi_setopt(self->multi, CURLMOPT_TIMERFUNCTION, timer_changed);
	curl.multi_setopt(self->multi, CURLMOPT_TIMERDATA, http);
	return STATUS_OK;
}

void http_curl_stop(struct http *http)
{
	struct http_curl *self = http->curl;
	if (self->added)
		curl.multi_remove_handle(self->multi, self->easy);
	self->added = false;
	curl.slist_free_all(self->headers);
	self->headers = NULL;
}

void http_curl_close(struct http_curl *self)
{
	if (!self)
		return;
	curl.easy_cleanup(self->easy);
	curl.multi_cleanup(self->multi);
	free(self);
}

static void set_body(CURL *easy, const struct http_request *request)
{
	curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
	curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body);
}

static void set_tls(CURL *easy, const struct http_tls *tls)
{
	if (tls->authorities)
		curl.easy_setopt(easy, CURLOPT_CAINFO, tls->authorities);
	if (tls->certificate)
		curl.easy_setopt(easy, CURLOPT_SSLCERT, tls->certificate);
	if (tls->key)
		curl.easy_setopt(easy, CURLOPT_SSLKEY, tls->key);
}

/* libcurl before 7.80 cannot call about_to_send: use a new connection, on which it sends once. */
static void set_once(struct http_curl *self, bool once)
{
	self->once = once;
	self->attempts = 0;
	curl.easy_setopt(self->easy, CURLOPT_PREREQDATA, self);
	if (curl.easy_setopt(self->easy, CURLOPT_PREREQFUNCTION, about_to_send) != CURLE_OK && once)
		curl.easy_setopt(self->easy, CURLOPT_FRESH_CONNECT, 1L);
}

enum status http_curl_start(
	struct http *http, const struct http_request *request, struct error *err)
{
	struct http_curl *self = http->curl;
	CURL *easy = self->easy;
	*self->failure = '\0';
	self->headers = xneeded(curl.slist_append(NULL, "Expect:")); /* no 100-continue */
	for (size_t i = 0; i < HTTP_HEADERS && request->headers[i]; i++)
		self->headers = xneeded(curl.slist_append(self->headers, request->headers[i]));
	curl.easy_reset(easy); /* this keeps its connections */
	curl.easy_setopt(easy, CURLOPT_URL, request->url);
	curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	curl.easy_setopt(easy, CURLOPT_HTTPHEADER, self->headers);
	curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout);
	curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
		request->connect ? (long)request->connect : HTTP_CONNECT);
	curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl.easy_setopt(easy, CURLOPT_PROXY, "");
	curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(easy, CURLOPT_USERAGENT, HTTP_AGENT);
	curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, self->failure);
	curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	curl.easy_setopt(easy, CURLOPT_WRITEDATA, http);
	curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	curl.easy_setopt(easy, CURLOPT_HEADERDATA, http);
	set_once(self, request->once);
	if (request->body)
		set_body(easy, request);
	if (request->tls)
		set_tls(easy, request->tls);
	http->curl_due = clock_now();
	if (curl.multi_add_handle(self->multi, easy) != CURLM_OK)
		return error_set(err, STATUS_TEMPORARY, "cannot ask %s", request->url);
	self->added = true;
	return STATUS_OK;
}

/* Let libcurl do what can be done without waiting. */
static void drive(struct http *http, int64_t now)
{
	struct epoll_event events[16];
	int running;
	int count = epoll_wait(http->epoll, events, 16, 0);
	for (int i = 0; i < count; i++) {
		int mask = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			   (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
		curl.multi_socket_action(http->curl->multi, events[i].data.fd, mask, &running);
	}
	if (now >= http->curl_due) {
		http->curl_due = CLOCK_NEVER;
		curl.multi_socket_action(http->curl->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
}

static enum http_failure failure_of(CURLcode result, const char *text)
{
	switch (result) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE: return HTTP_UNTRUSTED;
	case CURLE_GOT_NOTHING: return HTTP_EMPTY;
	/* A server with TLS 1.3 refuses our certificate by an alert in its first answer. */
	default: return strstr(text, "alert") ? HTTP_UNTRUSTED : HTTP_BROKEN;
	}
}

enum http_state http_curl_step(struct http *http, int64_t now, struct error *err)
{
	struct http_curl *self = http->curl;
	int left;
	drive(http, now);
	const CURLMsg *message = self->added ? curl.multi_info_read(self->multi, &left) : NULL;
	if (!message || message->msg != CURLMSG_DONE)
		return HTTP_PENDING;
	CURLcode result = message->data.result;
	long code = 0, sent = 0;
	curl.easy_getinfo(self->easy, CURLINFO_RESPONSE_CODE, &code);
	curl.easy_getinfo(self->easy, CURLINFO_REQUEST_SIZE, &sent);
	http->answer.code = (int)code;
	http->answer.sent = sent > 0;
	http_curl_stop(http);
	if (result == CURLE_OK)
		return HTTP_DONE;
	http->answer.failure = failure_of(result, self->failure);
	error_set(err, STATUS_TEMPORARY, "%s",
		http->answer.body.too_long	      ? "the answer is too long"
		: result == CURLE_ABORTED_BY_CALLBACK ? "the connection ended before the answer"
		: *self->failure		      ? self->failure
						      : curl.easy_strerror(result));
	return HTTP_FAILED;
}
