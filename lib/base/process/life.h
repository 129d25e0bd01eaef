/* SPDX-License-Identifier: MIT */
/*
 * A life: one attempt of a job, named by 24 lower-case hexadecimal digits. The first twelve name
 * its line: all attempts of one run in one store share them. Only in one line does a higher attempt
 * number mean a later attempt. The last twelve differ in each attempt.
 *
 * Attempt numbers begin at 1 again in another run and in a new store. So a record that may outlive
 * the store, such as that of an unfinished checkpoint, has the life, not only the attempt.
 */
#ifndef BASE_PROCESS_LIFE_H
#define BASE_PROCESS_LIFE_H

#include <stdbool.h>
#include <stddef.h>

#define LIFE_SIZE 25 /* with its NUL */

/* Whether text is 24 lower-case hexadecimal digits. */
bool life_is_valid(const char *text);

/* Return true if both are in one line. "" (no life is known) is a line of its own. */
bool life_same_line(const char *a, const char *b);

/*
 * Make a random life in the line of previous; in a new line if previous is "". False: the kernel
 * gave no random numbers; life is then "".
 */
bool life_draw(const char *previous, char life[LIFE_SIZE]);

/* Derive a life from two texts. The same texts give the same life; the text `line` alone gives its
 * line. */
void life_derive(const char *line, const char *whole, char life[LIFE_SIZE]);

/* Derive from the life `of` that of its part with the name `part`. Both are in the same line. */
void life_derive_part(const char *of, const char *part, char life[LIFE_SIZE]);

#endif
