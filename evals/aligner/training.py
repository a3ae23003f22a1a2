"""Training an aligner: the net of `stemma.policies.alignment`, in torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from evals.quality.texts import Pair
from stemma.embedders import Matrix
from stemma.policies.alignment import HIDDEN, LAST, TOKENS, Aligner

__all__ = ["DIGITS", "basis", "train"]

EPOCHS = 8
DIGITS = 4
BATCH = 32
RATE = 3e-3
DECAY = 1e-2
DROPPED = 0.2
LONGEST = 90
"""Tokens; longer texts are left out of the training."""

WIDTH = 192
"""The directions of the token vectors, by their spread, in which the projection is sought."""


def basis(tokens: Mapping[str, Matrix], seed: int) -> Matrix:
    """The directions in which token vectors spread most, shape (384, `WIDTH`)."""
    chosen = np.random.default_rng(seed).permutation(sorted(tokens))[:2_500]
    rows = np.concatenate([tokens[text] for text in chosen]).astype(np.float64)
    _, directions = np.linalg.eigh(rows.T @ rows)
    found: Matrix = directions[:, ::-1][:, :WIDTH].astype(np.float32)
    return found


def train(
    given: Sequence[tuple[Pair, float]],
    tokens: Mapping[str, Matrix],
    within: Matrix,
    *,
    embedder: str,
    seed: int,
) -> Aligner:
    """An aligner that tells these pairs apart.

    Args:
        given: The pairs, and how much each counts.
        tokens: The texts' token vectors in `within`, shape (tokens, `WIDTH`).
        within: The basis.
        embedder: The revision of what made them.
        seed: Of the first weights, the order and what is dropped.
    """
    torch.manual_seed(seed)
    drawn = np.random.default_rng(seed)
    net = _Net()
    kept = [
        (pair, weight)
        for pair, weight in given
        if 0 < len(tokens[pair.one]) <= LONGEST and 0 < len(tokens[pair.other]) <= LONGEST
    ]
    sizes = np.array([len(tokens[one.one]) + len(tokens[one.other]) for one, _ in kept])
    steps = EPOCHS * -(-len(kept) // BATCH)
    descent = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    rate = torch.optim.lr_scheduler.OneCycleLR(descent, RATE, total_steps=steps, pct_start=0.1)
    for _ in range(EPOCHS):
        order = np.argsort(sizes + drawn.uniform(0, 8, len(kept)), kind="stable")
        batches = [order[at : at + BATCH] for at in range(0, len(kept), BATCH)]
        for number in drawn.permutation(len(batches)):
            loss = _loss(net, [kept[at] for at in batches[number]], tokens)
            descent.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            descent.step()
            rate.step()
    return net.eval().aligner(within, embedder)


def _loss(
    net: _Net, batch: Sequence[tuple[Pair, float]], tokens: Mapping[str, Matrix]
) -> torch.Tensor:
    right = torch.tensor([float(pair.same) for pair, _ in batch])
    counts = torch.tensor([weight for _, weight in batch])
    said = net(
        *_padded([tokens[pair.one] for pair, _ in batch]),
        *_padded([tokens[pair.other] for pair, _ in batch]),
    )
    each = nn.functional.binary_cross_entropy_with_logits(said, right, reduction="none")
    return (each * counts).sum() / counts.sum()


def _padded(rows: Sequence[Matrix]) -> tuple[torch.Tensor, torch.Tensor]:
    size = max(map(len, rows))
    values = np.zeros((len(rows), size, rows[0].shape[1]), dtype=np.float32)
    mask = np.zeros((len(rows), size), dtype=bool)
    for at, one in enumerate(rows):
        values[at, : len(one)] = one
        mask[at, : len(one)] = True
    return torch.from_numpy(values), torch.from_numpy(mask)


class _Net(nn.Module):
    """As `Aligner`, over padded batches."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(WIDTH, TOKENS, bias=False)
        self.compare = nn.Linear(3 * TOKENS + 2, HIDDEN)
        self.aggregate = nn.Linear(2 * HIDDEN, LAST)
        self.decide = nn.Linear(LAST, 1)
        self.sharpness = nn.Parameter(torch.tensor(2.2))
        self.dropped = nn.Dropout(DROPPED)
        with torch.no_grad():  # at first the directions of the greatest spread, a little blurred
            blur = torch.randn_like(self.projection.weight) * 0.05
            self.projection.weight.copy_(2.0 * torch.eye(TOKENS, WIDTH) + blur)

    def forward(
        self, one: torch.Tensor, ours: torch.Tensor, other: torch.Tensor, theirs: torch.Tensor
    ) -> torch.Tensor:
        one, other = self.projection(one), self.projection(other)
        cosines = _unit(one) @ _unit(other).transpose(1, 2)
        here = self._compared(one, other, theirs, cosines) * ours[:, :, None]
        there = self._compared(other, one, ours, cosines.transpose(1, 2)) * theirs[:, :, None]
        means = (_mean(here, ours) + _mean(there, theirs)) / 2.0
        peaks = torch.maximum(here.amax(1), there.amax(1))
        last = self.aggregate(self.dropped(torch.cat((means, peaks), -1)))
        said: torch.Tensor = self.decide(torch.relu(last)).squeeze(-1)
        return said

    def _compared(
        self, one: torch.Tensor, other: torch.Tensor, mask: torch.Tensor, cosines: torch.Tensor
    ) -> torch.Tensor:
        hidden = ~mask[:, None, :]
        drawn = torch.softmax((self.sharpness.exp() * cosines).masked_fill(hidden, -1e4), -1)
        found = drawn @ other
        best = cosines.masked_fill(hidden, -1.0).amax(-1, keepdim=True)
        own = (drawn * cosines).sum(-1, keepdim=True)
        seen = torch.cat((one - found, one * found, one, best, own), -1)
        return torch.relu(self.compare(self.dropped(seen)))

    def aligner(self, within: Matrix, embedder: str) -> Aligner:
        """The weights, rounded as they are written, for token vectors as they are embedded."""
        values = {
            "projection": within @ self.projection.weight.detach().numpy().T,
            "sharpness": self.sharpness.exp().detach().numpy(),
            "decide": self.decide.weight.detach().numpy()[0],
            "decide_bias": self.decide.bias.detach().numpy()[0],
        }
        for name in ("compare", "aggregate"):
            layer = getattr(self, name)
            values[name] = layer.weight.detach().numpy().T
            values[f"{name}_bias"] = layer.bias.detach().numpy()
        weights = {
            name: np.asarray(value, dtype=np.float64).round(DIGITS).astype(np.float32)
            for name, value in values.items()
        }
        return Aligner(weights=weights, embedder=embedder)


def _unit(rows: torch.Tensor) -> torch.Tensor:
    return nn.functional.normalize(rows, dim=-1, eps=1e-6)


def _mean(rows: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return rows.sum(1) / mask.sum(1, keepdim=True)
