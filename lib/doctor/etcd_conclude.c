/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor/etcd.h"

#define SLOW_WRITE 500000		 /* microseconds: a tenth of the period of heartbeats */
#define BIG	   ((int64_t)1600 << 20) /* bytes; a server's limit is 2 GiB unless it is set */
#define FAR_BACK   5000 /* entries of the log; with more left to apply, a server refuses writes */

/* ---- Versions ---- */

struct version {
	int major, minor, patch;
};

static struct version version_of(const char *text)
{
	struct version version = {0};
	(void)sscanf(text, "%d.%d.%d", &version.major, &version.minor, &version.patch);
	return version;
}

static bool is_older(struct version a, struct version b)
{
	if (a.major != b.major)
		return a.major < b.major;
	if (a.minor != b.minor)
		return a.minor < b.minor;
	return a.patch < b.patch;
}

enum clusters { ANY_CLUSTER, ONE_MEMBER, SEVERAL_MEMBERS };

struct fault {
	/* For 3.4, 3.5 and 3.6: the releases from 3.x.since on, below 3.x.mended, have it. */
	int since[3], mended[3];
	enum clusters clusters; /* that have it */
	bool unsafe;		/* what was acknowledged may be lost */
	const char *what;
};

/* https://etcd.io/blog and the CHANGELOGs of these series. */
static const struct fault faults[] = {
	{{0}, {0, 3, 0}, ANY_CLUSTER, true, "its members may come to differ after a crash"},
	{{0}, {21, 5, 0}, ONE_MEMBER, true,
		"a cluster of one member may lose writes when it crashes (etcd issue 14370)"},
	{{0}, {0, 6, 0}, SEVERAL_MEMBERS, true,
		"its members may come to differ when one crashes during a defragmentation (etcd "
		"pull request 14733)"},
	{{0}, {8, 0, 0}, SEVERAL_MEMBERS, false,
		"where users are enabled, its members may come to differ after a restart (etcd "
		"pull request 11652)"},
	{{20, 5, 0}, {22, 6, 0}, SEVERAL_MEMBERS, false,
		"where users are enabled, its members may come to differ after one was added (etcd "
		"pull request 14648)"},
	{{0}, {42, 28, 9}, ANY_CLUSTER, false,
		"a member that was stopped and continues may answer with an old state (etcd issue "
		"20418); preempt-tools does not believe such an answer, other clients may"},
};

/* members: 0 if it is not known; then a fault of some clusters may be this one's, too. */
static bool has_fault(const struct fault *fault, struct version version, size_t members)
{
	if (version.major != 3 || version.minor < 4 || version.minor > 6)
		return false;
	if (fault->clusters != ANY_CLUSTER && members &&
		(members == 1) != (fault->clusters == ONE_MEMBER))
		return false;
	int series = version.minor - 4;
	return version.patch >= fault->since[series] && version.patch < fault->mended[series];
}

/* ---- Verdict ---- */

static void conclude(
	struct doctor_verdict *verdict, enum status status, const char *reason, const char *change)
{
	if (verdict->status != STATUS_OK)
		return; /* the first one stays */
	verdict->status = status;
	snprintf(verdict->reason, sizeof(verdict->reason), "%s", reason);
	snprintf(verdict->change[0], sizeof(verdict->change[0]), "%s", change);
}

static void judge_version(
	const struct etcd_report *seen, const char *text, struct doctor_verdict *verdict)
{
	char reason[400];
	struct version version = version_of(text);
	if (is_older(version, (struct version){3, 4, 0})) {
		snprintf(reason, sizeof(reason), "etcd %s is older than 3.4", text);
		conclude(verdict, STATUS_NO, reason, "upgrade etcd");
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (!has_fault(&faults[i], version, seen->members))
			continue;
		snprintf(reason, sizeof(reason), "etcd %s: %s", text, faults[i].what);
		if (faults[i].unsafe && (seen->members || faults[i].clusters == ANY_CLUSTER))
			conclude(verdict, STATUS_NO, reason, "upgrade etcd");
		else
			doctor_warn(verdict, "%s", reason);
	}
}

