/* SPDX-License-Identifier: MIT */
/* What a user can do about an error of a file of the store. */
#ifndef STORE_FAILURE_H
#define STORE_FAILURE_H

/* For the errno `number`: "; what to do", for error_cured; or "". */
const char *store_cure(int number);

#endif
