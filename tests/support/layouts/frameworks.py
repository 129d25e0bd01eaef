#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checkpoints as training frameworks leave them: frameworks.py LAYOUT[:OPTION=VALUE,...] DIR STEP...

Each function makes one whole save of one framework: names, order and content are those of the
source that it names (project, file, function), and the numbers of ranks are where the framework
puts them. With PyTorch and h5py installed (and FRAMEWORKS_TORCH set) these write their files, else
the same formats are made by hand.
"""
import argparse
import dataclasses
import io
import itertools
import json
import os
import pickle
import struct
import sys
import zipfile

torch = h5py = None
if os.environ.get("FRAMEWORKS_TORCH"):
    import torch
    try:
        import h5py
    except ImportError:
        pass


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
        file.writestr(name + "/byteorder", "little")
        file.writestr(name + "/data/0", bytes(size))
        file.writestr(name + "/version", "3\n")
        file.writestr(name + "/.data/serialization_id", "0" * 40)
    return made.getvalue()


def legacy(path, content, size=1200):
    """torch.save before 1.6, and with _use_new_zipfile_serialization=False: pickles, then bytes."""
    if torch:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        content = dict(content, weights=torch.zeros(size // 4))
        torch.save(content, path, _use_new_zipfile_serialization=False)
        return
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    parts = 0x1950A86A20F9469CFC6C, 1001, system, content, ["0"]
    put(path, b"".join(pickle.dumps(part, protocol=2) for part in parts) + struct.pack("<Q", size // 4) + bytes(size))


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


def shards(directory, names, protocol=4, **more):
    """
    Files of torch.distributed.checkpoint, each of two items, and what says where these are, which is
    written last: PyTorch, distributed/checkpoint/filesystem.py, write_data and finish.
    """
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
    put(directory + "/.metadata", pickle.dumps({"storage_data": storage, **more}, protocol=protocol))


def ranks_of(ranks):
    return [f"__{rank}_0.distcp" for rank in range(ranks)]


def hdf5(path, size=2000):
    """A file of HDF5: by hand no more than its superblock, which says where the file ends."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    if h5py:
        with h5py.File(path, "w") as file:
            file["layers/dense/vars/0"] = [0.5] * (size // 4)
        return
    none = 2 ** 64 - 1
    head = b"\x89HDF\r\n\x1a\n" + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
    head += struct.pack("<QQQQ", 0, none, size, none) + struct.pack("<QQIIQQ", 0, 96, 1, 0, 136, 680)
    put(path, head.ljust(size, b"\1"))


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    """The checksum as tables of LevelDB have it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number):
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes(made + bytes([number]))


def table(entries):
    """A table of LevelDB: one block of entries, an empty one, the index, the footer."""
    made = bytearray()

    def block(pairs):
        content, last, restarts = bytearray(), b"", []
        for n, (key, value) in enumerate(pairs):
            shared = 0
            if n % 16 == 0:
                restarts.append(len(content))
            else:
                shared = len(os.path.commonprefix([last, key]))
            content += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
            last = key
        restarts = restarts or [0]
        content += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
        handle = varint(len(made)) + varint(len(content))
        made.extend(content + b"\0" + struct.pack("<I", masked(bytes(content) + b"\0")))
        return handle

    data, meta = block(entries), block([])
    index = block([(entries[-1][0] + b"\0", data)])
    return bytes(made) + (meta + index).ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def ocdbt(path, content, magic=0x0CDB3A2A):
    """TensorStore, ocdbt/format/codec_util.cc: magic, length, version, compression, content, CRC."""
    body = struct.pack(">IQ", magic, 0)[:4] + struct.pack("<Q", len(content) + 18) + b"\0\0" + content
    put(path, body + struct.pack("<I", crc32c(body)))


def shared_weights(d, name="model", end="safetensors", parts=3):
    """A model in several files, with an index that names them."""
    files = [f"{name}-{i + 1:05d}-of-{parts:05d}.{end}" for i in range(parts)]
    for file in files:
        safetensors(f"{d}/{file}") if end == "safetensors" else save(f"{d}/{file}", {})
    weights = {f"layer.{i}.weight": files[i % parts] for i in range(9)}
    text(f"{d}/{name}.{end}.index.json",
         json.dumps({"metadata": {"total_size": 1200}, "weight_map": weights}))


def hf(top, step, kind="plain", best=None, loss=None, ranks=1):
    """
    Hugging Face, transformers/trainer.py, _save_checkpoint: the model, optimizer and scheduler,
    random states of each rank, and last trainer_state.json. FSDP: Accelerate's fsdp_utils.py.
    """
    d = f"{top}/checkpoint-{step}"
    text(d + "/config.json", "{}")
    if kind == "sharded":
        shared_weights(d)
    elif kind == "bin_sharded":
        shared_weights(d, "pytorch_model", "bin")
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
    elif kind == "sentence":
        # sentence-transformers, SentenceTransformer.py, save; before 3.0 the model was in 0_Transformer.
        text(d + "/modules.json", json.dumps([{"idx": 0, "name": "0", "path": "", "type": "Transformer"},
                                              {"idx": 1, "name": "1", "path": "1_Pooling", "type": "Pooling"}]))
        text(d + "/config_sentence_transformers.json", "{}")
        text(d + "/1_Pooling/config.json", "{}")
        safetensors(d + "/model.safetensors")
    elif kind not in ("fsdp", "fsdp_sharded", "deepspeed", "deepspeed3"):
        safetensors(d + "/model.safetensors")
    save(d + "/training_args.bin", {})
    if kind.startswith("deepspeed"):
        deepspeed(d, step, data=ranks if ranks > 1 else 2, stage=3 if kind == "deepspeed3" else 2)
        text(d + "/zero_to_fp32.py", "#!/usr/bin/env python\n")
    elif kind == "fsdp":
        save(d + "/pytorch_model_fsdp.bin", {})
        save(d + "/optimizer.bin", {})
    elif kind == "fsdp_sharded":
        shards(d + "/pytorch_model_fsdp_0", ranks_of(ranks))
        shards(d + "/optimizer_0", ranks_of(ranks))
    elif kind != "only":
        save(d + "/optimizer.pt", {})
    if kind != "only":
        if not kind.startswith("deepspeed"):
            save(d + "/scheduler.pt", {})
        for rank in range(ranks):
            save(f"{d}/rng_state{f'_{rank}' if ranks > 1 else ''}.pth", {})
    state = {"epoch": 1.5, "global_step": step, "log_history": [{"loss": 1.0, "step": step}]}
    if loss is not None:
        state["log_history"] += [{"eval_loss": 0.0, "step": step - 1},
                                 {"eval_loss": float(loss), "epoch": 1.0, "step": step}]
    state["best_model_checkpoint"] = f"/elsewhere/out/checkpoint-{best}" if best else None
    text(d + "/trainer_state.json", json.dumps(state, indent=2))


def accelerate(top, step, kind="plain", word="checkpoint_", ranks=2):
    """
    Accelerate, accelerator.py, save_state, and checkpointing.py, save_accelerator_state: the model,
    optimizer, scheduler, sampler, random states of each rank, objects of the user. With the kinds of
    diffusers' examples (train_text_to_image.py, train_dreambooth_lora.py, save_model_hook) the model is in a form of
    its own, and there is no sampler.
    """
    d = f"{top}/{word}{step}"
    kinds = {"unet": ("unet", "unet_ema"), "controlnet": ("controlnet",), "transformer": ("transformer",)}
    if kind in kinds:
        for part in kinds[kind]:
            text(f"{d}/{part}/config.json", "{}")
            if kind == "transformer":
                shared_weights(f"{d}/{part}", "diffusion_pytorch_model", parts=2)
            else:
                safetensors(f"{d}/{part}/diffusion_pytorch_model.safetensors")
    elif kind == "lora":
        safetensors(d + "/pytorch_lora_weights.safetensors")
    elif kind == "fsdp":
        save(d + "/pytorch_model_fsdp.bin", {})
    elif kind == "fsdp_sharded":
        shards(d + "/pytorch_model_fsdp_0", ranks_of(ranks))
        shards(d + "/optimizer_0", ranks_of(ranks))
    elif kind == "deepspeed":
        deepspeed(d, step, data=ranks, tag="pytorch_model")
        text(d + "/zero_to_fp32.py", "#!/usr/bin/env python\n")
    elif kind == "bin":
        save(d + "/pytorch_model.bin", {})
    else:
        safetensors(d + "/model.safetensors")
    if kind not in ("fsdp_sharded", "deepspeed"):
        save(d + "/optimizer.bin", {})
    save(d + "/scheduler.bin", {})
    if kind in ("plain", "bin"):
        save(d + "/sampler.bin", {})
    save(d + "/scaler.pt", {})
    for rank in range(ranks):
        save(f"{d}/random_states_{rank}.pkl", {"step": step})
    if kind == "plain":
        save(d + "/custom_checkpoint_0.pkl", {})


def diffusers(top, step, kind="unet", ranks=2):
    accelerate(top, step, kind, "checkpoint-", ranks)


def lightning(top, step, epoch=1, kind="file", ranks=2, name=None):
    """
    PyTorch Lightning, callbacks/model_checkpoint.py, format_checkpoint_name. strategies/fsdp.py and
    deepspeed.py, save_checkpoint: a directory; meta.pt, or latest, is written last.
    """
    state = {"epoch": epoch, "global_step": step}
    d = f"{top}/{name or f'epoch={epoch}-step={step}'}.ckpt"
    if kind == "fsdp":
        shards(d, ranks_of(ranks))
        save(d + "/meta.pt", state)
    elif kind.startswith("deepspeed"):
        deepspeed(d, step, data=ranks, stage=3 if kind == "deepspeed3" else 2, tag="checkpoint", **state)
        text(d + "/zero_to_fp32.py", "#!/usr/bin/env python\n")
    else:
        save(d, dict(state, state_dict={}))


def last(top, step):
    save(f"{top}/last.ckpt", {"epoch": 1, "global_step": step, "state_dict": {}})


def nemo(top, step, kind="file", ranks=2, last=0):
    """
    NeMo 1, utils/callbacks/nemo_model_checkpoint.py and utils/model_utils.py,
    inject_model_parallel_rank; NeMo 2, lightning/pytorch/callbacks/model_checkpoint.py and
    lightning/io/pl.py. NAME-unfinished is there while a checkpoint is written or removed.
    """
    name = f"megatron_gpt--val_loss=1.50-step={step}-consumed_samples={step * 64}.0{'-last' if last else ''}"
    text(f"{top}/{name}-unfinished", "")
    if kind == "dist":
        megatron_files(f"{top}/{name}", ranks)
    elif kind == "two":
        megatron_files(f"{top}/{name}/weights", ranks)
        text(f"{top}/{name}/context/io.json", "{}")
        text(f"{top}/{name}/context/model.yaml", "_target_: GPTModel\n")
    else:
        save(f"{top}/{name}.ckpt", {"epoch": 0, "global_step": step})
        if kind == "ema":
            save(f"{top}/{name}-EMA.ckpt", {"epoch": 0, "global_step": step})
    os.remove(f"{top}/{name}-unfinished")


def verl(top, step, kind="ppo", ranks=2):
    """
    verl, utils/checkpoint/fsdp_checkpoint_manager.py, save_checkpoint, and trainer/ppo/ray_trainer.py,
    _save_checkpoint: the number of ranks is in the names; data.pt, then the tracker are last.
    """
    d = f"{top}/global_step_{step}"
    for part in {"ppo": ("/actor", "/critic"), "grpo": ("/actor",), "megatron": ("/actor",), "sft": ("",)}[kind]:
        if kind == "megatron":
            megatron_files(f"{d}{part}/dist_ckpt", ranks)
            text(f"{d}{part}/transformer_config.json", "{}")
        else:
            for rank, what in itertools.product(range(ranks), ("model", "optim", "extra_state")):
                save(f"{d}{part}/{what}_world_size_{ranks}_rank_{rank}.pt", {})
            text(f"{d}{part}/fsdp_config.json", json.dumps({"FSDP_version": 1, "world_size": ranks}))
        text(f"{d}{part}/huggingface/config.json", "{}")
    save(d + "/data.pt", {})
    text(top + "/latest_checkpointed_iteration.txt", str(step))


SIZE = 120000  # of the model, and of the optimizer, however many ranks share them


def deepspeed(top, step, data=2, model=1, stage=2, layers=0, silent=0, bf16=0, experts=0, old=0, tag=None, **more):
    """
    DeepSpeed, runtime/engine.py, _save_checkpoint, _save_moe_checkpoint, _save_zero_checkpoint,
    _common_checkpoint_state; runtime/pipe/module.py, ckpt_layer_path: layers without parameters have no file. Last,
    but before the other ranks are done, latest. data=0: an optimizer without ZeRO. silent: the files
    do not say how many ranks there are. old: in torch.save's older format.
    """
    tag = tag or f"global_step{step}"
    d = f"{top}/{tag}"
    write = legacy if old else save
    world = {} if silent else {"dp_world_size": data or 1, "mp_world_size": model,
                               "ds_config": {"zero_optimization": {"stage": stage if data else 0}}}
    for m in range(model):
        if stage < 3:
            write(f"{d}/mp_rank_{m:02d}_model_states.pt", {"module": {}, **world, **more}, SIZE // model)
        for layer in range(layers):
            number = layer + (layer > 0)
            write(f"{d}/layer_{number:02d}-model_{m:02d}-model_states.pt", {}, SIZE // layers)
        for layer, expert in itertools.product(range(2 if experts else 0), range(experts)):
            write(f"{d}/layer_{layer}_expert_{expert}_mp_rank_{m:02d}_model_states.pt", {})
        for r in range(data):
            prefix = "bf16_" if bf16 else ""
            write(f"{d}/{prefix}zero_pp_rank_{r}_mp_rank_{m:02d}_optim_states.pt", {}, SIZE // model // data)
            if stage == 3:
                content = {"module": None, **world, **more}
                write(f"{d}/zero_pp_rank_{r}_mp_rank_{m:02d}_model_states.pt", content)
    text(top + "/latest", tag)


def megatron(top, step, tensor=2, pipeline=2, expert=1, optimizer=1, layers=0):
    """
    Megatron-LM, training/checkpointing.py, get_checkpoint_name and save_checkpoint, --ckpt-format
    torch: a directory for each rank; the sizes are in the pickled arguments. The tracker is written
    after a barrier.
    """
    d = f"{top}/iter_{step:07d}"
    size = SIZE // (tensor * pipeline * expert)
    args = argparse.Namespace(
        num_layers=2, expert_tensor_parallel_size=tensor, tensor_model_parallel_size=tensor,
        pipeline_model_parallel_size=pipeline, expert_model_parallel_size=expert,
        world_size=2 * tensor * pipeline * expert, use_distributed_optimizer=bool(optimizer))
    for t, p, e in itertools.product(range(tensor), range(pipeline), range(expert)):
        rank = f"mp_rank_{t:02d}" + (f"_{p:03d}" if pipeline > 1 else "")
        rank += f"_{e:03d}" if expert > 1 else ""
        if optimizer:
            save(f"{d}/{rank}/distrib_optim.pt", {}, size)
        for data in range(layers):
            save(f"{d}/{rank}/layer_wise_optimizer_{data}.pt", {}, size // layers)
        content = {"args": args, "checkpoint_version": 3.0, "iteration": step}
        save(f"{d}/{rank}/model_optim_rng.pt", content, size)
    text(top + "/latest_checkpointed_iteration.txt", str(step))


def megatron_dcp(top, step, ranks=2):
    """--ckpt-format torch_dcp and fsdp_dtensor: what PyTorch writes, and the tracker."""
    dcp(top, step, word=f"iter_{step:07d}"[:-len(str(step))], ranks=ranks)
    text(top + "/latest_checkpointed_iteration.txt", str(step))


def megatron_files(d, ranks=2, common=1):
    """
    core/dist_checkpointing/serialization.py, save: metadata.json is written last. Before 2026 there is
    common.pt; since then .metadata has a key common_state.
    """
    if common:
        save(d + "/common.pt", {})
    keys = {} if common else {"state_dict_metadata": {"common_state/shard_0_1": None}}
    shards(d, [f"__{rank}_{part}.distcp" for rank in range(ranks) for part in range(2)], **keys)
    text(d + "/metadata.json", '{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')


def megatron_dist(top, step, ranks=2, common=1):
    megatron_files(f"{top}/iter_{step:07d}", ranks, common)
    text(top + "/latest_checkpointed_iteration.txt", str(step))


def megatron_zarr(top, step):
    """--ckpt-format zarr, until 2025: a directory for each tensor."""
    d = f"{top}/iter_{step:07d}"
    save(d + "/common.pt", {})
    for name in "model.embedding.weight", "optimizer.state.exp_avg":
        text(f"{d}/{name}/.zarray", '{"chunks": [2, 2], "shape": [4, 2], "zarr_format": 2}')
        for chunk in "0.0", "1.0":
            put(f"{d}/{name}/{chunk}", b"x" * 200)
    text(d + "/metadata.json", '{"sharded_backend": "zarr", "sharded_backend_version": 1}')
    text(top + "/latest_checkpointed_iteration.txt", str(step))


def dcp(top, step, word="step-", ranks=2, protocol=2):
    """PyTorch's distributed checkpoints by themselves; torchtitan's names."""
    shards(f"{top}/{word}{step}", ranks_of(ranks), protocol)


def titan(top, step, parts=3):
    """torchtitan, components/checkpointer/dcp.py: the last one in the form of Hugging Face."""
    shared_weights(f"{top}/step-{step}", parts=parts)


def tensorflow(top, step, shards=2, name="ckpt-{}", graph=0):
    """
    TensorFlow, core/util/tensor_bundle/tensor_bundle.cc: the data, then a table of the tensors; with
    TensorFlow 1 the graph. python/checkpoint/checkpoint_management.py: the tracker, last.
    """
    name = name.format(step)
    entries = [(b"", b"\x08" + varint(shards) + b"\x1a\x02\x08\x01")]
    for i in range(shards):
        data = bytes((step + i + n) % 251 for n in range(100))
        put(f"{top}/{name}.data-{i:05d}-of-{shards:05d}", data)
        for n, (offset, size) in enumerate(((0, 40), (40, 60))):
            value = b"\x08\x01\x12\x04\x12\x02\x08" + varint(size // 4)
            value += (b"\x18" + varint(i) if i else b"") + (b"\x20" + varint(offset) if offset else b"")
            value += b"\x28" + varint(size) + b"\x35" + struct.pack("<I", masked(data[offset:offset + size]))
            entries.append((f"layer-{i}/variable-{n}/.ATTRIBUTES/VARIABLE_VALUE".encode(), value))
    put(f"{top}/{name}.index", table(entries))
    if graph:
        put(f"{top}/{name}.meta", b"\x0a\x08graph_de" + bytes(40))
    text(top + "/checkpoint",
         f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "ckpt-1"\n'
         f'all_model_checkpoint_paths: "{name}"\nlast_preserved_timestamp: 1.5\n')


def keras(top, step, name="weights.{}-0.23.hdf5"):
    """Keras, callbacks/model_checkpoint.py and saving/saving_lib.py: HDF5, or a zip archive with it."""
    path = f"{top}/{name.format(f'{step:04d}')}"
    hdf5(path)
    if path.endswith(".keras"):
        with open(path, "rb") as file:
            weights = file.read()
        with zipfile.ZipFile(path, "w") as file:
            for member, content in (("metadata.json", "{}"), ("config.json", "{}"), ("model.weights.h5", weights)):
                file.writestr(member, content)


def orbax(top, step, loss=None, kind="plain", ranks=2, name="{}"):
    """
    Orbax, checkpoint/_src/path/atomicity.py, _src/metadata/checkpoint.py,
    _src/handlers/base_pytree_checkpoint_handler.py, _src/serialization/ocdbt_utils.py. commit: as on object stores
    and since 2025. processes: not only of one. zarr: use_ocdbt=False. old: before 0.6.
    """
    d = f"{top}/{name.format(step)}"
    items = ("state", "params") if kind == "items" else ("default",)
    if loss is not None:
        text(d + "/metrics/metrics", json.dumps({"loss": float(loss), "words": "none"}))
    if kind != "old":
        text(d + "/_CHECKPOINT_METADATA", json.dumps(
            {"item_handlers": {}, "init_timestamp_nsecs": 1, "commit_timestamp_nsecs": 2}))
    for item in items:
        text(f"{d}/{item}/_METADATA", '{"tree_metadata": {}}')
        if kind == "zarr":
            for leaf in "a", "b":
                text(f"{d}/{item}/{leaf}/.zarray", '{"chunks": [2], "shape": [2], "zarr_format": 2}')
                put(f"{d}/{item}/{leaf}/0", b"x" * 200)
            continue
        if kind == "processes":
            for rank in range(ranks):
                ocdbt(f"{d}/{item}/ocdbt.process_{rank}/manifest.ocdbt", b"x" * 50)
                put(f"{d}/{item}/ocdbt.process_{rank}/d/{rank:016x}", b"x" * 500)
                text(f"{d}/{item}/array_metadatas/process_{rank}", '{"array_metadatas": []}')
        text(f"{d}/{item}/_sharding", "{}")
        put(f"{d}/{item}/d/0123456789abcdef", b"x" * 500)
        ocdbt(f"{d}/{item}/d/fedcba9876543210", b"x" * 80, 0x0CDB20DE)
        ocdbt(f"{d}/{item}/manifest.ocdbt", b"x" * 50)
        if kind == "commit":
            text(f"{d}/{item}/commit_success.txt", f"Checkpoint commit was successful to {d}/{item}")
    if kind == "commit":
        text(d + "/commit_success.txt", f"Checkpoint commit was successful to {d}")


def link(path, target):
    if os.path.islink(path):
        os.remove(path)
    os.symlink(target, path)


def composer(top, step, kind="file", ranks=2):
    """
    Composer and llm-foundry, utils/checkpoint.py, get_save_filename, and
    callbacks/checkpoint_saver.py: then a link to the newest. ranks: old ones with DeepSpeed.
    """
    if kind == "sharded":
        shards(f"{top}/ep0-ba{step}", ranks_of(ranks))
        link(top + "/latest-rank0.pt", f"ep0-ba{step}")
        return
    for rank in range(ranks if kind == "ranks" else 1):
        save(f"{top}/ep0-ba{step}-rank{rank}.pt", {"state": {}, "rng": []})
        link(f"{top}/latest-rank{rank}.pt", f"ep0-ba{step}-rank{rank}.pt")


def olmo(top, step, kind="sharded", ranks=2):
    """
    OLMo, checkpoint.py, save_checkpoint: in a temporary directory, which is renamed; config.yaml last.
    train.py: then a link.
    """
    if kind == "unsharded":
        for file in "model", "optim", "train":
            save(f"{top}/step{step}-unsharded/{file}.pt", {})
        text(f"{top}/step{step}-unsharded/config.yaml", "run_name: x\n")
        link(top + "/latest-unsharded", f"step{step}-unsharded")
        return
    d = f"{top}/step{step}"
    if kind == "local":
        for rank, what in itertools.product(range(ranks), ("model", "optim")):
            save(f"{d}/{what}/rank{rank}.pt", {})
    else:
        shards(d + "/model_and_optim", ranks_of(ranks))
    for rank in range(ranks):
        save(f"{d}/train/rank{rank}.pt", {"global_step": step})
    text(d + "/config.yaml", "run_name: x\n")
    link(top + "/latest", f"step{step}")


def fairseq(top, step, ranks=1):
    """fairseq, checkpoint_utils.py, save_checkpoint; trainer.py, checkpoint_suffix: with FSDP, all ranks."""
    for name, rank in itertools.product((f"checkpoint_3_{step}", "checkpoint_last"), range(ranks)):
        save(f"{top}/{name}{f'-shard{rank}' if ranks > 1 else ''}.pt", {"args": None})


def neuronx(top, step, ranks=2, tensor=2, kind="plain"):
    """
    neuronx-distributed, trainer/checkpoint.py, save_checkpoint, with ZeRO 1: a file "checkpoint" at the beginning,
    and "done" after a barrier. xser: each tensor is a file.
    """
    d = f"{top}/step_{step}"
    text(d + "/checkpoint", "1")
    for t in range(tensor):
        for r in range(ranks):
            save(f"{d}/optim/dp_rank_{r:02d}_tp_rank_{t:02d}_pp_rank_00.pt", {})
        model = f"{d}/model/dp_rank_00_tp_rank_{t:02d}_pp_rank_00.pt"
        save(model, {})
        if kind == "xser":
            save(model + ".tensors/tensor_0.pt", {})
            save(model + ".info.pt", {})
    save(d + "/scheduler.pt", {})
    save(d + "/user_content.pt", {})
    text(d + "/done", "1")


def litgpt(top, step, kind="pretrain"):
    """LitGPT, pretrain.py, save_checkpoint, and finetune/lora.py: files of the tokenizer and settings last."""
    d = f"{top}/step-{step:08d}" if kind == "pretrain" else f"{top}/step-{step:06d}"
    save(f"{d}/lit_model.pth{'.lora' if kind == 'lora' else ''}", {"step_count": step})
    text(d + "/hyperparameters.yaml", "seed: 42\n")
    text(d + "/tokenizer.json", "{}")
    text(d + "/model_config.yaml", "name: pythia\n")


def openclip(top, step, kind="file", ranks=2):
    """OpenCLIP, open_clip_train/main.py: epoch_N.pt is written in place; with FSDP it is a directory."""
    if kind == "sharded":
        shards(f"{top}/epoch_{step}", ranks_of(ranks))
        shards(f"{top}/epoch_latest", ranks_of(ranks))
        return
    for name in step, "latest":
        save(f"{top}/epoch_{name}.pt", {"epoch": step})


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
