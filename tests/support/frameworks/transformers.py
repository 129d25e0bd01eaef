# SPDX-License-Identifier: MIT
"""A stand-in for the Hugging Face Trainer, for tests/docs/examples.bats: the events in the documented order, and
checkpoints as the Trainer names them. Each event is a line of events.TASK. The weights are a number that depends on
every batch and its order. The process is rank $PREEMPT_TASK."""
import dataclasses
import json
import os
import time

import frameworks

EVENTS = """init_end train_begin train_end epoch_begin epoch_end step_begin substep_end pre_optimizer_step optimizer_step
step_end evaluate save log""".split()


@dataclasses.dataclass
class TrainingArguments:
    output_dir: str
    max_steps: int
    save_steps: int = 7
    eval_steps: int = 1
    gradient_accumulation_steps: int = 2
    epoch_steps: int = 10


@dataclasses.dataclass
class TrainerState:
    global_step: int = 0


@dataclasses.dataclass
class TrainerControl:
    should_training_stop: bool = False
    should_epoch_stop: bool = False
    should_save: bool = False
    should_evaluate: bool = False
    should_log: bool = False


class TrainerCallback:
    pass


def nothing(self, args, state, control, **kwargs):
    pass


for event in EVENTS:
    setattr(TrainerCallback, "on_" + event, nothing)


class DefaultFlowCallback(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_evaluate = state.global_step % args.eval_steps == 0
        control.should_save = state.global_step % args.save_steps == 0

    def on_epoch_end(self, args, state, control, **kwargs):
        control.should_evaluate = True


class Trainer:
    def __init__(self, args, callbacks):
        self.args, self.state, self.control = args, TrainerState(), TrainerControl()
        self.callbacks = [DefaultFlowCallback(), *callbacks]
        self.rank = os.environ.get("PREEMPT_TASK", "0")
        self.weights = 1
        self.call("init_end")

    def call(self, event):
        with open("events." + self.rank, "a") as file:
            print(event, self.state.global_step, file=file)
        for callback in self.callbacks:
            returned = getattr(callback, "on_" + event)(self.args, self.state, self.control, model=None)
            self.control = returned or self.control

    def train(self, resume_from_checkpoint=None):
        if resume_from_checkpoint:
            with open(resume_from_checkpoint + "/trainer_state.json") as file:
                saved = json.load(file)
            self.state.global_step, self.weights = saved["global_step"], saved["weights"]
        self.control.should_training_stop = False
        self.call("train_begin")
        while self.state.global_step < self.args.max_steps and not self.control.should_training_stop:
            self.epoch()
        self.call("train_end")

    def epoch(self):
        self.control.should_epoch_stop = False
        self.call("epoch_begin")
        while True:
            self.step()
            self.log_save_evaluate()
            if self.control.should_epoch_stop or self.control.should_training_stop:
                break
            if self.state.global_step % self.args.epoch_steps == 0 or self.state.global_step >= self.args.max_steps:
                break
        self.call("epoch_end")
        self.log_save_evaluate()

    def step(self):
        self.control.should_save = self.control.should_evaluate = self.control.should_log = False
        self.call("step_begin")
        for substep in range(self.args.gradient_accumulation_steps):
            self.weights = (self.weights * 31 + self.state.global_step * 2 + substep) % 1000000007
            if substep + 1 < self.args.gradient_accumulation_steps:
                self.call("substep_end")
        time.sleep(0.01)
        self.call("pre_optimizer_step")
        self.call("optimizer_step")
        self.state.global_step += 1
        self.call("step_end")

    def log_save_evaluate(self):
        if self.control.should_evaluate:
            self.control.should_evaluate = False
            self.call("evaluate")
        if self.control.should_save:
            self.save()
            self.control.should_save = False
            self.call("save")

    def save(self):
        directory = f"{self.args.output_dir}/checkpoint-{self.state.global_step}"
        os.makedirs(directory, exist_ok=True)
        frameworks.save(f"{directory}/rng_state_{self.rank}.pth", {})
        if self.rank == "0":
            frameworks.safetensors(directory + "/model.safetensors")
            frameworks.save(directory + "/optimizer.pt", {})
            saved = {"global_step": self.state.global_step, "log_history": [], "weights": self.weights}
            frameworks.text(directory + "/trainer_state.json", json.dumps(saved))
