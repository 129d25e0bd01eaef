# SPDX-License-Identifier: MIT
"""A stand-in for Lightning's Trainer, for tests/docs/examples.bats: the hooks that a callback of a training step may use, in
the documented order. Each is a line of events.TASK. The weights are a number that depends on every batch and its order.
The process is rank $PREEMPT_TASK."""
import os
import pickle
import time
import zipfile

import frameworks

HOOKS = """fit_start train_start train_epoch_start train_batch_start train_batch_end train_epoch_end validation_start
validation_end train_end fit_end exception""".split()


class Callback:
    pass


def nothing(self, trainer, pl_module, *arguments):
    pass


for hook in HOOKS:
    setattr(Callback, "on_" + hook, nothing)


class Trainer:
    def __init__(self, max_steps, callbacks, accumulate_grad_batches=2, optimizers=1):
        self.max_steps, self.callbacks = max_steps, callbacks
        self.accumulate_grad_batches, self.optimizers = accumulate_grad_batches, optimizers
        self.rank = os.environ.get("PREEMPT_TASK", "0")
        self.global_step, self.batches, self.weights = 0, 0, 1
        self.should_stop = False

    def call(self, hook, *arguments):
        with open("events." + self.rank, "a") as file:
            print(hook, self.global_step, self.batches, file=file)
        for callback in self.callbacks:
            getattr(callback, "on_" + hook)(self, None, *arguments)

    def fit(self, model, ckpt_path=None):
        try:
            self.run(ckpt_path)
        except BaseException as exception:
            self.call("exception", exception)
            raise

    def run(self, ckpt_path):
        self.call("fit_start")
        if ckpt_path:
            with zipfile.ZipFile(ckpt_path) as file:
                name = next(name for name in file.namelist() if name.endswith("/data.pkl"))
                saved = pickle.loads(file.read(name))
            self.global_step, self.batches, self.weights = saved["global_step"], saved["batches"], saved["weights"]
        self.call("train_start")
        self.call("train_epoch_start")
        while self.global_step < self.max_steps and not self.should_stop:
            self.call("train_batch_start", None, self.batches)
            self.weights = (self.weights * 31 + self.batches) % 1000000007
            time.sleep(0.01)
            self.batches += 1
            if self.batches % self.accumulate_grad_batches == 0:
                self.global_step += self.optimizers
            self.call("train_batch_end", None, None, self.batches - 1)
        self.call("validation_start")
        self.call("validation_end")
        self.call("train_epoch_end")
        self.call("train_end")
        self.call("fit_end")

    def save_checkpoint(self, path):
        if self.rank == "0":
            saved = {"global_step": self.global_step, "batches": self.batches, "weights": self.weights}
            frameworks.save(path + ".part", saved)
            os.rename(path + ".part", path)
        while not os.path.exists(path):  # the barrier
            time.sleep(0.01)
