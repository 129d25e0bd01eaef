/* SPDX-License-Identifier: MIT */
#include "store/etcd/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/etcd/gateway.h"
#include "store/etcd/wire.h"

#define ENDPOINT_TIME 3000 /* milliseconds for one endpoint */

static int64_t now_us(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t endpoint_deadline(int64_t deadline)
{
	return clock_earlier(deadline, clock_after(ENDPOINT_TIME));
}

/* Ask one endpoint for its status. */
static void look_at(const struct etcd_options *options, const char *where, int64_t deadline,
	const char *name, struct etcd_endpoint *endpoint)
{
	struct etcd_options single = *options;
	struct gateway gateway;
	struct gateway_reply reply = {0};
	struct error err = {0};
	const char *version = "";
	single.endpoints[0] = name;
	single.count = 1;
	snprintf(endpoint->name, sizeof(endpoint->name), "%s", name);
	endpoint->status = gateway_open(&gateway, &single, where, &err);
	if (endpoint->status == STATUS_OK) {
		endpoint->status = gateway_ask(&gateway, GATEWAY_READ, "/v3/maintenance/status",
			"{}", endpoint_deadline(deadline), &reply, &err);
		gateway_close(&gateway);
	}
	struct json_object *header = wire_object(reply.object, "header");
	(void)json_get_text(reply.object, "version", &version);
	snprintf(endpoint->why, sizeof(endpoint->why), "%s", err.text);
	snprintf(endpoint->version, sizeof(endpoint->version), "%s", version);
	endpoint->cluster = wire_number(header, "cluster_id");
	endpoint->member = wire_number(header, "member_id");
	endpoint->leader = wire_number(reply.object, "leader");
	endpoint->size = wire_number(reply.object, "dbSize");
	gateway_reply_release(&reply);
}

static void look_at_cluster(struct etcd_report *report, struct gateway *gateway, int64_t deadline)
{
	struct gateway_reply reply = {0};
	struct error err;
	if (gateway_ask(gateway, GATEWAY_READ, "/v3/cluster/member/list", "{}",
		    endpoint_deadline(deadline), &reply, &err) == STATUS_OK)
		report->members = wire_count(reply.object, "members");
	if (gateway_ask(gateway, GATEWAY_READ, "/v3/maintenance/alarm", "{\"action\":\"GET\"}",
		    endpoint_deadline(deadline), &reply, &err) == STATUS_OK)
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

/* *median: of the times of ETCD_SAMPLES requests. */
static enum status measure(struct gateway *gateway, const char *path, const struct text *body,
	int64_t deadline, int64_t *median, struct error *err)
{
	int64_t samples[ETCD_SAMPLES];
	struct gateway_reply reply = {0};
	enum status status = STATUS_OK;
	for (size_t i = 0; i < ETCD_SAMPLES && status == STATUS_OK; i++) {
		int64_t began = now_us();
		status = gateway_ask(
			gateway, GATEWAY_REPEAT, path, text_string(body), deadline, &reply, err);
		samples[i] = now_us() - began;
		gateway_reply_release(&reply);
	}
	if (status != STATUS_OK)
		return status;
	qsort(samples, ETCD_SAMPLES, sizeof(samples[0]), by_size);
	*median = samples[ETCD_SAMPLES / 2];
	return STATUS_OK;
}

/* Write a key, read it, and remove it. */
static enum status probe_cluster(
	struct etcd_report *report, struct gateway *gateway, int64_t deadline, struct error *err)
{
	struct text body = {0};
	struct gateway_reply reply = {0};
	struct wire_key key;
	struct error unused;
	wire_key_set(&key, gateway->options->prefix, 'x', NULL);
	text_add(&body, "{");
	wire_add_key(&body, &key);
	text_add(&body, "}");
	enum status status =
		measure(gateway, "/v3/kv/put", &body, deadline, &report->write_us, err);
	if (status == STATUS_OK)
		status = measure(gateway, "/v3/kv/range", &body, deadline, &report->read_us, err);
	(void)gateway_ask(gateway, GATEWAY_REPEAT, "/v3/kv/deleterange", text_string(&body),
		deadline, &reply, &unused);
	gateway_reply_release(&reply);
	text_release(&body);
	return status;
}

static bool is_near(const char *endpoint)
{
	return !strncmp(endpoint, "127.", 4) || !strncmp(endpoint, "[::1]:", 6) ||
	       !strncmp(endpoint, "localhost:", 10);
}

static void inspect(
	const struct etcd_options *options, int64_t deadline, struct etcd_report *report)
{
	struct gateway gateway;
	struct error err = {0};
	report->count = options->count;
	report->tls = options->tls;
	report->known = options->files.certificate || gateway_has_user(options);
	for (size_t i = 0; i < options->count; i++) {
		report->far |= !is_near(options->endpoints[i]);
		look_at(options, report->where, deadline, options->endpoints[i],
			&report->endpoints[i]);
	}
	report->probe = gateway_open(&gateway, options, report->where, &err);
	if (report->probe == STATUS_OK) {
		look_at_cluster(report, &gateway, deadline);
		report->probe = probe_cluster(report, &gateway, deadline, &err);
		gateway_close(&gateway);
	}
	snprintf(report->probe_why, sizeof(report->probe_why), "%s", err.text);
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
		snprintf(report->where, sizeof(report->where), "etcd:%s", parsed.path);
		inspect(&options, deadline, report);
		etcd_options_release(&options);
	}
	url_release(&parsed);
	return status;
}
