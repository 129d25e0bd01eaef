/* SPDX-License-Identifier: MIT */
/*
 * A stream is the right to beat for one task of an attempt: at most one process of a machine has
 * it, even if several are started. The owner holds a local socket whose name is made of store, run,
 * attempt and task; the kernel frees it when the owner dies.
 */
#ifndef AGENT_PULSE_STREAM_H
#define AGENT_PULSE_STREAM_H

#include "proto/keys.h"

/* Closing *descriptor ends the claim. STATUS_NO: another process of this user has it.
 * STATUS_TEMPORARY: it cannot be known (another user has taken the name). store: by store_where. */
enum status stream_claim(const char *store, const struct attempt *attempt, uint64_t task,
	int *descriptor, struct error *err);

#endif
