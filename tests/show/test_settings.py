from __future__ import annotations

from protopfaith.cli.explain import explain as command
from protopfaith.explanation import Explanation
from protopfaith.show.settings import settings_of

# --quick stands for other options; a mask is drawn.
NOT_IN_THE_RESULT = {"anonymous", "folder", "images", "out", "root", "quick", "no_coarse", "mask"}
NOT_IN_THE_RESULT |= {
    "bulk",
    "at_once",
    "dicom",
    "shard",
    "ray",
    "ship",
    "frame",
}  # a frame is told by the name


def test_every_option_that_changes_the_result_is_listed(explanation: Explanation) -> None:
    parameters = set(command.__annotations__) - NOT_IN_THE_RESULT - {"return"}
    renamed = {"target": "class", "output": "explain"}
    names = {"--" + renamed.get(name, name).replace("_", "-") for name in parameters}
    assert names <= set(settings_of(explanation))


def test_settings_say_what_was_used(explanation: Explanation) -> None:
    shown = settings_of(explanation)
    assert shown["--seed"] == str(explanation.settings["seed"])
    assert explanation.method in shown["--estimator"]
    assert f"{explanation.network['prototypes']} prototypes" in shown["network"]
