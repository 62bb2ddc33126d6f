"""Why this class, and what is this prototype? Answers that a person can read, check and pass on.

>>> from protopfaith.explanation import Explainer
>>> explanation = Explainer("runs/birds").explain("bird.png", precision=0.1)
>>> explanation.report("bird.html").name
'bird.html'
"""

from protopfaith.explanation.bulk import Bulk, Summary, explain_bulk, open_bulk, summarize
from protopfaith.explanation.captum import ShapleyAttribution, quantus_explainer
from protopfaith.explanation.cases import Batch, Failure, explain_files
from protopfaith.explanation.catalog.catalog import (
    Catalog,
    ClassPortrait,
    PrototypePortrait,
    explain_prototypes,
)
from protopfaith.explanation.catalog.distributed import explain_sources
from protopfaith.explanation.decomposition import Decomposition, class_row, decompose, paper_scores
from protopfaith.explanation.explainer import Explainer, explain
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence, SecondBaseline
from protopfaith.explanation.findings import Finding
from protopfaith.explanation.function import ExplainedOutput, FunctionExplanation, explain_function
from protopfaith.explanation.protopnet_map import crop_box, protopnet_maps
from protopfaith.explanation.regions import Agreement, RegionValues
from protopfaith.explanation.saving import load as load_explanation
from protopfaith.explanation.saving import load_function_explanation
from protopfaith.explanation.settings import Settings
from protopfaith.explanation.sources import SourcePart, SourceSide

__all__ = [
    "Agreement",
    "Batch",
    "Bulk",
    "Catalog",
    "ClassPortrait",
    "Decomposition",
    "ExplainedOutput",
    "Explainer",
    "Explanation",
    "Failure",
    "Finding",
    "FunctionExplanation",
    "PrototypeEvidence",
    "PrototypePortrait",
    "RegionValues",
    "SecondBaseline",
    "Settings",
    "ShapleyAttribution",
    "SourcePart",
    "SourceSide",
    "Summary",
    "class_row",
    "crop_box",
    "decompose",
    "explain",
    "explain_bulk",
    "explain_files",
    "explain_function",
    "explain_prototypes",
    "explain_sources",
    "load_explanation",
    "load_function_explanation",
    "open_bulk",
    "paper_scores",
    "protopnet_maps",
    "quantus_explainer",
    "summarize",
]
