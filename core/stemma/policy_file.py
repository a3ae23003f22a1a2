"""A policy in a file, as `stemma calibrate` writes it and `stemma.open(policy=…)` takes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stemma.errors import UsageError
from stemma.files import write_whole
from stemma.policies.learning import must_agree
from stemma.policies.threshold import Policy, ThresholdPolicy

__all__ = ["PolicyFile"]

VERSION = 1
_LARGEST = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyFile:
    """A policy's setting, what it was found with, and where it is from.

    Args:
        policy: `threshold`, `verified` or `verified-strict`.
        setting: The threshold, or the bound on the error (`max_error`).
        embedder: The revision of the embedder that the setting was found with.
        verifier: The revision of the verifier; empty where the policy has none.
        weights: Of `verified`: the weights that each tenant begins with; empty: the package's.
        calibrated: Where it is from: plain JSON values.

    Raises:
        UsageError: There is no such policy, or an argument is of the wrong kind.
    """

    policy: str
    setting: float
    embedder: str
    verifier: str = ""
    weights: Mapping[str, float] = field(default_factory=dict, repr=False)
    calibrated: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("policy", "embedder", "verifier"):
            if not isinstance(getattr(self, name), str):
                raise UsageError(f"{name} must be a text")
        for name in ("weights", "calibrated"):
            if not isinstance(getattr(self, name), Mapping):
                raise UsageError(f"{name} must be a JSON object")
        self._made()

    @classmethod
    def read(cls, path: str | Path) -> PolicyFile:
        """The policy in a file.

        Raises:
            UsageError: It cannot be read, or is no policy.
        """
        try:
            if Path(path).stat().st_size > _LARGEST:
                raise UsageError(f"{path} is no policy file: it is too large")
            told = json.loads(Path(path).read_bytes())
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path} is no policy file: it is not JSON") from error
        if not isinstance(told, dict) or told.get("stemma policy") != VERSION:
            raise UsageError(f'{path} is no policy file: it has no "stemma policy": {VERSION}')
        try:
            return cls(
                policy=told["policy"],
                setting=told["setting"],
                embedder=told["embedder"],
                verifier=told["verifier"],
                weights=told["weights"],
                calibrated=told["calibrated"],
            )
        except KeyError as error:
            raise UsageError(f"{path} is no policy file: it has no {error}") from error
        except UsageError as error:
            raise UsageError(f"{path} is no policy file: {error}") from error

    def write(self, path: str | Path) -> None:
        """Write it, in place of what is there.

        Raises:
            UsageError: It cannot be written.
        """
        told = {
            "stemma policy": VERSION,
            "policy": self.policy,
            "setting": self.setting,
            "embedder": self.embedder,
            "verifier": self.verifier,
            "weights": dict(self.weights),
            "calibrated": dict(self.calibrated),
        }
        text = json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)
        try:
            write_whole(Path(path), [f"{text}\n".encode()])
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error

    def made(self, embedder: str) -> Policy:
        """The policy, for the embedder that it was calibrated with.

        Raises:
            UsageError: It was calibrated with another embedder, or another verifier.
        """
        policy = self._made()
        verifier = getattr(policy, "identity", {}).get("verifier", "")
        must_agree(
            {"embedder": self.embedder, "verifier": self.verifier},
            {"embedder": embedder, "verifier": verifier},
        )
        return policy

    def _made(self) -> Policy:
        if self.policy == "threshold":
            return ThresholdPolicy(self.setting)
        if self.policy == "verified-strict":
            from stemma.policies.strict import StrictPolicy  # noqa: PLC0415 - only what is used

            return StrictPolicy(self.setting, embedder=self.embedder)
        if self.policy == "verified":
            from stemma.policies.verified import VerifiedPolicy  # noqa: PLC0415 - reads its weights

            prior = dict(self.weights) if self.weights else None
            return VerifiedPolicy(self.setting, embedder=self.embedder, prior=prior)
        raise UsageError(f"unknown policy {self.policy!r}")
