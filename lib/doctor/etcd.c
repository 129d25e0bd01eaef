/* SPDX-License-Identifier: MIT */
#include "doctor/etcd.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"

static bool leads(const struct etcd_endpoint *endpoint)
{
	return endpoint->leader && endpoint->leader == endpoint->member;
}

static void show_text(
	const struct etcd_report *seen, const struct doctor_verdict *verdict, struct text *text)
{
	doctor_show_row(text, "store", "%s", seen->where);
	for (size_t i = 0; i < seen->count; i++) {
		const struct etcd_endpoint *endpoint = &seen->endpoints[i];
		if (endpoint->status == STATUS_OK)
			doctor_show_row(text, i ? "" : "endpoints",
				"%s, etcd %s%s, database of %" PRId64 " KiB", endpoint->name,
				endpoint->version, leads(endpoint) ? ", leads" : "",
				endpoint->size >> 10);
		else
			doctor_show_row(
				text, i ? "" : "endpoints", "%s, gives no answer", endpoint->name);
	}
	if (seen->members)
		doctor_show_row(text, "members", "%zu", seen->members);
	doctor_show_row(text, "access", "%s, %s", seen->tls ? "TLS" : "no TLS",
		seen->known ? "with a user or a certificate" : "without a user or a certificate");
	if (seen->probe == STATUS_OK)
		doctor_show_row(text, "write, read", "%.1f ms, %.1f ms (medians of %d)",
			(double)seen->write_us / 1000, (double)seen->read_us / 1000, ETCD_SAMPLES);
	for (size_t i = 0; i < verdict->warning_count; i++)
		doctor_show_row(text, "warning", "%s", verdict->warnings[i]);
	doctor_show_verdict(verdict, text);
}

static struct json_object *endpoint_object(const struct etcd_endpoint *endpoint)
{
	struct json_object *object = json_object_new_object();
	json_put_text(object, "endpoint", endpoint->name);
	json_put_bool(object, "answers", endpoint->status == STATUS_OK);
	json_put_text(object, "why", endpoint->why);
	json_put_text(object, "version", endpoint->version);
	json_put_bool(object, "leads", leads(endpoint));
	json_put_bool(object, "learner", endpoint->learner);
	json_put_bool(object, "behind", endpoint->behind);
	json_put_signed(object, "database_bytes", endpoint->size);
	return object;
}

static void show_json(
	const struct etcd_report *seen, const struct doctor_verdict *verdict, struct text *text)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();
	bool probed = seen->probe == STATUS_OK;
	doctor_put_verdict(object, verdict);
	json_put_text(object, "store", seen->where);
	for (size_t i = 0; i < seen->count; i++)
		json_object_array_add(list, endpoint_object(&seen->endpoints[i]));
	json_object_object_add(object, "endpoints", list);
	json_put_unsigned(object, "members", seen->members);
	json_put_bool(object, "full", seen->full);
	json_put_bool(object, "corrupt", seen->corrupt);
	json_put_bool(object, "tls", seen->tls);
	json_put_bool(object, "known", seen->known);
	json_put_bool(object, "open", seen->open);
	json_object_object_add(
		object, "write_us", probed ? json_object_new_int64(seen->write_us) : NULL);
	json_object_object_add(
		object, "read_us", probed ? json_object_new_int64(seen->read_us) : NULL);
	json_add_line(object, text);
	text_add(text, "\n");
	json_object_put(object);
}

enum status doctor_etcd_run(
	const struct doctor_request *request, struct doctor_report *report, struct error *err)
{
	struct etcd_report seen;
	struct doctor_verdict verdict;
	if (request->other || request->nodes || request->fix)
		return error_set(err, STATUS_USAGE,
			"--other, --nodes and --fix are about a directory, and this store is in etcd");
	enum status status = etcd_inspect(request->url, clock_after(request->timeout), &seen, err);
	if (status != STATUS_OK)
		return status;
	doctor_etcd_conclude(&seen, &verdict);
	report->status = verdict.status;
	show_text(&seen, &verdict, &report->text);
	show_json(&seen, &verdict, &report->json);
	return STATUS_OK;
}
