/* SPDX-License-Identifier: MIT */
/* Which platform, from signs; and what Slurm's word on a job means. */
#include "platform/platform.h"

#include <signal.h>
#include <string.h>

#include "notice/source.h"
#include "platform/slurm.h"
#include "unit.h"

/* An environment is the name of its only variable. */
static const char *lookup(void *context, const char *name)
{
	return context && !strcmp(context, name) ? "7" : NULL;
}
static const char *component(void *context, const char *name)
{
	(void)context;
	return !strcmp(name, "SLURM_JOB_ID") ? "8" : !strcmp(name, "SLURM_HET_JOB_ID") ? "7" : NULL;
}
#define HAS(variable)                                                                              \
	lookup, (char[])                                                                           \
	{                                                                                          \
		variable                                                                           \
	}

static const struct signs
	nowhere = {lookup, NULL, "", {""}},
	lsf = {HAS("LSB_JOBID"), "", {""}}, slurm = {HAS("SLURM_JOB_ID"), "", {""}},
	job_id = {HAS("JOB_ID"), "", {""}}, /* a common word */
	slurm_on_aws = {HAS("SLURM_JOB_ID"), .dmi = {[DMI_VENDOR] = "Amazon EC2"}},
	gce = {lookup, .dmi = {[DMI_PRODUCT] = "Google Compute Engine"}},
	hyper_v = {lookup, .dmi = {[DMI_VENDOR] = "Microsoft Corporation"}},
	azure = {lookup, .dmi = {[DMI_VENDOR] = "Microsoft Corporation",
				 [DMI_ASSET_TAG] = "7783-7084-3265-9085-8269-3286-77"}},
	pod_on_gce = {HAS("KUBERNETES_SERVICE_HOST"),
		.dmi = {[DMI_PRODUCT] = "Google Compute Engine"}},
	alibaba = {lookup,
		.dmi = {[DMI_VENDOR] = "Alibaba Cloud", [DMI_PRODUCT] = "Alibaba Cloud ECS"}};

static const struct {
	const char *names;
	const struct signs *signs;
	const char *chosen, *sources;
	int exit_code;
	int64_t grace;
} choices[] = {
	{"auto", &nowhere, "generic", "signal:" NOTICE_SIGNALS, 0, -1},
	{"auto", &job_id, "generic", "signal:" NOTICE_SIGNALS, 0, -1},
	{"auto", &hyper_v, "generic", "signal:" NOTICE_SIGNALS, 0, -1},
	{"auto", &slurm, "slurm", "slurm:" NOTICE_SIGNALS, 0, -1},
	{"auto", &slurm_on_aws, "slurm,aws", "slurm:" NOTICE_SIGNALS " aws", 0, -1},
	/* Found, not named: no exit code, no grace. */
	{"auto", &gce, "gce", "signal:" NOTICE_SIGNALS " gce", 0, -1},
	{"auto", &pod_on_gce, "gce,k8s", "signal:" NOTICE_SIGNALS " gce", 0, -1},
	{"auto", &azure, "azure", "signal:" NOTICE_SIGNALS " azure", 0, -1},
	{"auto", &alibaba, "alibaba", "signal:" NOTICE_SIGNALS " alibaba", 0, -1},
	{"gce", &nowhere, "gce", "signal:" NOTICE_SIGNALS " gce", 143, -1},
	{"k8s", &nowhere, "k8s", "signal:" NOTICE_SIGNALS, 0, 30000},
	{"generic", &slurm, "generic", "signal:" NOTICE_SIGNALS, 0, -1},
	{"slurm,aws", &nowhere, "slurm,aws", "slurm:" NOTICE_SIGNALS " aws", 0, -1},
	{"aws,slurm", &nowhere, "slurm,aws", "slurm:" NOTICE_SIGNALS " aws", 0, -1},
	{"auto", &lsf, "lsf", "signal:" NOTICE_SIGNALS ",INT", 0, -1},
	{"lsf", &nowhere, "lsf", "signal:" NOTICE_SIGNALS ",INT", 0, 20000},
	{"sge", &nowhere, "sge", "signal:" NOTICE_SIGNALS, 99, -1},
	{"pbs", &nowhere, "pbs", "signal:" NOTICE_SIGNALS, 0, -1},
	{"condor", &nowhere, "condor", "signal:" NOTICE_SIGNALS, 85, -1},
	{"gce,aws,azure,alibaba", &nowhere, "gce,aws,azure,alibaba",
		"signal:" NOTICE_SIGNALS " gce aws azure alibaba", 143, -1},
};

