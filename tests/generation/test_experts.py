"""Tokens per expert: counted where they are routed, exported as one series each."""

from __future__ import annotations

import torch
from prometheus_client import CollectorRegistry, generate_latest
from torch import nn
from transformers import PreTrainedModel

from services.generation.metrics import WorkerMetrics
from services.generation.sequence import Rows
from services.generation.slot_model import SlotModel
from tests.generation.tiny import BLOCK, decoder, prompt

TOKENS = list(prompt(3 * BLOCK))


def computed(module: PreTrainedModel) -> SlotModel:
    """A slot model after one forward in which every row sees every other."""
    model = SlotModel(module, slots=1, max_context=64)
    model.forward([(0, Rows(TOKENS, 0, [len(TOKENS)] * len(TOKENS), [0]))])
    return model


def routed(module: PreTrainedModel) -> list[list[int]]:
    """Rows per layer and expert, from the routers' own logits in one forward without slots."""
    size = len(TOKENS)
    with torch.no_grad():
        logits = module.model(
            input_ids=torch.tensor([TOKENS]),
            attention_mask=torch.zeros(1, 1, size, size),
            output_router_logits=True,
        ).router_logits
    chosen = [layer.topk(module.config.num_experts_per_tok).indices.flatten() for layer in logits]
    return [[int((picks == e).sum()) for e in range(module.config.num_experts)] for picks in chosen]


def test_rows_are_counted_where_they_are_routed() -> None:
    """Each layer counts each row once for each of its experts, forward after forward."""
    wanted = routed(decoder("qwen3_moe"))
    model = computed(decoder("qwen3_moe"))
    assert model.expert_load.totals() == dict(enumerate(wanted))
    model.forward([(0, Rows(TOKENS, 0, [len(TOKENS)] * len(TOKENS), [0]))])
    assert model.expert_load.totals() == {
        layer: [2 * count for count in counts] for layer, counts in enumerate(wanted)
    }


def hooks(module: nn.Module) -> int:
    """Everything that runs before a part of the module does."""
    return sum(len(part._forward_pre_hooks) for part in module.modules())


def test_dense_models_pay_nothing() -> None:
    """A model without experts gets no hook and no series."""
    dense, mixture = decoder("qwen3"), decoder("qwen3_moe")
    assert not computed(dense).expert_load
    assert hooks(dense) == 0
    assert computed(mixture).expert_load
    assert hooks(mixture) == mixture.config.num_hidden_layers


def test_every_expert_is_a_series() -> None:
    """Labels are the model's layers and experts, those that were never chosen too."""
    load = computed(decoder("qwen3_moe")).expert_load
    registry = CollectorRegistry()
    WorkerMetrics(registry).follow_experts(load)
    page = generate_latest(registry).decode()
    for layer, counts in load.totals().items():
        for expert, count in enumerate(counts):
            series = f'braid_expert_tokens_total{{expert="{expert}",layer="{layer}"}} {count}.0'
            assert series in page
    assert page.count("braid_expert_tokens_total{") == 2 * 4
