"""One file, or one package, per estimator; importing this package registers them all."""

from protopfaith.registry import import_modules

import_modules(__name__, __path__)
