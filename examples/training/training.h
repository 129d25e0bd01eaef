// SPDX-License-Identifier: MIT
/*
 * The parts of examples/train.c that have nothing to do with preemption: the model (model.c), the
 * ring that connects the tasks (ring.c) and what all of them use (base.c). Every error ends the
 * program with exit code 1 and a message; no function returns one.
 */
#ifndef TRAINING_H
#define TRAINING_H
#include <stddef.h>
#include <stdint.h>

enum { PATH_SIZE = 4096, MOST_HIDDEN = 1024, MOST_TASKS = 1024 };

#define LIKE_PRINTF(place) __attribute__((format(printf, place, place + 1)))

// ----------------------------------------------------------------------------------------- base.c

extern uint32_t task, tasks; // this process in the group: task 0 to tasks - 1

// train: task 2: MESSAGE, and exit 1.
_Noreturn void fail(const char *format, ...) LIKE_PRINTF(1);
// Writes a path into the array and returns it.
char *path_of(char path[PATH_SIZE], const char *format, ...) LIKE_PRINTF(2);
void *allocate(size_t count, size_t size);
double now(void); // seconds, never set back
void sleep_for(double seconds);
// FNV-1a: the hash of the bytes, continued from an earlier one or HASH_START.
uint64_t hash(uint64_t start, const void *bytes, size_t size);
#define HASH_START 14695981039346656037u
// A counter-based random number: the same three numbers always give the same one.
uint64_t random_at(uint64_t seed, uint64_t stream, uint64_t index);

// ---------------------------------------------------------------------------------------- model.c

/*
 * The whole state of a training, the same in every task. A model file is this, then the weights,
 * then the momentum.
 */
extern struct state {
	char magic[8];
	uint32_t version, tasks;
	uint64_t hidden, batch, seed; // set before make_model
	uint64_t text;		      // hash of the training text
	uint64_t step;		      // finished steps
	uint64_t counter;	      // each task adds 1 in each step
	float loss;		      // moving average
	uint32_t reserved;
	uint64_t checksum; // of all of this, with 0 here
} state;

extern size_t gradient_size; // of all weights; then the loss, and 1 for each task that took part

void make_model(void);
// Computes the gradient of this task's share of the batch in the step after state.step.
void compute_gradient(float *gradient);
// Finishes that step, with the gradient summed up over all tasks.
void update_model(const float *gradient);
double loss_on_unseen_text(void);
void write_model(const char *path); // complete and synced
void read_model(const char *path, uint64_t step);
void share_model(void); // copy the model of task 0 to all tasks
void free_model(void);

// ----------------------------------------------------------------------------------------- ring.c

/*
 * Connects the tasks, or fails after that many seconds and names the missing tasks. They find each
 * other by files in directory, which only this start of the job may use, and which is removed at
 * the end. address: the address at which the others reach this machine. settings must be equal in
 * all tasks.
 */
void connect_ring(const char *directory, const char *address, double seconds, uint64_t settings);
// Adds up a vector over all tasks. Afterwards all have the same bits, whatever the timing was.
void all_reduce(float *vector, size_t count);
// Gives task 0's bytes to all.
void broadcast(void *bytes, size_t size);

#endif
