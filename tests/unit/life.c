/* SPDX-License-Identifier: MIT */
#include "base/process/life.h"

#include <string.h>

#include "unit.h"

int main(void)
{
	static const char *const none[] = {"", "0123456789ab0123456789a",
		"0123456789ab0123456789abc", "0123456789ab0123456789aB",
		"0123456789ab 123456789ab"};
	char a[LIFE_SIZE], b[LIFE_SIZE];
	CHECK(life_draw(a) && life_draw(b) && life_is_valid(a) && life_is_valid(b) &&
			strcmp(a, b) != 0,
		"two that are drawn differ");
	life_of_word(a, b);
	CHECK_TEXT(b, a);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		life_of_word(none[i], a);
		life_of_word(i ? none[i - 1] : "other", b);
		CHECK(!life_is_valid(none[i]) && life_is_valid(a) && strcmp(a, b) != 0,
			"\"%s\" is no life, and names one of its own", none[i]);
		life_of_word(none[i], b);
		CHECK_TEXT(b, a);
	}
	return unit_end();
}
