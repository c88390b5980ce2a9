"""The shapes of the built-in corpus: schemas as they are met in practice, written for this project.

Each shape holds a schema, a way to draw valid instances, and edits that make an instance invalid.
`maskbench.make_corpus` turns them into the committed corpus.
"""

from __future__ import annotations

from maskbench.shapes import (
    answers,
    apis,
    calls,
    clusters,
    configs,
    documents,
    formats,
    keywords_logic,
    keywords_objects,
    keywords_references,
    keywords_values,
    payloads,
    records,
    recursive,
    scalars,
    unions,
)
from maskbench.shapes.shape import Shape


def all_shapes() -> list[Shape]:
    """Every shape, in a stable order."""
    modules = (
        *(records, configs, payloads, recursive, scalars, unions),
        *(calls, answers, apis, clusters, documents),
        *(keywords_values, keywords_objects, keywords_logic, keywords_references),
        formats,
    )
    return [shape for module in modules for shape in module.SHAPES]
