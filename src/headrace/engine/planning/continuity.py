"""Continuity of inputs: checks, before an epoch is planned or repeated, that they are still what the job's position refers to."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.engine.planning.input import Input, Position
from headrace.engine.planning.input_loss import another, shrunk, without_partition


def identities(inputs: Mapping[str, Input]) -> dict[str, str]:
    """The identity of each input, which another one of the same name does not have."""
    return {name: source.identity() for name, source in inputs.items()}


def check_identities(job: str, inputs: Mapping[str, Input], known: Mapping[str, str]) -> None:
    """Raise if an input was deleted and created again."""
    for name, found in identities(inputs).items():
        if found != known[name]:
            raise another(inputs[name].label, job, known[name], found)


def check_ends(inputs: Mapping[str, Input], positions: Mapping[str, Position], ends: Mapping[str, Position]) -> None:
    """Raise if an input ends before the position of the job: positions never move back, or records would be read twice."""
    for name, end in ends.items():
        for partition, position in positions[name].items():
            if partition not in end:
                raise without_partition(inputs[name].label, partition, position)
            if end[partition] < position:
                raise shrunk(inputs[name].label, partition, end[partition], position)
