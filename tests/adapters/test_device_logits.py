"""Masking logits wherever they are: every backend against `torch.where`."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import logitcases
import numpy as np
import pytest
import torch

import ffwd
from ffwd.adapters.logits import apply_token_bitmask_inplace, default_backend

HERE = Path(__file__).parent


@pytest.mark.parametrize("backend", [None, "native", "torch"])
def test_on_the_processor(backend):
    assert logitcases.check("cpu", backend) > 100


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton here")
def test_the_triton_kernel_in_its_interpreter():
    """What the kernel computes. In a process of its own: Triton asks once, when it is imported."""
    code = "import logitcases; print(logitcases.check('cpu', 'triton'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        env={
            **os.environ,
            "TRITON_INTERPRET": "1",
            "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(HERE)]),
        },
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


@pytest.mark.gpu
@pytest.mark.parametrize("backend", [None, "triton", "torch"])
def test_on_a_gpu(backend):
    assert logitcases.check("cuda", backend) > 100


def test_the_backend_follows_the_device():
    assert default_backend(torch.device("cpu")) == "native"
    assert default_backend(torch.device("mps")) == "torch"
    triton = importlib.util.find_spec("triton") is not None
    assert default_backend(torch.device("cuda", 1)) == ("triton" if triton else "torch")


def test_one_dimension_and_unsigned_words():
    bitmask = np.array([0b101], dtype=np.uint32)
    bitmask.flags.writeable = False
    for mask in (bitmask, torch.tensor([0b101], dtype=torch.uint32), bitmask[None]):
        logits = torch.zeros(4)
        apply_token_bitmask_inplace(logits, mask, backend="torch")
        assert logits.tolist() == [0, -torch.inf, 0, -torch.inf]


def zeros(*shape, dtype=torch.float32, **options):
    return torch.zeros(*shape, dtype=dtype, **options)


BAD = {
    "list": ([[0.0] * 96] * 2, {}),
    "integers": (zeros(2, 96, dtype=torch.int32), {}),
    "three dimensions": (zeros(1, 2, 96), {}),
    "sparse": (zeros(2, 96).to_sparse(), {}),
    "gradient": (zeros(2, 96, requires_grad=True), {}),
    "transposed": (zeros(96, 2).T, {}),
    "expanded": (zeros(1, 96).expand(2, 96), {}),
    "more rows": (zeros(3, 96), {}),
    "row past the logits": (zeros(3, 96), {"indices": [3]}),
    "row past the bitmask": (zeros(3, 96), {"indices": [2]}),
    "row before the first": (zeros(2, 96), {"indices": [-1]}),
    "row twice": (zeros(2, 96), {"indices": [0, 0]}),
    "truth values": (zeros(2, 96), {"indices": torch.tensor([True, False])}),
    "one number": (zeros(2, 96), {"indices": 0}),
    "fractions": (zeros(2, 96), {"indices": [0.5]}),
    "fewer mask rows": (zeros(2, 96), {"mask_rows": [0]}),
    "no tokens": (zeros(2, 96), {"vocab_size": 0}),
    "more tokens than columns": (zeros(2, 90), {"vocab_size": 91}),
    "more tokens than bits": (zeros(2, 200), {"vocab_size": 97}),
    "mask of int64": (zeros(2, 96), {"bitmask": torch.zeros(2, 3, dtype=torch.int64)}),
    "mask of NumPy's int64": (zeros(2, 96), {"bitmask": np.zeros((2, 3), np.int64)}),
    "mask of no dimension": (zeros(2, 96), {"bitmask": torch.tensor(1, dtype=torch.int32)}),
    "list as a mask": (zeros(2, 96), {"bitmask": [[0] * 3] * 2}),
    "mask transposed": (zeros(2, 96), {"bitmask": torch.zeros(3, 2, dtype=torch.int32).T}),
    "mask elsewhere": (
        zeros(2, 96),
        {"bitmask": torch.zeros(2, 3, dtype=torch.int32, device="meta")},
    ),
    "no such backend": (zeros(2, 96), {"backend": "numpy"}),
}


@pytest.mark.parametrize("backend", ["native", "torch"])
@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused(name, backend):
    logits, options = BAD[name]
    options = {"bitmask": torch.zeros(2, 3, dtype=torch.int32), "backend": backend, **options}
    with pytest.raises(
        (ffwd.BitmaskError, TypeError) if backend == "native" else ffwd.BitmaskError
    ):
        apply_token_bitmask_inplace(logits, **options)
    if isinstance(logits, torch.Tensor):
        assert not logits.to_dense().any()


def test_triton_is_imported_only_where_it_is_used():
    code = "import sys, ffwd.adapters.transformers as t; print(any('triton_' in m for m in sys.modules if m.startswith('ffwd')))"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout.strip() == "False", done.stderr
