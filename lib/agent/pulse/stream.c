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
#include "base/process/descriptor.h"

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

static bool is_same_user(int descriptor)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       peer.uid == geteuid();
}

/* A connection to the owner; -1: there is none of this user. */
static int call_owner(const struct sockaddr_un *name, socklen_t length)
{
	int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (descriptor < 0)
		return -1;
	if (connect(descriptor, (const struct sockaddr *)name, length) == 0 &&
		is_same_user(descriptor))
		return descriptor;
	close(descriptor);
	return -1;
}

enum status stream_claim(const char *store, const struct attempt *attempt, uint64_t task,
	int *descriptor, struct error *err)
{
	struct sockaddr_un name;
	socklen_t length = make_name(store, attempt, task, &name);
	int claimed = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (claimed >= 0 && bind(claimed, (struct sockaddr *)&name, length) == 0 &&
		listen(claimed, 8) == 0) {
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

bool stream_is_stopped(int descriptor)
{
	bool stopped = false;
	for (int caller; (caller = accept4(descriptor, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
		stopped |= is_same_user(caller);
		close(caller);
	}
	return stopped;
}

enum status stream_stop(const char *store, const struct attempt *attempt, uint64_t task,
	int64_t deadline, struct error *err)
{
	struct sockaddr_un name;
	socklen_t length = make_name(store, attempt, task, &name);
	for (bool told = false;; told = true) {
		int descriptor = call_owner(&name, length);
		if (descriptor < 0)
			return told ? STATUS_OK
				    : error_set(err, STATUS_NO,
					      "no process sends heartbeats for task %llu on this machine",
					      (unsigned long long)task);
		/* The owner closes the connection when it has accepted it. */
		(void)descriptor_wait(descriptor, clock_earlier(clock_after(100), deadline));
		close(descriptor);
		if (clock_now() >= deadline)
			return error_set(err, STATUS_TIMEOUT,
				"task %llu: the process that sends its heartbeats (preempt-run?) does not stop",
				(unsigned long long)task);
		clock_sleep_until(clock_after(5));
	}
}
