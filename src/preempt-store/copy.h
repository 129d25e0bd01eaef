/* SPDX-License-Identifier: MIT */
/* preempt-store copy. */
#ifndef PREEMPT_STORE_COPY_H
#define PREEMPT_STORE_COPY_H

#include "base/args.h"

extern const struct args_option copy_options[];
int copy_command(const struct args_rest *rest);

#endif
