/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor/findings.h"

#define CLOCK_WARNING 1000 /* milliseconds */
#define ELSEWHERE     "put the store on NFSv4, Lustre mounted with flock, or CephFS"

/* Print into an array, and cut what does not fit. */
#define WRITE(to, ...) (void)snprintf(to, sizeof(to), __VA_ARGS__)

enum lock_mode doctor_other_mode(enum lock_mode mode)
{
	return mode == LOCK_LINK ? LOCK_FCNTL : LOCK_LINK;
}

void doctor_trouble(struct doctor_findings *findings, enum status status, const char *why)
{
	if (findings->trouble != STATUS_OK)
		return;
	WRITE(findings->trouble_why, "%s", why);
	findings->trouble = status == STATUS_NO ? STATUS_TEMPORARY : status;
}

void doctor_side_tidy(struct doctor_side *side)
{
	side->terms[sizeof(side->terms) - 1] = side->why[sizeof(side->why) - 1] = '\0';
	side->host[sizeof(side->host) - 1] = side->boot[sizeof(side->boot) - 1] = '\0';
	side->path[sizeof(side->path) - 1] = side->distrust[sizeof(side->distrust) - 1] = '\0';
	side->opener[sizeof(side->opener) - 1] = side->text[sizeof(side->text) - 1] = '\0';
	side->filesystem.type[sizeof(side->filesystem.type) - 1] = '\0';
	side->filesystem.options[sizeof(side->filesystem.options) - 1] = '\0';
	if (side->recorded != LOCK_FCNTL && side->recorded != LOCK_LINK)
		side->recorded = LOCK_AUTO;
}

size_t doctor_count_clients(const struct doctor_side *sides, size_t count)
{
	size_t clients = 0;
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;
		while (k < i && (sides[k].device != sides[i].device ||
					strcmp(sides[k].boot, sides[i].boot)))
			k++;
		clients += k == i;
	}
	return clients;
}

void doctor_sum_load(const struct doctor_findings *findings, struct doctor_mode *mode)
{
	uint64_t won = 0, taken = UINT64_MAX;
	mode->present = UINT64_MAX;
	for (size_t k = 0; k < findings->count; k++) {
		const struct doctor_side *side = &findings->sides[k];
		mode->acknowledged += side->rows;
		mode->claims += side->won;
		mode->contested += side->lost;
		won += side->won;
		mode->longest = side->longest > mode->longest ? side->longest : mode->longest;
		/* Of the sides that could count, take the one that sees the fewest. */
		if (side->result != STATUS_OK)
			continue;
		mode->present = side->present < mode->present ? side->present : mode->present;
		taken = side->taken < taken ? side->taken : taken;
	}
	if (taken == UINT64_MAX) {
		mode->present = 0;
		return;
	}
	mode->doubled = won - taken;
	/* Lost rows and doubled claims outweigh an error. */
	if (mode->present < mode->acknowledged || mode->doubled)
		mode->load = DOCTOR_NO;
}

/* ---- Warnings ---- */

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

static void warn_of_side(
	const struct doctor_findings *findings, size_t k, struct doctor_verdict *verdict)
{
	const struct doctor_side *side = &findings->sides[k];
	int64_t ahead = findings->clock_ahead[k], apart = ahead < 0 ? -ahead : ahead;
	if (findings->traits[k].warning)
		doctor_warn(verdict, "%s on %s: %s", side->path, side->host,
			findings->traits[k].warning);
	if (*side->distrust)
		doctor_warn(verdict, "a store is refused there: %s", side->distrust);
	if (apart - findings->clock_error[k] > CLOCK_WARNING)
		doctor_warn(verdict,
			"the clock of %s is %" PRId64 " ms %s: no agreement depends on it, but a "
			"deadline that is given as a time comes that much %s there: let NTP set it",
			side->host, apart, ahead > 0 ? "ahead" : "behind",
			ahead > 0 ? "early" : "late");
}

/* The URL of a store in mode fcntl, which may name that mode, for mode link. */
static void url_for_link(const char *store, char *url, size_t size)
{
	static const char ours[] = "lock=fcntl";
	const char *more = strchr(store, '?');
	const char *named = more ? strstr(more, ours) : NULL;
	if (named)
		(void)snprintf(url, size, "%.*slock=link%s", (int)(named - store), store,
			named + strlen(ours));
	else
		(void)snprintf(url, size, "%s%clock=link", store, more ? '&' : '?');
}

