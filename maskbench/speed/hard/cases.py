"""The hard cases: those made here, and those of MaskBench that they are modelled on."""

from __future__ import annotations

from maskbench.speed.hard.case import HardCase
from maskbench.speed.hard.structures import STRUCTURES
from maskbench.speed.hard.values import VALUES


def generate() -> list[HardCase]:
    """Every case, always the same."""
    return [make() for make in (*STRUCTURES, *VALUES)]


# Of MaskBench, by id: what the cases above are modelled on, and others that some engine is slow on.
REAL: tuple[str, ...] = (
    "JsonSchemaStore---jreleaser-1.7.0",
    "Kubernetes---kb_1161_Normalized",
    "JsonSchemaStore---detekt-1.22.0",
    "JsonSchemaStore---transcend-yml-schema-v4",
    "Github_ultra---o48404",
    "Github_ultra---o50639",
    "Github_ultra---o21764",
    "JsonSchemaStore---cluster",
    "JsonSchemaStore---cluster.yml",
    "JsonSchemaStore---devinit.schema-6.0",
    "JsonSchemaStore---eslintrc",
    "Github_hard---o62060",
    "Github_hard---o21074",
    "Github_hard---o45482",
    "Github_easy---o21053",
    "Github_medium---o21142",
    "Github_medium---o9517",
    "Github_ultra---o21135",
    "JsonSchemaStore---aerleon-definitions.schema",
    "JsonSchemaStore---github-workflow-template-properties",
    "Handwritten---allany13",
    "Handwritten---string1",
)
