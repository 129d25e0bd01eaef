/* SPDX-License-Identifier: MIT */
/* The commands of ckpt-rotate between two directories: ckpt/copy.h. */
#ifndef CKPT_ROTATE_TIERS_H
#define CKPT_ROTATE_TIERS_H

#include "base/args.h"

extern const struct args_option copy_options[], drain_options[];

int run_copy(const struct args_rest *rest);
int run_drain(const struct args_rest *rest);

#endif
