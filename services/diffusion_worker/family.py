"""Masked diffusion, by blocks or over everything, as kinds of model that the engine can run."""

from __future__ import annotations

from services.chassis.errors import InvalidRequest
from services.diffusion_worker.guided import GuidedSequence
from services.diffusion_worker.sequence import BlockModel, BlockSequence
from services.diffusion_worker.strategy import STRATEGIES
from services.diffusion_worker.whole_canvas import WholeCanvasSequence
from services.generation.slots import GRAIN
from services.generation.types import DenoisingPlan, Job
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
        self._model = BlockModel(
            vocabulary, _mask_id(vocabulary), int(logit_shift), prefill_chunk, rescore_last
        )

    def open(self, job: Job) -> BlockSequence:
        """Starts a sequence; raises InvalidRequest for a plan it cannot follow."""
        plan = _plan(job)
        if plan.block_length < 1 or GRAIN % plan.block_length:
            raise InvalidRequest.field("diffusion.block_length", f"must divide {GRAIN}")
        if job.automaton is not None:
            return GuidedSequence(job, plan, self._model, job.automaton)
        return BlockSequence(job, plan, self._model)


class MaskedDiffusion:
    """Masked diffusion with attention in both directions over all of the text.

    ``logit_shift`` as in BlockDiffusion (Dream has it, LLaDA has not). With
    ``prefix_cache`` the text left of the open block is computed once a block.
    """

    def __init__(
        self, vocabulary: Vocabulary, *, logit_shift: bool, prefix_cache: bool = False
    ) -> None:
        self._model = BlockModel(
            vocabulary,
            _mask_id(vocabulary),
            int(logit_shift),
            prefill_chunk=0,
            rescore_last=False,
            sees_right=True,
        )
        self._prefix_cache = prefix_cache

    def open(self, job: Job) -> WholeCanvasSequence:
        """Starts a sequence; raises InvalidRequest for a plan it cannot follow."""
        return WholeCanvasSequence(job, _plan(job), self._model, keeps_prefix=self._prefix_cache)


def _mask_id(vocabulary: Vocabulary) -> int:
    if vocabulary.mask_id is None:
        raise ValueError("a masked diffusion model needs a mask token")
    return vocabulary.mask_id


def _plan(job: Job) -> DenoisingPlan:
    plan = job.denoising
    if plan is None or plan.strategy not in STRATEGIES:
        raise InvalidRequest.field("diffusion.strategy", f"must be one of {', '.join(STRATEGIES)}")
    return plan
