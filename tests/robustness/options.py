"""Options that make no sense, for every command."""

from __future__ import annotations

from tests.robustness.harness import Case, Place

QUICK = ["--players", "12", "--budget", "64", "--no-sources", "--device", "cpu"]
FAITHFUL = ["--players", "12", "--budget", "64", "--truth-budget", "0", "--steps", "5", "--checked", "1"]
HUGE = "1" + "0" * 30

WRONG_NUMBERS = ("-1", HUGE, "nan", "1.5", "x", "")


def explain(*options: str, says: tuple[str, ...] = ()) -> Case:
    def command(place: Place) -> list[object]:
        return ["explain", place.run, place.image, *QUICK, *options]

    return Case(f"explain {' '.join(options)}", command, says=says)


def on_run(command: str, *options: str, good: bool = False, says: tuple[str, ...] = ()) -> Case:
    def arguments(place: Place) -> list[object]:
        more = [place.image] if command in ("explain", "predict") else []
        return [command, place.run, *more, *options]

    return Case(f"{command} {' '.join(options)}", arguments, good=good, says=says)


def bare(*arguments: str, good: bool = False, says: tuple[str, ...] = ()) -> Case:
    return Case(" ".join(arguments) or "nothing", lambda place: list(arguments), good=good, says=says)


def train(*options: str, says: tuple[str, ...] = ()) -> Case:
    def command(place: Place) -> list[object]:
        place.copy("tiny.yaml")
        return ["train", "tiny.yaml", "--root", place.images, "--out", "new", *options]

    def no_folder(place: Place) -> None:
        assert not (place / "new").exists(), "a run folder was left that blocks the next try"

    return Case(f"train {' '.join(options)}", command, says=says, check=no_folder)


