import io
import re

from rich.console import Console

from protopfaith.progress import Bar


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
