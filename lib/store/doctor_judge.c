/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/doctor_findings.h"

#define CLOCK_WARNING 1000		  /* milliseconds */
#define SPACE_WARNING ((int64_t)64 << 20) /* bytes */
#define FILES_WARNING 1000		  /* inodes */
#define ELSEWHERE     "put the store on NFSv4, Lustre mounted with flock, or CephFS"

__attribute__((format(printf, 2, 3))) static void warn(
	struct doctor_verdict *verdict, const char *format, ...)
{
	size_t most = sizeof(verdict->warnings) / sizeof(verdict->warnings[0]);
	va_list arguments;
	if (verdict->warning_count == most)
		return;
	va_start(arguments, format);
	vsnprintf(verdict->warnings[verdict->warning_count++], sizeof(verdict->warnings[0]), format,
		arguments);
	va_end(arguments);
}

static bool below(int64_t value, int64_t limit)
{
	return value >= 0 && value < limit;
}

static void warn_of_side(const struct doctor_side *side, struct doctor_verdict *verdict)
{
	const char *host = side->host;
	if (side->traits.warning)
		warn(verdict, "%s on %s: %s", side->path, host, side->traits.warning);
	if (!side->trusted)
		warn(verdict, "a store is refused there: %s", side->why_not);
	if (below(side->free_bytes, SPACE_WARNING) || below(side->quota_bytes, SPACE_WARNING))
		warn(verdict, "little space is left in %s: %" PRId64 " KiB", side->path,
			(side->quota_bytes >= 0 && side->quota_bytes < side->free_bytes
					? side->quota_bytes
					: side->free_bytes) /
				1024);
	if (below(side->free_inodes, FILES_WARNING) || below(side->quota_inodes, FILES_WARNING))
		warn(verdict, "few new files are left in %s", side->path);
	if (!side->queue)
		warn(verdict,
			"/dev/shm cannot be used on %s: the processes there do not queue, so many at "
			"once are slow",
			host);
	int64_t apart = side->clock_ahead < 0 ? -side->clock_ahead : side->clock_ahead;
	if (apart - side->clock_error > CLOCK_WARNING)
		warn(verdict,
			"the clock of %s is %" PRId64
			" ms %s: no agreement depends on it, but an end told as a time (a job's, a "
			"spot machine's) comes so much %s there, and ages are off: let NTP set it",
			host, apart, side->clock_ahead > 0 ? "ahead" : "behind",
			side->clock_ahead > 0 ? "early" : "late");
}

/* For how long the others wait when a machine dies that has the lock, where that is long. */
static void warn_of_death(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	char figure[64], cure[512];
	const struct filesystem_traits *worst = NULL;
	for (size_t i = 0; i < findings->count && findings->mode == LOCK_FCNTL; i++) {
		const struct filesystem_traits *side = &findings->sides[i].traits;
		if (side->reach == FILESYSTEM_SHARED && side->outlived &&
			(!worst || side->outlived == FILESYSTEM_FOR_EVER))
			worst = side;
	}
	if (!worst)
		return;
	if (worst->outlived == FILESYSTEM_FOR_EVER)
		snprintf(figure, sizeof(figure), "until that machine boots again");
	else
		snprintf(figure, sizeof(figure), "for about %d s", worst->outlived);
	if (!worst->by_name)
		snprintf(cure, sizeof(cure), "; a shorter time is set at the server");
	else if (findings->exists)
		snprintf(cure, sizeof(cure),
			"; with lock=link a few seconds: stop everything that uses the store, then: "
			"preempt-store doctor --fix --store '%.200s?lock=link'",
			findings->store);
	else
		snprintf(cure, sizeof(cure), "; with lock=link, the default here, a few seconds");
	warn(verdict, "a machine that dies while it has the lock holds up all others %s (%s)%s",
		figure, worst->name, cure);
}

