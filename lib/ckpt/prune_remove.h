/* SPDX-License-Identifier: MIT */
/* Removing what a prune has decided on. Private to ckpt/prune.h. */
#ifndef CKPT_PRUNE_REMOVE_H
#define CKPT_PRUNE_REMOVE_H

#include "ckpt/prune.h"
#include "ckpt/scan.h"

/*
 * Remove each item of report that is not kept, and what earlier pruners left. Each item learns how
 * it went; report's items are in the order of scan's. The first failure is answered, after the
 * others are done.
 */
enum status prune_remove(const struct scan *scan, struct prune_report *report, struct error *err);

#endif
