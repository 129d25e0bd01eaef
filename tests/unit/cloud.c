/* SPDX-License-Identifier: MIT */
/* What the clouds' answers mean, in all their forms. */
#include "notice/cloud.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define NOW 1505722920000 /* 2017-09-18T08:22:00Z */

static const struct {
	const struct cloud *cloud;
	const char *look;
	int code;
	const char *body;
	unsigned options;
	enum cloud_answer answer;
	int64_t left;
} cases[] = {
	/* PH-18: other case, blanks and a newline around it; empty is no answer. */
	{&cloud_gce, "preempted", 200, "FALSE", 0, CLOUD_NONE, 0},
	{&cloud_gce, "preempted", 200, "TRUE", 0, CLOUD_NOTICE, -1},
	{&cloud_gce, "preempted", 200, " true\r\n", 0, CLOUD_NOTICE, -1},
	{&cloud_gce, "preempted", 200, "False\n", 0, CLOUD_NONE, 0},
	{&cloud_gce, "preempted", 200, "", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_gce, "preempted", 200, "TRUE FALSE", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_gce, "preempted", 200, "<html>TRUE</html>", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_gce, "preempted", 404, "FALSE", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_gce, "preempted", 503, "TRUE", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_gce, "maintenance-event", 200, "NONE", 0, CLOUD_NONE, 0},
	{&cloud_gce, "maintenance-event", 200, "MIGRATE_ON_HOST_MAINTENANCE", 0, CLOUD_NONE, 0},
	{&cloud_gce, "maintenance-event", 200, "terminate_on_host_maintenance\n", 0, CLOUD_NOTICE,
		-1},
	{&cloud_gce, "maintenance-event", 200, "TERMINATE_ON_HOST", 0, CLOUD_CANNOT_ASK, 0},

	{&cloud_aws, "spot", 404, "<html>", 0, CLOUD_NONE, 0},
	{&cloud_aws, "spot", 401, "", 0, CLOUD_REFUSED, 0},
	{&cloud_aws, "spot", 500, "", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "spot", 200, "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:24:00Z\"}", 0,
		CLOUD_NOTICE, 120000},
	{&cloud_aws, "spot", 200, "{\"action\":\"stop\",\"time\":\"2017-09-18T08:20:00Z\"}\n", 0,
		CLOUD_NOTICE, 0},
	{&cloud_aws, "spot", 200, "{\"action\":\"terminate\"}", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "spot", 200, "{\"action\":1,\"time\":\"2017-09-18T08:24:00Z\"}", 0,
		CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "spot", 200, "{\"action\":\"terminate\",\"time\":\"soon\"}", 0,
		CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "spot", 200, "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:24", 0,
		CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "spot", 200, "", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "spot", 200, "[]", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "rebalance", 404, "", 1, CLOUD_NONE, 0},
	{&cloud_aws, "rebalance", 200, "{\"noticeTime\":\"2020-10-27T08:22:00Z\"}", 1, CLOUD_NOTICE,
		-1},
	{&cloud_aws, "autoscaling", 200, "InService", 0, CLOUD_NONE, 0},
	{&cloud_aws, "autoscaling", 404, "", 0, CLOUD_NONE, 0},
	{&cloud_aws, "autoscaling", 200, "Terminated\n", 0, CLOUD_NOTICE, -1},
	{&cloud_aws, "autoscaling", 200, "Standby", 0, CLOUD_NONE, 0},
	{&cloud_aws, "autoscaling", 200, "Warmed:Stopped", 0, CLOUD_NOTICE, -1},
	{&cloud_aws, "autoscaling", 200, "Warmed:Pending", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "rebalance", 200, "{\"noticeTime\":\"soon\"}", 1, CLOUD_CANNOT_ASK, 0},
	{&cloud_aws, "autoscaling", 200, "Terminating?", 0, CLOUD_CANNOT_ASK, 0},

	{&cloud_azure, "event", 200, "{\"DocumentIncarnation\":1,\"Events\":[]}", 0, CLOUD_NONE, 0},
	{&cloud_azure, "event", 200,
		"{\"Events\":[{\"EventType\":\"Preempt\",\"Resources\":[\"a\",\"VM1\"],"
		"\"NotBefore\":\"Mon, 18 Sep 2017 08:22:30 GMT\"}]}",
		0, CLOUD_NOTICE, 30000},
	/* Another machine of the same set. */
	{&cloud_azure, "event", 200,
		"{\"Events\":[{\"EventType\":\"Preempt\",\"Resources\":[\"vm10\"],"
		"\"NotBefore\":\"Mon, 18 Sep 2017 08:22:30 GMT\"}]}",
		0, CLOUD_NONE, 0},
	/* Of several, the earliest end. */
	{&cloud_azure, "event", 200,
		"{\"Events\":[{\"EventType\":\"Terminate\",\"Resources\":[\"vm1\"],"
		"\"NotBefore\":\"Mon, 18 Sep 2017 08:32:00 GMT\"},"
		"{\"EventType\":\"Freeze\",\"Resources\":[\"vm1\"],\"NotBefore\":\"\"},"
		"{\"EventType\":\"Preempt\",\"Resources\":[\"vm1\"],"
		"\"NotBefore\":\"Mon, 18 Sep 2017 08:22:10 GMT\"}]}",
		0, CLOUD_NOTICE, 10000},
	{&cloud_azure, "event", 200,
		"{\"Events\":[{\"EventType\":\"Preempt\",\"EventStatus\":\"Started\","
		"\"Resources\":[\"vm1\"],\"NotBefore\":\"\"}]}",
		0, CLOUD_NOTICE, 0},
	{&cloud_azure, "event", 200,
		"{\"Events\":[{\"EventType\":\"Preempt\",\"Resources\":[\"vm1\"]}]}", 0,
		CLOUD_NOTICE, -1},
	{&cloud_azure, "event", 200,
		"{\"Events\":[{\"EventType\":\"Reboot\",\"Resources\":[\"vm1\"],"
		"\"NotBefore\":\"Mon, 18 Sep 2017 08:32:00 GMT\"}]}",
		0, CLOUD_NONE, 0},
	{&cloud_azure, "event", 200,
		"{\"Events\":[{\"EventType\":\"Reboot\",\"Resources\":[\"vm1\"],"
		"\"NotBefore\":\"Mon, 18 Sep 2017 08:32:00 GMT\"}]}",
		1, CLOUD_NOTICE, 600000},
	{&cloud_azure, "event", 200, "{\"Events\":[7,{\"EventType\":3},null,[]]}", 0, CLOUD_NONE,
		0},
	{&cloud_azure, "event", 200, "{\"Events\":{}}", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_azure, "event", 200, "{}", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_azure, "event", 200, "", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_azure, "event", 404, "", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_azure, "event", 400, "{\"Events\":[]}", 0, CLOUD_CANNOT_ASK, 0},

	{&cloud_alibaba, "spot", 404, "", 0, CLOUD_NONE, 0},
	{&cloud_alibaba, "spot", 200, "", 0, CLOUD_NONE, 0},
	{&cloud_alibaba, "spot", 200, "2017-09-18T08:27:00Z\n", 0, CLOUD_NOTICE, 300000},
	{&cloud_alibaba, "spot", 200, "2017-09-18T08:27:00Zzz", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_alibaba, "spot", 200, "tomorrow", 0, CLOUD_CANNOT_ASK, 0},
	{&cloud_alibaba, "spot", 503, "", 0, CLOUD_CANNOT_ASK, 0},
};

static const struct cloud_query *look_of(const struct cloud *cloud, const char *name)
{
	for (size_t i = 0; i < CLOUD_QUERIES && cloud->queries[i].path; i++)
		if (!strcmp(cloud->queries[i].name, name))
			return &cloud->queries[i];
	abort();
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct cloud_query *look = look_of(cases[i].cloud, cases[i].look);
		struct cloud_reply reply = {.code = cases[i].code,
			.body = cases[i].body,
			.self = "vm1",
			.utc = NOW,
			.options = cases[i].options};
		struct cloud_finding finding = {.left = -7};
		struct error err = {0};
		enum cloud_answer answer = look->read(&reply, &finding, &err);
		bool filled = answer != CLOUD_NOTICE || *finding.reason;
		bool said = answer != CLOUD_CANNOT_ASK || *err.text;
		CHECK(answer == cases[i].answer && filled && said &&
				(answer != CLOUD_NOTICE || finding.left == cases[i].left),
			"%s %s: %d %.40s", cases[i].cloud->name, cases[i].look, cases[i].code,
			strcspn(cases[i].body, "\n\r") < strlen(cases[i].body) ? "(newline)"
									       : cases[i].body);
	}
	return unit_end();
}
