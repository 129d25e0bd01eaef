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

#include "base/clock.h"

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

/* Whether a process of this user has bound the name: any user can bind it, to keep us silent. */
static bool is_bound_by_us(const struct sockaddr_un *name, socklen_t length)
{
	struct ucred owner = {.uid = (uid_t)-1};
	socklen_t size = sizeof(owner);
	/* The owner binds, and listens a moment later. */
	for (int tries = 0; tries < 5; tries++) {
		int asking = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		bool connected =
			asking >= 0 && connect(asking, (const struct sockaddr *)name, length) == 0;
		bool early = !connected && errno == ECONNREFUSED;
		if (connected)
			(void)getsockopt(asking, SOL_SOCKET, SO_PEERCRED, &owner, &size);
		if (asking >= 0)
			close(asking);
		if (!early)
			break;
		clock_sleep_until(clock_after(10));
	}
	return owner.uid == geteuid();
}

enum status stream_claim(const char *store, const struct attempt *attempt, uint64_t task,
	int *descriptor, struct error *err)
{
	struct sockaddr_un name;
	socklen_t length = make_name(store, attempt, task, &name);
	int claimed = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (claimed >= 0 && bind(claimed, (struct sockaddr *)&name, length) == 0 &&
		listen(claimed, SOMAXCONN) == 0) {
		*descriptor = claimed;
		return STATUS_OK;
	}
	int number = errno;
	if (claimed >= 0)
		close(claimed);
	if (number != EADDRINUSE)
		return error_set(
			err, STATUS_TEMPORARY, "cannot make a socket: %s", strerror(number));
	if (!is_bound_by_us(&name, length))
		return error_set(err, STATUS_TEMPORARY,
			"another user holds the socket @%s, by which this machine's processes see "
			"that task %llu beats",
			name.sun_path + 1, (unsigned long long)task);
	return error_set(err, STATUS_NO, "task %llu beats already", (unsigned long long)task);
}
