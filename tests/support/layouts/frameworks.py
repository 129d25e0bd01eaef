#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checkpoints as training frameworks leave them: frameworks.py LAYOUT DIR STEP...

The directories and names are those that the frameworks document; with PyTorch installed (and
FRAMEWORKS_TORCH set) torch.save writes the files, else the same archives are made by hand.
"""
import dataclasses
import io
import itertools
import json
import os
import pickle
import struct
import sys
import zipfile

torch = None
if os.environ.get("FRAMEWORKS_TORCH"):
    import torch


def put(path, content):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def text(path, content):
    put(path, content.encode())


def save(path, content, size=1200):
    """torch.save: an archive without compression, the pickle first."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    if torch:
        torch.save(dict(content, weights=torch.zeros(size // 4)), path)
        return
    name = os.path.splitext(os.path.basename(path))[0]
    put(path, archive(name, content, size))


def archive(name, content, size):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as file:
        file.writestr(name + "/data.pkl", pickle.dumps(content, protocol=2))
        file.writestr(name + "/data/0", bytes(size))
        file.writestr(name + "/version", "3\n")
    return made.getvalue()


def safetensors(path, size=400):
    header = {"__metadata__": {"format": "pt"}}
    header["weight"] = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
    head = json.dumps(header).encode()
    put(path, struct.pack("<Q", len(head)) + head + bytes(size))


@dataclasses.dataclass
class _StorageInfo:
    relative_path: str
    offset: int
    length: int


def shards(directory, names, protocol=4):
    """Files of torch.distributed.checkpoint, each of two items, and what says where these are."""
    _StorageInfo.__module__ = "torch.distributed.checkpoint.filesystem"
    sys.modules[_StorageInfo.__module__] = sys.modules[__name__]
    for parent in ("torch", "torch.distributed", "torch.distributed.checkpoint"):
        sys.modules.setdefault(parent, sys.modules[__name__])
    storage = {}
    for name in names:
        items = [archive("archive", {}, size) for size in (40, 60)]
        put(f"{directory}/{name}", b"".join(items))
        storage[name[:-7], 0] = _StorageInfo(name, 0, len(items[0]))
        storage[name[:-7], 1] = _StorageInfo(name, len(items[0]), len(items[1]))
    put(directory + "/.metadata", pickle.dumps({"storage_data": storage}, protocol=protocol))


def hf(top, step, kind="plain", best=None, loss=None):
    d = f"{top}/checkpoint-{step}"
    text(d + "/config.json", "{}")
    if kind == "sharded":
        files = [f"model-{i:05d}-of-00003.safetensors" for i in (1, 2, 3)]
        for file in files:
            safetensors(f"{d}/{file}")
        weights = {f"layer.{i}.weight": files[i % 3] for i in range(9)}
        text(d + "/model.safetensors.index.json",
             json.dumps({"metadata": {"total_size": 1200}, "weight_map": weights}))
    elif kind == "deepspeed":
        deepspeed(d, step, data=2)
        text(d + "/zero_to_fp32.py", "")
    elif kind == "bin":
        save(d + "/pytorch_model.bin", {})
    elif kind == "adapter":
        text(d + "/adapter_config.json", "{}")
        safetensors(d + "/adapter_model.safetensors")
    elif kind in ("named", "named_bin"):
        text(d + "/mine/adapter_config.json", "{}")
        if kind == "named":
            safetensors(d + "/mine/adapter_model.safetensors")
        else:
            save(d + "/mine/adapter_model.bin", {})
    elif kind == "fsdp":
        save(d + "/pytorch_model_fsdp.bin", {})
        for file in "optimizer", "scheduler", "sampler", "dl_state_dict":
            save(f"{d}/{file}.bin", {})
    else:
        safetensors(d + "/model.safetensors")
    save(d + "/optimizer.pt", {})
    save(d + "/scheduler.pt", {})
    save(d + "/rng_state.pth", {})
    save(d + "/training_args.bin", {})
    state = {"epoch": 1.5, "global_step": step, "log_history": [{"loss": 1.0, "step": step}]}
    if loss is not None:
        state["log_history"] += [{"eval_loss": 0.0, "step": step - 1},
                                 {"eval_loss": float(loss), "epoch": 1.0, "step": step}]
    state["best_model_checkpoint"] = f"/elsewhere/out/checkpoint-{best}" if best else None
    text(d + "/trainer_state.json", json.dumps(state, indent=2))


def lightning(top, step, epoch=1):
    save(f"{top}/epoch={epoch}-step={step}.ckpt", {"epoch": epoch, "global_step": step})


def last(top, step):
    save(f"{top}/last.ckpt", {"epoch": 1, "global_step": step, "state_dict": {}})


SIZE = 120000  # of the model, and of the optimizer, however many ranks share them


def deepspeed(top, step, data=2, model=1, stage=2, layers=0, silent=0):
    """data=0: an optimizer without ZeRO. silent: the files do not say how many ranks there are."""
    d = f"{top}/global_step{step}"
    world = {} if silent else {"dp_world_size": data or 1, "mp_world_size": model}
    for m in range(model):
        if stage < 3:
            save(f"{d}/mp_rank_{m:02d}_model_states.pt", {"module": {}, **world}, SIZE // model)
        for layer in range(layers):
            save(f"{d}/layer_{layer:02d}-model_{m:02d}-model_states.pt", {}, SIZE // layers)
        for r in range(data):
            save(f"{d}/zero_pp_rank_{r}_mp_rank_{m:02d}_optim_states.pt", {}, SIZE // model // data)
            if stage == 3:
                save(f"{d}/zero_pp_rank_{r}_mp_rank_{m:02d}_model_states.pt", {"module": None, **world})
    text(top + "/latest", f"global_step{step}")


def megatron(top, step, tensor=2, pipeline=2, expert=1, optimizer=1, layers=0):
    d = f"{top}/iter_{step:07d}"
    size = SIZE // (tensor * pipeline * expert)
    for t, p, e in itertools.product(range(tensor), range(pipeline), range(expert)):
        rank = f"mp_rank_{t:02d}" + (f"_{p:03d}" if pipeline > 1 else "")
        rank += f"_{e:03d}" if expert > 1 else ""
        save(f"{d}/{rank}/model_optim_rng.pt", {}, size)
        if optimizer:
            save(f"{d}/{rank}/distrib_optim.pt", {}, size)
        for data in range(layers):
            save(f"{d}/{rank}/layer_wise_optimizer_{data}.pt", {}, size // layers)
    text(top + "/latest_checkpointed_iteration.txt", str(step))


def megatron_dcp(top, step):
    """--ckpt-format torch_dcp and fsdp_dtensor: what PyTorch writes, and the tracker."""
    dcp(top, step, word=f"iter_{step:07d}"[:-len(str(step))])
    text(top + "/latest_checkpointed_iteration.txt", str(step))


def megatron_dist(top, step):
    d = f"{top}/iter_{step:07d}"
    names = [f"__{rank}_{part}.distcp" for rank in range(2) for part in range(2)]
    shards(d, names)
    save(d + "/common.pt", {})
    text(d + "/metadata.json", '{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
    text(top + "/latest_checkpointed_iteration.txt", str(step))


def dcp(top, step, word="step-", ranks=2, protocol=2):
    """PyTorch's distributed checkpoints by themselves."""
    d = f"{top}/{word}{step}"
    names = [f"__{rank}_0.distcp" for rank in range(ranks)]
    shards(d, names, protocol)


def tensorflow(top, step, shards=2):
    for i in range(shards):
        put(f"{top}/ckpt-{step}.data-{i:05d}-of-{shards:05d}", b"x" * 100)
    put(f"{top}/ckpt-{step}.index", bytes(60) + struct.pack("<Q", 0xDB4775248B80FB57))
    text(top + "/checkpoint",
         f'model_checkpoint_path: "ckpt-{step}"\nall_model_checkpoint_paths: "ckpt-1"\n'
         f'all_model_checkpoint_paths: "ckpt-{step}"\nlast_preserved_timestamp: 1.5\n')


def orbax(top, step, loss=None):
    d = f"{top}/{step}"
    if loss is not None:
        text(d + "/metrics/metrics", json.dumps({"loss": float(loss), "words": "none"}))
    text(d + "/_CHECKPOINT_METADATA", json.dumps(
        {"item_handlers": {}, "init_timestamp_nsecs": 1, "commit_timestamp_nsecs": 2}))
    text(d + "/default/_METADATA", "{}")
    put(d + "/default/manifest.ocdbt", b"x" * 50)
    put(d + "/default/d/0123456789abcdef", b"x" * 500)


def fsdp(top, step):
    """A file of PyTorch alone: model-STEP.pt."""
    save(f"{top}/model-{step}.pt", {"step": step})


if __name__ == "__main__":
    name, top = sys.argv[1:3]
    made, _, options = name.partition(":")
    arguments = dict(pair.split("=") for pair in options.split(",") if pair)
    for key, value in arguments.items():
        arguments[key] = int(value) if value.isdigit() else value
    for step in sys.argv[3:]:
        globals()[made](top, int(step), **arguments)
