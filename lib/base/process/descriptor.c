/* SPDX-License-Identifier: MIT */
#include "base/process/descriptor.h"

#include <poll.h>

#include "base/clock.h"

bool descriptor_wait(int descriptor, int64_t until)
{
	struct pollfd poller = {.fd = descriptor, .events = POLLIN};
	return poll(&poller, 1, clock_poll_timeout(until)) > 0;
}

bool descriptor_is_ready(int descriptor)
{
	return descriptor >= 0 && descriptor_wait(descriptor, 0);
}
