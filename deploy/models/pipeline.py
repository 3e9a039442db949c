"""The whole way from nothing to a store: tokenizer, three stages of training, export."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from deploy.models.checkpoint import load_codec, load_model
from deploy.models.corpus.example import Chat, Edit, Infill, Input, Plain
from deploy.models.corpus.mixture import examples
from deploy.models.data_parallel import run_parallel
from deploy.models.export import export
from deploy.models.model import Shape
from deploy.models.tokenizer import train_tokenizer
from deploy.models.train_autoregressive import AutoregressiveRun, train_autoregressive
from deploy.models.train_diffusion import CONFIDENT, DiffusionRun, train_diffusion

TOKENIZER_SEED, TOKENIZER_EXAMPLES = 0, 40_000
AUTOREGRESSIVE_FOLDER, DIFFUSION_FOLDER = Path("demo-ar/v1"), Path("demo-diffusion/v1")


def _texts_of(source: Input) -> tuple[str, ...]:
    match source:
        case Plain(prompt):
            return (prompt,)
        case Infill(prefix, suffix):
            return (prefix, suffix)
        case Edit(text, instruction):
            return (text, instruction)
        case Chat(turns):
            return (" ".join(turn.content for turn in turns),)


def tokenizer_texts() -> Iterator[str]:
    """Texts of the mixture, prompts and answers."""
    for example in islice(examples(TOKENIZER_SEED), TOKENIZER_EXAMPLES):
        yield from (*_texts_of(example.input), example.answer, example.thinking)


def train_pair(work: Path, store: Path, processes: int = 2) -> None:
    """Leaves tokenizer and weights of every stage in the work folder.

    The tokenizer is the store's, where it has one: texts may change under the same tokens.
    """
    work.mkdir(parents=True, exist_ok=True)
    known, tokenizer_file = (
        store / AUTOREGRESSIVE_FOLDER / "tokenizer.json",
        work / "tokenizer.json",
    )
    if known.exists():
        tokenizer_file.write_bytes(known.read_bytes())
    else:
        train_tokenizer(tokenizer_texts()).save(str(tokenizer_file))
    run_parallel(train_autoregressive, AutoregressiveRun(), work, world=processes)
    run_parallel(train_diffusion, DiffusionRun(), work, world=processes)
    run_parallel(train_diffusion, CONFIDENT, work, world=processes)


def export_pair(work: Path, store: Path) -> None:
    """Writes both checkpoint folders of the store."""
    shape = Shape(vocab_size=load_codec(work).size)
    tokenizer_file = work / "tokenizer.json"
    autoregressive = load_model(work / "autoregressive.safetensors", shape)
    export(autoregressive, "autoregressive", tokenizer_file, store / AUTOREGRESSIVE_FOLDER)
    diffusion = load_model(work / CONFIDENT.result, shape)
    export(diffusion, "masked_block_diffusion", tokenizer_file, store / DIFFUSION_FOLDER)
