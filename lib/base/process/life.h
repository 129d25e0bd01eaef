/* SPDX-License-Identifier: MIT */
/*
 * A life: one start of all tasks of a job. Its name is 24 lower-case hexadecimal digits. The first
 * twelve name the line: the lives of one run in one store share them, and only among these does
 * a higher attempt number mean a later one. The last twelve differ from start to start.
 *
 * Attempt numbers begin at 1 again under another run name and in a new store, so what outlives the
 * store (a checkpoint that is being written) carries the life, not only the attempt.
 */
#ifndef BASE_PROCESS_LIFE_H
#define BASE_PROCESS_LIFE_H

#include <stdbool.h>
#include <stddef.h>

#define LIFE_SIZE 25 /* with its NUL */

/* True: text is a life's name, 24 lower-case hexadecimal digits and nothing else. */
bool life_is_valid(const char *text);

/* True: both are of one line. "" (no life is known) is a line of its own. */
bool life_same_line(const char *a, const char *b);

/*
 * Draw a new one of the line of previous; "" there: of a new line. False: the kernel gave no random
 * numbers, and life is "".
 */
bool life_draw(const char *previous, char life[LIFE_SIZE]);

/* Derive one: the same two texts give the same life. Its line follows from line. */
void life_derive(const char *line, const char *whole, char life[LIFE_SIZE]);

/* Derive one of the same line from a life and what tells a part of it apart. */
void life_derive_part(const char *of, const char *part, char life[LIFE_SIZE]);

#endif
