#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""No part of a save is a save, and prune keeps its promises: whole.py break|prune ... (see the end)

break CONTEXT: for each form of each framework, remove, cut, zero or replace any files of the newest
save. It must not be "complete", nor be what latest prints. prune COUNT: random histories.
"""
import fnmatch
import itertools
import json
import os
import random
import re
import subprocess
import sys
import time

import frameworks


def expand(word):
    """a{b,c} is ab and ac."""
    head, brace, tail = word.partition("{")
    return [head + part for part in tail[:-1].split(",")] if brace else [head]


# Forms of frameworks.py; the option that is their number of ranks; what list needs to find them.
FORMS = [(form.replace("()", "{}"), world, options.split())
         for words, world, options in (row.split("|") for row in """\
hf hf:kind={sharded,bin_sharded,bin,adapter,named,named_bin,sentence,only}||
hf:ranks=3 hf:ranks=3,kind={fsdp,fsdp_sharded,deepspeed,deepspeed3}|ranks|
accelerate:kind={bin,fsdp} accelerate:word={step_,epoch_} diffusers diffusers:kind={lora,controlnet,transformer}||
accelerate:ranks=3 accelerate:ranks=3,kind={fsdp_sharded,deepspeed}|ranks|
lightning:ranks=3,kind={fsdp,deepspeed,deepspeed3}|ranks|
lightning nemo verl:kind={grpo,megatron,sft}||
nemo:ranks=3,kind={dist,two} verl:ranks=3 orbax:ranks=3,kind=processes composer:ranks=3,kind={ranks,sharded}|ranks|
deepspeed:data=3 deepspeed:data=3,{bf16=1,old=1,stage=3}|data|
deepspeed:model=3 deepspeed:model=3,data=0,stage=0|model|
deepspeed:experts=2 deepspeed:layers=3 megatron:optimizer=0,layers=2 megatron_zarr titan tensorflow:graph=1||
megatron:tensor=3|tensor|
megatron:pipeline=3|pipeline|
megatron:expert=3|expert|
megatron_dist:ranks=3 megatron_dist:ranks=3,common=0 megatron_dcp:ranks=3 dcp:ranks=3|ranks|
tensorflow:shards=3|shards|
tensorflow:name=cp-().ckpt keras keras:name={ep.().keras,().weights.h5} composer||
orbax orbax:kind={commit,items,zarr,old}||
olmo:ranks=3 olmo:ranks=3,kind=local|ranks|--pattern step{step} --done config.yaml
olmo:kind=unsharded||--pattern step{step}-unsharded --done config.yaml
fairseq||--pattern checkpoint_*_{step}.pt
neuronx:tensor=3|tensor|--pattern step_{step} --done done
neuronx:kind=xser||--pattern step_{step} --done done
litgpt:kind={full,lora}||--pattern step-{step} --done model_config.yaml
openclip||--pattern epoch_{step}.pt
openclip:ranks=3,kind=sharded|ranks|--pattern epoch_{step}
fsdp||--pattern model-{step}.pt
""".splitlines()) for word in words.split() for form in expand(word)]

# Forms that no rule knows: they are told, not offered, not removed.
UNKNOWN = {"megatron_zarr": "unknown form"}

# What is lost without a trace: forms, contexts, how, files, and why. Names joined by "+" are lost together.
EXCUSED = [row.split("|") for row in """\
*|all|cut|*/zero_to_fp32.py *.yaml *.meta *commit_success.txt|a text, or a protocol buffer, has no end
*|all|replace|*commit_success.txt|a text may be any text
orbax*|all|cut zero|*/d/* */a/* */b/* *array_metadatas/*|raw data has no end; JSON without an ending
orbax*|alone smaller|remove|*/d/* *_METADATA *_sharding *array_metadatas/* *success.txt */a/* */b/*|optional
orbax*|alone smaller|remove|*/ocdbt.process_0/*|nothing says how many processes there are
hf*|alone|remove|*training_args.bin+*/scheduler.pt *training_args.bin+*rng_state*|not written by the Trainer itself
hf*|alone|remove|*config.json *training_args.bin *modules.json *transformers.json *zero_to_fp32.py|not always written
hf*|alone|remove|*/optimizer.pt+*/scheduler.pt+*/rng_state*|save_only_model
hf*|alone smaller|remove|*/rng_state_[12].pth|nothing says how many ranks there are
acc* diff*|alone|remove|*scheduler.bin *sampler.bin *scaler.pt *checkpoint_0.pkl *zero_to_fp32.py|not always written
acc* diff*|alone smaller|remove|*/random_states_[12].pkl|nothing says how many ranks there are
diffusers*|alone|remove|*/config.json */unet_ema/config.json+*/unet_ema/*.safetensors|not always written
lightning*|alone|remove|*/zero_to_fp32.py|not needed
nemo* verl* megatron*|alone|remove|*common.pt|new ones have none
nemo* verl* megatron*|alone|remove|*common.pt+*metadata.json|looks like PyTorch's own form
nemo*|alone|remove|*/context/model.yaml */context/io.json|not always written
verl*|alone|remove|*config.json *extra_state*+*optim_world*|not needed; save_contents
deepspeed*|alone|remove|*/layer_0[0-9]-*|the numbers of layers have gaps
megatron*|alone|remove|*layer_wise_optimizer_*|nothing says how many ranks there are
megatron_dist:*common=0|alone|remove|*metadata.json|looks like PyTorch's own form
tensorflow*|alone|remove|*.meta|TensorFlow 2 has none
composer*|alone smaller|remove|*-rank[12].pt|nothing says how many ranks there are
olmo* neuronx*|alone smaller|remove|*.pt */checkpoint */.metadata+*.distcp|a pattern has no rules
litgpt*|alone|remove|*.pth *.lora */tokenizer.json */hyperparameters.yaml|a pattern has no rules
neuronx*|all|cut zero|*/checkpoint */done|a byte says nothing
""".splitlines()]

HTML = b"<!DOCTYPE html>\n<html><head><title>504 Gateway Time-out</title></head></html>\n"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 440473133\n" % (b"4d7a" * 16)
WAYS = {
    "remove": None,
    "cut": lambda data, dice: data[:dice.randrange(len(data))],
    "zero": lambda data, dice: bytes(len(data)),
    "replace": lambda data, dice: dice.choice((HTML, POINTER)),
}
CONTEXTS = "three", "alone", "smaller", "larger"


def rotate(*args):
    done = subprocess.run(["ckpt-rotate", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def states(directories, options=()):
    """{directory: {step: state}}, by as few processes as possible."""
    found = {d: {} for d in directories}
    for at in range(0, len(directories), 800):
        code, out, err = rotate("list", "--json", *options, *directories[at:at + 800])
        assert code in (0, 75), (code, err)
        for one in json.loads(out or "[]"):
            directory = next(d for d in (one["path"].split("/")[0], one["path"].rsplit("/", 1)[0]) if d in found)
            found[directory][one["step"]] = one["state"]
            assert one["state"] == "complete" or one.get("why"), f"no reason: {one}"
    return found


def make(form, directory, *steps, **more):
    name, _, options = form.partition(":")
    arguments = dict(pair.split("=") for pair in options.split(",") if pair)
    arguments = {key: int(value) if value.isdigit() else value for key, value in arguments.items()}
    for step in steps:
        getattr(frameworks, name)(directory, step, **dict(arguments, **more))


def files_in(top):
    return {os.path.relpath(os.path.join(d, f), top) for d, _, files in os.walk(top) for f in files}


def copy(top, to, without=(), walked=None):
    """A copy by hard links, without some files."""
    for d, names, files in walked or os.walk(top):
        there = to + d[len(top):]
        os.mkdir(there)
        for name in files + [n for n in names if os.path.islink(f"{d}/{n}")]:
            if not without or f"{d}/{name}"[len(top) + 1:] not in without:
                os.link(f"{d}/{name}", f"{there}/{name}", follow_symlinks=False)


def excused(form, context, way, lost):
    left = set(lost)
    for forms, contexts, ways, names, _ in EXCUSED:
        here = contexts == "all" or context in contexts.split()
        if here and way in ways.split() and any(fnmatch.fnmatch(form, f) for f in forms.split()):
            for group in names.split():
                parts = [{f for f in lost if fnmatch.fnmatch(f, part)} for part in group.split("+")]
                if all(parts):
                    left -= set().union(*parts)
    return not left


def broken(top, form, world, context, subsets):
    """Make a directory for each way to break the newest save; return what was done: (dir, way, lost)."""
    cases = []
    if context in ("smaller", "larger"):
        if not world:
            return []
        ranks = int(dict(pair.split("=") for pair in form.split(":")[1].split(","))[world])
        make(form, top, 100, 200, **{world: ranks + (1 if context == "larger" else -1)})
    elif context == "three":
        make(form, top, 100, 200)
    make(form, top, 300)
    parts = sorted(f for f in files_in(top) if "300" in f.split("/")[0])
    cases.append((top, "none", ()))
    walked = list(os.walk(top))
    for way, change in WAYS.items():
        dice = random.Random(f"{form} {context} {way}")
        chosen = {(f,) for f in parts}
        for _ in range(subsets):
            chosen.add(tuple(sorted(dice.sample(parts, dice.randint(1, len(parts))))))
        for lost in sorted(chosen):
            d = f"{top}-{len(cases)}"
            copy(top, d, lost, walked)
            for part in {os.path.dirname(name) for name in lost} if len(cases) % 2 and not change else ():
                while "/" in part and os.path.isdir(f"{d}/{part}") and not os.listdir(f"{d}/{part}"):
                    os.rmdir(f"{d}/{part}")
                    part = os.path.dirname(part)
            for name in lost if change else ():
                with open(f"{top}/{name}", "rb") as file:
                    data = change(file.read(), dice)
                with open(f"{d}/{name}", "wb") as file:
                    file.write(data)
            cases.append((d, way, lost))
    return cases


def offered(directories, options):
    """Those of which step 300 is offered. Where one cannot be read (75), nothing is said of the others: ask again."""
    code, said = rotate("latest", "--step", *options, *directories)[:2]
    if code in (0, 1) and said.strip() != "300":
        return []
    if len(directories) == 1:
        return directories if said.strip() == "300" else []
    half = len(directories) // 2
    return offered(directories[:half], options) + offered(directories[half:], options)


def break_all(context, subsets=25, only="*"):
    """300 is the only save, or the third of three; the first two of as many ranks, fewer or more."""
    wrong = count = 0
    for number, (form, world, options) in enumerate(FORMS):
        if not fnmatch.fnmatch(form, only):
            continue
        cases = broken(f"made{number}", form, world, context, subsets)
        found = states([d for d, _, _ in cases], options)
        right = {"complete", UNKNOWN.get(form), "doubtful" if context == "larger" else None} - {None}
        for d, way, lost in cases:
            state, complaint = found[d].get(300), ""
            if way == "none":
                complaint = "" if state in right else f"a whole one is {state}"
            elif state == "complete" and not excused(form, context, way, lost):
                complaint = f"{way} {' '.join(lost)}: complete"
            elif context == "three" and not {found[d].get(step) for step in (100, 200)} <= right:
                complaint = f"{way} {' '.join(lost)}: {found[d]}"
            if complaint:
                wrong += 1
                print(f"{form}, {context}: {complaint}")
        # Nor is any of them offered, for which it is enough to ask about all at once.
        broke = [d for d, _, _ in cases if found[d].get(300) != "complete"]
        for at in range(0, len(broke), 800):
            for d in offered(broke[at:at + 800], options):
                wrong += 1
                print(f"{form}, {context}: {d} is offered, and is not complete")
        count += len(cases)
        subprocess.run(["rm", "-rf", *(d for d, _, _ in cases)], check=True)
    print(f"{context}: {count} saves, {wrong} wrong")
    return wrong


# ---- prune ----

HISTORIES = ("native hf:loss=1 hf:kind=deepspeed diffusers lightning nemo:kind=ema verl deepspeed megatron_dist dcp "
             "composer:kind=ranks tensorflow keras orbax").split()
TRACKERS = {"deepspeed": ("latest", "global_step{}"), "megatron_dist": ("latest_checkpointed_iteration.txt", "{}"),
            "verl": ("latest_checkpointed_iteration.txt", "{}"),
            "tensorflow": ("checkpoint", 'model_checkpoint_path: "ckpt-{}"')}
RULES = [("--keep-last", "1 2 3"), ("--keep-every-steps", "200 300"), ("--keep-step", "300 400,500"),
         ("--keep-within", "90m")]
STEPS = range(100, 900, 100)


def of_step(names, step):
    return sorted(n for n in names if re.search(rf"(?<![0-9]){step}(?![0-9])", re.sub(r"\b0+|(?<=_)0+", "", n)))


def native(top, step):
    d = rotate("begin", top, str(step))[1].strip()
    for name in "model", "state":
        with open(f"{d}/{name}", "w") as file:
            file.write(name * step)
    assert rotate("commit", top, str(step))[1].strip() == "complete"


def past(top, seconds=3600):
    """As if all was written an hour ago."""
    then = time.time() - seconds
    for d, _, files in os.walk(top):
        for name in [d] + [f"{d}/{f}" for f in files]:
            os.utime(name, (then, then), follow_symlinks=False)


def history(form, top, d, dice):
    """Saves of some steps: complete or not, old or new, pinned, marked, with links to them and a tracker."""
    os.mkdir(d)
    young = {}
    for step in sorted(dice.sample(STEPS, dice.randint(2, 8))):
        for name in of_step(os.listdir(top), step):
            if os.path.isdir(f"{top}/{name}"):
                copy(f"{top}/{name}", f"{d}/{name}")
            else:
                os.link(f"{top}/{name}", f"{d}/{name}")
        files = [f for f in sorted(files_in(d)) if of_step([f.split("/")[0]], step)]
        fate, name = dice.random(), f"{d}/{dice.choice(files)}"
        if fate > 0.9 and form != "native":
            young[step] = files
        if fate < 0.3:
            with open(name, "rb") as file:
                data = file.read()
            os.remove(name)
            if fate < 0.15:
                with open(name, "wb") as file:
                    file.write(data[:dice.randrange(len(data))])
    past(d)
    for name in itertools.chain(*young.values()):
        with open(f"{d}/{name}", "rb") as file:
            data = file.read()
        os.remove(f"{d}/{name}")
        with open(f"{d}/{name}", "wb") as file:
            file.write(data)
    entries = sorted(os.listdir(d))
    for n in range(dice.randint(0, 2)):
        target = dice.choice(entries)
        inside = sorted(files_in(f"{d}/{target}"))
        os.symlink(dice.choice([target] + [f"{target}/{name}" for name in inside]), f"{d}/best{n}")
    os.symlink(dice.choice((".", "..", "loop", "gone-100")), d + "/loop")
    return entries, set(young)


def check_prune(number, form, top, dice):
    d = f"history{number}"
    entries, young = history(form, top, d, dice)
    listed = states([d])[d]
    stays = young | {step for step, state in listed.items() if state in ("doubtful", "unknown form", "unreadable")}
    complete = sorted(step for step, state in listed.items() if state == "complete")
    settled = [step for step in complete if step not in young]
    stays.update(complete[-1:], settled[-1:])
    for step in dice.sample(sorted(listed), min(len(listed), dice.randint(0, 2))):
        code, out, err = rotate("pin", d, str(step))
        assert code == 0 or listed[step] != "complete", f"{form} {d}: pin {step}: {code} {err}"
        stays.update({step} if code == 0 else ())
    broken = False
    if form in TRACKERS and listed and dice.random() < 0.7:
        name, words = TRACKERS[form]
        step = dice.choice(sorted(listed))
        broken = dice.random() < 0.2
        with open(f"{d}/{name}", "w") as file:
            file.write("\0\0\0" if broken else words.format(step))
        stays.add(step)
    for link in (n for n in os.listdir(d) if n.startswith("best")):
        stays.update(step for step in listed if of_step([os.readlink(f"{d}/{link}").split("/")[0]], step))
    more, *rules = [(rule, dice.choice(values.split())) for rule, values in dice.sample(RULES, dice.randint(2, 3))]
    limit = [("--max-bytes", "40K")] * (dice.random() < 0.2)
    copy(d, d + "-more")
    for name in [os.path.join(x, n) for x, ns, _ in os.walk(d + "-more") for n in ns] + [d + "-more"]:
        os.path.islink(name) or os.utime(name, (os.stat(name.replace("-more", "")).st_mtime,) * 2)
    flat = [word for rule in rules + limit for word in rule]
    code, out, err = rotate("prune", "-q", *flat, d)
    left = sorted(set(os.listdir(d)) & set(entries))
    kept = {step for step in listed if of_step(left, step)}
    told = f"{form} {d} {' '.join(flat)}: {listed}, left {sorted(kept)}, exit {code}: {err.strip()}"
    assert code in ((65,) if broken else (0, 1) if limit else (0,)), told
    assert not broken or left == entries, "a broken tracker: " + told
    assert stays & set(listed) <= kept, f"{sorted(stays - kept)} had to stay: {told}"
    assert all(of_step(left, step) == of_step(entries, step) for step in kept), "half of a step: " + told
    assert all(max(settled, default=0) > step for step in set(listed) - kept), "no newer one is complete: " + told
    again = states([d])[d]
    assert complete[-1:] == [step for step in sorted(again) if again[step] == "complete"][-1:], told
    keep = int(dict(rules).get("--keep-last", 0))
    assert limit or set(settled[len(settled) - min(keep, len(settled)):]) <= kept, told
    assert not [n for n in os.listdir(d) if n.startswith((".gone", ".tmp"))], told
    if broken:
        return
    rotate("prune", "-q", *flat, d)
    assert sorted(set(os.listdir(d)) & set(entries)) == left, "twice: " + told
    rotate("prune", "-q", *flat, *more, d + "-more")
    assert set(left) <= set(os.listdir(d + "-more")), f"{more} removes more: {told}"


def prune(count):
    failed = 0
    for form in HISTORIES:
        top = "made-" + form.replace(":", "-")
        for step in STEPS:
            native(top, step) if form == "native" else make(form, top, step)
        past(top)
    for number in range(count):
        form = HISTORIES[number % len(HISTORIES)]
        try:
            check_prune(number, form, "made-" + form.replace(":", "-"), random.Random(number))
        except AssertionError as error:
            failed += 1
            print(error)
    print(f"{count} histories, {failed} wrong")
    return failed


if __name__ == "__main__":
    os.environ.update(LC_ALL="C")
    what, number, *rest = sys.argv[1:]
    sys.exit((prune(int(number)) if what == "prune" else break_all(what, int(number), *rest)) > 0)
