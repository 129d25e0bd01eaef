/* SPDX-License-Identifier: MIT */
/* The worker's name, its joblog, its watchdog. */
#ifndef QUEUE_WORKER_SAY_H
#define QUEUE_WORKER_SAY_H

#include "queue/worker/loop.h"

/* Its name and index, by the options and the environment. */
void work_name(const struct work_options *options, struct queue_worker *worker);
enum status work_open_joblog(const char *path, int *descriptor, struct error *err);
void work_write_joblog(struct work *work, const struct queue_run *run);
/* When the watchdog wants to be called; CLOCK_NEVER. */
int64_t work_watchdog_due(const struct work *work);
void work_watchdog(struct work *work, int64_t now);

#endif