static void judge_endpoint(const struct etcd_report *seen, const struct etcd_endpoint *endpoint,
	const struct etcd_endpoint *first, struct doctor_verdict *verdict)
{
	char reason[700];
	if (endpoint->status != STATUS_OK) {
		doctor_warn(verdict, "%s", endpoint->why);
		return;
	}
	if (endpoint->cluster != first->cluster) {
		snprintf(reason, sizeof(reason), "%s and %s are of different clusters", first->name,
			endpoint->name);
		conclude(verdict, STATUS_NO, reason, "name the members of one cluster in the URL");
	}
	judge_version(seen, endpoint->version, verdict);
	if (endpoint->behind)
		doctor_warn(verdict,
			"%s answers with an older state than was acknowledged: preempt-tools does not "
			"believe it; restart this member",
			endpoint->name);
	if (endpoint->learner)
		doctor_warn(verdict, "%s is a learner, which refuses most requests: leave it out",
			endpoint->name);
	if (!endpoint->leader)
		doctor_warn(verdict, "%s knows of no leader", endpoint->name);
	if (endpoint->log - endpoint->applied > FAR_BACK)
		doctor_warn(verdict,
			"%s has %" PRId64 " changes still to carry out: it is too slow",
			endpoint->name, endpoint->log - endpoint->applied);
	if (endpoint->size > BIG)
		doctor_warn(verdict,
			"%s has a database of %" PRId64
			" MiB, and a server takes 2,048 MiB unless it "
			"was started with more: compact and defragment it",
			endpoint->name, endpoint->size >> 20);
}

static void judge_alarms(const struct etcd_report *seen, struct doctor_verdict *verdict)
{
	if (seen->corrupt)
		conclude(verdict, STATUS_NO, "an alarm says that a member's data is damaged",
			"replace the member that \"etcdctl alarm list\" names");
	if (seen->full)
		conclude(verdict, STATUS_NO,
			"an alarm says that it is full: nothing can be written",
			"run \"etcdctl compact REVISION\", \"etcdctl defrag\" and \"etcdctl alarm "
			"disarm\", and start etcd with --auto-compaction-retention");
}

static void judge_members(const struct etcd_report *seen, struct doctor_verdict *verdict)
{
	if (seen->members == 1)
		doctor_warn(verdict,
			"the cluster has one member: while that does not answer nothing can be written, "
			"and with its disk the store is lost");
	else if (seen->members && seen->members % 2 == 0)
		doctor_warn(verdict,
			"the cluster has %zu members, and survives no more failures than with %zu",
			seen->members, seen->members - 1);
	if (seen->members > seen->count)
		doctor_warn(verdict,
			"the URL names %zu of %zu members: if these do not answer, the others are "
			"not asked",
			seen->count, seen->members);
}

static void judge_access(const struct etcd_report *seen, struct doctor_verdict *verdict)
{
	if (seen->open && !seen->trusted)
		doctor_warn(verdict,
			"everything that reaches its servers can write this store, so that "
			"preempt-queue work is refused: have etcd ask for users or client "
			"certificates, or add trusted to the URL");
	if (seen->exposed)
		doctor_warn(verdict,
			"any user of this machine may use the key that the URL names: run chmod 600 "
			"on it");
	if (!seen->tls && seen->far)
		doctor_warn(verdict, "%s goes over the network in plain text: add ca=FILE or tls",
			seen->known ? "the password" : "all that is in the store");
}

static void judge_probe(const struct etcd_report *seen, struct doctor_verdict *verdict)
{
	enum status status = seen->probe == STATUS_NO ? STATUS_TEMPORARY : seen->probe;
	if (status != STATUS_OK)
		conclude(verdict, status, seen->probe_why,
			status == STATUS_PERMISSION ? ""
						    : "see that a majority of its members runs");
	else if (seen->write_us > SLOW_WRITE)
		doctor_warn(verdict,
			"a write takes %" PRId64 " ms: etcd needs a disk that syncs in a few ms",
			seen->write_us / 1000);
}

void doctor_etcd_conclude(const struct etcd_report *seen, struct doctor_verdict *verdict)
{
	const struct etcd_endpoint *first = NULL;
	*verdict = (struct doctor_verdict){.status = STATUS_OK};
	judge_alarms(seen, verdict);
	for (size_t i = 0; i < seen->count; i++) {
		if (!first && seen->endpoints[i].status == STATUS_OK)
			first = &seen->endpoints[i];
		judge_endpoint(seen, &seen->endpoints[i], first, verdict);
	}
	judge_probe(seen, verdict);
	judge_members(seen, verdict);
	judge_access(seen, verdict);
	if (verdict->status == STATUS_OK)
		snprintf(verdict->reason, sizeof(verdict->reason),
			"its cluster accepts writes and reads them back");
}
