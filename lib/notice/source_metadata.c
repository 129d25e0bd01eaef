/* SPDX-License-Identifier: MIT */
/*
 * gce, aws, azure, alibaba: these sources ask a cloud's metadata server, as cloud.h describes it.
 * Each query has a connection of its own, so that a slow one delays no other. The introduction, a
 * first request that some clouds need, has one, too. One loop watches them all.
 *
 * The source answers SOURCE_NONE when each query was answered since the last SOURCE_NONE, and all
 * new notices were returned. So it never answers SOURCE_NONE while a query fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "notice/cloud.h"
#include "notice/source.h"

#define REQUEST_TIMEOUT 5000  /* ms */
#define LONG_POLL	60000 /* ms that are added to REQUEST_TIMEOUT for a long poll */
#define NO_ETAG_PERIOD	5000  /* ms between two requests, if there is no etag for a long poll */
#define LONGEST_WAIT	30000 /* ms between two requests after failures, at most */

/* One query of the cloud, and the state of its requests. */
struct look {
	const struct cloud_query *kind;
	struct http *http;
	int64_t next; /* when to ask again */
	bool busy;    /* a request is under way */
	bool asked;   /* a request had a valid answer at least once */
	bool none;    /* answered since the last SOURCE_NONE; false again after a failure */
	bool refused; /* refused since the last valid answer, so the token is a new one */
	bool given;   /* the notice with given_reason was returned, and still holds */
	unsigned failures;
	char etag[128];
	char given_reason[256];
};

struct metadata_source {
	struct source source;
	const struct cloud *cloud;
	int64_t grace, period; /* of source_options; if period is 0, each query has its own */
	unsigned options;
	char *base;
	bool base_named;  /* the specification names it */
	struct loop loop; /* the connections */
	bool more;	  /* metadata_check has more to do at once */

	struct http *introduction;
	bool introducing;
	unsigned introduction_failures;
	char *introduced; /* the answer to the introduction, "" without one; NULL: none yet */
	bool said_silent;
	int64_t introduced_until; /* end of its validity */
	int64_t introduce_next;

	struct look looks[CLOUD_QUERIES];
	size_t count;
};

static void metadata_close(struct source *source)
{
	struct metadata_source *self = (struct metadata_source *)source;
	for (size_t i = 0; i < self->count; i++)
		http_close(self->looks[i].http);
	http_close(self->introduction);
	loop_close(&self->loop);
	free(self->introduced);
	free(self->base);
	free(self);
}

static enum status attend(struct metadata_source *self, struct http **http, struct error *err)
{
	enum status status = http_open(http, err);
	if (status == STATUS_OK)
		loop_watch(&self->loop, http_descriptor(*http));
	return status;
}

/* The base URL: the given one, otherwise from a variable, otherwise the cloud's own. */
static void find_base(struct metadata_source *self, const char *given)
{
	const struct cloud *cloud = self->cloud;
	const char *base = given;
	self->base_named = base;
	if (!base)
		base = getenv(cloud->environment);
	for (size_t i = 0; (!base || !*base) && i < 2 && cloud->hosts[i]; i++) {
		const char *host = getenv(cloud->hosts[i]);
		if (host && *host) {
			self->base = xprintf("http://%s", host);
			return;
		}
	}
	self->base = xstrdup(base && *base ? base : cloud->base);
	for (size_t end = strlen(self->base); end && self->base[end - 1] == '/';)
		self->base[--end] = '\0';
}

static enum status refuse_word(const struct cloud *cloud, const char *word, struct error *err)
{
	struct text known = {0};
	for (size_t i = 0; i < CLOUD_OPTIONS && cloud->options[i]; i++)
		text_addf(&known, "%s, ", cloud->options[i]);
	error_set(err, STATUS_USAGE, "source %s: \"%s\" is not understood; known are %shttp://HOST",
		cloud->name, word, text_string(&known));
	text_release(&known);
	return STATUS_USAGE;
}

/* Read "rebalance,http://127.0.0.1:8080": options, and another base URL. */
static enum status read_words(struct metadata_source *self, const char *rest, struct error *err)
{
	char *words = xstrdup(rest), *left = words, *word, *base = NULL;
	enum status status = STATUS_OK;
	while (*rest && status == STATUS_OK && (word = strsep(&left, ","))) {
		size_t option = 0;
		if (!strncmp(word, "http://", 7) || !strncmp(word, "https://", 8)) {
			base = word;
			continue;
		}
		while (option < CLOUD_OPTIONS && self->cloud->options[option] &&
			strcmp(self->cloud->options[option], word))
			option++;
		if (option == CLOUD_OPTIONS || !self->cloud->options[option])
			status = refuse_word(self->cloud, word, err);
		self->options |= 1u << option;
	}
	if (status == STATUS_OK)
		find_base(self, base);
	free(words);
	return status;
}