CASES = [
    # numbers of every kind
    *(explain("--players", value) for value in ("-1", "0", HUGE, "nan", "1.5", "x", "", "superpixels:0")),
    *(explain("--players", value) for value in ("superpixels:-3", "superpixels:x", f"superpixels:{HUGE}")),
    *(explain("--players", value) for value in ("superpixels:", "superpixels", "windows:3", "12,12,12")),
    *(explain("--budget", value) for value in ("-1", "0", "1", HUGE, "nan", "1.5", "x", "")),
    *(explain("--precision", value) for value in ("-1", "0", "nan", "inf", "-inf", "x", "", "2", HUGE)),
    *(explain("--seed", value) for value in (HUGE, "-" + HUGE, "nan", "x", "", "1.5", "-1")),
    *(explain("--baseline", v) for v in ("blur:inf", "blur:nan", "blur:-1", "blur:0", "blur:x", "blur:1e30")),
    *(
        explain("--baseline", v)
        for v in ("color:nan", "color:inf", "color:1,2", "color:x", "zero:1", "nothing")
    ),
    *(explain("--baseline", v) for v in ("", "blur:", "color:", "mean:x", "color:1e300")),
    *(explain("--second-baseline", value) for value in ("blur:inf", "nothing", "")),
    *(
        explain("--device", value)
        for value in ("meta", "cuda:99", "nothing", "", "cpu:7", "mkldnn", "vulkan")
    ),
    *(explain("--autocast", value) for value in ("float8", "", "int8", "bfloat")),
    *(explain("--estimator", value) for value in ("defalut", "", "default,owen")),
    *(explain("--option", value) for value in ("x", "=3", "nothing=3", "shrinkage=maybe", "", "sizes=8")),
    explain("--estimator", "dasp", "--option", "sizes=0"),
    explain("--estimator", "dasp", "--option", "sizes=-1"),
    explain("--estimator", "dasp", "--option", "sizes=[1, 2"),
    explain("--estimator", "moment_path", "--option", "nodes=0"),
    explain("--estimator", "moment_path", "--option", f"nodes={HUGE}"),
    explain("--estimator", "exact", "--players", "1"),
    *(explain("--class", value) for value in ("purple", "", "-1", "99", "bleu")),
    *(explain("--versus", value) for value in ("purple", "")),
    explain("--class", "blue", "--versus", "blue"),
    *(on_run("predict", "--batch-size", v, "--device", "cpu") for v in ("0", "-3", HUGE, "x", "nan")),
    *(on_run("evaluate", "--batch-size", v, "--device", "cpu") for v in ("0", HUGE, "x")),
    *(on_run("evaluate", "--split", v, "--device", "cpu") for v in ("tests", "", "../test", "TRAIN")),
    *(on_run("evaluate", "--device", v) for v in ("meta", "tpu", "")),
    *(on_run("evaluate", "--data", v) for v in ("", "nowhere", "bird", "a\nb", "x" * 5000, "/dev/null")),
    *(
        on_run("evaluate", "--data", "birds", *more)
        for more in (["--groups", "x.csv"], ["--subgroups", "sex"])
    ),
    *(on_run("evaluate", "--data", "folder", "--root", v) for v in ("nowhere", "", "/dev/null")),
    *(on_run("evaluate", "--data", ".", "--resamples", v) for v in ("0", "-1", "x", HUGE)),
    *(on_run("evaluate", *more) for more in (["--groups", "x.csv"], ["--subgroups", "sex"])),
    on_run("parts", says=("part locations",)),
    *(on_run("parts", "--explainers", v) for v in ("", "our", "ours,,protopnet")),
    *(on_run("parts", o, v) for o in ("--classes", "--images", "--budget") for v in ("0", "-1", "x", HUGE)),
    *(on_run("parts", "--noise", v) for v in ("-1", "nan", "inf", "x")),
    *(on_run("parts", "--split", v) for v in ("tests", "")),
    *(on_run("predict", "--device", v) for v in ("meta", "xpu:0")),
    *(on_run("predict", "--frame", v) for v in ("0", "-1", "x", "", HUGE, "2", "all,1")),
    *(explain("--frame", v) for v in ("0", "x", "7")),
    *(on_run("prototypes", "--nearest", v, *QUICK[:4]) for v in ("0", "-1", HUGE, "x")),
    *(on_run("prototypes", "--players", v, "--budget", "64") for v in ("0", "superpixels:0", "x")),
    *(on_run("prototypes", "--device", v, *QUICK[:4]) for v in ("meta",)),
    *(
        on_run("prune", "--prototypes", v)
        for v in ("", "x", "99", "-1", "0,1,2,3,4,5", "0;1", "0,", HUGE, "0,1")
    ),
    *(on_run("prune", "--tolerance", v) for v in ("-1", "nan", "inf", "x")),
    *(on_run("prune", "--leaves", v) for v in ("-1", "2", "nan", "x", "", HUGE)),
    on_run("prune", "--leaves", "0.1", says=("no leaves",)),
    *(train(f"model.family={v}") for v in ("prototwig", "1", "", "[]")),
    *(train("model.family=prototree", f"tree.depth={v}") for v in ("0", "-1", "12", "1.5", "x", HUGE)),
    train("model.family=prototree", "model.activation=unit", says=("sigmoid",)),
    *(train("model.family=prototree", f"tree.prune={v}") for v in ("-1", "2", "nan", "x")),
    *(train("model.family=prototree", f"tree.milestones={v}") for v in ("x", "[2]", "[-1]", "[a]", "0.5")),
    on_run("prune", "--device", "meta", "--prototypes", "0"),
    *(on_run("faithfulness", "--prototypes", v, *FAITHFUL) for v in ("0", "-1", "x", HUGE[:0])),
    *(
        on_run("faithfulness", *FAITHFUL, "--explainers", v)
        for v in ("", "our", ",", "ours,,owen", "ours;owen")
    ),
    *(
        on_run("faithfulness", *FAITHFUL, "--limit", v)
        for v in ("ours", "ours=0", "ours=-1", "x=3", "=", "ours=x")
    ),
    *(on_run("faithfulness", *FAITHFUL[:-4], "--steps", v) for v in ("0", "1", "-1", HUGE, "x")),
    *(on_run("faithfulness", *FAITHFUL, "--players", v) for v in ("0", "-1", "100000", "x", "24")),
    *(on_run("faithfulness", *FAITHFUL, "--budget", v) for v in ("0", "1", "-5", "x")),
    *(on_run("faithfulness", *FAITHFUL, "--truth-budget", v) for v in ("-1", "x")),
    *(on_run("faithfulness", *FAITHFUL, "--sizes", v) for v in ("0", HUGE, "x")),
    *(on_run("faithfulness", *FAITHFUL, "--checked", v) for v in ("0", "-1", "x")),
    *(on_run("faithfulness", *FAITHFUL, "--seed", v) for v in (HUGE, "x", "-1")),
    *(on_run("faithfulness", *FAITHFUL, "--autocast", v) for v in ("float8", "")),
    *(on_run("faithfulness", *FAITHFUL, "--device", v) for v in ("meta",)),
    # data
    *(bare("data", "show", "birds", "--size", v) for v in ("0", "-1", "4", HUGE, "x", "100000", "7")),
    *(bare("data", "show", "birds", "--rows", v) for v in ("0", HUGE, "x")),
    *(bare("data", "show", "birds", "--columns", v) for v in ("0", "-1", HUGE, "x", "100000000")),
    *(bare("data", "show", "birds", "--seed", v) for v in (HUGE, "x", "-1")),
    *(bare("data", "show", "birds", "--size", "16", "--split", v) for v in ("", "tst", "all")),
    *(bare("data", "prepare", "birds", "--size", v) for v in ("0", HUGE, "x", "200000")),
    *(bare("data", "prepare", name, says=("did you mean",)) for name in ("bird", "foldr", "cubs")),
    bare("data", "prepare", ""),
    bare("data", "prepare", "cub", says=("--root",)),
    bare("data", "prepare", "folder", "--root", "nowhere", says=("nowhere",)),
    bare("data", "prepare", "birds", "--root", "."),
    bare("data", "nothing"),
    # the program itself
    bare("--import", ""),
    bare("--import", "no_such_module", "recipes", says=("no_such_module",)),
    bare("--import", "os path", "recipes"),
    bare("--import", "../x", "recipes"),
    bare("--import", ".relative", "recipes"),
    bare("--nothing"),
    bare("nothing"),
    bare("explain"),
    bare("predict", "nowhere", "x.png", says=("nowhere",)),
    bare("evaluate", "nowhere", says=("nowhere",)),
    bare("explain", "nowhere", "x.png", says=("nowhere",)),
    bare("prototypes", "nowhere", says=("nowhere",)),
    bare("parts", "nowhere", says=("nowhere",)),
    bare("faithfulness", "nowhere", says=("nowhere",)),
    bare("prune", "nowhere", says=("nowhere",)),
    bare("evaluate", "/dev/null"),
    bare("evaluate", ""),
    bare("evaluate", "x" * 5000),
    bare("evaluate", "a\nb"),
    on_run("predict", "--root", "nowhere"),
    # the explorer
    bare("serve"),
    bare("serve", "nowhere", says=("nowhere",)),
    on_run("serve", "nowhere-else", says=("nowhere-else",)),
    *(on_run("serve", "--port", value, "--no-browser") for value in ("-1", "65536", "x", "", HUGE, "1.5")),
    *(
        on_run("serve", "--host", value, "--port", "0", "--no-browser")
        for value in ("no.such.host.invalid", "256.1.1.1", "a b", "x" * 300)
    ),
    *(
        on_run("serve", "--token", value, "--port", "0", "--no-browser", says=("token",))
        for value in ("", "short", "with spaces in it", "töken-with-ümlaut")
    ),
    on_run("serve", "--root", "nowhere", says=("nowhere",)),
    on_run("serve", "--device", "xpu:0", "--port", "0", "--no-browser"),
    # training
    bare("train"),
    bare("train", "--resume"),
    bare("train", "--resume", "--out", "nowhere", says=("nowhere",)),
    bare("train", "bird", says=("did you mean",)),
    bare("train", "nowhere.yaml", says=("nowhere.yaml",)),
    bare("train", "."),
    bare("train", ""),
    bare("train", "birds", "--grid", "cub", "--folds", "0", "--out", "new"),
    bare("train", "--grid", "nothing", "--out", "new", says=("nothing",)),
    bare("train", "--grid", "", "--out", "new"),
    train("--folds", ""),
    train("--folds", "x"),
    train("--folds", "5"),
    train("--folds", "-1"),
    train("--folds", "0,0"),
    train("--folds", "0,9"),
    train("--folds", "0,1,2,3,4,5,6"),
    train("--folds", "all,0"),
    train("--grid", "cub", "--folds", "0"),
    train("--at-once", "2"),
    train("--folds", "0", "--at-once", "0"),
    train("--folds", "0", "--at-once", "x"),
    train("--folds", "0", "--at-once", "1000"),
    train("--folds", "0", "--at-once", "2", "compute.devices=2"),
    train("--weights", "nowhere.pth", says=("nowhere.pth",)),
    train("--weights", ""),
    train("--weights", "."),
    train("--root", "nowhere", says=("nowhere",)),
]
