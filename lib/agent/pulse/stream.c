/* SPDX-License-Identifier: MIT */
#include "agent/pulse/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

static socklen_t make_name(
	const char *store, const struct attempt *attempt, uint64_t task, struct sockaddr_un *name)
{
	char key[4096 + 256];
	int length = snprintf(key, sizeof(key), "%s %s%" PRIu64, store, attempt->prefix, task);
	size_t size = length < (int)sizeof(key) ? (size_t)length : sizeof(key) - 1;
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* The first byte is NUL: such a name makes no file. */
	length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
		"preempt-heartbeat-%u-%016" PRIx64, (unsigned)geteuid(),
		(uint64_t)XXH64(key, size, 0));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

enum status stream_claim(const char *store, const struct attempt *attempt, uint64_t task,
	int *descriptor, struct error *err)
{
	struct sockaddr_un name;
	socklen_t length = make_name(store, attempt, task, &name);
	int claimed = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (claimed >= 0 && bind(claimed, (struct sockaddr *)&name, length) == 0) {
		*descriptor = claimed;
		return STATUS_OK;
	}
	int number = errno;
	if (claimed >= 0)
		close(claimed);
	if (number != EADDRINUSE)
		return error_set(
			err, STATUS_TEMPORARY, "cannot make a socket: %s", strerror(number));
	return error_set(err, STATUS_NO, "task %llu beats already", (unsigned long long)task);
}
