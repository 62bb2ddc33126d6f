"""Is it faithful? AOPC, agreement with the truth, axioms and sanity of explanations; classification."""

from protopfaith.evaluation.agreement import Truth, TruthAgreement, agreement, true_values
from protopfaith.evaluation.aopc import (
    aopc,
    insertion_score,
    paper_aopc,
    removal_curves,
    removal_ranks,
)
from protopfaith.evaluation.axioms import AXIOMS, AxiomCheck, check_axioms
from protopfaith.evaluation.explainers import EXPLAINERS, Explained, Options, default_explainers
from protopfaith.evaluation.faithfulness import faithfulness
from protopfaith.evaluation.sanity import prototype_health, randomization, stability
from protopfaith.evaluation.summary import ExplainerResult, Faithfulness
from protopfaith.explanation.regions import share_inside

__all__ = [
    "AXIOMS",
    "EXPLAINERS",
    "AxiomCheck",
    "Explained",
    "ExplainerResult",
    "Faithfulness",
    "Options",
    "Truth",
    "TruthAgreement",
    "agreement",
    "aopc",
    "check_axioms",
    "default_explainers",
    "faithfulness",
    "insertion_score",
    "paper_aopc",
    "prototype_health",
    "randomization",
    "removal_curves",
    "removal_ranks",
    "share_inside",
    "stability",
    "true_values",
]
