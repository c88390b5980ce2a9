"""`python tests/json_schema_suite/report.py [--write]`: the share of cases passed.

With `--write` the record of missed cases is written anew. A new miss is given the engine's message
as its reason; write a better one by hand, it is kept.
"""

import argparse

from outcomes import Judge, Outcome, key, record, recorded, shares
from suite import DIALECTS, VARIABLE, cases, place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write missed.json")
    parser.add_argument("--verbose", action="store_true", help="print each missed case")
    arguments = parser.parse_args()
    if place() is None:
        parser.error(f"no suite: run `make suite`, or name its folder in {VARIABLE}")
    known = recorded()
    # What is recorded of cases that only other copies of the suite have stays.
    missed = dict(known)
    for draft in DIALECTS:
        judge = Judge()
        results = [(case, judge.result(case)) for case in cases(draft)]
        for case, result in results:
            missed.pop(key(case), None)
            if result.outcome is Outcome.PASSED:
                continue
            _, reason = known.get(key(case), (None, ""))
            missed[key(case)] = (result.outcome, reason or result.detail)
            if arguments.verbose:
                print(f"{result.outcome.value}: {key(case)}: {result.detail}")
                print(f"    {case.schema[:300]}  <-  {case.instance[:100]}")
        for part, counts in shares(results).items():
            total = counts.total()
            others = ", ".join(
                f"{count} {outcome.value}"
                for outcome, count in sorted(counts.items())
                if outcome is not Outcome.PASSED
            )
            share = counts[Outcome.PASSED] / total
            print(f"{draft:14}{part:10}{counts[Outcome.PASSED]:5}/{total:<5}{share:7.2%}  {others}")
    if arguments.write:
        record(missed)


if __name__ == "__main__":
    main()