static void choose(void)
{
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct platform_choice choice;
		char sources[256] = "";
		struct error err;
		enum status status =
			platform_choose(choices[i].names, choices[i].signs, &choice, &err);
		for (size_t j = 0; status == STATUS_OK && j < choice.count; j++) {
			strcat(sources, j ? " " : "");
			strcat(sources, choice.sources[j]);
		}
		CHECK(status == STATUS_OK && !strcmp(choice.names, choices[i].chosen) &&
				!strcmp(sources, choices[i].sources) &&
				choice.exit_code == choices[i].exit_code &&
				choice.grace == choices[i].grace,
			"%s: %s", choices[i].names, choices[i].sources);
	}
	TEST("what has to be configured for an exit code is told where the user named the platform")
	{
		struct platform_choice choice;
		CHECK(platform_choose("lsf", &nowhere, &choice, NULL) == STATUS_OK && choice.note &&
			strstr(choice.note, "submit with -Q \"42\""));
		CHECK(platform_choose("auto", &lsf, &choice, NULL) == STATUS_OK && !choice.note);
		CHECK(platform_choose("slurm", &nowhere, &choice, NULL) == STATUS_OK &&
			!choice.note);
	}
	static const char *const bad[] = {
		"", "autos", "slurm,", ",slurm", "slurm,auto", "GCE", "slurm aws"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct platform_choice choice;
		struct error err;
		CHECK(platform_choose(bad[i], &slurm, &choice, &err) == STATUS_USAGE &&
				strstr(err.text, "alibaba"),
			"refused: \"%s\"", bad[i]);
	}
}

#define HOUR 3600000
#define NOW  (1767225600000)

static const struct {
	const char *what, *line;
	int signal;
	int64_t known, lead, left;
} words[] = {
	{"preempted: the end was moved to 20 s from now", "RUNNING 1767225620", SIGTERM, NOW + HOUR,
		300000, 20000},
	{"preempted, nothing known before, near", "RUNNING 1767225620", SIGTERM, 0, 300000, 20000},
	{"preempted, with a long grace", "RUNNING 1767226800", SIGTERM, NOW + HOUR, 300000,
		1200000},
	{"TERM from a person: the end was not moved", "RUNNING 1767229200", SIGTERM, NOW + HOUR,
		300000, -1},
	{"TERM from a person, nothing known before", "RUNNING 1767229200", SIGTERM, 0, 300000, -1},
	{"--signal=USR1@600", "RUNNING 1767226200", SIGUSR1, NOW + 600000, 300000, 600000},
	{"the time limit", "RUNNING 1767225600", SIGTERM, NOW, 300000, -1},
	{"cancelled", "COMPLETING 1767225600", SIGTERM, NOW + HOUR, 300000, -1},
	{"cancelled, told early", "CANCELLED 1767225630", SIGTERM, NOW + HOUR, 300000, -1},
	{"preempted, says its state", "PREEMPTED 1767225630", SIGTERM, 0, 1000, 30000},
	{"no time limit", "RUNNING NONE", SIGTERM, 0, 300000, -1},
	{"the end is in the past", "RUNNING 1767220000", SIGUSR1, 0, 300000, -1},
	{"preempted, by a clock that is ahead", "RUNNING 1767225620 1767220000", SIGTERM,
		NOW + HOUR, 300000, 20000},
	{"preempted, over by our clock", "RUNNING 1767225600 1767220000", SIGTERM, NOW + HOUR,
		300000, -1},
	{"says that it is preempted, over by our clock", "PREEMPTED 1767225000", SIGTERM, 0, 1000,
		-1},
};

