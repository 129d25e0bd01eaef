/* SPDX-License-Identifier: MIT */
/* The environment of a command that is to be started, as a list of its own. A zeroed one is empty.
 */
#ifndef BASE_PROCESS_VARIABLES_H
#define BASE_PROCESS_VARIABLES_H

#include <stddef.h>
#include <stdint.h>

struct variables {
	char **items; /* "NAME=VALUE", ended by NULL; NULL: none yet */
	size_t count;
};

/* All of ours. */
void variables_inherit(struct variables *variables);
/* Replace or add NAME=value. */
void variables_set(struct variables *variables, const char *name, const char *value);
void variables_set_number(struct variables *variables, const char *name, uint64_t value);
/* Replace or add all of "NAME=VALUE", NULL-terminated (NULL: none). */
void variables_set_all(struct variables *variables, char *const *items);
void variables_release(struct variables *variables);

#endif
