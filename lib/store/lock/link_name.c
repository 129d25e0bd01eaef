/* SPDX-License-Identifier: MIT */
#include "store/lock/link_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#define BOOT  32 /* hexadecimal digits of a boot id */
#define HOSTS 32 /* characters of a host name */

/* The identity of this process. Each thread asks for it once, and again after a fork. */
static bool identify(struct process_identity *us)
{
	static _Thread_local struct process_identity known;
	if (known.pid != getpid() && process_identify(0, &known, NULL) != STATUS_OK)
		return false;
	*us = known;
	return true;
}

bool link_name_make(char name[LINK_NAME_MAX])
{
	struct process_identity us;
	uint64_t nonce;
	char boot[BOOT + 1] = "", host[HOSTS + 1];
	if (!identify(&us) || getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return false;
	size_t used = 0;
	for (const char *at = us.boot; *at && used < BOOT; at++)
		if (*at != '-')
			boot[used++] = *at;
	/* An unknown boot id becomes zeros, which differ from every boot id. */
	memset(boot + used, '0', BOOT - used);
	boot[BOOT] = '\0';
	snprintf(host, sizeof(host), "%.*s", HOSTS, us.host);
	for (char *at = host; *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    *at))
			*at = '_';
	int length = snprintf(name, LINK_NAME_MAX,
		"%016" PRIx64 "-%s-%" PRIx64 "-%" PRIx64 "-%x-%" PRIx64 "-%s", nonce, boot,
		us.pid_namespace, us.time_namespace, (unsigned)us.pid, us.start, host);
	return length > 0 && length < LINK_NAME_MAX;
}

bool link_name_parse(const char *name, struct process_identity *who)
{
	struct process_identity seen = {0};
	char boot[BOOT + 1];
	uint64_t nonce;
	unsigned pid;
	int length = 0;
	if (sscanf(name, "%16" SCNx64 "-%32[0-9a-f]-%" SCNx64 "-%" SCNx64 "-%x-%" SCNx64 "-%n",
		    &nonce, boot, &seen.pid_namespace, &seen.time_namespace, &pid, &seen.start,
		    &length) != 6 ||
		length == 0 || strlen(boot) != BOOT || pid == 0 || pid > INT32_MAX)
		return false;
	seen.pid = (pid_t)pid;
	snprintf(seen.boot, sizeof(seen.boot), "%.8s-%.4s-%.4s-%.4s-%.12s", boot, boot + 8,
		boot + 12, boot + 16, boot + 20);
	snprintf(seen.host, sizeof(seen.host), "%.*s", HOSTS, name + length);
	*who = seen;
	return true;
}

uint64_t link_name_hash(const char *name)
{
	uint64_t hash = XXH64(name, strlen(name), 0);
	return hash ? hash : 1;
}

enum link_holder link_name_classify(const char *name)
{
	struct process_identity who, us;
	if (!strncmp(name, LINK_ABANDONED, strlen(LINK_ABANDONED)))
		return HOLDER_GONE;
	if (!link_name_parse(name, &who))
		return HOLDER_ELSEWHERE;
	switch (process_check(&who)) {
	case PROCESS_GONE: return HOLDER_GONE;
	case PROCESS_ELSEWHERE: return HOLDER_ELSEWHERE;
	case PROCESS_ALIVE: break;
	}
	return identify(&us) && us.pid == who.pid && us.start == who.start ? HOLDER_OURSELVES
									   : HOLDER_HERE;
}
