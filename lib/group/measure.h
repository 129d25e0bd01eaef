/* SPDX-License-Identifier: MIT */
/* How long a save takes, remembered in the store across the attempts of a run (run/RUN/MEASURE). */
#ifndef GROUP_MEASURE_H
#define GROUP_MEASURE_H

#include <stdint.h>

#include "store/store.h"

/* *longest_save: the longest save that is remembered, ms; 0: none. */
enum status measure_recall(
	struct store *store, const char *run, int64_t *longest_save, struct error *err);

/* Remember longest_save (ms) if it is longer than what is remembered. */
enum status measure_remember(
	struct store *store, const char *run, int64_t longest_save, struct error *err);

#endif
