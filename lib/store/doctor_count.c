/* SPDX-License-Identifier: MIT */
/* Counting: what the sides say of themselves against each other and against what is there. */
#include <stdio.h>
#include <string.h>

#include "store/doctor_findings.h"

size_t doctor_count_clients(const struct doctor_side *sides, size_t count)
{
	size_t clients = 0;
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;
		while (k < i && (sides[k].device != sides[i].device ||
					strcmp(sides[k].boot, sides[i].boot)))
			k++;
		clients += k == i;
	}
	return clients;
}

static size_t shortest(char *const *texts, size_t count)
{
	size_t length = count ? strlen(texts[0]) : 0;
	for (size_t k = 1; k < count; k++) {
		size_t other = strlen(texts[k]);
		length = other < length ? other : length;
	}
	return length;
}

void doctor_count_wins(char *const *wins, size_t sides, struct doctor_check *check)
{
	size_t rounds = shortest(wins, sides);
	for (size_t i = 0; i < rounds; i++) {
		size_t winners = 0;
		for (size_t k = 0; k < sides; k++)
			winners += wins[k][i] == '1';
		check->several += winners > 1;
		check->none += winners == 0;
	}
	check->rounds += rounds;
	/*
	 * A round that nobody wins comes of errors that network filesystems answer in a race:
	 * whoever loses asks again. Two winners are the harm.
	 */
	if (check->several || check->none > check->rounds / 2) {
		check->answer = DOCTOR_NO;
		snprintf(check->why, sizeof(check->why),
			"of %llu rounds %llu had several winners and %llu none",
			(unsigned long long)check->rounds, (unsigned long long)check->several,
			(unsigned long long)check->none);
	} else {
		check->answer = check->rounds ? DOCTOR_YES : DOCTOR_FAILED;
		if (!check->rounds)
			snprintf(check->why, sizeof(check->why), "no round was played in time");
	}
}

void doctor_count_claims(
	char *const *promised, size_t sides, const char *seen, struct doctor_load *load)
{
	size_t known = strlen(seen), length = 0;
	for (size_t k = 0; k < sides; k++)
		length = strlen(promised[k]) > length ? strlen(promised[k]) : length;
	for (size_t i = 0; i < length; i++) {
		size_t asked = 0, winners = 0, winner = 0, unknown = 0;
		for (size_t k = 0; k < sides; k++) {
			char promise = i < strlen(promised[k]) ? promised[k][i] : '-';
			asked += promise != '-';
			unknown += promise == '?';
			if (promise == '1') {
				winners++;
				winner = k;
			}
		}
		if (!asked || unknown)
			continue;
		load->claims++;
		load->contested += asked > 1;
		load->several += winners > 1;
		/* Nobody won, or the store names another one, or forgot. */
		load->none += winners == 0 ||
			      (winners == 1 && (i >= known || seen[i] != (char)('0' + winner)));
	}
}
