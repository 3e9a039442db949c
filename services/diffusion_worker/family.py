"""Block diffusion as a kind of model that the engine can run."""

from __future__ import annotations

from services.chassis.errors import InvalidRequest
from services.diffusion_worker.sequence import BlockModel, BlockSequence
from services.diffusion_worker.strategy import STRATEGIES
from services.generation.slots import GRAIN
from services.generation.types import Job
from services.generation.vocabulary import Vocabulary


class BlockDiffusion:
    """Masked block diffusion over a causal decoder's weights.

    With ``logit_shift`` the logits of a position speak of the next token, as
    they do in the AR model it came from; otherwise of the position's own.
    Prompts longer than ``prefill_chunk`` tokens take several forwards.
    ``rescore_last`` spends one more forward on an answer to edit its last block,
    as every other block is edited for nothing in its commit forward.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        logit_shift: bool,
        prefill_chunk: int = 256,
        rescore_last: bool = False,
    ) -> None:
        if vocabulary.mask_id is None:
            raise ValueError("a masked diffusion model needs a mask token")
        self._model = BlockModel(
            vocabulary, vocabulary.mask_id, int(logit_shift), prefill_chunk, rescore_last
        )

    def open(self, job: Job) -> BlockSequence:
        """Starts a sequence; raises InvalidRequest for a plan it cannot follow."""
        plan = job.denoising
        if plan is None or plan.strategy not in STRATEGIES:
            raise InvalidRequest.field(
                "diffusion.strategy", f"must be one of {', '.join(STRATEGIES)}"
            )
        if plan.block_length < 1 or GRAIN % plan.block_length:
            raise InvalidRequest.field("diffusion.block_length", f"must divide {GRAIN}")
        return BlockSequence(job, plan, self._model)
