/* SPDX-License-Identifier: MIT */
/*
 * A life: one attempt of a job, named by 24 lower-case hexadecimal digits. The first twelve name
 * its line: all attempts of one run in one store share them, and only among these does a higher
 * attempt number mean a later attempt. The last twelve differ in each attempt.
 *
 * Attempt numbers begin at 1 again in another run and in a new store. So records that may outlive
 * the store (of a checkpoint that is being written) have the life, not only the attempt.
 */
#ifndef BASE_PROCESS_LIFE_H
#define BASE_PROCESS_LIFE_H

#include <stdbool.h>
#include <stddef.h>

#define LIFE_SIZE 25 /* with its NUL */

/* Whether text is 24 lower-case hexadecimal digits. */
bool life_is_valid(const char *text);

/* Whether both are of one line. "" (no life is known) is a line of its own. */
bool life_same_line(const char *a, const char *b);

/*
 * Make a random life in the line of previous; in a new line if previous is "". False: the kernel
 * gave no random numbers, and life is "".
 */
bool life_draw(const char *previous, char life[LIFE_SIZE]);

/* Derive a life: the same two texts give the same life, the same line text gives the same line. */
void life_derive(const char *line, const char *whole, char life[LIFE_SIZE]);

/* Derive the life of this part of the life `of`, in the same line. */
void life_derive_part(const char *of, const char *part, char life[LIFE_SIZE]);

#endif
