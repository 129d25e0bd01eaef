# SPDX-License-Identifier: MIT
"""A callback for the Hugging Face Trainer: all tasks save at one step when they are preempted, and leave.

    import os
    from preempt_hf import PreemptCallback

    trainer = Trainer(..., callbacks=[PreemptCallback()])
    trainer.train(resume_from_checkpoint=os.environ.get("PREEMPT_RESUME"))

    preempt-run --checkpoints out:hf -- python train.py                            # one process a task
    preempt-run --checkpoints out:hf --ranks 8 -- torchrun --nproc_per_node 8 train.py

"out" is the Trainer's output_dir, on a filesystem that all tasks see.
A step is a step of the optimizer (global_step): the callback does not ask during gradient accumulation.
"""

import contextlib
import os
import sys

import preempt
from transformers import TrainerCallback


class PreemptCallback(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if preempt.step(state.global_step):
            # The Trainer saves when all callbacks of this step have been called, then it calls on_save. An
            # evaluation would come before the save and use up the grace period. All tasks get the same answer at
            # the same step, so all of them leave the evaluation out.
            control.should_save = True
            control.should_evaluate = False
        return control

    def on_save(self, args, state, control, **kwargs):
        # Periodic saves are reported, too: the agent learns how long a save takes.
        sync(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))
        if preempt.saved(state.global_step):
            # Leave at once: after should_training_stop the Trainer may still evaluate at the end of the epoch and load its
            # best model, and train() returns as if the training had finished.
            sys.exit(preempt.EXIT)
        return control


def sync(directory):
    """Sync the files, which the Trainer leaves in the page cache: a reported save must survive the machine."""
    for path, _, names in os.walk(directory):
        for name in [*names, "."]:
            # Another task may still rename files of its own.
            with contextlib.suppress(FileNotFoundError):
                fd = os.open(os.path.join(path, name), os.O_RDONLY)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
