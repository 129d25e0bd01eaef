/* SPDX-License-Identifier: MIT */
/* preempt-store doctor. */
#ifndef PREEMPT_STORE_DOCTOR_H
#define PREEMPT_STORE_DOCTOR_H

#include "base/args.h"
#include "base/error.h"
#include "base/text.h"

extern const struct args_option doctor_options[];
int doctor_command(const struct args_rest *rest);

/* The URL of the store that --store or --run names (preempt-store.c). */
enum status find_store_url(struct text *url, struct error *err);

#endif
