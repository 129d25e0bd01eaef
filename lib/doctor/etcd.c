/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "doctor/findings.h"
#include "store/etcd/inspect.h"

/* ---- The verdict ---- */

/* The first conclusion stays. */
static void conclude(
	struct doctor_verdict *verdict, enum status status, const char *reason, const char *change)
{
	if (verdict->status != STATUS_OK)
		return;
	verdict->status = status;
	snprintf(verdict->reason, sizeof(verdict->reason), "%s", reason);
	snprintf(verdict->change, sizeof(verdict->change), "%s", change);
}

/* Each endpoint, and whether all are of one cluster. */
static void judge_endpoints(const struct etcd_report *seen, struct doctor_verdict *verdict)
{
	const struct etcd_endpoint *first = NULL;
	char reason[700];
	for (size_t i = 0; i < seen->count; i++) {
		const struct etcd_endpoint *endpoint = &seen->endpoints[i];
		if (endpoint->status != STATUS_OK) {
			doctor_warn(verdict, "%s", endpoint->why);
			continue;
		}
		first = first ? first : endpoint;
		if (endpoint->cluster != first->cluster) {
			snprintf(reason, sizeof(reason), "%s and %s are of different clusters",
				first->name, endpoint->name);
			conclude(verdict, STATUS_NO, reason,
				"name the members of one cluster in the URL");
		}
		if (!endpoint->leader)
			doctor_warn(verdict, "%s knows of no leader", endpoint->name);
	}
}

void doctor_etcd_conclude(const struct etcd_report *seen, struct doctor_verdict *verdict)
{
	enum status probe = seen->probe == STATUS_NO ? STATUS_TEMPORARY : seen->probe;
	*verdict = (struct doctor_verdict){.status = STATUS_OK};
	if (seen->corrupt)
		conclude(verdict, STATUS_NO, "an alarm says that a member's data is damaged",
			"replace the member that \"etcdctl alarm list\" names");
	if (seen->full)
		conclude(verdict, STATUS_NO,
			"an alarm says that it is full: nothing can be written",
			"run \"etcdctl compact REVISION\", \"etcdctl defrag\" and \"etcdctl alarm "
			"disarm\", and start etcd with --auto-compaction-retention");
	judge_endpoints(seen, verdict);
	if (probe != STATUS_OK)
		conclude(verdict, probe, seen->probe_why,
			probe == STATUS_PERMISSION ? ""
						   : "see that a majority of its members runs");
	if (seen->members == 1)
		doctor_warn(verdict,
			"the cluster has one member: while that does not answer nothing can be written, "
			"and with its disk the store is lost");
	if (seen->members > seen->count)
		doctor_warn(verdict,
			"the URL names %zu of %zu members: if these do not answer, the others are "
			"not asked",
			seen->count, seen->members);
	if (!seen->tls && seen->far)
		doctor_warn(verdict, "%s goes over the network in plain text: add ca=FILE or tls",
			seen->known ? "the password" : "all that is in the store");
	if (verdict->status == STATUS_OK)
		snprintf(verdict->reason, sizeof(verdict->reason),
			"its cluster accepts writes and reads them back");
}

/* ---- Show ---- */

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
	if (seen->probe == STATUS_OK)
		doctor_show_row(text, "write, read", "%.1f ms, %.1f ms (medians of %d)",
			(double)seen->write_us / 1000, (double)seen->read_us / 1000, ETCD_SAMPLES);
	doctor_show_verdict(verdict, text);
}

static void put_seconds(struct json_object *object, const char *name, int64_t microseconds)
{
	char text[32];
	double seconds = (double)microseconds / 1e6;
	snprintf(text, sizeof(text), "%.6f", seconds);
	json_object_object_add(object, name, json_object_new_double_s(seconds, text));
}

static void show_json(
	const struct etcd_report *seen, const struct doctor_verdict *verdict, struct text *text)
{
	struct json_object *object = doctor_begin_json(verdict), *list = json_object_new_array();
	json_put_text(object, "store", seen->where);
	for (size_t i = 0; i < seen->count; i++) {
		const struct etcd_endpoint *endpoint = &seen->endpoints[i];
		struct json_object *one = json_object_new_object();
		json_put_text(one, "endpoint", endpoint->name);
		json_put_bool(one, "answers", endpoint->status == STATUS_OK);
		json_put_text(one, "why", endpoint->why);
		json_put_text(one, "version", endpoint->version);
		json_put_bool(one, "leads", leads(endpoint));
		json_put_signed(one, "database_bytes", endpoint->size);
		json_object_array_add(list, one);
	}
	json_object_object_add(object, "endpoints", list);
	json_put_unsigned(object, "members", seen->members);
	json_put_bool(object, "full", seen->full);
	json_put_bool(object, "corrupt", seen->corrupt);
	if (seen->probe == STATUS_OK) {
		put_seconds(object, "write", seen->write_us);
		put_seconds(object, "read", seen->read_us);
	}
	doctor_end_json(object, text);
}

enum status doctor_run_etcd(
	const struct doctor_request *request, struct doctor_report *report, struct error *err)
{
	struct etcd_report seen;
	struct doctor_verdict verdict;
	if (request->other || request->nodes)
		return error_set(err, STATUS_USAGE,
			"--other and --nodes are about a directory, and this store is in etcd");
	enum status status = etcd_inspect(request->url, clock_after(request->timeout), &seen, err);
	if (status != STATUS_OK)
		return status;
	doctor_etcd_conclude(&seen, &verdict);
	report->status = verdict.status;
	show_text(&seen, &verdict, &report->text);
	show_json(&seen, &verdict, &report->json);
	return STATUS_OK;
}
