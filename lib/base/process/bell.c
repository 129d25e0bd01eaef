/* SPDX-License-Identifier: MIT */
#include "base/process/bell.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int bell_open(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void bell_ring(int descriptor)
{
	uint64_t one = 1;
	while (write(descriptor, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void bell_hush(int descriptor)
{
	uint64_t count;
	while (read(descriptor, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}
