/* SPDX-License-Identifier: MIT */
/*
 * A life: one start of a job, named by 24 lower-case hexadecimal digits, the same for all its
 * tasks. Each attempt of a run has another one.
 *
 * Attempt numbers begin at 1 again in another run and in a new store. So a record that may outlive
 * the store, such as that of an unfinished checkpoint, has the life, not only the attempt.
 */
#ifndef BASE_PROCESS_LIFE_H
#define BASE_PROCESS_LIFE_H

#include <stdbool.h>

#define LIFE_SIZE 25 /* with its NUL */

/* Whether text is 24 lower-case hexadecimal digits. */
bool life_is_valid(const char *text);

/* Make a random life. False: the kernel gave no random numbers; life is then "". */
bool life_draw(char life[LIFE_SIZE]);

/* The life that a word of the user's names: itself if it is valid, else one derived from it. */
void life_of_word(const char *word, char life[LIFE_SIZE]);

#endif
