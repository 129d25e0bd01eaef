/* SPDX-License-Identifier: MIT */
/* An environment that is built for a command. A zeroed struct is empty. */
#ifndef BASE_PROCESS_VARIABLES_H
#define BASE_PROCESS_VARIABLES_H

#include <stddef.h>
#include <stdint.h>

struct variables {
	char **items; /* "NAME=VALUE", ended by NULL; NULL: none yet */
	size_t count;
};

/* Add all variables of our own environment to an empty one. */
void variables_inherit(struct variables *variables);
/* Replace or add one variable. */
void variables_set(struct variables *variables, const char *name, const char *value);
void variables_set_number(struct variables *variables, const char *name, uint64_t value);
/* Replace or add all items, each "NAME=VALUE", NULL-terminated; NULL: none. */
void variables_set_all(struct variables *variables, char *const *items);
void variables_release(struct variables *variables);

#endif
