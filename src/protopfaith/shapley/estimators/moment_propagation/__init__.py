"""Estimators that propagate means and variances instead of evaluating coalitions.

`dasp` and `moment_path` are the estimators. The others say what a network sees when players are present at
random: an image of on/off variables (`presence`), drawn one way or another (`draws`).
"""

from protopfaith.registry import import_modules

import_modules(__name__, __path__)
