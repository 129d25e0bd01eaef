/* SPDX-License-Identifier: MIT */
#include "notice/cloud.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/json.h"

#define LINK_LOCAL "http://169.254.169.254"

static enum cloud_answer odd_code(const struct cloud_reply *reply, struct error *err)
{
	error_set(err, STATUS_TEMPORARY, "it answered with code %d", reply->code);
	return CLOUD_CANNOT_ASK;
}

static enum cloud_answer odd_body(const struct cloud_reply *reply, struct error *err)
{
	error_set(err, STATUS_TEMPORARY, "it answered \"%.60s\", which is not known", reply->body);
	return CLOUD_CANNOT_ASK;
}

/* Return true if the body is this word, in any case and with or without blanks around it. */
static bool says(const struct cloud_reply *reply, const char *word)
{
	const char *at = reply->body + strspn(reply->body, " \t\r\n");
	size_t length = strlen(word);
	return strncasecmp(at, word, length) == 0 &&
	       at[length + strspn(at + length, " \t\r\n")] == '\0';
}

/* Read a date of the form, in UTC, with nothing but blanks after it. */
static bool read_date(const char *text, const char *form, int64_t *utc)
{
	struct tm broken = {0};
	const char *end = strptime(text, form, &broken);
	if (!end || end[strspn(end, " \r\n")] != '\0' || broken.tm_year < 100)
		return false;
	*utc = (int64_t)timegm(&broken) * 1000;
	return true;
}

static void set_end(struct cloud_finding *finding, int64_t end, const struct cloud_reply *reply)
{
	finding->left = end > reply->utc ? end - reply->utc : 0;
	finding->age = end > reply->utc ? 0 : reply->utc - end;
}

/* ---- Google Compute Engine ---- */

static enum cloud_answer gce_odd_code(const struct cloud_reply *reply, struct error *err)
{
	if (reply->code != 404)
		return odd_code(reply, err);
	error_set(err, STATUS_TEMPORARY,
		"it answered with code 404, as GKE's metadata server does: give the pod "
		"hostNetwork, or use --platform k8s");
	return CLOUD_CANNOT_ASK;
}

static enum cloud_answer gce_preempted(
	const struct cloud_reply *reply, struct cloud_finding *finding, struct error *err)
{
	if (reply->code != 200)
		return gce_odd_code(reply, err);
	if (says(reply, "FALSE"))
		return CLOUD_NONE;
	if (!says(reply, "TRUE"))
		return odd_body(reply, err);
	*finding = (struct cloud_finding){"the instance is preempted", -1, 0};
	return CLOUD_NOTICE;
}

static enum cloud_answer gce_maintenance(
	const struct cloud_reply *reply, struct cloud_finding *finding, struct error *err)
{
	if (reply->code != 200)
		return gce_odd_code(reply, err);
	/* MIGRATE: the machine moves to another host and continues. */
	if (says(reply, "NONE") || says(reply, "MIGRATE_ON_HOST_MAINTENANCE"))
		return CLOUD_NONE;
	if (!says(reply, "TERMINATE_ON_HOST_MAINTENANCE"))
		return odd_body(reply, err);
	*finding = (struct cloud_finding){"the instance is terminated for maintenance", -1, 0};
	return CLOUD_NOTICE;
}

#define GCE_INSTANCE "/computeMetadata/v1/instance/"
#define GCE_CHANGE   "?wait_for_change=true&timeout_sec=60&last_etag="

const struct cloud cloud_gce = {
	.name = "gce",
	.base = "http://metadata.google.internal",
	.environment = "PREEMPT_GCE_METADATA",
	.hosts = {"GCE_METADATA_HOST", "GCE_METADATA_IP"},
	.header = "Metadata-Flavor: Google",
	.queries = {{.name = "preempted",
			    .path = GCE_INSTANCE "preempted",
			    .long_poll = GCE_CHANGE,
			    .period = 1000,
			    .lead = 30000,
			    .read = gce_preempted},
		{.name = "maintenance-event",
			.path = GCE_INSTANCE "maintenance-event",
			.long_poll = GCE_CHANGE,
			.period = 1000,
			.lead = 60000,
			.lead_with_gpu = 3600000,
			.read = gce_maintenance}},
};

/* ---- Amazon EC2 ---- */