static void warn_of_all(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	for (size_t i = 0; i < findings->count; i++) {
		size_t before = verdict->warning_count;
		warn_of_side(&findings->sides[i], verdict);
		/* Two sides of one mount say the same. */
		if (verdict->warning_count == before + 1)
			for (size_t k = 0; k < before; k++)
				if (!strcmp(verdict->warnings[k], verdict->warnings[before]))
					verdict->warning_count = before;
	}
	if (findings->link.answer == DOCTOR_FAILED && findings->mode == LOCK_FCNTL &&
		findings->trouble == STATUS_OK)
		warn(verdict, "hard links cannot be made here: %s", findings->link.why);
	warn_of_death(findings, verdict);
	if (*findings->store_busy)
		warn(verdict, "the store itself did not answer, so only its place was tried: %s",
			findings->store_busy);
	if (findings->load.answer == DOCTOR_YES && findings->load.claims > 0 &&
		findings->load.contested == 0)
		warn(verdict,
			"it is so slow that two never wanted the same claim: little was shown; try "
			"without --quick, or again");
	if (findings->posix.answer == DOCTOR_NO && findings->ofd.answer == DOCTOR_YES)
		warn(verdict,
			"plain POSIX locks do not exclude here: other programs that use SQLite "
			"on this filesystem lose data");
}

static bool reaches(const struct doctor_findings *findings, enum filesystem_reach reach)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->sides[i].traits.reach == reach)
			return true;
	return false;
}

static bool is_local(const struct doctor_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->sides[i].traits.reach != FILESYSTEM_LOCAL)
			return false;
	return findings->count > 0;
}

/* Whether what mode link stands on held, as far as it was asked. */
static bool names_hold(const struct doctor_findings *findings)
{
	return findings->link.answer == DOCTOR_YES && findings->take.answer == DOCTOR_YES &&
	       findings->rename.answer != DOCTOR_NO;
}

static bool load_held(const struct doctor_findings *findings, enum lock_mode mode)
{
	return (findings->load.mode == mode && findings->load.answer == DOCTOR_YES) ||
	       (findings->other.mode == mode && findings->other.answer == DOCTOR_YES);
}