static void judge(void)
{
	struct slurm_job job;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		CHECK(slurm_read_job(words[i].line, &job) &&
				slurm_estimate_left(
					&job, words[i].signal, words[i].known, words[i].lead, NOW)
						.left == words[i].left,
			"%s", words[i].what);
	static const char *const garbage[] = {"", "RUNNING", "RUNNING 12x",
		"slurm_load_jobs error: x", "RUNNING 1767225620 more", "running 1767225620",
		"RUNNING 1767225620 1767220000 more", "RUNNING 1767225620 1767220000 ",
		"RUNNING -5", "RUNNING 2026-01-01T00:00:00"};
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		CHECK(!slurm_read_job(garbage[i], &job), "no word of Slurm's: \"%s\"", garbage[i]);
	TEST("of a heterogeneous job the leader counts, which comes first of those that can be read")
	{
		CHECK(slurm_read_job("RUNNING 1767225620\nPENDING 1767225700\n", &job));
		CHECK(job.end == NOW + 20000);
		CHECK(slurm_read_job("slurm_load_jobs error: x\nRUNNING 1767225620\n", &job));
		CHECK(job.end == NOW + 20000);
	}
	TEST("of a heterogeneous job a component has its own end, and the leader is requeued")
	{
		static const struct signs signs = {component, NULL, "", {""}};
		char name[64];
		CHECK(slurm_job_name(&signs, false, name, NULL) == STATUS_OK && !strcmp(name, "8"));
		CHECK(slurm_job_name(&signs, true, name, NULL) == STATUS_OK && !strcmp(name, "7"));
	}
	TEST("the start may be told, too, and an end that is over by our clock is said to be")
	{
		CHECK(slurm_read_job("RUNNING 1767225620 1767225000", &job));
		CHECK(job.end == NOW + 20000 && job.start == NOW - 600000);
		CHECK(slurm_read_job("RUNNING 1767225620 N/A", &job) && job.start == 0);
		CHECK(slurm_estimate_left(&job, SIGTERM, NOW + HOUR, 300000, NOW + 20000).over);
		CHECK(!slurm_estimate_left(&job, SIGTERM, NOW + HOUR, 300000, NOW).over);
	}
	TEST("a clock that is behind the job's start is not believed, one that is ahead is")
	{
		CHECK_EQ(slurm_utc(NOW, 0, 5000), NOW);
		CHECK_EQ(slurm_utc(NOW - HOUR, NOW, 5000), NOW + 5000);
		CHECK_EQ(slurm_utc(NOW + 4000, NOW, 5000), NOW + 5000);
		CHECK_EQ(slurm_utc(NOW + 6000, NOW, 5000), NOW + 6000);
		CHECK_EQ(slurm_utc(NOW + HOUR, NOW, 5000), NOW + HOUR);
	}
}

int main(void)
{
	choose();
	judge();
	TEST("a notice of a known end comes 5 minutes before, in a short job later")
	{
		CHECK_EQ(notice_lead(-1, 10 * HOUR), 300000);
		CHECK_EQ(notice_lead(-1, 240000), 60000);
		CHECK_EQ(notice_lead(-1, 0), 0);
		CHECK_EQ(notice_lead(90000, 10 * HOUR), 90000);
		CHECK_EQ(notice_lead(90000, 1000), 90000);
	}
	TEST("the signals of a source")
	{
		CHECK_TEXT(source_signals("signal:TERM,USR1"), "TERM,USR1");
		CHECK_TEXT(source_signals("slurm"), NOTICE_SIGNALS);
		CHECK_TEXT(source_signals("slurm:USR2"), "USR2");
		CHECK(!source_signals("file:/x"));
		CHECK(!source_signals("signals:TERM"));
	}
	return unit_end();
}
