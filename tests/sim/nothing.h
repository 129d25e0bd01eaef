/* SPDX-License-Identifier: MIT */
/* Functions that have nothing to do in a simulated world, or always give one answer. */
#ifndef SIM_NOTHING_H
#define SIM_NOTHING_H

#define NOTHING(name, ...)                                                                         \
	void name(__VA_ARGS__)                                                                     \
	{                                                                                          \
	}
#define ANSWERS(answer, type, name, ...)                                                           \
	type name(__VA_ARGS__)                                                                     \
	{                                                                                          \
		return answer;                                                                     \
	}

#endif
