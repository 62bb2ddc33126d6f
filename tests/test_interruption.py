from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from protopfaith.interruption import Interruption

PROGRAM = "import runpy, sys; sys.argv = ['protopfaith', '--version']; "


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_both_signals_end_a_process_in_the_same_way(number: int, code: int) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    interruption = Interruption()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interruption.watch()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert interruption.code == code


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        Interruption().watch()
        os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, interrupt)


@pytest.mark.parametrize("moment", ["while the program is loaded", "in a library", "in a command"])
@pytest.mark.parametrize(("number", "code"), [(2, 130), (15, 143)])
def test_no_moment_has_a_traceback(moment: str, number: int, code: int) -> None:
    kill = f"__import__('os').kill(__import__('os').getpid(), {number})"
    swallowed = f"try: {kill}\n    except BaseException: raise ImportError('only once')"
    where = {
        "while the program is loaded": f"import typer\ntyper.Typer = lambda **_: {kill}\n",
        "in a library": f"import protopfaith.cli.app as a\ndef app():\n    {swallowed}\na.app = app\n",
        "in a command": f"import protopfaith.cli.app as a\na.app = lambda: {kill}\n",
    }[moment]
    text = f"import signal; signal.signal(2, signal.default_int_handler)\n{where}{PROGRAM}"
    text += "runpy.run_module('protopfaith', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr
