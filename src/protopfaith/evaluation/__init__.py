"""Is it faithful? AOPC, agreement with the truth, axioms and sanity of explanations; classification."""

from protopfaith.correlation import share_inside
from protopfaith.evaluation.distributed import measure_share
from protopfaith.evaluation.explainers import EXPLAINERS, Explained, Options, default_explainers
from protopfaith.evaluation.external import evaluate_external
from protopfaith.evaluation.external_findings import ExternalFindings, evaluate_external_findings
from protopfaith.evaluation.external_results import ExternalEvaluation
from protopfaith.evaluation.findings import evaluate_findings
from protopfaith.evaluation.measure import faithfulness
from protopfaith.evaluation.metrics.axioms import AXIOMS, AxiomCheck, check_axioms
from protopfaith.evaluation.metrics.bootstrap import Bootstrap, Interval, bootstrap
from protopfaith.evaluation.metrics.findings import FindingScores, FindingsEvaluation, judge_findings
from protopfaith.evaluation.metrics.removal import (
    aopc,
    insertion_score,
    paper_aopc,
    removal_curves,
    removal_ranks,
)
from protopfaith.evaluation.metrics.sanity import prototype_health, randomization, stability
from protopfaith.evaluation.metrics.truth import Truth, TruthAgreement, compare_with_truth, true_values
from protopfaith.evaluation.parts import evaluate_parts
from protopfaith.evaluation.parts_results import PartScores, PartsEvaluation
from protopfaith.evaluation.results import ExplainerResult, Faithfulness

__all__ = [
    "AXIOMS",
    "EXPLAINERS",
    "AxiomCheck",
    "Bootstrap",
    "Explained",
    "ExplainerResult",
    "ExternalEvaluation",
    "ExternalFindings",
    "Faithfulness",
    "FindingScores",
    "FindingsEvaluation",
    "Interval",
    "Options",
    "PartScores",
    "PartsEvaluation",
    "Truth",
    "TruthAgreement",
    "aopc",
    "bootstrap",
    "check_axioms",
    "compare_with_truth",
    "default_explainers",
    "evaluate_external",
    "evaluate_external_findings",
    "evaluate_findings",
    "evaluate_parts",
    "faithfulness",
    "insertion_score",
    "judge_findings",
    "measure_share",
    "paper_aopc",
    "prototype_health",
    "randomization",
    "removal_curves",
    "removal_ranks",
    "share_inside",
    "stability",
    "true_values",
]
