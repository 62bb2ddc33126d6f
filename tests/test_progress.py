import io
import re

import pytest
from rich.console import Console

from protopfaith.progress import Bar, told_time


def terminal() -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)


def drawn(bar: Bar) -> str:
    with bar.console.capture() as captured:
        bar.console.print(bar._progress.get_renderable())
    return re.sub(r"\x1b\[[0-9;]*m", "", captured.get())


def test_counts_what_is_done_of_what_is_expected():
    bar = Bar(console=terminal())
    bar.begin("birds [1]", total=4)
    bar.advance(3)
    bar.update(note="loss 0.5")
    text = drawn(bar)
    assert "birds [1]" in text  # no markup
    assert "3/4" in text
    assert "loss 0.5" in text


def test_a_new_stage_replaces_the_old_one():
    bar = Bar(console=terminal())
    report = bar.report("a.png")
    assert report is not None
    report("decision", 5, 10)
    report("sources", 1, 3)
    report("sources", 2, 8)
    text = drawn(bar)
    assert "a.png: sources" in text
    assert "2/8" in text
    assert "decision" not in text


def test_not_shown_means_silent():
    output = io.StringIO()
    with Bar(False, Console(file=output)) as bar:
        bar.begin("x", 2)
        bar.advance()
        bar.say("a line")
        assert bar.report("name") is None
    assert output.getvalue() == ""


def test_lines_are_said_without_a_terminal_but_no_bar_is_drawn():
    output = io.StringIO()
    with Bar(True, Console(file=output)) as bar:
        assert list(bar.track([1, 2], "counting", 2)) == [1, 2]
        bar.say("stage [done]")
    assert output.getvalue().strip() == "stage [done]"


def test_a_bar_inside_a_bar_does_no_harm():
    console = terminal()
    with Bar(console=console) as outer:
        outer.begin("outer", 1)
        with Bar(console=console) as inner:
            inner.begin("inner", 1)
        outer.advance()
        assert "outer" in drawn(outer)


def test_times_for_people() -> None:
    told = [told_time(seconds) for seconds in (1, 33, 80, 100, 3000, 9000)]
    assert told == ["10 s", "30 s", "80 s", "2 min", "50 min", "2 h"]


def test_without_a_terminal_a_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("protopfaith.progress.time.monotonic", lambda: clock[0])
    file = io.StringIO()
    with Bar(console=Console(file=file)) as bar:
        bar.begin("counting", total=100)
        for _ in range(100):
            clock[0] += 1
            bar.advance()
    lines = file.getvalue().splitlines()
    assert lines == [
        "counting: 30 of 100, about 70 s left",
        "counting: 60 of 100, about 40 s left",
        "counting: 90 of 100, about 10 s left",
    ]
