"""The default estimator: Owen sampling with allocation, a surrogate and shrinkage, one file for each."""

from protopfaith.shapley.estimators.adaptive_owen import estimator as estimator  # registers it