/* Return true if the code alone is the answer (404: none; 401, 403: not without a new token). */
static bool aws_settled(
	const struct cloud_reply *reply, enum cloud_answer *answer, struct error *err)
{
	*answer = reply->code == 404			     ? CLOUD_NONE
		  : reply->code == 401 || reply->code == 403 ? CLOUD_REFUSED
		  : reply->code == 200			     ? CLOUD_NOTICE
							     : odd_code(reply, err);
	return *answer != CLOUD_NOTICE;
}

/* Read a JSON object with a time, and, if action is not NULL, with an action. */
static enum cloud_answer aws_event(const struct cloud_reply *reply, const char *action,
	const char *time_name, struct cloud_finding *finding, struct error *err)
{
	enum cloud_answer answer;
	const char *what = "rebalance recommended", *time;
	int64_t end;
	if (aws_settled(reply, &answer, err))
		return answer;
	struct json_object *object = json_parse(reply->body, strlen(reply->body));
	if (!object || (action && !json_get_text(object, action, &what)) ||
		!json_get_text(object, time_name, &time) ||
		!read_date(time, "%Y-%m-%dT%H:%M:%SZ", &end)) {
		answer = odd_body(reply, err);
	} else {
		snprintf(finding->reason, sizeof(finding->reason), "%s%.32s at %.32s",
			action ? "spot: " : "", what, time);
		set_end(finding, end, reply);
	}
	json_object_put(object);
	return answer;
}

/* {"action":"terminate","time":"2017-09-18T08:22:00Z"} */
static enum cloud_answer aws_spot(
	const struct cloud_reply *reply, struct cloud_finding *finding, struct error *err)
{
	return aws_event(reply, "action", "time", finding, err);
}

/* {"noticeTime":"2020-10-27T08:22:00Z"}: the machine may go away soon, or stay. */
static enum cloud_answer aws_rebalance(
	const struct cloud_reply *reply, struct cloud_finding *finding, struct error *err)
{
	enum cloud_answer answer = aws_event(reply, NULL, "noticeTime", finding, err);
	finding->left = -1;
	return answer;
}

static enum cloud_answer aws_autoscaling(
	const struct cloud_reply *reply, struct cloud_finding *finding, struct error *err)
{
	static const char *const ends[] = {"Terminated", "Warmed:Terminated", "Warmed:Stopped",
		"Warmed:Hibernated", "Warmed:Running"};
	enum cloud_answer answer;
	if (aws_settled(reply, &answer, err))
		return answer;
	if (says(reply, "InService") || says(reply, "Standby") || says(reply, "Detached"))
		return CLOUD_NONE;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (!says(reply, ends[i]))
			continue;
		/* An instance has a target Warmed already while it is set up for the warm pool. */
		*finding = (struct cloud_finding){.left = -1, .age = i ? CLOUD_STALE : 0};
		snprintf(finding->reason, sizeof(finding->reason),
			"the autoscaling group's target for the instance is %s", ends[i]);
		return CLOUD_NOTICE;
	}
	return odd_body(reply, err);
}

const struct cloud cloud_aws = {
	.name = "aws",
	.base = LINK_LOCAL,
	.environment = "PREEMPT_AWS_METADATA",
	.introduction = {.method = "PUT",
		.path = "/latest/api/token",
		.header = "X-aws-ec2-metadata-token-ttl-seconds: 21600",
		.bear = "X-aws-ec2-metadata-token",
		.life = 21000000,
		.silent = "in a container, the instance's hop limit for metadata "
			  "(HttpPutResponseHopLimit) must be 2 or more"},
	.options = {"rebalance"},
	.queries = {{.name = "spot",
			    .path = "/latest/meta-data/spot/instance-action",
			    .period = 5000,
			    .lead = 120000,
			    .read = aws_spot},
		{.name = "autoscaling",
			.path = "/latest/meta-data/autoscaling/target-lifecycle-state",
			.period = 15000,
			.lead = -1,
			.read = aws_autoscaling},
		{.name = "rebalance",
			.path = "/latest/meta-data/events/recommendations/rebalance",
			.option = "rebalance",
			.period = 5000,
			.lead = -1,
			.read = aws_rebalance}},
};

/* ---- Microsoft Azure ---- */

