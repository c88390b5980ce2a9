"""Prints the table of docs/sampling.md: `PYTHONPATH=. python tests/adapters/sampling_figures.py`.

Each row has the total variation distance to the exact distribution, found by enumeration, over
several seeds. The last column is the distance that as many independent texts of the exact
distribution have on average: what is not above it is luck.
"""

import argparse

import numpy as np
import torch
from exactsampling import CASES, bigrams, compiled, distance, exact, letters, weighted

import ffwd
from maskbench.intervals import mean_interval

ROWS = (("weighted", 6000), ("smc", 6000), ("adaptive", 300), ("adaptive", 1000))


def expected_distance(shares, number):
    """Return the mean distance of `number` independent draws."""
    random = np.random.default_rng(0)
    shares = np.array(list(shares)) / sum(shares)
    found = np.abs(random.multinomial(number, shares, size=10_000) / number - shares)
    return found.sum(axis=1).mean() / 2


def main(seeds):
    torch.set_num_threads(1)
    tokenizer = letters()
    print("| grammar | `sampling` | particles | mean | worst | exact draws |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for case, (table, grammar, limit) in CASES.items():
        model = bigrams(tokenizer, table)
        grammar = compiled(tokenizer, model, grammar)
        for sampling, number in ROWS:
            found = []
            for seed in range(seeds):
                torch.manual_seed(seed)
                made = ffwd.generate(
                    model,
                    tokenizer,
                    "x",
                    grammar,
                    sampling=sampling,
                    particles=number,
                    max_new_tokens=limit,
                )
                wanted = exact(model, grammar, made.prompt_tokens, max_tokens=limit).given
                found.append(distance(wanted, weighted(made.particles)))
            low, high = mean_interval(found)
            print(
                f'| {case} | `"{sampling}"` | {number:,} | {np.mean(found):.4f}'
                f" ({low:.4f} to {high:.4f}) | {max(found):.4f}"
                f" | {expected_distance(wanted.values(), number):.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    main(parser.parse_args().seeds)
