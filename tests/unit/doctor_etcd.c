/* SPDX-License-Identifier: MIT */
/* What follows from what the doctor saw of an etcd cluster. */
#include "store/etcd/inspect.h"

#include <stdio.h>
#include <string.h>

#include "doctor/findings.h"
#include "unit.h"

/* Three members of a good version, all in the URL, with TLS and a certificate. */
static struct etcd_report good(void)
{
	struct etcd_report report = {.where = "etcd://a:1,b:1,c:1/p",
		.count = 3,
		.members = 3,
		.tls = true,
		.known = true,
		.far = true,
		.write_us = 2000,
		.read_us = 500};
	for (size_t i = 0; i < report.count; i++)
		report.endpoints[i] =
			(struct etcd_endpoint){.cluster = 7, .member = (int64_t)i + 1, .leader = 1};
	for (size_t i = 0; i < report.count; i++) {
		snprintf(report.endpoints[i].name, sizeof(report.endpoints[i].name), "%c:1",
			(char)('a' + i));
		strcpy(report.endpoints[i].version, "3.5.30");
	}
	return report;
}

static bool warns(const struct doctor_verdict *verdict, const char *part)
{
	for (size_t i = 0; i < verdict->warning_count; i++)
		if (strstr(verdict->warnings[i], part))
			return true;
	return false;
}

int main(void)
{
	struct etcd_report report;
	struct doctor_verdict verdict;
	TEST("all is well: safe, and nothing to change")
	{
		report = good();
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_OK);
		CHECK_TEXT(doctor_word(verdict.status), "safe");
		CHECK_EQ(verdict.warning_count, 0);
	}
	TEST("an endpoint of another cluster, an alarm: unsafe, and what to do")
	{
		report = good();
		report.endpoints[2].cluster = 8;
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_NO);
		CHECK(strstr(verdict.reason, "a:1 and c:1 are of different clusters"));
		report = good();
		report.full = true;
		report.probe = STATUS_TEMPORARY;
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_NO);
		CHECK(strstr(verdict.change, "alarm disarm"));
		report = good();
		report.corrupt = true;
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_NO);
	}
	TEST("what could not be asked is never a no")
	{
		static const enum status statuses[] = {
			STATUS_TEMPORARY, STATUS_PERMISSION, STATUS_DAMAGED};
		for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
			report = good();
			report.probe = statuses[i];
			strcpy(report.probe_why, "no leader");
			doctor_etcd_conclude(&report, &verdict);
			CHECK_EQ(verdict.status, statuses[i]);
			CHECK_TEXT(doctor_word(verdict.status), "could not tell");
			CHECK_TEXT(verdict.reason, "no leader");
		}
		report.probe = STATUS_NO;
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_TEMPORARY);
	}
	TEST("an endpoint that gives no answer is a warning; the others are still compared")
	{
		report = good();
		report.endpoints[0].status = STATUS_TEMPORARY;
		report.endpoints[0].cluster = 0;
		strcpy(report.endpoints[0].why, "a:1: Connection refused");
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_OK);
		CHECK(warns(&verdict, "Connection refused"));
	}
	return unit_end();
}
