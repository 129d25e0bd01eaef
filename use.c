#include <preempt.h>
int main(void) { return preempt_step(0) + preempt_saved(0); }