/* Warn if the others have to wait long when a machine dies while it has the lock. */
static void warn_of_death(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	char time[64] = "until that machine boots again", cure[512], url[256];
	const struct filesystem_traits *worst = NULL;
	for (size_t i = 0; i < findings->count && findings->mode == LOCK_FCNTL; i++) {
		const struct filesystem_traits *traits = &findings->traits[i];
		if (traits->reach == FILESYSTEM_SHARED && traits->outlived &&
			(!worst || traits->outlived == FILESYSTEM_FOR_EVER))
			worst = traits;
	}
	if (!worst)
		return;
	if (worst->outlived != FILESYSTEM_FOR_EVER)
		WRITE(time, "for about %d s", worst->outlived);
	if (!worst->by_name) {
		WRITE(cure, "; a shorter time is set at the server");
	} else if (!findings->exists) {
		WRITE(cure, "; with lock=link, the default here, a few seconds");
	} else {
		url_for_link(findings->store, url, sizeof(url));
		WRITE(cure,
			"; with lock=link a few seconds: stop everything that uses the store, then: "
			"preempt-store doctor --fix --store '%s'",
			url);
	}
	doctor_warn(verdict,
		"a machine that dies while it has the lock blocks all others %s (%s)%s", time,
		worst->name, cure);
}

static void warn_of_all(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	const struct doctor_mode *mode = &findings->modes[findings->mode];
	for (size_t k = 0; k < findings->count; k++)
		warn_of_side(findings, k, verdict);
	warn_of_death(findings, verdict);
	if (findings->store_status == STATUS_TEMPORARY)
		doctor_warn(verdict,
			"the store itself did not answer, so only its directory was tried: %s",
			findings->store_why);
	if (mode->load == DOCTOR_YES && mode->claims > 0 && mode->contested == 0)
		doctor_warn(verdict,
			"it is so slow that no two sides wanted the same claim, so little was "
			"tested; try again, without --quick");
}

/* ---- The verdict ---- */

static bool reaches(const struct doctor_findings *findings, enum filesystem_reach reach)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->traits[i].reach == reach)
			return true;
	return false;
}

static bool is_local(const struct doctor_findings *findings)
{
	return findings->count > 0 && !reaches(findings, FILESYSTEM_SHARED) &&
	       !reaches(findings, FILESYSTEM_NODE) && !reaches(findings, FILESYSTEM_UNKNOWN);
}

/* Whether it is not known if its locks reach other machines, and no user vouches for them. */
static bool is_unknown(const struct doctor_findings *findings)
{
	return findings->mode == LOCK_FCNTL && !findings->vouched &&
	       reaches(findings, FILESYSTEM_UNKNOWN);
}

/* The mode is unsafe: use the other one, or another place, or change the mount. */
static void advise_other(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	enum lock_mode other = doctor_other_mode(findings->mode);
	const struct doctor_mode *mode = &findings->modes[other];
	if (!verdict->safe[other])
		WRITE(verdict->change[0], ELSEWHERE);
	else if (findings->exists)
		WRITE(verdict->change[0],
			"stop everything that uses the store, then: preempt-store doctor --fix --store '%s'",
			findings->store);
	else
		WRITE(verdict->change[0],
			"use ?lock=%s: add it to the store's URL (it was tried here: %" PRIu64
			" of %" PRIu64 " rows are there)",
			lock_mode_name(other), mode->present, mode->acknowledged);
	for (size_t i = 0; i < findings->count && findings->mode == LOCK_FCNTL; i++)
		if (findings->traits[i].reach == FILESYSTEM_NODE)
			WRITE(verdict->change[1], "or change the mount: %s",
				findings->traits[i].why);
}

/* Harm that was seen outweighs every question that is left open. */
static enum status find_harm(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	const struct doctor_mode *mode = &findings->modes[findings->mode];
	const char *name = lock_mode_name(findings->mode);
	if (mode->load == DOCTOR_NO && mode->present < mode->acknowledged)
		WRITE(verdict->reason,
			"data is lost: of %" PRIu64 " acknowledged rows %" PRIu64 " are there",
			mode->acknowledged, mode->present);
	else if (mode->load == DOCTOR_NO && mode->doubled)
		WRITE(verdict->reason,
			"data is lost: of %" PRIu64 " claims that were won, %" PRIu64
			" were given to two sides",
			mode->claims, mode->doubled);
	else if (mode->load == DOCTOR_NO)
		WRITE(verdict->reason, "the database was damaged: %s", mode->load_why);
	else if (mode->lock == DOCTOR_NO)
		WRITE(verdict->reason,
			"lock=%s does not exclude here: two can both win, and rows are lost", name);
	else if (mode->lock == DOCTOR_FAILED)
		WRITE(verdict->reason, "lock=%s cannot work here: %s", name, mode->lock_why);
	else if (findings->store_status == STATUS_USAGE)
		WRITE(verdict->reason, "a store is refused here: %s", findings->store_why);
	else if (mode->load_status == STATUS_USAGE && !is_unknown(findings))
		WRITE(verdict->reason, "a store is refused here: %s", mode->load_why);
	else
		return STATUS_OK;
	advise_other(findings, verdict);
	return STATUS_NO;
}

