/* SPDX-License-Identifier: MIT */
#include "store/etcd/inspect.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "store/etcd/credentials.h"
#include "store/etcd/gateway.h"
#include "store/etcd/wire.h"

#define ENDPOINT_TIME 3000 /* milliseconds for one endpoint */
#define LEASE_LIFE    60 /* seconds; then the server removes the key of a doctor that was killed */

struct inspection {
	const struct etcd_options *options;
	struct etcd_report *report;
	int64_t deadline;
};

static int64_t now_us(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- Each endpoint by itself ---- */

static void take_status(struct etcd_endpoint *endpoint, struct json_object *said)
{
	struct json_object *header = wire_object(said, "header");
	const char *version = "";
	(void)json_get_text(said, "version", &version);
	snprintf(endpoint->version, sizeof(endpoint->version), "%s", version);
	endpoint->cluster = wire_number(header, "cluster_id");
	endpoint->member = wire_number(header, "member_id");
	endpoint->leader = wire_number(said, "leader");
	endpoint->log = wire_number(said, "raftIndex");
	endpoint->applied = wire_number(said, "raftAppliedIndex");
	endpoint->size = wire_number(said, "dbSize");
	endpoint->learner = wire_flag(said, "isLearner");
}

/* Open a gateway that asks only this endpoint. *single must outlive it. */
static enum status open_one(struct inspection *self, size_t i, struct etcd_options *single,
	struct gateway *gateway, struct error *err)
{
	*single = *self->options;
	single->endpoints[0] = self->options->endpoints[i];
	single->count = 1;
	return gateway_open(gateway, single, self->report->where, err);
}

static int64_t endpoint_deadline(const struct inspection *self)
{
	return clock_earlier(self->deadline, clock_after(ENDPOINT_TIME));
}

static void look_at(struct inspection *self, size_t i)
{
	struct etcd_endpoint *endpoint = &self->report->endpoints[i];
	struct etcd_options single;
	struct gateway gateway;
	struct gateway_reply reply = {0};
	struct error err = {0};
	snprintf(endpoint->name, sizeof(endpoint->name), "%s", self->options->endpoints[i]);
	endpoint->status = open_one(self, i, &single, &gateway, &err);
	if (endpoint->status == STATUS_OK) {
		endpoint->status = gateway_repeat(&gateway, "/v3/maintenance/status", "{}",
			endpoint_deadline(self), &reply, &err);
		gateway_close(&gateway);
	}
	if (endpoint->status == STATUS_OK)
		take_status(endpoint, reply.object);
	else
		snprintf(endpoint->why, sizeof(endpoint->why), "%s", err.text);
	gateway_reply_release(&reply);
}

/* Whether the endpoint answers with a revision older than `revision`, of an acknowledged write. */
static void look_again(struct inspection *self, size_t i, const char *read, int64_t revision)
{
	struct etcd_endpoint *endpoint = &self->report->endpoints[i];
	struct etcd_options single;
	struct gateway gateway;
	struct gateway_reply reply = {0};
	struct error err;
	if (endpoint->status != STATUS_OK ||
		open_one(self, i, &single, &gateway, &err) != STATUS_OK)
		return;
	if (gateway_repeat(&gateway, "/v3/kv/range", read, endpoint_deadline(self), &reply, &err) ==
		STATUS_OK)
		endpoint->behind =
			wire_number(wire_object(reply.object, "header"), "revision") < revision;
	gateway_close(&gateway);
	gateway_reply_release(&reply);
}

/* ---- The cluster ---- */

static void look_at_cluster(struct inspection *self, struct gateway *gateway)
{
	struct etcd_report *report = self->report;
	struct gateway_reply reply = {0};
	struct error err;
	int64_t deadline = endpoint_deadline(self);
	if (gateway_repeat(gateway, "/v3/cluster/member/list", "{}", deadline, &reply, &err) ==
		STATUS_OK)
		report->members = wire_count(reply.object, "members");
	if (gateway_repeat(gateway, "/v3/maintenance/alarm", "{\"action\":\"GET\"}", deadline,
		    &reply, &err) == STATUS_OK)
		for (size_t i = 0; i < wire_count(reply.object, "alarms"); i++) {
			const char *kind = "";
			(void)json_get_text(
				wire_element(reply.object, "alarms", i), "alarm", &kind);
			report->full |= !strcmp(kind, "NOSPACE");
			report->corrupt |= !strcmp(kind, "CORRUPT");
		}
	gateway_reply_release(&reply);
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

struct measured {
	const char *path;
	const struct text *body;
	int64_t *median; /* the median of ETCD_SAMPLES requests */
};

static enum status measure(const struct inspection *self, struct gateway *gateway,
	const struct measured *measured, struct gateway_reply *reply, struct error *err)
{
	int64_t samples[ETCD_SAMPLES];
	for (size_t i = 0; i < ETCD_SAMPLES; i++) {
		int64_t began = now_us();
		enum status status = gateway_repeat(gateway, measured->path,
			text_string(measured->body), self->deadline, reply, err);
		if (status != STATUS_OK)
			return status;
		samples[i] = now_us() - began;
	}
	qsort(samples, ETCD_SAMPLES, sizeof(samples[0]), by_size);
	*measured->median = samples[ETCD_SAMPLES / 2];
	return STATUS_OK;
}

static void write_probe(const struct inspection *self, int64_t lease, struct text *put,
	struct text *read, struct text *revoke)
{
	struct wire_key key;
	char name[32];
	snprintf(name, sizeof(name), "%lld", (long long)lease);
	wire_key_set(&key, self->options->prefix, 'x', name);
	text_add(put, "{");
	wire_add_key(put, &key);
	wire_add_number(put, "lease", lease);
	text_add(put, "}");
	text_add(read, "{");
	wire_add_key(read, &key);
	text_add(read, "}");
	text_add(revoke, "{");
	wire_add_number(revoke, "ID", lease);
	text_add(revoke, "}");
}

/* Make a lease, write a key with it, and read it from each endpoint. Its end removes the key. */
static enum status probe_cluster(
	struct inspection *self, struct gateway *gateway, struct error *err)
{
	struct etcd_report *report = self->report;
	struct text put = {0}, read = {0}, revoke = {0};
	struct gateway_reply reply = {0};
	int64_t lease;
	enum status status = gateway_grant(gateway, LEASE_LIFE, self->deadline, &lease, err);
	if (status != STATUS_OK)
		return status;
	write_probe(self, lease, &put, &read, &revoke);
	const struct measured writes = {"/v3/kv/put", &put, &report->write_us},
			      reads = {"/v3/kv/range", &read, &report->read_us};
	status = measure(self, gateway, &writes, &reply, err);
	if (status == STATUS_OK) {
		int64_t revision = wire_number(wire_object(reply.object, "header"), "revision");
		status = measure(self, gateway, &reads, &reply, err);
		for (size_t i = 0; i < report->count && status == STATUS_OK; i++)
			look_again(self, i, text_string(&read), revision);
	}
	struct error unused;
	(void)gateway_repeat(
		gateway, "/v3/lease/revoke", text_string(&revoke), self->deadline, &reply, &unused);
	gateway_reply_release(&reply);
	text_release(&put);
	text_release(&read);
	text_release(&revoke);
	return status;
}

static void inspect(struct inspection *self)
{
	struct etcd_report *report = self->report;
	struct gateway gateway;
	struct error err = {0};
	for (size_t i = 0; i < report->count; i++)
		look_at(self, i);
	report->probe = gateway_open(&gateway, self->options, report->where, &err);
	if (report->probe == STATUS_OK) {
		look_at_cluster(self, &gateway);
		report->probe = probe_cluster(self, &gateway, &err);
		gateway_close(&gateway);
	}
	snprintf(report->probe_why, sizeof(report->probe_why), "%s", err.text);
	report->open =
		report->probe == STATUS_OK && credentials_matter(self->options, report->where,
						      endpoint_deadline(self), &err) == STATUS_NO;
}

static bool is_near(const char *endpoint)
{
	return !strncmp(endpoint, "127.", 4) || !strncmp(endpoint, "[::1]:", 6) ||
	       !strncmp(endpoint, "localhost:", 10);
}

static bool is_exposed(const char *key)
{
	struct stat st;
	return key && file_stat(AT_FDCWD, key, 0, &st) == 0 && (st.st_mode & 07);
}

enum status etcd_inspect(
	const char *url, int64_t deadline, struct etcd_report *report, struct error *err)
{
	struct store_url parsed;
	struct etcd_options options;
	enum status status = url_parse(url, &parsed, err);
	if (status != STATUS_OK)
		return status;
	*report = (struct etcd_report){0};
	status = etcd_options_read(&parsed, &options, err);
	if (status == STATUS_OK) {
		struct inspection self = {
			.options = &options, .report = report, .deadline = deadline};
		report->count = options.count;
		report->tls = options.tls;
		report->trusted = options.trusted;
		report->known = options.files.certificate || credentials_given(&options);
		report->exposed = is_exposed(options.files.key);
		for (size_t i = 0; i < options.count; i++)
			report->far |= !is_near(options.endpoints[i]);
		snprintf(report->where, sizeof(report->where), "etcd:%s", parsed.path);
		inspect(&self);
		etcd_options_release(&options);
	}
	url_release(&parsed);
	return status;
}
