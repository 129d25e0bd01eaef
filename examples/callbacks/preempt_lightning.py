# SPDX-License-Identifier: MIT
"""A callback for Lightning: all tasks save at one step when they are preempted, and leave.

    import os
    from preempt_lightning import PreemptCallback

    trainer = Trainer(..., callbacks=[PreemptCallback("out")])
    trainer.fit(model, ckpt_path=os.environ.get("PREEMPT_RESUME"))

    preempt-run --checkpoints out:lightning -- python train.py                     # one process a task
    preempt-run --checkpoints out:lightning --ranks 8 -- torchrun --nproc_per_node 8 train.py

"out" is on a filesystem that all tasks see. ModelCheckpoint(dirpath="out") may save there, too, with "step=" in its
file names. A step is a step of the optimizer (global_step).
"""

import os
import sys

import preempt
from lightning.pytorch import Callback


class PreemptCallback(Callback):
    def __init__(self, directory):
        self.directory = directory
        self.asked = None

    def on_train_start(self, trainer, pl_module):
        self.asked = trainer.global_step

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        step = trainer.global_step
        # With accumulate_grad_batches a step has several batches. A checkpoint in the middle of a step would lose
        # the gradients that were accumulated.
        if step == self.asked:
            return
        # With several optimizers a batch counts several steps.
        following = step + step - self.asked
        self.asked = step
        if preempt.step(step, following):
            path = os.path.join(self.directory, f"step={step}.ckpt")
            trainer.save_checkpoint(path)  # all tasks must call it: it has a barrier
            sync(path)
            if preempt.saved(step):
                # Leave at once: after trainer.should_stop Lightning validates, trains on where min_epochs or min_steps
                # asks for it, and fit() returns as if the training had finished.
                sys.exit(preempt.EXIT)


def sync(top):
    """Sync the files, which Lightning leaves in the page cache: a reported save must survive the machine."""
    inside = [os.path.join(path, name) for path, _, names in os.walk(top) for name in [*names, "."]]
    for path in [*inside, top, os.path.dirname(os.path.abspath(top))]:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
