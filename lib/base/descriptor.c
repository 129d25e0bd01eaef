/* SPDX-License-Identifier: MIT */
#include "base/descriptor.h"

#include <poll.h>

bool descriptor_is_ready(int descriptor)
{
	struct pollfd poller = {.fd = descriptor, .events = POLLIN};
	return descriptor >= 0 && poll(&poller, 1, 0) > 0;
}