static bool is_wanted(const struct metadata_source *self, const struct cloud_query *kind)
{
	if (!kind->option)
		return true;
	for (size_t i = 0; i < CLOUD_OPTIONS && self->cloud->options[i]; i++)
		if (!strcmp(self->cloud->options[i], kind->option))
			return self->options & 1u << i;
	return false;
}

static enum status open_cloud(const struct cloud *cloud, struct source **source, const char *rest,
	const struct source_options *options, struct error *err)
{
	struct metadata_source *self = xcalloc(1, sizeof(*self));
	self->cloud = cloud;
	self->grace = options->grace;
	self->period = options->period;
	self->loop = LOOP_CLOSED;
	enum status status = loop_open(&self->loop, err);
	if (status == STATUS_OK)
		status = read_words(self, rest, err);
	if (status == STATUS_OK && cloud->introduction.method)
		status = attend(self, &self->introduction, err);
	for (size_t i = 0; status == STATUS_OK && i < CLOUD_QUERIES && cloud->queries[i].path;
		i++) {
		if (!is_wanted(self, &cloud->queries[i]))
			continue;
		struct look *look = &self->looks[self->count++];
		look->kind = &cloud->queries[i];
		status = attend(self, &look->http, err);
	}
	if (status == STATUS_OK)
		*source = &self->source;
	else
		metadata_close(&self->source);
	return status;
}

static int metadata_descriptor(const struct source *source)
{
	return ((const struct metadata_source *)source)->loop.descriptor;
}

static bool is_introduced(const struct metadata_source *self, int64_t now)
{
	return !self->introduction || (self->introduced && now < self->introduced_until);
}

static int64_t metadata_due(const struct source *source)
{
	const struct metadata_source *self = (const struct metadata_source *)source;
	int64_t due = CLOCK_NEVER;
	bool introduced = is_introduced(self, clock_now());
	if (self->more)
		return 0;
	if (self->introducing)
		due = http_due(self->introduction);
	else if (!introduced)
		due = self->introduce_next;
	for (size_t i = 0; i < self->count; i++) {
		const struct look *look = &self->looks[i];
		int64_t its = look->busy   ? http_due(look->http)
			      : introduced ? look->next
					   : CLOCK_NEVER;
		due = its < due ? its : due;
	}
	return due;
}

/* The time until the next request: longer after each failure in a row, and half of it random. */
static int64_t wait_after(unsigned failures, int64_t period)
{
	int64_t wait = period;
	for (unsigned i = 1; i < failures && wait < LONGEST_WAIT; i++)
		wait *= 2;
	wait = wait < LONGEST_WAIT ? wait : LONGEST_WAIT;
	return failures ? wait / 2 + clock_jitter(wait / 2 + 1) : wait;
}

/* Put the URL before the error. The specification is printed first: if it has the base URL, put
 * only the path. */
static enum source_answer cannot_ask(
	const struct metadata_source *self, const char *path, struct error *err)
{
	error_prefix(err, "%s%s", self->base_named ? "" : self->base, path);
	return SOURCE_CANNOT_ASK;
}

static enum status introduce(struct metadata_source *self, struct error *err)
{
	const struct cloud_introduction *how = &self->cloud->introduction;
	struct text url = {0};
	text_addf(&url, "%s%s", self->base, how->path);
	struct http_request request = {.method = how->method,
		.url = text_string(&url),
		.headers = {how->header ? how->header : self->cloud->header},
		.timeout = REQUEST_TIMEOUT};
	enum status status = http_start(self->introduction, &request, err);
	self->introducing = status == STATUS_OK;
	text_release(&url);
	return status;
}

static enum source_answer not_introduced(
	struct metadata_source *self, int64_t now, struct error *err)
{
	self->introduce_next = now + wait_after(++self->introduction_failures, 1000);
	return cannot_ask(self, self->cloud->introduction.path, err);
}

static void become_introduced(
	struct metadata_source *self, const char *answer, size_t length, int64_t until)
{
	free(self->introduced);
	self->introduced = xstrndup(answer, length);
	self->introduced_until = until;
	self->more = true; /* the queries may begin */
}

