/* SPDX-License-Identifier: MIT */
/* What to do about an errno of a file of the store. */
#ifndef STORE_FAILURE_H
#define STORE_FAILURE_H

/* "; what to do", for error_cured; "" where there is nothing to say. */
const char *store_cure(int number);

#endif
