/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor/findings.h"

#define ELSEWHERE "put the store on NFSv4, CephFS, or Lustre mounted with flock, or in etcd"

void doctor_trouble(struct doctor_findings *findings, enum status status, const char *why)
{
	if (findings->trouble != STATUS_OK)
		return;
	WRITE(findings->trouble_why, "%s", why);
	findings->trouble = status;
}

uint64_t doctor_count_clients(const struct doctor_side *sides, size_t count)
{
	uint64_t clients = 0;
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;
		while (k < i && (sides[k].device != sides[i].device ||
					strcmp(sides[k].boot, sides[i].boot)))
			k++;
		clients += k == i;
	}
	return clients;
}

void doctor_sum(struct doctor_findings *findings, int64_t limit)
{
	uint64_t fast = 0, present = UINT64_MAX, taken = UINT64_MAX;
	for (size_t k = 0; k < findings->count; k++) {
		const struct doctor_side *side = &findings->sides[k];
		findings->acknowledged += side->rows;
		findings->claims += side->won;
		findings->contested += side->lost;
		fast += side->fast;
		if (side->longest > findings->longest)
			findings->longest = side->longest;
		/* Of the sides that could count, take the one that sees the fewest. */
		if (side->status != STATUS_OK)
			continue;
		findings->tried = true;
		present = side->present < present ? side->present : present;
		taken = side->taken < taken ? side->taken : taken;
	}
	findings->per_second = fast * 2000 / (uint64_t)limit;
	findings->present = findings->tried ? present : 0;
	findings->several = findings->tried ? findings->claims - taken : 0;
}

void doctor_warn(struct doctor_verdict *verdict, const char *format, ...)
{
	char text[sizeof(verdict->warnings[0])];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < verdict->warning_count; i++)
		if (!strcmp(verdict->warnings[i], text))
			return;
	if (verdict->warning_count < sizeof(verdict->warnings) / sizeof(verdict->warnings[0]))
		strcpy(verdict->warnings[verdict->warning_count++], text);
}

/* ---- The rules: each returns STATUS_OK if it has nothing to say ---- */

static bool is_local(const struct doctor_findings *findings)
{
	for (size_t k = 0; k < findings->count; k++)
		if (!findings->sides[k].local)
			return false;
	return findings->count > 0;
}

static enum status find_wrong_place(
	const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	if (!findings->request->shared || !is_local(findings))
		return STATUS_OK;
	WRITE(verdict->reason,
		"%s is on a filesystem of this machine only (%s), which no other machine sees: is the "
		"shared filesystem mounted?",
		findings->sides[0].path, findings->sides[0].filesystem);
	WRITE(verdict->change, "mount it, or " ELSEWHERE);
	return STATUS_NO;
}

/* Harm that was seen outweighs every question that is left open. */
static enum status find_harm(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	const char *url = findings->request->url, *parameters = url ? strchr(url, '?') : NULL;
	if (findings->tried && findings->present < findings->acknowledged)
		WRITE(verdict->reason,
			"data is lost: of %" PRIu64 " acknowledged rows %" PRIu64 " are there",
			findings->acknowledged, findings->present);
	else if (findings->tried && findings->several)
		WRITE(verdict->reason,
			"data is lost: of %" PRIu64 " claims that were won, %" PRIu64
			" were given to two sides",
			findings->claims, findings->several);
	else if (findings->trial == STATUS_DAMAGED)
		WRITE(verdict->reason, "data is lost, the database was damaged: %s",
			findings->trial_why);
	else
		return STATUS_OK;
	if (parameters)
		WRITE(verdict->change,
			"leave \"%.200s\" out of the store's URL, make the store anew and run this "
			"again; or " ELSEWHERE,
			parameters);
	else
		WRITE(verdict->change, ELSEWHERE);
	return STATUS_NO;
}

static enum status find_refusal(
	const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	for (size_t k = 0; k < findings->count; k++)
		if (findings->sides[k].store == STATUS_USAGE) {
			WRITE(verdict->reason, "the store is refused on %s: %s",
				findings->sides[k].host, findings->sides[k].store_why);
			return STATUS_NO;
		}
	if (findings->trial != STATUS_USAGE)
		return STATUS_OK;
	WRITE(verdict->reason, "a store is refused here: %s", findings->trial_why);
	return STATUS_NO;
}

/* A question that is left open. */
static enum status find_gap(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	enum status trial = findings->trial;
	if (findings->trouble != STATUS_OK) {
		WRITE(verdict->reason, "%s%s",
			findings->trouble == STATUS_NO ? "a store is refused here: " : "",
			findings->trouble_why);
		return findings->trouble;
	}
	for (size_t k = 0; k < findings->count; k++) {
		enum status status = (enum status)findings->sides[k].store;
		if (status == STATUS_OK || status == STATUS_NO || status == STATUS_TEMPORARY)
			continue;
		WRITE(verdict->reason, "%s", findings->sides[k].store_why);
		return status;
	}
	if (trial != STATUS_OK) {
		WRITE(verdict->reason, "a store does not work there: %s", findings->trial_why);
		return trial == STATUS_PERMISSION ? trial : STATUS_TEMPORARY;
	}
	if (findings->tried)
		return STATUS_OK;
	WRITE(verdict->reason, "nothing was tried");
	return STATUS_TEMPORARY;
}

/* It is safe: for which machines, and what was not shown. */
static void limit_scope(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	const struct doctor_request *request = findings->request;
	bool one_host = true;
	for (size_t k = 1; k < findings->count; k++)
		one_host &= !strcmp(findings->sides[0].boot, findings->sides[k].boot);
	WRITE(verdict->reason, "%s%s", findings->sides[0].lock,
		is_local(findings) || !(request->shared || request->nodes || request->other)
			? ", for the processes of this machine"
		: request->other ? ""
				 : ", for several machines");
	if (findings->clients < 2 && !is_local(findings))
		WRITE(verdict->scope,
			"shown on one machine only: not shown is that another machine sees what this one "
			"stores, and keeps out of its way (--nodes 2 or --other PATH shows it)");
	else if (findings->clients > 1 && one_host)
		WRITE(verdict->scope,
			"shown between %" PRIu64 " mounts of one machine; --nodes %" PRIu64
			" shows it between machines",
			findings->clients, findings->clients);
}

static void warn_of_all(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	for (size_t k = 0; k < findings->count; k++) {
		const struct doctor_side *side = &findings->sides[k];
		if (*side->warning)
			doctor_warn(verdict, "%s on %s: %s", side->path, side->host, side->warning);
		if (*side->distrust)
			doctor_warn(verdict, "a store is refused there: %s", side->distrust);
		if (side->store == STATUS_TEMPORARY)
			doctor_warn(verdict,
				"the store itself did not answer, so only its directory was tried: %s",
				side->store_why);
	}
	if (findings->tried && findings->claims > 0 && findings->contested == 0)
		doctor_warn(verdict,
			"it is so slow that no two sides wanted the same claim, so little was "
			"tested; try again, without --quick");
}

void doctor_conclude(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	static enum status (*const rules[])(
		const struct doctor_findings *findings, struct doctor_verdict *verdict) = {
		find_wrong_place, find_harm, find_refusal, find_gap};
	*verdict = (struct doctor_verdict){.status = STATUS_OK};
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (verdict->status == STATUS_OK)
			verdict->status = rules[i](findings, verdict);
	if (verdict->status == STATUS_OK)
		limit_scope(findings, verdict);
	warn_of_all(findings, verdict);
}
