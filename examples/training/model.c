// SPDX-License-Identifier: MIT
/*
 * A small language model: from the last CONTEXT characters, each looked up as EMBEDDING numbers,
 * through one hidden layer with tanh, to a probability for each character that may follow.
 * Trained by stochastic gradient descent with momentum.
 *
 * Reproducible to the bit: a sample's place in the text comes from seed, step and its number in the
 * batch alone, and sums are made eight at a time in an order that no compiler option changes.
 */
#include "training.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_DIRECTORY "/usr/share/common-licenses"

enum {
	CHARACTERS = 128, // ASCII
	CONTEXT = 8,
	EMBEDDING = 16,
	INPUT = CONTEXT * EMBEDDING,
};

static const float learning_rate = 0.1f, momentum_kept = 0.9f;

struct state state = {
	.magic = "charlm\r\n",
	.version = 1,
	.hidden = 128,
	.batch = 256,
	.seed = 1,
};
size_t gradient_size;

static unsigned char *text;
static size_t text_size, trained_size; // the text after trained_size is never trained on
static size_t weight_count;
static float *weights, *momentum; // one piece of memory

// --------------------------------------------------------------------------------------- the text

static int is_plain_file(const struct dirent *entry)
{
	char path[PATH_SIZE];
	struct stat info;
	path_of(path, "%s/%s", TEXT_DIRECTORY, entry->d_name);
	return !lstat(path, &info) && S_ISREG(info.st_mode);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void append_file(const char *name)
{
	char path[PATH_SIZE];
	struct stat info;
	FILE *file = fopen(path_of(path, "%s/%s", TEXT_DIRECTORY, name), "re");
	if (!file || fstat(fileno(file), &info))
		fail("cannot read %s: %s", path, strerror(errno));
	size_t size = (size_t)info.st_size;
	text = realloc(text, text_size + size + 1);
	if (!text)
		fail("out of memory");
	if (fread(text + text_size, 1, size, file) != size)
		fail("cannot read all of %s", path);
	text_size += size;
	fclose(file);
}

static void read_text(void)
{
	struct dirent **entry;
	int count = scandir(TEXT_DIRECTORY, &entry, is_plain_file, by_bytes);
	if (count < 0)
		fail("cannot read the texts in %s: %s", TEXT_DIRECTORY, strerror(errno));
	for (int i = 0; i < count; i++) {
		append_file(entry[i]->d_name);
		free(entry[i]);
	}
	free(entry);
	for (size_t i = 0; i < text_size; i++)
		if (text[i] >= CHARACTERS)
			text[i] = '?';
	trained_size = text_size - text_size / 16;
	if (text_size - trained_size <= CONTEXT)
		fail("there is too little text in %s", TEXT_DIRECTORY);
	state.text = hash(HASH_START, text, text_size);
}

// -------------------------------------------------------------------------------------- the model

// A vector of weights, or of their gradient, seen as the parts of the model.
struct parts {
	float *embedding; // [CHARACTERS][EMBEDDING]
	float *input;	  // [INPUT][hidden]
	float *bias;	  // [hidden]
	float *output;	  // [hidden][CHARACTERS]
	float *frequency; // [CHARACTERS]: the bias of the output
	float *end;
};

static struct parts parts_of(float *vector)
{
	struct parts parts = {.embedding = vector};
	parts.input = parts.embedding + CHARACTERS * EMBEDDING;
	parts.bias = parts.input + INPUT * state.hidden;
	parts.output = parts.bias + state.hidden;
	parts.frequency = parts.output + state.hidden * CHARACTERS;
	parts.end = parts.frequency + CHARACTERS;
	return parts;
}

static void fill(float *from, const float *to, float range)
{
	for (float *weight = from; weight < to; weight++) {
		uint64_t number = random_at(state.seed, UINT64_MAX, (uint64_t)(weight - weights));
		*weight = range * ((float)(number >> 40) / 0x1p23f - 1); // 24 bits: exact
	}
}

void make_model(void)
{
	read_text();
	state.tasks = tasks;
	size_t hidden = state.hidden;
	weight_count =
		CHARACTERS * EMBEDDING + INPUT * hidden + hidden + hidden * CHARACTERS + CHARACTERS;
	gradient_size = weight_count + 2;
	weights = allocate(2 * weight_count, sizeof *weights);
	momentum = weights + weight_count;
	struct parts parts = parts_of(weights);
	fill(parts.embedding, parts.input, 1.0f);
	fill(parts.input, parts.bias, sqrtf(3.0f / INPUT));
	fill(parts.output, parts.frequency, sqrtf(3.0f / (float)hidden));
}

void free_model(void)
{
	free(weights);
	free(text);
}

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

static void add(float *sum, float factor, const float *x, size_t count)
{
	for (size_t i = 0; i < count; i += 8)
		*(eight *)(sum + i) += factor * *(const eight *)(x + i);
}

static float dot(const float *x, const float *y, size_t count)
{
	eight s = {0};
	for (size_t i = 0; i < count; i += 8)
		s += *(const eight *)(x + i) * *(const eight *)(y + i);
	return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

// The loss: how badly the character after the CONTEXT characters at place is predicted. Fills
// hidden and probability.
static float look_ahead(const struct parts *w, const unsigned char *place, float *hidden,
	float probability[CHARACTERS])
{
	size_t size = state.hidden;
	memcpy(hidden, w->bias, size * sizeof *hidden);
	for (size_t i = 0; i < INPUT; i++)
		add(hidden, w->embedding[place[i / EMBEDDING] * EMBEDDING + i % EMBEDDING],
			w->input + i * size, size);
	memcpy(probability, w->frequency, CHARACTERS * sizeof *probability);
	for (size_t i = 0; i < size; i++) {
		hidden[i] = tanhf(hidden[i]);
		add(probability, hidden[i], w->output + i * CHARACTERS, CHARACTERS);
	}
	float most = probability[0], sum = 0;
	for (size_t i = 1; i < CHARACTERS; i++)
		most = fmaxf(most, probability[i]);
	for (size_t i = 0; i < CHARACTERS; i++)
		sum += probability[i] = expf(probability[i] - most);
	for (size_t i = 0; i < CHARACTERS; i++)
		probability[i] /= sum;
	return -logf(fmaxf(probability[place[CONTEXT]], 1e-30f));
}

// Adds one sample's gradient and returns its loss.
static float learn(const struct parts *w, const struct parts *gradient, const unsigned char *place)
{
	float hidden[MOST_HIDDEN], error[MOST_HIDDEN], score[CHARACTERS];
	size_t size = state.hidden;
	float loss = look_ahead(w, place, hidden, score);

	score[place[CONTEXT]] -= 1; // from probability to gradient
	add(gradient->frequency, 1, score, CHARACTERS);
	for (size_t i = 0; i < size; i++) {
		add(gradient->output + i * CHARACTERS, hidden[i], score, CHARACTERS);
		error[i] = (1 - hidden[i] * hidden[i]) *
			   dot(w->output + i * CHARACTERS, score, CHARACTERS);
	}
	add(gradient->bias, 1, error, size);
	for (size_t i = 0; i < INPUT; i++) {
		size_t character = place[i / EMBEDDING] * EMBEDDING + i % EMBEDDING;
		add(gradient->input + i * size, w->embedding[character], error, size);
		gradient->embedding[character] += dot(w->input + i * size, error, size);
	}
	return loss;
}

void compute_gradient(float *gradient)
{
	struct parts w = parts_of(weights), g = parts_of(gradient);
	uint64_t first = state.batch * task / tasks, end = state.batch * (task + 1) / tasks;
	float loss = 0;
	memset(gradient, 0, gradient_size * sizeof *gradient);
	for (uint64_t i = first; i < end; i++) {
		uint64_t place = random_at(state.seed, state.step, i) % (trained_size - CONTEXT);
		loss += learn(&w, &g, text + place);
	}
	g.end[0] = loss;
	g.end[1] = 1; // this task took part
}

void update_model(const float *gradient)
{
	const float rate = learning_rate / (float)state.batch;
	for (size_t i = 0; i < weight_count; i++) {
		momentum[i] = momentum_kept * momentum[i] + gradient[i];
		weights[i] -= rate * momentum[i];
	}
	float loss = gradient[weight_count] / (float)state.batch;
	state.loss = state.step ? 0.95f * state.loss + 0.05f * loss : loss;
	state.counter += (uint64_t)gradient[weight_count + 1];
	state.step++;
}

double loss_on_unseen_text(void)
{
	float hidden[MOST_HIDDEN], probability[CHARACTERS];
	struct parts w = parts_of(weights);
	double sum = 0;
	int count = 0;
	for (size_t i = trained_size; i + CONTEXT < text_size; i += 8, count++)
		sum += (double)look_ahead(&w, text + i, hidden, probability);
	return sum / count;
}

// --------------------------------------------------------------------------------- the model file

static uint64_t checksum(struct state head)
{
	head.checksum = 0;
	return hash(
		hash(HASH_START, &head, sizeof head), weights, 2 * weight_count * sizeof *weights);
}

void write_model(const char *path)
{
	state.checksum = checksum(state);
	FILE *file = fopen(path, "we");
	if (!file)
		fail("cannot write %s: %s", path, strerror(errno));
	fwrite(&state, sizeof state, 1, file);
	fwrite(weights, sizeof *weights, 2 * weight_count, file);
	if (fflush(file) || ferror(file) || fsync(fileno(file)) || fclose(file))
		fail("cannot write %s: %s", path, strerror(errno));
}

void read_model(const char *path, uint64_t step)
{
	struct state head;
	FILE *file = fopen(path, "re");
	if (!file)
		fail("cannot read %s: %s", path, strerror(errno));
	if (fread(&head, sizeof head, 1, file) != 1 ||
		memcmp(head.magic, state.magic, sizeof head.magic))
		fail("%s is damaged, or not a model of this program", path);
	const struct {
		const char *name;
		uint64_t found, expected;
	} setting[] = {
		{"version", head.version, state.version},
		{"tasks", head.tasks, state.tasks},
		{"hidden", head.hidden, state.hidden},
		{"batch", head.batch, state.batch},
		{"seed", head.seed, state.seed},
		{"text", head.text, state.text},
		{"step", head.step, step},
	};
	for (size_t i = 0; i < sizeof setting / sizeof *setting; i++)
		if (setting[i].found != setting[i].expected)
			fail("%s has %s %" PRIu64 ", expected %" PRIu64, path, setting[i].name,
				setting[i].found, setting[i].expected);
	if (fread(weights, sizeof *weights, 2 * weight_count, file) != 2 * weight_count ||
		getc(file) != EOF)
		fail("%s is damaged: its size is wrong", path);
	if (head.checksum != checksum(head))
		fail("%s is damaged: its checksum is wrong", path);
	fclose(file);
	state = head;
}

void share_model(void)
{
	broadcast(&state, sizeof state);
	broadcast(weights, 2 * weight_count * sizeof *weights);
}