static enum status say(struct doctor_verdict *verdict, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static enum status say(struct doctor_verdict *verdict, enum status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(verdict->reason, sizeof(verdict->reason), format, arguments);
	va_end(arguments);
	verdict->status = status;
	return status;
}

static bool breaks(const struct doctor_check *check)
{
	return check->answer == DOCTOR_NO || check->answer == DOCTOR_FAILED;
}

/* What to do where mode fcntl is no good. */
static void advise_link(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	char *first = verdict->change[0], *second = verdict->change[1];
	size_t size = sizeof(verdict->change[0]);
	if (!verdict->link_is_safe) {
		snprintf(first, size, ELSEWHERE "%s",
			breaks(&findings->link) || breaks(&findings->take)
				? "; names do not do here what lock=link needs, either"
				: "");
	} else if (findings->exists) {
		snprintf(first, size,
			"stop everything that uses the store, then: preempt-store doctor --fix --store '%s'",
			findings->store);
	} else {
		snprintf(first, size,
			"use ?lock=link: add it to the store's URL (it was tried here: %" PRIu64
			" of %" PRIu64 " rows are there)",
			findings->other.present, findings->other.acknowledged);
	}
	for (size_t i = 0; i < findings->count && !*second; i++)
		if (findings->sides[i].traits.reach == FILESYSTEM_NODE &&
			findings->sides[i].traits.why)
			snprintf(second, size, "or change the mount: %s",
				findings->sides[i].traits.why);
}

/* Anything that shows harm; it outweighs whatever else could not be asked. */
static bool judge_harm(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	const struct doctor_load *load = &findings->load;
	if (load->answer == DOCTOR_NO) {
		if (load->present < load->acknowledged)
			say(verdict, STATUS_NO,
				"data is lost: of %" PRIu64 " acknowledged rows %" PRIu64
				" are there",
				load->acknowledged, load->present);
		else if (load->several || load->none)
			say(verdict, STATUS_NO,
				"data is lost: %" PRIu64 " of %" PRIu64
				" claims have several winners or the wrong one",
				load->several + load->none, load->claims);
		else
			say(verdict, STATUS_NO, "the database was damaged: %s", load->why);
	} else if (findings->mode == LOCK_FCNTL && findings->ofd.answer == DOCTOR_NO) {
		say(verdict, STATUS_NO,
			"byte-range locks do not exclude between %s: two can both win, and rows are "
			"lost with lock=fcntl",
			findings->form == DOCTOR_NODES ? "the nodes"
			: findings->clients > 1	       ? "the mounts"
						       : "two processes");
	} else if (findings->mode == LOCK_FCNTL && findings->ofd.answer == DOCTOR_FAILED) {
		say(verdict, STATUS_NO, "lock=fcntl cannot work here: %s", findings->ofd.why);
	} else if (findings->mode == LOCK_LINK && breaks(&findings->link)) {
		say(verdict, STATUS_NO, "lock=link cannot work here: %s", findings->link.why);
	} else if (findings->mode == LOCK_LINK && breaks(&findings->take)) {
		say(verdict, STATUS_NO, "lock=link does not exclude here: renaming directories: %s",
			findings->take.why);
	} else if (findings->mode == LOCK_LINK && findings->rename.answer == DOCTOR_NO) {
		/* By that a slow holder finds out whether his lock was taken away. */
		say(verdict, STATUS_NO, "lock=link does not exclude here: renaming files: %s",
			findings->rename.why);
	} else if (findings->mode_status != STATUS_OK && !reaches(findings, FILESYSTEM_UNKNOWN)) {
		say(verdict, STATUS_NO, "a store is refused here: %s", findings->mode_why);
	} else {
		return false;
	}
	if (findings->mode == LOCK_LINK && verdict->fcntl_is_safe)
		snprintf(verdict->change[0], sizeof(verdict->change[0]), "use ?lock=fcntl%s",
			findings->exists ? ": preempt-store doctor --fix records it" : "");
	else if (findings->mode == LOCK_LINK || load->answer == DOCTOR_NO)
		snprintf(verdict->change[0], sizeof(verdict->change[0]), "%s",
			verdict->link_is_safe && findings->mode != LOCK_LINK ? "use ?lock=link"
									     : ELSEWHERE);
	else
		advise_link(findings, verdict);
	return true;
}

/* No other machine sees it, or nobody does now. */
static bool judge_place(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	if (*findings->unmounted) {
		say(verdict, STATUS_NO, "a store is refused here: %s", findings->unmounted);
	} else if (findings->shared && is_local(findings)) {
		say(verdict, STATUS_NO,
			"%s is on a filesystem of this machine only (%s), which no other machine sees: is "
			"the shared filesystem mounted?",
			findings->directory, findings->sides[0].traits.name);
		snprintf(verdict->change[0], sizeof(verdict->change[0]), "mount it, or " ELSEWHERE);
	} else {
		return false;
	}
	return true;
}

/* For whom it is safe. Only who asked about several machines is told about them. */
static const char *safe_for(const struct doctor_findings *findings)
{
	if (is_local(findings) || (findings->form == DOCTOR_ONE && !findings->shared))
		return ", for the processes of this machine";
	return findings->form == DOCTOR_NODES || findings->shared ? ", for several machines" : "";
}

/* Nothing that was asked failed, or it could not be asked. */
static void judge_rest(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	bool unknown = reaches(findings, FILESYSTEM_UNKNOWN);
	const struct doctor_load *load = &findings->load;
	if (findings->trouble != STATUS_OK) {
		say(verdict, findings->trouble, "%s", findings->trouble_why);
	} else if (findings->store_status != STATUS_OK) {
		say(verdict, findings->store_status, "%s", findings->store_why);
		if (findings->store_status == STATUS_DAMAGED && findings->exists)
			snprintf(verdict->change[0], sizeof(verdict->change[0]),
				"if a doctor --fix was interrupted, run it again: preempt-store doctor "
				"--fix --store '%s'",
				findings->store);
	} else if (load->answer == DOCTOR_FAILED) {
		say(verdict, STATUS_TEMPORARY, "the store does not work there: %s", load->why);
	} else if (findings->mode == LOCK_FCNTL && unknown && findings->clients < 2) {
		say(verdict, STATUS_TEMPORARY,
			"it is not known whether the locks of this filesystem reach other machines, and "
			"one machine cannot find out");
		snprintf(verdict->change[0], sizeof(verdict->change[0]),
			"run it on two machines: srun -N2 preempt-store doctor --nodes 2 DIRECTORY; or "
			"on two mounts here: --other PATH");
		if (verdict->link_is_safe)
			snprintf(verdict->change[1], sizeof(verdict->change[1]),
				"or use ?lock=link, which needs no locks of the filesystem");
	} else if (findings->mode_status != STATUS_OK) {
		/* The store refuses what we have seen to be good. */
		say(verdict, STATUS_NO, "a store is refused here, for it cannot know: %s",
			findings->mode_why);
		snprintf(verdict->change[0], sizeof(verdict->change[0]),
			"locks do exclude here: add ?assume=shared to the store's URL");
	} else if (load->answer == DOCTOR_SKIPPED) {
		say(verdict, STATUS_TEMPORARY, "nothing was tried through the store itself");
	} else {
		say(verdict, STATUS_OK, "lock=%s%s", lock_mode_name(findings->mode),
			safe_for(findings));
	}
}

/* What was not shown although the verdict is "safe". */
static void limit_scope(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	char *scope = verdict->scope;
	size_t size = sizeof(verdict->scope);
	bool one_host = true;
	for (size_t i = 1; i < findings->count; i++)
		one_host &= !strcmp(findings->sides[0].boot, findings->sides[i].boot);
	if (findings->clients < 2 && is_local(findings))
		return;
	const char *ask = findings->shared ? "" : " (for several: --shared)";
	if (findings->clients < 2 && findings->mode == LOCK_LINK)
		snprintf(scope, size,
			"shown on one machine only%s; not shown: that rename(2) has one winner "
			"among several (--nodes 2 or --other PATH does)",
			ask);
	else if (findings->clients < 2)
		snprintf(scope, size,
			"shown on one machine only%s; that its locks reach the others is %s "
			"(--nodes 2 or --other PATH shows it)",
			ask,
			findings->vouched ? "your word" : "known of this filesystem, not measured");
	else if (one_host)
		snprintf(scope, size,
			"shown between %zu mounts of one machine; --nodes %zu shows it between machines",
			findings->clients, findings->clients);
}

void doctor_judge(const struct doctor_findings *findings, struct doctor_verdict *verdict)
{
	*verdict = (struct doctor_verdict){0};
	verdict->link_is_safe = names_hold(findings) && load_held(findings, LOCK_LINK);
	verdict->fcntl_is_safe =
		findings->ofd.answer == DOCTOR_YES && load_held(findings, LOCK_FCNTL) &&
		(findings->clients > 1 || !reaches(findings, FILESYSTEM_UNKNOWN)) &&
		!reaches(findings, FILESYSTEM_NODE);
	if (findings->fix_status != STATUS_OK)
		say(verdict, findings->fix_status, "not fixed: %s", findings->fix_why);
	else if (!judge_place(findings, verdict) && !judge_harm(findings, verdict))
		judge_rest(findings, verdict);
	verdict->word = verdict->status == STATUS_OK   ? "safe"
			: verdict->status == STATUS_NO ? "unsafe"
						       : "could not tell";
	if (verdict->status == STATUS_OK)
		limit_scope(findings, verdict);
	warn_of_all(findings, verdict);
}
