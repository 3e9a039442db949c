"""`python -m deploy.models train | evaluate | golden`."""

import argparse
import asyncio
from pathlib import Path

from deploy.models.evaluate import evaluate_store, table
from deploy.models.golden_sets import write_golden_sets
from deploy.models.pipeline import AUTOREGRESSIVE_FOLDER, DIFFUSION_FOLDER, export_pair, train_pair
from deploy.models.served import evaluate_served

STORE = Path(__file__).parent / "store"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.models", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser(
        "train", help="train the pair and export it (about three hours on two cores)"
    )
    train.add_argument("--work", type=Path, default=Path("build/demo-models"))
    train.add_argument("--store", type=Path, default=STORE)
    train.add_argument("--processes", type=int, default=2)
    evaluate = commands.add_parser(
        "evaluate", help="score a store folder on the golden sets, one thread"
    )
    evaluate.add_argument("--store", type=Path, default=STORE)
    evaluate.add_argument("--holdout", action="store_true")
    served = commands.add_parser("served", help="score the pair as a mesh serves it")
    served.add_argument("--store", type=Path, default=STORE)
    served.add_argument("--holdout", action="store_true")
    served.add_argument("--suite", choices=("all", "diffusion", "autoregressive"), default="all")
    commands.add_parser("golden", help="write the golden sets again")
    return parser


def main() -> None:
    """Runs one command."""
    arguments = _parser().parse_args()
    match arguments.command:
        case "train":
            train_pair(arguments.work, arguments.store, arguments.processes)
            export_pair(arguments.work, arguments.store)
        case "evaluate":
            for folder, paradigm in (
                (AUTOREGRESSIVE_FOLDER, "autoregressive"),
                (DIFFUSION_FOLDER, "diffusion"),
            ):
                print(f"\n{folder}")
                for line in table(
                    evaluate_store(arguments.store / folder, paradigm, arguments.holdout)
                ):
                    print(line)
        case "served":
            tables = asyncio.run(
                evaluate_served(arguments.store, suite=arguments.suite, holdout=arguments.holdout)
            )
            for name, rows in tables.items():
                print(f"\n{name}", *table(rows), sep="\n")
        case "golden":
            write_golden_sets()


if __name__ == "__main__":
    main()
