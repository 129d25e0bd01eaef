/* SPDX-License-Identifier: MIT */
/* ckpt-rotate copy: ckpt/copy.h. */
#ifndef CKPT_ROTATE_TIERS_H
#define CKPT_ROTATE_TIERS_H

#include "base/args.h"

extern const struct args_option copy_options[];

int run_copy(const struct args_rest *rest);

#endif
