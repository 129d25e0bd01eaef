/* SPDX-License-Identifier: MIT */
/*
 * Formats of files: a whole file of each is right, and whatever is cut, replaced or impossible is
 * found; and so is a checkpoint of TensorFlow, and a number in a pickle. The files are made here.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/formats.h"
#include "scratch.h"
#include "unit.h"

static int root;
static struct error why;

#define TEXT(text) (text), sizeof(text) - 1

static void write_bytes(const char *name, const void *bytes, size_t length)
{
	/* A new file each time: one that is truncated and written is flushed to the disk. */
	(void)unlinkat(root, name, 0);
	int descriptor = openat(root, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (descriptor < 0 || file_write_all(descriptor, bytes, length) < 0)
		exit(99);
	close(descriptor);
}

/* One check of many: held, or the words are shown. */
#define SHOW(held, ...)                                                                            \
	do {                                                                                       \
		if (!CHECK(held))                                                                  \
			printf("# " __VA_ARGS__), printf("\n");                                    \
	} while (0)

/* Write a file, and check it. */
static enum status check(const char *name, const void *bytes, size_t length)
{
	write_bytes(name, bytes, length);
	why = (struct error){0};
	enum status status = format_check(root, name, length, &why);
	if (status != STATUS_OK && strncmp(why.text, name, strlen(name)) != 0)
		printf("# it does not begin with the name: %s\n", why.text);
	return status;
}

static void add_number(struct text *text, uint64_t value, int width)
{
	for (; width > 0; width--, value >>= 8)
		text_add_bytes(text, &(unsigned char){(unsigned char)value}, 1);
}

/* What is wrong with an archive. */
enum fault { NONE, LONG = 1, COMMENT = 2, FEWER = 4, MORE = 8, MOVED = 16, NO_ENTRY = 32 };

