/* SPDX-License-Identifier: MIT */
/* preempt-store join, leave and close: a task's part in a run, by hand. */
#ifndef PREEMPT_STORE_MEMBER_H
#define PREEMPT_STORE_MEMBER_H

#include "base/args.h"

extern const struct args_option member_join_options[], member_leave_options[],
	member_close_options[];
int member_join(const struct args_rest *rest);
int member_leave(const struct args_rest *rest);
int member_close(const struct args_rest *rest);

#endif
