/* SPDX-License-Identifier: MIT */
/* Notices, signals, and how the worker leaves. */
#ifndef QUEUE_WORKER_LEAVE_H
#define QUEUE_WORKER_LEAVE_H

#include "queue/worker/loop.h"

void work_take_notices(struct work *work);
/* Also those that a source has caught and keeps until it knows more. */
void work_take_held(struct work *work);
void work_take_signals(struct work *work);
/*
 * Take nothing any more; what runs is told to end, and gets KILL at kill_at. Called again, only the
 * earlier times count.
 */
void work_leave(struct work *work, int code, int64_t kill_at, int64_t until);
/* Since leaving: whether it is done, or no time is left for it. */
bool work_has_left(struct work *work);
/*
 * How long what runs may go on, of what is left until a deadline: some is kept for handing in.
 * Pure; ms.
 */
int64_t work_share(int64_t left);

#endif
