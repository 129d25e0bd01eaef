/* SPDX-License-Identifier: MIT */
#include "notice/lead.h"

int64_t notice_lead(int64_t grace, int64_t whole)
{
	const int64_t usual = 300000;
	if (grace >= 0)
		return grace;
	return whole / 4 < usual ? whole / 4 : usual;
}
