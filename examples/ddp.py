#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training with PyTorch's DistributedDataParallel whose ranks save and stop together, and resume from there.

    ddp.py CHECKPOINTS STEPS

Each task is a rank. It predicts the next character of the licence texts of Debian. The loop in main() has
all that preempt-tools asks. examples/ddp.sbatch runs it under Slurm, examples/torchrun.sh on one machine. The tasks
meet at MASTER_ADDR and MASTER_PORT. Start them with preempt-run; needs ckpt-rotate in PATH.
"""

import glob
import hashlib
import os
import subprocess
import sys
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import preempt

TEXTS = "/usr/share/common-licenses/*"
CONTEXT, BATCH = 8, 16  # characters, samples of each rank in a step
PERIOD = 50  # steps between two periodic saves


def read_text():
    data = b"".join(open(path, "rb").read() for path in sorted(glob.glob(TEXTS)) if not os.path.islink(path))
    return torch.tensor(list(data))


def make_model():
    torch.manual_seed(1)  # the same in all ranks
    embedding = torch.nn.Embedding(256, 8)
    inner = torch.nn.Linear(8 * CONTEXT, 32)
    return torch.nn.Sequential(embedding, torch.nn.Flatten(), inner, torch.nn.Tanh(), torch.nn.Linear(32, 256))


def make_batch(text, step, rank):
    """The batch depends on step and rank only: no state of a data loader has to be saved."""
    chance = torch.Generator().manual_seed(step * 10000 + rank)
    begin = torch.randint(len(text) - CONTEXT, (BATCH,), generator=chance)
    return torch.stack([text[i : i + CONTEXT] for i in begin]), text[begin + CONTEXT]


def digest(model):
    numbers = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    return hashlib.sha256(numbers).hexdigest()[:16]


def save(top, step, model, optimizer, rank):
    """The chief saves for all tasks. ckpt-rotate makes the checkpoint durable, and visible when it is complete."""
    if rank != 0:
        return
    command = ["ckpt-rotate", "begin", top, str(step), "--chief-only"]
    directory = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, directory + "/state.pt")
    subprocess.run(["ckpt-rotate", "commit", top, str(step), "--chief-only"], check=True, stdout=subprocess.DEVNULL)
    print(f"saved step {step} weights {digest(model)}", flush=True)


def main(top, steps):
    # One thread, and only algorithms that always add up in the same order: each run has the same bits.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    rank = int(os.environ.get("RANK", os.environ.get("PREEMPT_TASK", 0)))
    ranks = int(os.environ.get("WORLD_SIZE", os.environ.get("PREEMPT_TASKS", 1)))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)

    text, model, start, newest, loss = read_text(), make_model(), 0, None, None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if os.environ.get("PREEMPT_RESUME"):  # the same for all ranks; preempt-run --checkpoints finds it
        saved = torch.load(os.environ["PREEMPT_RESUME"] + "/state.pt")
        start = newest = saved["step"]  # newest: the step of the newest checkpoint
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    trained = DistributedDataParallel(model)
    if rank == 0:
        print(f"start at step {start} weights {digest(model)}", flush=True)

    for step in range(start, steps + 1):  # step: the number of finished steps
        if preempt.step(step) or (step > start and step % PERIOD == 0) or step == steps:
            if step != newest:
                save(top, step, model, optimizer, rank)
            newest = step
            if preempt.saved(step):
                sys.exit(preempt.EXIT)
        if step < steps:
            context, following = make_batch(text, step, rank)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(trained(context), following)
            loss.backward()
            optimizer.step()
            time.sleep(float(os.environ.get("STEP_SECONDS", 0)))  # as if the model were larger
    if rank == 0:
        print(f"done step {steps}" + ("" if loss is None else f" loss {loss.item():.4f}"), flush=True)


if len(sys.argv) != 3:
    sys.exit(f"usage: {sys.argv[0]} CHECKPOINTS STEPS")
main(sys.argv[1], int(sys.argv[2]))
