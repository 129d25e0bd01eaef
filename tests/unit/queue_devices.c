/* SPDX-License-Identifier: MIT */
/* How the GPUs of a worker are dealt out to its slots. */
#include "queue/worker/devices.h"

#include <stdlib.h>

#include "unit.h"

static struct devices devices;
static struct error err;

static bool deals(size_t slot, const char *expected)
{
	struct text value = {0};
	devices_of_slot(&devices, slot, &value);
	bool same = !strcmp(text_string(&value), expected);
	text_release(&value);
	return same;
}

static enum status find(const char *value, uint64_t slots, uint64_t per_slot)
{
	devices_release(&devices);
	setenv("CUDA_VISIBLE_DEVICES", value, 1);
	return devices_find(&devices, slots, per_slot, &err);
}

int main(void)
{
	TEST("the devices of CUDA_VISIBLE_DEVICES are dealt out in order, each to one slot")
	{
		CHECK_EQ(find("4,GPU-8b3f, 6 ,MIG-1,7", 2, 2), STATUS_OK);
		CHECK(deals(0, "4,GPU-8b3f") && deals(1, "6,MIG-1"));
	}
	TEST("those behind a -1 are not there, as CUDA has it; none in an empty value")
	{
		CHECK_EQ(find("0,-1,2", 1, 1), STATUS_OK);
		CHECK_EQ(find("0,-1,2", 2, 1), STATUS_USAGE);
		CHECK(strstr(err.text, "2 slots with 1 each need 2 GPUs, and 1 are"));
		CHECK_EQ(find("", 1, 1), STATUS_USAGE);
	}
	TEST("too few, and one that is named twice, are refused, also where the product overflows")
	{
		CHECK_EQ(find("0,1,2", 2, 2), STATUS_USAGE);
		CHECK_EQ(find("0,1,1", 1, 1), STATUS_USAGE);
		CHECK(strstr(err.text, "names 1 twice"));
		CHECK_EQ(find("0,1,2", UINT64_MAX / 2 + 2, 2), STATUS_USAGE);
	}
	TEST("a listing of nvidia-smi: one for each line of a GPU, not of its parts")
	{
		devices_release(&devices);
		devices_of_listing(&devices,
			"GPU 0: NVIDIA A100 (UUID: GPU-1)\n  MIG 1g.5gb Device 0: (UUID: MIG-1)\n"
			"GPU 1: NVIDIA A100 (UUID: GPU-2)\n");
		devices.per_slot = 1;
		CHECK_EQ(devices.count, 2);
		CHECK(deals(0, "0") && deals(1, "1"));
	}
	devices_release(&devices);
	return unit_end();
}
