/* SPDX-License-Identifier: MIT */
/* What follows from what the doctor saw of an etcd cluster. */
#include "doctor/etcd.h"

#include <stdio.h>
#include <string.h>

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
		report.endpoints[i] = (struct etcd_endpoint){.cluster = 7,
			.member = (int64_t)i + 1,
			.leader = 1,
			.log = 100,
			.applied = 100,
			.size = 1 << 20};
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

/* Of a cluster whose members have this version. */
static struct doctor_verdict of_version(const char *version, size_t members)
{
	struct doctor_verdict verdict;
	struct etcd_report report = good();
	report.count = report.members = members;
	for (size_t i = 0; i < members; i++)
		snprintf(report.endpoints[i].version, sizeof(report.endpoints[i].version), "%s",
			version);
	doctor_etcd_conclude(&report, &verdict);
	return verdict;
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
	TEST("known bad versions, at their borders")
	{
		static const struct {
			const char *version;
			size_t members;
			enum status wanted;
			const char *says; /* in the reason or a warning; "": nothing is */
		} cases[] = {{"3.3.27", 3, STATUS_NO, "older than 3.4"},
			{"3.5.2", 3, STATUS_NO, "come to differ"},
			{"3.5.2", 1, STATUS_NO, "come to differ"}, {"3.5.5", 3, STATUS_NO, "14733"},
			{"3.5.5", 3, STATUS_NO, "14648"}, {"3.5.6", 3, STATUS_OK, "20418"},
			{"3.4.7", 3, STATUS_OK, "11652"}, {"3.4.19", 3, STATUS_OK, "20418"},
			{"3.4.21", 3, STATUS_OK, "14648"}, {"3.4.22", 3, STATUS_OK, "20418"},
			{"3.5.27", 3, STATUS_OK, "20418"}, {"3.5.28", 3, STATUS_OK, ""},
			{"3.4.41", 3, STATUS_OK, "20418"}, {"3.4.42", 3, STATUS_OK, ""},
			{"3.6.8", 3, STATUS_OK, "20418"}, {"3.6.9", 3, STATUS_OK, ""},
			{"3.7.0", 3, STATUS_OK, ""}, {"3.4.20", 1, STATUS_NO, "14370"},
			{"3.4.20", 3, STATUS_OK, "20418"}, {"3.4.21", 1, STATUS_OK, "one member"},
			{"3.5.4", 1, STATUS_NO, "14370"}, {"3.5.5", 1, STATUS_OK, "one member"},
			{"4.0.0", 3, STATUS_OK, ""}};
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			verdict = of_version(cases[i].version, cases[i].members);
			bool said = strstr(verdict.reason, cases[i].says) ||
				    warns(&verdict, cases[i].says);
			if (verdict.status != cases[i].wanted || !said ||
				(!*cases[i].says && verdict.warning_count))
				printf("# %s\n", cases[i].version);
			CHECK_EQ(verdict.status, cases[i].wanted);
			CHECK(said && (*cases[i].says || !verdict.warning_count));
		}
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
		CHECK(strstr(verdict.change[0], "alarm disarm"));
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
	TEST("where it is not known how many members there are, their faults are warnings")
	{
		report = good();
		report.members = 0;
		strcpy(report.endpoints[0].version, "3.4.20");
		strcpy(report.endpoints[1].version, "3.5.5");
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_OK);
		CHECK(warns(&verdict, "14370") && warns(&verdict, "14733"));
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
	TEST("what is not right although nothing is lost by it is a warning")
	{
		report = good();
		report.members = 4;
		report.tls = report.known = false;
		report.open = true;
		report.write_us = 900000;
		report.endpoints[1].learner = report.endpoints[1].behind = true;
		report.endpoints[2].applied = report.endpoints[2].log - 6000;
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_OK);
		CHECK(warns(&verdict, "4 members, and survives no more failures than with 3"));
		CHECK(warns(&verdict, "names 3 of 4 members"));
		CHECK(warns(&verdict, "everything that reaches its servers"));
		CHECK(warns(&verdict, "all that is in the store goes over the network"));
		CHECK(warns(&verdict, "a write takes 900 ms"));
		CHECK(warns(&verdict, "b:1 is a learner"));
		CHECK(warns(&verdict, "b:1 answers with an older state"));
		CHECK(warns(&verdict, "c:1 has 6000 changes"));
		report = good();
		report.exposed = true;
		report.endpoints[0].leader = 0;
		report.endpoints[0].size = (int64_t)1700 << 20;
		doctor_etcd_conclude(&report, &verdict);
		CHECK_EQ(verdict.status, STATUS_OK);
		CHECK(warns(&verdict, "a:1 knows of no leader"));
		CHECK(warns(&verdict, "a:1 has a database of 1700 MiB"));
		CHECK(warns(&verdict, "any user of this machine may use the key"));
	}
	return unit_end();
}
