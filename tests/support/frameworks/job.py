#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""job.py FILE: whether a Job of Kubernetes (batch/v1, a YAML file) is one that the API server would take, by the fields
that examples/job.yaml uses; any other field is refused. Prints what is wrong, one line for each place."""
import sys

import jsonschema
import yaml


def fields(required, **others):
    every = {**required, **others}
    return {"type": "object", "properties": every, "required": list(required), "additionalProperties": False}


def many(item):
    return {"type": "array", "items": item, "minItems": 1}


TEXT = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}
COUNT = {"type": "integer", "minimum": 0}
TIME = {"type": "integer", "minimum": 1}

EXIT_CODES = fields(
    {
        "operator": {"enum": ["In", "NotIn"]},
        # Kubernetes never asks about 0 with In.
        "values": {**many({"type": "integer", "minimum": 1, "maximum": 255}), "uniqueItems": True, "maxItems": 255},
    },
    containerName=NAME,
)
CONDITION = fields({"type": TEXT, "status": {"enum": ["True", "False", "Unknown"]}})
RULE = {
    **fields(
        {"action": {"enum": ["Ignore", "FailJob", "FailIndex", "Count"]}},
        onExitCodes=EXIT_CODES,
        onPodConditions=many(CONDITION),
    ),
    "oneOf": [{"required": ["onExitCodes"]}, {"required": ["onPodConditions"]}],
}
CONTAINER = fields(
    {"name": NAME, "image": TEXT},
    command=many({"type": "string"}),
    args=many({"type": "string"}),
    # A number here is the mistake that is made most often: values are strings.
    env=many(fields({"name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}}, value={"type": "string"})),
    volumeMounts=many(fields({"name": NAME, "mountPath": {"type": "string", "pattern": "^/[^:]*$"}})),
)
POD = fields(
    {"containers": many(CONTAINER), "restartPolicy": {"const": "Never"}},  # as podFailurePolicy demands
    terminationGracePeriodSeconds=TIME,
    volumes=many(fields({"name": NAME, "persistentVolumeClaim": fields({"claimName": NAME})})),
)
JOB = fields(
    {
        "apiVersion": {"const": "batch/v1"},
        "kind": {"const": "Job"},
        "metadata": fields({"name": NAME}, namespace=NAME),
        "spec": fields(
            {"template": fields({"spec": POD}), "completions": TIME},
            completionMode={"enum": ["NonIndexed", "Indexed"]},
            parallelism=COUNT,
            backoffLimit=COUNT,
            podFailurePolicy=fields({"rules": {**many(RULE), "maxItems": 20}}),
        ),
    }
)


def main(path):
    with open(path) as file:
        job = yaml.safe_load(file)
    errors = [f"{'.'.join(map(str, e.absolute_path))}: {e.message}" for e in
              jsonschema.Draft7Validator(JOB).iter_errors(job)]
    if not errors:
        # What no schema says: a mount needs its volume.
        pod = job["spec"]["template"]["spec"]
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for container in pod["containers"]:
            mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
            errors += [f"{container['name']}: there is no volume {name}" for name in sorted(mounted - volumes)]
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


sys.exit(main(sys.argv[1]))