/* An archive of two members; the first is a pickle, or nothing. */
static void add_zip(struct text *zip, int faults)
{
	static const char pickle[] = "\x80\2}q\0(X\x0b\0\0\0global_stepq\1M\xbc\2u.";
	const size_t lengths[] = {sizeof(pickle) - 1, 100};
	uint64_t offsets[2], begin = zip->length;
	for (int i = 0; i < 2; i++) {
		char bytes[100] = "";
		memcpy(bytes, pickle, i ? 0 : lengths[i]);
		offsets[i] = zip->length - begin;
		text_add_bytes(zip, TEXT("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
		add_number(zip, lengths[i], 4);
		add_number(zip, lengths[i], 4);
		text_add_bytes(zip, TEXT("\1\0\0\0x"));
		text_add_bytes(zip, bytes, lengths[i]);
	}
	uint64_t directory = zip->length - begin + (faults & MOVED ? 1 : 0);
	for (int i = 0; i < 2; i++) {
		text_add_bytes(zip, faults & NO_ENTRY ? "PK\1\3" : "PK\1\2", 4);
		text_add_bytes(zip, TEXT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
		add_number(zip, lengths[i], 4);
		add_number(zip, lengths[i], 4);
		text_add_bytes(zip, TEXT("\1\0\2\0\1\0\0\0\0\0\0\0\0\0"));
		add_number(zip, offsets[i], 4);
		text_add_bytes(zip, TEXT("xeec"));
	}
	uint64_t count = faults & FEWER ? 1 : faults & MORE ? 3 : 2, size = 2 * 50;
	if (faults & LONG) {
		text_add_bytes(zip, TEXT("PK\6\6,\0\0\0\0\0\0\0-\0-\0\0\0\0\0\0\0\0\0"));
		add_number(zip, count, 8);
		add_number(zip, count, 8);
		add_number(zip, size, 8);
		add_number(zip, directory, 8);
		text_add_bytes(zip, TEXT("PK\6\7\0\0\0\0"));
		add_number(zip, directory + size, 8);
		add_number(zip, 1, 4);
	}
	text_add_bytes(zip, TEXT("PK\5\6\0\0\0\0"));
	add_number(zip, faults & LONG ? UINT16_MAX : count, 2);
	add_number(zip, faults & LONG ? UINT16_MAX : count, 2);
	add_number(zip, faults & LONG ? UINT32_MAX : size, 4);
	add_number(zip, faults & LONG ? UINT32_MAX : directory, 4);
	add_number(zip, faults & COMMENT ? 4 : 0, 2);
	text_add_bytes(zip, "PK\5\6", faults & COMMENT ? 4 : 0);
}

/* HDF5 of 120 bytes: the first block, and data. */
static void add_hdf5(struct text *file, int version, uint64_t end)
{
	text_add_bytes(file, TEXT("\x89HDF\r\n\x1a\n"));
	add_number(file, (uint64_t)version, 1);
	if (version < 2)
		text_add_bytes(file, TEXT("\0\0\0\0\x8\x8\0\4\0\x10\0\0\0\0\0"));
	else
		text_add_bytes(file, TEXT("\x8\x8\0"));
	add_number(file, 0x20, version == 1 ? 4 : 0);
	add_number(file, 0, 8);
	add_number(file, UINT64_MAX, 8);
	add_number(file, end, 8);
	add_number(file, 48, 8);
	while (file->length < 120)
		text_add(file, "d");
}

#define SAFETENSORS                                                                                 \
	"\x55\0\0\0\0\0\0\0{\"__metadata__\":{\"a\":\"b\"},\"x\":{\"dtype\":\"F32\",\"shape\":[3]," \
	"\"data_offsets\":[0,12]}}     012345678901"
/* Five pickles, and storages of none, of one item of eight bytes, and of three of four. */
#define LEGACY                                                                                        \
	"\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}.\x80\2}X\1\0\0\0a(K\1K\2ts."  \
	"\x80\2]q\0(X\1\0\0\0aX\1\0\0\0bX\1\0\0\0ce.\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\x91\x92\x93\x94" \
	"\x95\x96\x97\x98\3\0\0\0\0\0\0\0\x98\x87\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a"

/* Whole files. So many cuts of them are not seen: */
static const struct {
	const char *name;
	const char *bytes;
	size_t length, unseen;
} whole[] = {
	{"framed.pkl", TEXT("\x80\4\x95\xf\0\0\0\0\0\0\0}\x94\x8c\4step\x94M\xf4\1s."), 0},
	{"legacy.pt", TEXT(LEGACY), 2},
	{"job.pkl", TEXT("\x80\3cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81\xff\xff\xff."), 1},
	{"model.safetensors", TEXT(SAFETENSORS), 0},
	{"state.ckpt", TEXT(SAFETENSORS), 0},
	{"s.json", TEXT("{\"step\": 500, \"loss\": NaN, \"log\": [-Infinity, \"\xc3\xa9\"]}"), 0},
};

static void check_whole(const char *name, const char *bytes, size_t length, size_t unseen)
{
	static const char page[] = " \n<!DOCTYPE html>\n<html>", zeros[5000];
	static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:01\n";
	SHOW(check(name, bytes, length) == STATUS_OK, "%s: %s", name, why.text);
	for (size_t cut = 0; cut < length; cut++)
		if (check(name, bytes, cut) != STATUS_NO && unseen-- == 0)
			SHOW(false, "%s, cut to %zu bytes", name, cut);
	SHOW(unseen == 0, "%s: %zu", name, unseen);
	CHECK(check(name, TEXT(zeros)) == STATUS_NO && strstr(why.text, "zeros"));
	CHECK(check(name, TEXT(page)) == STATUS_NO && strstr(why.text, "HTML"));
	CHECK(check(name, TEXT(pointer)) == STATUS_NO && strstr(why.text, "LFS"));
}

static void check_cuts(void)
{
	TEST("files are right, and wrong if they are cut or replaced")
	{
		for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
			check_whole(
				whole[i].name, whole[i].bytes, whole[i].length, whole[i].unseen);
		static const char *const names[] = {
			"z.pt", "z.ckpt", "z.pth.tar", "z.npz", "z.keras", "random_states_0.pkl"};
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			struct text zip = {0};
			add_zip(&zip, (int)i & (LONG | COMMENT));
			check_whole(names[i], zip.data, zip.length, 0);
			text_release(&zip);
		}
		for (int version = 0; version <= 3; version++) {
			struct text file = {0};
			add_hdf5(&file, version, 120);
			check_whole(
				version & 1 ? "a.weights.h5" : "a.hdf5", file.data, file.length, 0);
			text_release(&file);
		}
	}
}

static void check_archives(void)
{
	static const int faults[] = {FEWER, MORE, MOVED, NO_ENTRY};
	TEST("archives")
	{
		for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
			for (int more = NONE; more <= (LONG | COMMENT); more++) {
				struct text zip = {0};
				add_zip(&zip, faults[i] | more);
				SHOW(check("z.pt", zip.data, zip.length) == STATUS_NO,
					"fault %d with %d", faults[i], more);
				text_release(&zip);
			}
		struct text several = {0};
		add_zip(&several, LONG);
		size_t first = several.length;
		add_zip(&several, NONE);
		add_zip(&several, LONG);
		CHECK_EQ(check("__0_0.distcp", several.data, several.length), STATUS_OK);
		CHECK_EQ(check("__0_0.distcp", several.data, several.length - 1), STATUS_NO);
		CHECK_EQ(check("__0_0.distcp", several.data, first + 1), STATUS_NO);
		/* That whole ones are missing is not seen in the file: .metadata says it. */
		CHECK_EQ(check("__0_0.distcp", several.data, first), STATUS_OK);
		CHECK_EQ(check("z.pt", several.data, several.length), STATUS_NO);
		text_release(&several);
	}
}

/* Contents that are no whole save, or that say nothing. */
static const struct {
	const char *name;
	const char *bytes;
	size_t length;
	enum status status;
} others[] = {
	{"a.pt", TEXT("hello, world"), STATUS_NO},
	{"a.bin", TEXT("\x1f\x8b\x08\0\0\0\0\0\0\3"), STATUS_NO},
	{"a.pt", TEXT("hello"), STATUS_NO},
	{"a.pt", TEXT("hello\n"), STATUS_OK}, /* seven bytes and fewer, of a line, say nothing */
	{"a.pt", TEXT("PK\3"), STATUS_NO},
	{"a.pt", TEXT("\x89H"), STATUS_NO},
	{"a.pth", TEXT("\x80\2"), STATUS_NO},
	{"a.pth", TEXT("\x80\2K\1."), STATUS_OK},
	{"a.pkl", TEXT("\x80\2}\xff."), STATUS_NO},
	{"a.pkl", TEXT("\x80\2X\xff\xff\xff\xff."), STATUS_NO},
	{"a.pkl", TEXT("\x80\4}\x8e\xff\xff\xff\xff\xff\xff\xff\xff."), STATUS_NO},
	{"a.pkl", TEXT("x\x9cK\xca\xcf\xaf\0\2\x8a\1E"), STATUS_OK}, /* joblib compresses */
	{"a.pkl", TEXT("\0\0\0\0\0\0\0\0M\1."), STATUS_NO},
	{"a.npz", TEXT("\x80\2}q\0(K\1K\2u."), STATUS_NO},
	{"a.h5", TEXT(SAFETENSORS), STATUS_NO},
	{"a.npy", TEXT("hello, world"), STATUS_NO},
	{"a.npy", TEXT("\x93NUMPY\1\0"), STATUS_OK},
	{"a.safetensors", TEXT("\xff\xff\xff\xff\xff\xff\xff\xff{}"), STATUS_NO},
	{"a.safetensors", TEXT("\2\0\0\0\0\0\0\0[]"), STATUS_NO},
	{"a.safetensors", TEXT("\2\0\0\0\0\0\0\0{}"), STATUS_OK},
	{"a.safetensors", TEXT("\2\0\0\0\0\0\0\0{}x"), STATUS_NO},
	{"a.json", TEXT("null\n"), STATUS_OK},
	{"a.json", TEXT("5"), STATUS_OK},
	{"a.json",
		TEXT("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
		     "]]]]]]]]"),
		STATUS_OK},
	{"a.json", TEXT("{} x"), STATUS_NO},
	{"a.index", TEXT("a table has a mark at the end, forty-eight bytes are there"), STATUS_NO},
	{"a", TEXT("PK\3\4, and no more"), STATUS_NO},
	{"a", TEXT("PKCS and other text"), STATUS_OK},
	{"a", TEXT("\x80\2\xe0, and other bytes"), STATUS_OK},
	{"a", TEXT("\x80\0\0\0\1\0\0\0\2\0\0\0"), STATUS_OK}, /* whole numbers */
	{"a", TEXT("\x80\2\0\0\1\0\0\0"), STATUS_OK},
	{"a", TEXT("\x80\1}\0\1\0\0\0"), STATUS_OK},
	{"a", TEXT("\0\0\0\0\0\0\0"), STATUS_OK},
	{"a", TEXT("<ERROR><Code>NoSuchKey</Code></Error>"), STATUS_NO},
	{"a", TEXT("\0\0\0\0\0\0\0\0\0"), STATUS_NO},
	{"0.0.1", TEXT("\0\0\0\0\0\0\0\0\0"), STATUS_OK}, /* a part of an array of zarr */
	{"spiece.vocab", TEXT("<unk>\t0\n<s>\t1\n"), STATUS_OK},
	{"index.html", TEXT("<!doctype html>"), STATUS_OK},
	{"README.md", TEXT("version https://git-lfs.github.com/spec/v1\n"), STATUS_OK},
	{"model.metadata", TEXT("1f2e3d\netag\n1700000000.5\n"), STATUS_OK},
	{"a", TEXT(""), STATUS_OK},
};

static void check_others(void)
{
	static const char *const known[] = {"a.pt", "a.pth", "a.ckpt", "a.bin", "a.pth.tar",
		"a.safetensors", "a.npz", "a.npy", "a.h5", "a.hdf5", "a.keras", "a.json",
		"a.msgpack", "a.pkl", "a.distcp", "a.index"};
	struct text file = {0};
	TEST("other contents")
	{
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			enum status status =
				check(others[i].name, others[i].bytes, others[i].length);
			SHOW(status == others[i].status, "row %zu, %s: %d %s", i, others[i].name,
				status, why.text);
		}
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			SHOW(check(known[i], "", 0) == STATUS_NO && strstr(why.text, "is empty"),
				"%s", known[i]);
		add_hdf5(&file, 0, 119);
		CHECK_EQ(check("a.h5", file.data, file.length), STATUS_NO);
		add_hdf5((file.length = 0, &file), 3, 120);
		file.data[11] = 1;
		CHECK_EQ(check("a.h5", file.data, file.length), STATUS_NO);
		add_hdf5((file.length = 0, &file), 9, 1);
		CHECK_EQ(check("a.h5", file.data, file.length), STATUS_OK);
		text_release(&file);
		file = (struct text){0};
		while (file.length < 2048)
			text_add_bytes(&file, "", 1);
		memcpy(file.data + 124, "00000000005", 11);
		memcpy(file.data + 257, "ustar", 5);
		memcpy(file.data + 512, "hello", 5);
		CHECK_EQ(check("a.tar", file.data, file.length), STATUS_OK);
		text_release(&file);
	}
	TEST("a link is followed; and what is no file, or shorter than it was, is told")
	{
		write_bytes("real.json", TEXT("{}"));
		CHECK(symlinkat("real.json", root, "link.json") == 0 &&
			format_check(root, "link.json", 2, &why) == STATUS_OK);
		CHECK(symlinkat("nothing", root, "dangling.pt") == 0 &&
			format_check(root, "dangling.pt", 2, &why) == STATUS_NO);
		CHECK(symlinkat("loop.pt", root, "loop.pt") == 0 &&
			format_check(root, "loop.pt", 2, &why) == STATUS_NO);
		CHECK(mkfifoat(root, "pipe.pt", 0600) == 0 &&
			format_check(root, "pipe.pt", 2, &why) == STATUS_NO);
		CHECK_EQ(format_check(root, "b", 2, &why), STATUS_NO);
		CHECK_EQ(format_check(root, "real.json", 3, &why), STATUS_NO);
		CHECK_EQ(format_check(root, "real.json", UINT64_MAX, &why), STATUS_NO);
	}
}

/*
 * Indexes of TensorFlow, as LevelDB writes tables: all entries in one block, and two in each. They
 * say three files, of which the third has no tensor: in the first are a text of 5 bytes,
 * layer/bias of 8 (the smallest that is no text), and layer/a_kernel of 25; in the second
 * layer/slot of 15, and layer/empty.
 */
static const char one_block[] =
	"\0\0\6\10\3\32\2\10\1\0\34\17_CHECKPOINTABLE_OBJECT_GRAPH\10\7\22\4\22\2\10\3(\0055\1\0"
	"\0\0\0\16\21layer/a_kernel\10\1\22\4\22\2\10\3 \15(\0315 \270a_\6\4\21bias\10\1\22\4\22"
	"\2\10\3 \5(\0105\241>\\\10\6\5\21empty\10\1\22\4\22\2\10\3\30\1 \0175\330\352\202\242\6"
	"\4\21slot\10\1\22\4\22\2\10\3\30\1(\0175Z\353\237d\0\0\0\0\1\0\0\0\0\3L\266z\0\1\3z\0"
	"\252\1\0\0\0\0\1\0\0\0\0[\37\355\330\0\0\257\1\17\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0W\373\200\213$uG\333";
static const char three_blocks[] =
	"\0\0\6\10\3\32\2\10\1\0\34\17_CHECKPOINTABLE_OBJECT_GRAPH\10\7\22\4\22\2\10\3(\0055\1\0"
	"\0\0\0\16\21layer/a_kernel\10\1\22\4\22\2\10\3 \15(\0315 \270a_\0\0\0\0\1\0\0\0\0\25\314"
	"\17\204\0\12\21layer/bias\10\1\22\4\22\2\10\3 \5(\0105\241>\\\10\6\5\21empty\10\1\22\4"
	"\22\2\10\3\30\1 \0175\330\352\202\242\0\0\0\0\1\0\0\0\0\251\16\343\177\0\12\21layer/slot"
	"\10\1\22\4\22\2\10\3\30\1(\0175Z\353\237d\0\0\0\0\1\0\0\0\0\224Q\251Z\0\16\2layer/a_kern"
	"el\0a\0\13\2layer/emptyf\77\0\1\3z\252\1&\0\0\0\0\1\0\0\0\0\230<z0\0\0\325\0012\0\0\0\0"
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0W\373\200\213$uG\333";
static const char shard0[] = "textsbias0123kernel: twenty-four bytes";
static const char shard1[] = "slot of 15 byte";

static enum status check_bundle(void)
{
	struct stat st;
	why = (struct error){0};
	return fstatat(root, "b/ckpt-1.index", &st, 0) < 0
		       ? STATUS_USAGE
		       : format_check(root, "b/ckpt-1.index", (uint64_t)st.st_size, &why);
}

static const char index_name[] = "b/ckpt-1.index";

/* The index cut anywhere, or with one byte that is another. */
static void check_index(const char *bytes, size_t length)
{
	char changed[sizeof(three_blocks)];
	write_bytes(index_name, bytes, length);
	SHOW(check_bundle() == STATUS_OK, "%s", why.text);
	for (size_t i = 0; i < length; i++) {
		write_bytes(index_name, bytes, i);
		SHOW(check_bundle() == STATUS_NO, "cut to %zu", i);
		/* A table has no checksum of its last 48 bytes. */
		memcpy(changed, bytes, length);
		changed[i] ^= 1;
		write_bytes(index_name, changed, length);
		SHOW(check_bundle() == STATUS_NO || i + 48 >= length, "byte %zu of %zu changed", i,
			length);
	}
	write_bytes(index_name, bytes, length);
}

/* The index of one block, with other bytes at two places, the second of which is a checksum. */
static enum status check_other_index(size_t at, const char *bytes, size_t length, size_t then,
	const char *more, size_t more_length)
{
	char other[sizeof(one_block)];
	memcpy(other, one_block, sizeof(other));
	memcpy(other + at, bytes, length);
	memcpy(other + then, more, more_length);
	write_bytes(index_name, other, sizeof(other) - 1);
	return check_bundle();
}

static void check_tensorflow(void)
{
	static const char data[2][32] = {
		"b/ckpt-1.data-00000-of-00003", "b/ckpt-1.data-00001-of-00003"};
	char other[64];
	TEST("a checkpoint of TensorFlow")
	{
		write_bytes(data[0], TEXT(shard0));
		write_bytes(data[1], TEXT(shard1));
		check_index(TEXT(one_block));
		check_index(TEXT(three_blocks));
		for (size_t i = 0; i < sizeof(shard0) - 1; i++) {
			write_bytes(data[0], shard0, i);
			CHECK(check_bundle() == STATUS_NO && strstr(why.text, data[0]));
			memcpy(other, shard0, sizeof(shard0));
			other[i] ^= 1;
			write_bytes(data[0], other, sizeof(shard0) - 1);
			/* The smallest tensor that is no text is looked at. */
			CHECK_EQ(check_bundle(), i >= 5 && i < 13 ? STATUS_NO : STATUS_OK);
		}
		write_bytes(data[0], "textsbias0123kernel: twenty-four bytesx", sizeof(shard0));
		CHECK_EQ(check_bundle(), STATUS_NO);
		write_bytes(data[0], TEXT(shard0));
		CHECK(unlinkat(root, data[1], 0) == 0 && check_bundle() == STATUS_NO &&
			strstr(why.text, "00001-of-00003 is missing"));
	}
	TEST("an index that names no such file, or is compressed")
	{
		CHECK(check_other_index(154, TEXT("\3"), 171, TEXT("\220\11\321K")) == STATUS_NO &&
			strstr(why.text, ".index is damaged"));
		/* What is compressed is not looked into. */
		CHECK_EQ(check_other_index(
				 170, TEXT("\1\324p\267\200"), 190, TEXT("\1,\273\360\322")),
			STATUS_OK);
	}
}

static const struct {
	const char *bytes;
	size_t length;
	uint64_t number; /* NOT: there is none */
} numbers[] = {
#define NOT UINT64_MAX
	{TEXT("\x80\2}X\4\0\0\0stepK\7s."), 7},
	{TEXT("\x80\2}q\0X\4\0\0\0stepq\1M\xf4\1s."), 500},
	{TEXT("\x80\2}q\0X\4\0\0\0stepr\0\1\0\0J\0\0\1\0s."), 65536},
	{TEXT("\x80\4\x95\xf\0\0\0\0\0\0\0}\x94\x8c\4step\x94\x8a\5\0\0\0\0\1s."), UINT64_C(1)
											   << 32},
	{TEXT("\x80\2}X\5\0\0\0xstepK\7X\4\0\0\0stepK\x8s."), 8},
	{TEXT("\x80\2}X\4\0\0\0stepX\1\0\0\0xX\4\0\0\0stepK\x8s."), 8},
	{TEXT("\x80\2}X\5\0\0\0stepsK\7s."), NOT},
	{TEXT("\x80\2}X\5\0\0\0stepKK\7s."), NOT},
	{TEXT("\x80\4}\x8c\5stepKK\7s."), NOT},
	{TEXT("\x80\2}T\4\0\0\0stepK\7s."), NOT},
	{TEXT("\x80\2}X\4\0\0\0step\x88s."), NOT},
	{TEXT("\x80\2}X\4\0\0\0stepJ\xff\xff\xff\xffs."), NOT},
	{TEXT("\x80\2}X\4\0\0\0step\x8a\1\xffs."), NOT},
	{TEXT("\x80\2}X\4\0\0\0step\x8a\x9\0\0\0\0\0\0\0\0\1s."), NOT},
	{TEXT("\x80\2}X\4\0\0\0step\x8a\0s."), NOT},
	{TEXT("\x80\2}X\4\0\0\0stepM\7"), NOT},
	{TEXT("\x80\2}X\4\0\0\0stepq"), NOT},
	{TEXT("\x80\2}X\4\0\0\0step"), NOT},
	{TEXT("stepK\7"), NOT},
	{TEXT(""), NOT},
};

static void check_numbers(void)
{
	uint64_t number;
	struct text zip = {0}, far = {0};
	struct json_object *object = NULL;
	TEST("numbers in pickles")
	{
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			bool some = numbers[i].number != NOT;
			write_bytes("n", numbers[i].bytes, numbers[i].length);
			number = NOT;
			SHOW(format_read_number(root, "n", "step", &number, &why) ==
						(some ? STATUS_OK : STATUS_NO) &&
					number == numbers[i].number,
				"row %zu: %llu", i, (unsigned long long)number);
		}
		add_zip(&zip, LONG);
		write_bytes("n.pt", zip.data, zip.length);
		CHECK(format_read_number(root, "n.pt", "global_step", &number, &why) == STATUS_OK &&
			number == 700);
		CHECK_EQ(format_read_number(root, "n.pt", "", &number, &why), STATUS_NO);
		CHECK_EQ(format_read_number(root, "none", "step", &number, &why), STATUS_NO);
		/* A number on the border of what is read first. */
		while (far.length < 65536 - 10)
			text_add_bytes(&far, "\0", 1);
		text_add_bytes(&far, TEXT("X\4\0\0\0stepJ\7\0\0\0."));
		write_bytes("n", far.data, far.length);
		CHECK(format_read_number(root, "n", "step", &number, &why) == STATUS_OK &&
			number == 7);
		text_release(&zip);
		text_release(&far);
	}
	TEST("small files and JSON documents")
	{
		struct text text = {0};
		write_bytes("n", TEXT("{\"a\": 1}"));
		CHECK(format_read(root, "n", 8, &text, &why) == STATUS_OK && text.length == 8);
		text_release(&text);
		text = (struct text){0};
		CHECK_EQ(format_read(root, "n", 7, &text, &why), STATUS_NO);
		CHECK_EQ(format_read(root, "none", 7, &text, &why), STATUS_NO);
		CHECK_EQ(format_read(root, "b", 7, &text, &why), STATUS_NO);
		text_release(&text);
		CHECK(format_read_json(root, "n", &object, &why) == STATUS_OK && object);
		json_object_put(object);
		object = NULL;
		write_bytes("n", TEXT("{\"a\": "));
		CHECK(format_read_json(root, "n", &object, &why) == STATUS_NO && !object);
		CHECK(format_read_json(root, "none", &object, &why) == STATUS_NO && !object);
	}
}

int main(void)
{
	scratch_make();
	root = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || mkdirat(root, "b", 0700) < 0)
		return 99;
	check_cuts();
	check_archives();
	check_others();
	check_tensorflow();
	check_numbers();
	close(root);
	scratch_remove();
	return unit_end();
}
