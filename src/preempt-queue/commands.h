/* SPDX-License-Identifier: MIT */
/* The commands of preempt-queue, for its table. */
#ifndef PREEMPT_QUEUE_COMMANDS_H
#define PREEMPT_QUEUE_COMMANDS_H

#include "base/args.h"

/* schedule.c */
extern const struct args_option schedule_options[];
int run_schedule(const struct args_rest *rest);

/* join.c */
extern const struct args_option join_options[];
int run_join(const struct args_rest *rest);
int run_done(const struct args_rest *rest);

/* show.c */
extern const struct args_option list_options[], fetch_options[];
int run_list(const struct args_rest *rest);
int run_show(const struct args_rest *rest);
int run_fetch(const struct args_rest *rest);
int run_workers(const struct args_rest *rest);

/* work.c */
extern const struct args_option work_options[];
int run_work(const struct args_rest *rest);

/* change.c */
extern const struct args_option cancel_options[], retry_options[], forget_options[];
int run_cancel(const struct args_rest *rest);
int run_retry(const struct args_rest *rest);
int run_forget(const struct args_rest *rest);
int run_resource(const struct args_rest *rest);

#endif
