"""Stands in for SGLang's kernels, which have no wheel for a plain CPU.

SGLang imports names from here and falls back to torch where the processor lacks what the kernels
need; whatever is called all the same says which it was.
"""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_, **__):
        raise NotImplementedError(f"sgl_kernel.{name} is not here")

    missing.__name__ = name
    return missing