static bool azure_concerns_us(const struct json_object *event, const char *self)
{
	struct json_object *resources = json_member(event, "Resources", json_type_array);
	for (size_t i = 0; resources && i < json_object_array_length(resources); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(resources, i));
		if (name && strcasecmp(name, self) == 0)
			return true;
	}
	return false;
}

/* Return true if with these options an event of this type means the end of the machine. */
static bool azure_ends(const char *type, unsigned options)
{
	if (!strcasecmp(type, "Preempt") || !strcasecmp(type, "Terminate"))
		return true;
	for (unsigned i = 0; i < CLOUD_OPTIONS; i++)
		if (options & 1u << i && !strcasecmp(type, cloud_azure.options[i]))
			return true;
	return false;
}

/* Read one event. False: it does not mean the end of this machine. */
static bool azure_event(const struct json_object *event, const struct cloud_reply *reply,
	struct cloud_finding *finding)
{
	const char *type, *id = "", *before = "", *state = "";
	int64_t end;
	if (!json_get_text(event, "EventType", &type) || !azure_ends(type, reply->options) ||
		!azure_concerns_us(event, reply->self))
		return false;
	(void)json_get_text(event, "EventId", &id);
	(void)json_get_text(event, "NotBefore", &before);
	(void)json_get_text(event, "EventStatus", &state);
	snprintf(finding->reason, sizeof(finding->reason), "%.16s%s%.40s, event %.64s", type,
		*before ? " not before " : "", before, id);
	/* NotBefore is empty once the event has started. */
	finding->age = 0;
	if (read_date(before, "%a, %d %b %Y %H:%M:%S GMT", &end))
		set_end(finding, end, reply);
	else
		finding->left = strcasecmp(state, "Started") == 0 ? 0 : -1;
	return true;
}

/* {"DocumentIncarnation":1,"Events":[{...}]}; of several ends the earliest counts. */
static enum cloud_answer azure_events(
	const struct cloud_reply *reply, struct cloud_finding *finding, struct error *err)
{
	enum cloud_answer answer = CLOUD_NONE;
	if (reply->code != 200)
		return odd_code(reply, err);
	struct json_object *object = json_parse(reply->body, strlen(reply->body));
	struct json_object *events = json_member(object, "Events", json_type_array);
	if (!events) {
		json_object_put(object);
		return odd_body(reply, err);
	}
	for (size_t i = 0; i < json_object_array_length(events); i++) {
		struct cloud_finding one;
		if (!azure_event(json_object_array_get_idx(events, i), reply, &one))
			continue;
		if (answer == CLOUD_NONE ||
			(one.left >= 0 && (finding->left < 0 || one.left < finding->left)))
			*finding = one;
		answer = CLOUD_NOTICE;
	}
	json_object_put(object);
	return answer;
}

const struct cloud cloud_azure = {
	.name = "azure",
	.base = LINK_LOCAL,
	.environment = "PREEMPT_AZURE_METADATA",
	.header = "Metadata: true",
	.introduction = {.method = "GET",
		.path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"},
	.options = {"reboot", "redeploy", "freeze"},
	/* A machine's first request switches the service on, which may take two minutes. */
	.queries = {{.name = "event",
		.path = "/metadata/scheduledevents?api-version=2020-07-01",
		.period = 1000,
		.patience = 130000,
		.lead = 30000,
		.read = azure_events}},
};

/* ---- Alibaba Cloud ---- */

static enum cloud_answer alibaba_spot(
	const struct cloud_reply *reply, struct cloud_finding *finding, struct error *err)
{
	int64_t end;
	if (reply->code == 404 || (reply->code == 200 && says(reply, "")))
		return CLOUD_NONE;
	if (reply->code != 200)
		return odd_code(reply, err);
	const char *time = reply->body + strspn(reply->body, " \t\r\n");
	if (!read_date(time, "%Y-%m-%dT%H:%M:%SZ", &end))
		return odd_body(reply, err);
	snprintf(finding->reason, sizeof(finding->reason), "spot: released at %.20s", time);
	set_end(finding, end, reply);
	return CLOUD_NOTICE;
}

const struct cloud cloud_alibaba = {
	.name = "alibaba",
	.base = "http://100.100.100.200",
	.environment = "PREEMPT_ALIBABA_METADATA",
	.queries = {{.name = "spot",
		.path = "/latest/meta-data/instance/spot/termination-time",
		.period = 5000,
		.lead = 300000,
		.read = alibaba_spot}},
};