/* Start or continue the introduction if it is needed. SOURCE_PENDING: it did not fail now. */
static enum source_answer check_introduction(
	struct metadata_source *self, int64_t now, struct error *err)
{
	if (!self->introduction)
		return SOURCE_PENDING;
	if (!self->introducing && !is_introduced(self, now) && now >= self->introduce_next &&
		introduce(self, err) != STATUS_OK)
		return not_introduced(self, now, err);
	enum http_state state = http_step(self->introduction, now, err);
	if (state == HTTP_IDLE || state == HTTP_PENDING)
		return SOURCE_PENDING;
	self->introducing = false;
	if (state == HTTP_FAILED && self->cloud->introduction.silent) {
		become_introduced(self, "", 0, CLOCK_NEVER);
		return SOURCE_PENDING;
	}
	if (state == HTTP_FAILED)
		return not_introduced(self, now, err);
	const struct http_answer *answer = http_answer(self->introduction);
	const char *body = text_string(&answer->body);
	size_t length = strcspn(body, "\r\n");
	/* A token is sent in a header, so it must be one printable line. */
	bool good = answer->code == 200 && length > 0 && length <= 512 &&
		    strspn(body + length, "\r\n") == answer->body.length - length;
	for (size_t i = 0; good && i < length; i++)
		good = body[i] > ' ' && body[i] < 0x7f;
	if (!good) {
		error_set(err, STATUS_TEMPORARY, "it answered with code %d and \"%.60s\"",
			answer->code, body);
		return not_introduced(self, now, err);
	}
	self->introduction_failures = 0;
	become_introduced(self, body, length,
		self->cloud->introduction.life ? now + self->cloud->introduction.life
					       : CLOCK_NEVER);
	return SOURCE_PENDING;
}

static enum status start_look(struct metadata_source *self, struct look *look, struct error *err)
{
	const struct cloud *cloud = self->cloud;
	const struct cloud_query *kind = look->kind;
	struct text url = {0}, bear = {0};
	bool waits = kind->long_poll && *look->etag;
	text_addf(&url, "%s%s", self->base, kind->path);
	if (waits)
		text_addf(&url, "%s%s", kind->long_poll, look->etag);
	struct http_request request = {.method = "GET", .url = text_string(&url)};
	size_t headers = 0;
	if (cloud->header)
		request.headers[headers++] = cloud->header;
	if (cloud->introduction.bear && *self->introduced) {
		text_addf(&bear, "%s: %s", cloud->introduction.bear, self->introduced);
		request.headers[headers++] = text_string(&bear);
	}
	request.timeout = REQUEST_TIMEOUT + (waits ? LONG_POLL : 0);
	if (!look->asked && kind->patience)
		request.timeout = kind->patience;
	enum status status = http_start(look->http, &request, err);
	look->busy = status == STATUS_OK;
	text_release(&url);
	text_release(&bear);
	return status;
}

static int64_t period_of(const struct metadata_source *self, const struct look *look)
{
	return self->period ? self->period : look->kind->period;
}

static enum source_answer look_failed(
	struct metadata_source *self, struct look *look, int64_t now, struct error *err)
{
	look->next = now + wait_after(++look->failures, period_of(self, look));
	look->etag[0] = '\0'; /* without an etag the server answers at once */
	look->none = false;
	return cannot_ask(self, look->kind->path, err);
}