/* STATUS_NO: the filesystem that belongs there is not mounted, or seems not to be. */
static enum status find_wrong_place(
	const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	if (*findings->unmounted) {
		WRITE(verdict->reason, "a store is refused here: %s", findings->unmounted);
		return STATUS_NO;
	}
	if (!findings->shared || !is_local(findings))
		return STATUS_OK;
	WRITE(verdict->reason,
		"%.300s is on a filesystem of this machine only (%s), which no other machine sees: is the "
		"shared filesystem mounted?",
		findings->directory, findings->traits[0].name);
	WRITE(verdict->change[0], "mount it, or " ELSEWHERE);
	return STATUS_NO;
}

/* No harm was seen: find a question that is left open. */
static enum status find_gap(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	const struct doctor_mode *mode = &findings->modes[findings->mode];
	if (findings->trouble != STATUS_OK) {
		WRITE(verdict->reason, "%s", findings->trouble_why);
		return findings->trouble;
	}
	if (findings->store_status != STATUS_OK && findings->store_status != STATUS_TEMPORARY) {
		WRITE(verdict->reason, "%s", findings->store_why);
		if (findings->store_status == STATUS_DAMAGED && findings->exists)
			WRITE(verdict->change[0],
				"if a doctor --fix was interrupted, run it again: preempt-store doctor --fix "
				"--store '%s'",
				findings->store);
		return findings->store_status;
	}
	if (is_unknown(findings) && findings->clients < 2) {
		WRITE(verdict->reason,
			"it is not known whether the locks of this filesystem reach other machines, and "
			"one machine cannot find out");
		WRITE(verdict->change[0],
			"run it on two machines: srun -N2 preempt-store doctor --nodes 2 DIRECTORY; or on "
			"two mounts here: --other PATH");
		if (verdict->safe[LOCK_LINK])
			WRITE(verdict->change[1],
				"or use ?lock=link, which needs no locks of the filesystem");
		return STATUS_TEMPORARY;
	}
	if (mode->load == DOCTOR_FAILED)
		WRITE(verdict->reason, "the store does not work there: %s", mode->load_why);
	else if (mode->load == DOCTOR_SKIPPED)
		WRITE(verdict->reason, "nothing was tried through the store itself");
	else if (is_unknown(findings)) {
		WRITE(verdict->reason,
			"a store is refused here, because it cannot know that its locks "
			"reach other machines");
		WRITE(verdict->change[0],
			"locks do exclude here: add ?assume=shared to the store's URL");
		return STATUS_NO;
	} else
		return STATUS_OK;
	return STATUS_TEMPORARY;
}

/* For which machines it is safe, and what was not proved. */
static void limit_scope(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	bool several = findings->shared || findings->form == DOCTOR_NODES, one_host = true;
	WRITE(verdict->reason, "lock=%s%s", lock_mode_name(findings->mode),
		is_local(findings) || (findings->form == DOCTOR_ONE && !several)
			? ", for the processes of this machine"
		: several ? ", for several machines"
			  : "");
	for (size_t i = 1; i < findings->count; i++)
		one_host &= !strcmp(findings->sides[0].boot, findings->sides[i].boot);
	if (findings->clients < 2 && !is_local(findings))
		WRITE(verdict->scope,
			"shown on one machine only%s; %s (--nodes 2 or --other PATH shows it)",
			findings->shared ? "" : " (for several: --shared)",
			findings->mode == LOCK_LINK ? "not shown: that its names exclude others"
			: findings->vouched
				? "?assume= says that its locks reach the others, and that was not measured"
				: "that its locks reach the others is known of this "
				  "filesystem, not measured");
	else if (findings->clients > 1 && one_host)
		WRITE(verdict->scope,
			"shown between %zu mounts of one machine; --nodes %zu shows it between machines",
			findings->clients, findings->clients);
}

void doctor_conclude(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	*verdict = (struct doctor_verdict){0};
	for (enum lock_mode mode = LOCK_FCNTL; mode <= LOCK_LINK; mode++)
		verdict->safe[mode] = findings->modes[mode].lock == DOCTOR_YES &&
				      findings->modes[mode].load == DOCTOR_YES;
	verdict->safe[LOCK_FCNTL] &=
		!reaches(findings, FILESYSTEM_NODE) &&
		(findings->clients > 1 || !reaches(findings, FILESYSTEM_UNKNOWN));
	verdict->status = findings->fix_status;
	if (verdict->status != STATUS_OK)
		WRITE(verdict->reason, "not fixed: %s", findings->fix_why);
	if (verdict->status == STATUS_OK)
		verdict->status = find_wrong_place(findings, verdict);
	if (verdict->status == STATUS_OK)
		verdict->status = find_harm(findings, verdict);
	if (verdict->status == STATUS_OK)
		verdict->status = find_gap(findings, verdict);
	if (verdict->status == STATUS_OK)
		limit_scope(findings, verdict);
	warn_of_all(findings, verdict);
}
