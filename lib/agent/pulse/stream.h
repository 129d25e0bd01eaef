/* SPDX-License-Identifier: MIT */
/*
 * One stream of beats per task and attempt on a machine, however often somebody starts one (HB-6):
 * a local socket by a name made of store, run, attempt and task, which the kernel frees when its
 * owner dies. Through it the owner can be told to stop. Only processes of the same user count.
 */
#ifndef AGENT_PULSE_STREAM_H
#define AGENT_PULSE_STREAM_H

#include "proto/keys.h"

/* *descriptor is ours until it is closed. STATUS_NO: somebody has it. store: store_where. */
enum status stream_claim(const char *store, const struct attempt *attempt, uint64_t task,
	int *descriptor, struct error *err);

/* The owner's side, when the descriptor is readable: whether it was told to stop. */
bool stream_is_stopped(int descriptor);

/* Tell the owner to stop, and wait until it has. STATUS_NO: there is none. */
enum status stream_stop(const char *store, const struct attempt *attempt, uint64_t task,
	int64_t deadline, struct error *err);

#endif
