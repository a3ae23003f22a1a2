"""Judges: two texts in, how likely they mean the same out. Importing this loads no model library.

A judge decides what a policy cannot: whether a stored question asks for the same as this one
(`stemma.open(judge=…)`), or whether a fresh answer says the same as a stored one
(`SameAnswer(judge=…)`). See `docs/judges.md`.
"""

from stemma.judges.band import GreyBand
from stemma.judges.cross_encoder import CrossEncoderJudge
from stemma.judges.curve import Curve
from stemma.judges.llm import LLMJudge
from stemma.judges.nli import NLIJudge
from stemma.judges.protocol import FunctionJudge, Judge

__all__ = [
    "CrossEncoderJudge",
    "Curve",
    "FunctionJudge",
    "GreyBand",
    "Judge",
    "LLMJudge",
    "NLIJudge",
]