/* The etag is put into a URL: accept only characters that need no escapes there. */
static void keep_etag(struct look *look, const char *etag)
{
	bool plain = true;
	for (const char *s = etag; *s; s++)
		plain &= (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') ||
			 (*s >= 'A' && *s <= 'Z') || *s == '-' || *s == '_';
	snprintf(look->etag, sizeof(look->etag), "%s", plain ? etag : "");
}

static bool has_gpu(void)
{
	return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/kfd", F_OK) == 0;
}

/* Return the notice. utc: now, by the server's clock if server is true, else ours. */
static enum source_answer give(struct metadata_source *self, struct look *look,
	const struct cloud_finding *finding, int64_t utc, bool server, struct notice *notice)
{
	char name[64], reason[400], now[32];
	const struct cloud_query *kind = look->kind;
	int64_t lead = kind->lead_with_gpu && has_gpu() ? kind->lead_with_gpu : kind->lead;
	int64_t left = finding->left >= 0 ? finding->left : lead;
	if (self->grace >= 0 && (left < 0 || self->grace < left))
		left = self->grace;
	snprintf(name, sizeof(name), "%s:%s", self->cloud->name, kind->name);
	snprintf(reason, sizeof(reason), "%s", finding->reason);
	clock_format_utc(utc, now);
	if (finding->left == 0)
		snprintf(reason, sizeof(reason),
			"%.160s; %s clock says %s: the time left is not known", finding->reason,
			server ? "the server's" : "this machine's", now);
	notice_set(notice, name, reason, notice_time(), left);
	return SOURCE_NOTICE;
}

static enum source_answer read_answer(struct metadata_source *self, struct look *look, int64_t now,
	struct notice *notice, struct error *err)
{
	const struct http_answer *answer = http_answer(look->http);
	struct cloud_finding finding = {.left = -1};
	struct cloud_reply reply = {.code = answer->code,
		.body = text_string(&answer->body),
		.self = self->introduced,
		.utc = answer->date_utc ? answer->date_utc : clock_utc(),
		.options = self->options};
	enum cloud_answer said = look->kind->read(&reply, &finding, err);
	if (said == CLOUD_REFUSED) {
		/* One refusal is normal: the token has expired. */
		self->introduced_until = now;
		self->more = true;
		look->next = now;
		if (!look->refused) {
			look->refused = true;
			return SOURCE_PENDING;
		}
		if (*self->introduced)
			error_set(err, STATUS_TEMPORARY, "it answered with code %d to a new token",
				answer->code);
		else
			error_set(err, STATUS_TEMPORARY,
				"it wants a token, and does not answer the request for one: %s",
				self->cloud->introduction.silent);
	}
	if (said == CLOUD_REFUSED || said == CLOUD_CANNOT_ASK)
		return look_failed(self, look, now, err);
	const bool first = !look->asked;
	look->asked = true;
	look->refused = false;
	look->failures = 0;
	look->none = true;
	if (look->kind->long_poll)
		keep_etag(look, answer->etag);
	look->next = now + (*look->etag			   ? 0
				   : look->kind->long_poll ? NO_ETAG_PERIOD
							   : period_of(self, look));
	if (self->introduced && !*self->introduced && !self->said_silent)
		message_info("%s%s does not answer; asking without a token: %s", self->base,
			self->cloud->introduction.path, self->cloud->introduction.silent);
	self->said_silent = self->introduced && !*self->introduced;
	bool known = look->given && !strcmp(look->given_reason, finding.reason);
	look->given = said == CLOUD_NOTICE;
	if (!look->given || known)
		return SOURCE_PENDING;
	snprintf(look->given_reason, sizeof(look->given_reason), "%s", finding.reason);
	if (!first || finding.age < CLOUD_STALE)
		return give(self, look, &finding, reply.utc, answer->date_utc, notice);
	message_info("%s:%s: %s; ignored, because it was so before this start", self->cloud->name,
		look->kind->name, finding.reason);
	return SOURCE_PENDING;
}

static enum source_answer check_look(struct metadata_source *self, struct look *look, int64_t now,
	struct notice *notice, struct error *err)
{
	if (!look->busy && now >= look->next && is_introduced(self, now) &&
		start_look(self, look, err) != STATUS_OK)
		return look_failed(self, look, now, err);
	enum http_state state = http_step(look->http, now, err);
	if (state == HTTP_IDLE || state == HTTP_PENDING)
		return SOURCE_PENDING;
	look->busy = false;
	if (state == HTTP_FAILED)
		return look_failed(self, look, now, err);
	return read_answer(self, look, now, notice, err);
}

static enum source_answer metadata_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct metadata_source *self = (struct metadata_source *)source;
	bool none = true;
	self->more = false;
	enum source_answer answer = check_introduction(self, now, err);
	for (size_t i = 0; answer == SOURCE_PENDING && i < self->count; i++)
		answer = check_look(self, &self->looks[i], now, notice, err);
	if (answer != SOURCE_PENDING) {
		self->more = true; /* other requests may have ended, too */
		return answer;
	}
	for (size_t i = 0; i < self->count; i++)
		none &= self->looks[i].none;
	if (!none)
		return SOURCE_PENDING;
	for (size_t i = 0; i < self->count; i++)
		self->looks[i].none = false;
	return SOURCE_NONE;
}

#define CLOUD(NAME)                                                                                \
	static enum status NAME##_open(struct source **source, const char *rest,                   \
		const struct source_options *options, struct error *err)                           \
	{                                                                                          \
		return open_cloud(&cloud_##NAME, source, rest, options, err);                      \
	}                                                                                          \
	const struct source_kind source_##NAME = {.name = #NAME,                                   \
		.example = #NAME,                                                                  \
		.bare = true,                                                                      \
		.open = NAME##_open,                                                               \
		.close = metadata_close,                                                           \
		.descriptor = metadata_descriptor,                                                 \
		.due = metadata_due,                                                               \
		.check = metadata_check};
CLOUD(gce)
CLOUD(aws)
CLOUD(azure)
CLOUD(alibaba)
