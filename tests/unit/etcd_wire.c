/* SPDX-License-Identifier: MIT */
/* Requests to etcd and its answers, as text and as objects. */
#include "store/etcd/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "store/etcd/gateway.h"
#include "unit.h"

static struct json_object *parsed(const char *text)
{
	return json_parse_limited(text, strlen(text), 4096);
}

int main(void)
{
	TEST("numbers arrive as strings or not at all; ids have 64 bits without a sign")
	{
		struct json_object *object = parsed("{\"a\":\"7\",\"b\":8,\"ttl\":\"-1\","
						    "\"c\":\"14841639068965178418\","
						    "\"d\":\"14841639068965178419\",\"e\":true}");
		CHECK_EQ(wire_number(object, "a"), 7);
		CHECK_EQ(wire_number(object, "b"), 8);
		CHECK_EQ(wire_number(object, "ttl"), -1);
		CHECK_EQ(wire_number(object, "absent"), 0);
		CHECK_EQ(wire_number(object, "e"), 0);
		CHECK(wire_number(object, "c") != wire_number(object, "d"));
		CHECK(wire_flag(object, "e") && !wire_flag(object, "a"));
		json_object_put(object);
	}
	TEST("a member that is a learner is no answer, and an old token asks for a new login")
	{
		struct etcd_options options = {.prefix = "test"};
		struct gateway gateway = {.where = "etcd://a/test", .options = &options};
		CHECK_EQ(gateway_refusal(&gateway, GATEWAY_PRECONDITION,
				 "etcdserver: rpc not supported for learner", NULL),
			STATUS_TEMPORARY);
		CHECK_EQ(gateway_refusal(&gateway, GATEWAY_INVALID,
				 "etcdserver: revision of auth store is old", NULL),
			STATUS_PERMISSION);
		CHECK_EQ(gateway_refusal(&gateway, GATEWAY_NOT_FOUND, "no lease", NULL), STATUS_NO);
	}
	TEST("bytes are in base64: any of them; what is no base64 is told")
	{
		size_t length;
		struct text body = {0};
		text_add(&body, "{");
		wire_add_bytes(&body, "value", "a\0b\xff", 4);
		text_add(&body, ",\"wrong\":\"a?bc\"}");
		struct json_object *object = parsed(text_string(&body));
		char *bytes = wire_bytes(object, "value", &length);
		CHECK(bytes && length == 4 && !memcmp(bytes, "a\0b\xff", 5));
		free(bytes);
		CHECK(!wire_bytes(object, "wrong", &length));
		bytes = wire_bytes(object, "absent", &length);
		CHECK(bytes && length == 0 && !*bytes);
		free(bytes);
		json_object_put(object);
		text_release(&body);
	}
	TEST("the keys of one kind are a range of their own")
	{
		struct wire_key all, end, key, other;
		wire_key_set(&all, "p", 'k', "");
		end = all;
		wire_key_end(&end);
		wire_key_set(&key, "p", 'k', "run/\xff\xff");
		CHECK(memcmp(all.bytes, key.bytes, all.length) == 0);
		CHECK(memcmp(key.bytes, end.bytes, end.length) < 0);
		wire_key_set(&other, "p", 'n', "run");
		CHECK(memcmp(other.bytes, end.bytes, end.length) >= 0);
	}
	return unit_end();
}
