/* SPDX-License-Identifier: MIT */
/* preempt-store copy. */
#ifndef PREEMPT_STORE_COPY_H
#define PREEMPT_STORE_COPY_H

#include "base/args.h"
#include "store/store.h"

extern const struct args_option copy_options[];
int copy_command(const struct args_rest *rest);

/* Open a store, with --timeout for each answer (preempt-store.c). */
enum status open_store_url(
	struct store **store, const char *url, unsigned flags, struct error *err);

#endif
