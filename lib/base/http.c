/* SPDX-License-Identifier: MIT */
#include "base/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"

#define YEAR_9999  ((time_t)253402300799) /* its last second; a later date is invalid */
#define CONNECT	   5000L		  /* ms, if the request does not set it */
#define ANSWER_MAX ((size_t)64 << 10)

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

struct http {
	int epoll; /* has the sockets of libcurl, each with itself as data.fd */
	int64_t due;
	bool busy;   /* a request is under way */
	bool once;   /* as in struct http_request */
	size_t most; /* most bytes of an answer */
	struct http_answer answer;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
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
	http->due = timeout < 0 ? CLOCK_NEVER : clock_after(timeout);
	return 0;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	struct http *http = context;
	struct text *body = &http->answer.body;
	body->too_long |= body->length + size * count > http->most;
	if (!body->too_long)
		text_add_bytes(body, bytes, size * count);
	return body->too_long ? 0 : size * count;
}

/* Return the value of a header line with this name; NULL: it has another name. */
static const char *header_value(const char *line, const char *name)
{
	size_t length = strlen(name);
	if (strncasecmp(line, name, length) != 0 || line[length] != ':')
		return NULL;
	line += length + 1;
	return line + strspn(line, " \t");
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
	if ((value = header_value(line, "ETag")) && strlen(value) < sizeof(answer->etag))
		strcpy(answer->etag, value);
	if ((value = header_value(line, "Date"))) {
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
	struct http *http = context;
	bool again = http->answer.sent;
	(void)address;
	(void)own_address;
	(void)port;
	(void)own_port;
	http->answer.sent = true;
	return again && http->once ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* No command that we start inherits a connection: older versions of libcurl do not see to that. */
static int socket_made(void *context, curl_socket_t socket, curlsocktype purpose)
{
	(void)context;
	(void)purpose;
	return fcntl(socket, F_SETFD, FD_CLOEXEC) < 0 ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

enum status http_open(struct http **opened, struct error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
	if (*load_failure)
		return error_set(err, STATUS_NOT_FOUND,
			"cannot load libcurl, of the package libcurl4: %s", load_failure);
	struct http *http = xcalloc(1, sizeof(*http));
	http->due = CLOCK_NEVER;
	http->epoll = epoll_create1(EPOLL_CLOEXEC);
	http->multi = curl.multi_init();
	http->easy = curl.easy_init();
	if (http->epoll < 0 || !http->multi || !http->easy) {
		http_close(http);
		return error_set(
			err, STATUS_TEMPORARY, "cannot speak HTTP: libcurl does not start");
	}
	curl.multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
	curl.multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	curl.multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, timer_changed);
	curl.multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	*opened = http;
	return STATUS_OK;
}

void http_stop(struct http *http)
{
	if (http->busy)
		curl.multi_remove_handle(http->multi, http->easy);
	http->busy = false;
	curl.slist_free_all(http->headers);
	http->headers = NULL;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	http_stop(http);
	curl.easy_cleanup(http->easy);
	curl.multi_cleanup(http->multi);
	if (http->epoll >= 0)
		close(http->epoll);
	text_release(&http->answer.body);
	free(http);
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

static void set_callbacks(struct http *http)
{
	CURL *easy = http->easy;
	curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, http->failure);
	curl.easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, socket_made);
	curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	curl.easy_setopt(easy, CURLOPT_WRITEDATA, http);
	curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	curl.easy_setopt(easy, CURLOPT_HEADERDATA, http);
	curl.easy_setopt(easy, CURLOPT_PREREQDATA, http);
	/* libcurl before 7.80 cannot call it: then use a new connection, on which it sends once. */
	if (curl.easy_setopt(easy, CURLOPT_PREREQFUNCTION, about_to_send) != CURLE_OK && http->once)
		curl.easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
}

enum status http_start(struct http *http, const struct http_request *request, struct error *err)
{
	CURL *easy = http->easy;
	http_stop(http);
	text_release(&http->answer.body);
	http->most = request->most ? request->most : ANSWER_MAX;
	http->answer = (struct http_answer){.body.limit = http->most + 1};
	http->once = request->once;
	*http->failure = '\0';
	http->headers = xneeded(curl.slist_append(NULL, "Expect:")); /* no 100-continue */
	for (size_t i = 0; i < HTTP_HEADERS && request->headers[i]; i++)
		http->headers = xneeded(curl.slist_append(http->headers, request->headers[i]));
	curl.easy_reset(easy); /* this keeps its connections */
	curl.easy_setopt(easy, CURLOPT_URL, request->url);
	curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	curl.easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
	if (request->body)
		curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body);
	curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout);
	curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
		request->connect ? (long)request->connect : CONNECT);
	curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl.easy_setopt(easy, CURLOPT_PROXY, "");
	curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(easy, CURLOPT_USERAGENT, "preempt-tools/" PREEMPT_VERSION);
	set_callbacks(http);
	if (request->tls)
		set_tls(easy, request->tls);
	http->due = clock_now();
	if (curl.multi_add_handle(http->multi, easy) != CURLM_OK)
		return error_set(err, STATUS_TEMPORARY, "cannot ask %s", request->url);
	http->busy = true;
	return STATUS_OK;
}

int http_descriptor(const struct http *http)
{
	return http->epoll;
}

int64_t http_due(const struct http *http)
{
	return http->busy ? http->due : CLOCK_NEVER;
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
		curl.multi_socket_action(http->multi, events[i].data.fd, mask, &running);
	}
	if (now >= http->due) {
		http->due = CLOCK_NEVER;
		curl.multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
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

/* Without a request, too, libcurl notices that a connection that was kept has ended. */
enum http_state http_step(struct http *http, int64_t now, struct error *err)
{
	int left;
	drive(http, now);
	if (!http->busy)
		return HTTP_IDLE;
	const CURLMsg *message = curl.multi_info_read(http->multi, &left);
	if (!message || message->msg != CURLMSG_DONE)
		return HTTP_PENDING;
	CURLcode result = message->data.result;
	long code = 0, sent = 0, refused = 0;
	curl.easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &code);
	curl.easy_getinfo(http->easy, CURLINFO_REQUEST_SIZE, &sent);
	curl.easy_getinfo(http->easy, CURLINFO_OS_ERRNO, &refused);
	http->answer.code = (int)code;
	http->answer.sent |= sent > 0;
	http_stop(http);
	if (result == CURLE_OK)
		return HTTP_DONE;
	http->answer.failure = failure_of(result, http->failure);
	error_set(err, STATUS_TEMPORARY, "%s",
		http->answer.body.too_long	      ? "the answer is too long"
		: result == CURLE_ABORTED_BY_CALLBACK ? "the connection ended before the answer"
		: result == CURLE_COULDNT_CONNECT && refused ? strerror((int)refused)
		: *http->failure			     ? http->failure
							     : curl.easy_strerror(result));
	return HTTP_FAILED;
}

const struct http_answer *http_answer(const struct http *http)
{
	return &http->answer;
}

void http_forget(struct http *http, size_t length)
{
	struct text *body = &http->answer.body;
	memmove(body->data, body->data + length, body->length - length + 1);
	body->length -= length;
}
