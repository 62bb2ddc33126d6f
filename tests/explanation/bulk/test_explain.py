from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, Explainer, explain_bulk, open_bulk
from protopfaith.explanation.bulk import dataset, explain
from protopfaith.training import Run
from tests.explanation.bulk.conftest import QUICK, rows, same


def test_every_image_has_a_row_and_bad_ones_a_reason(bulk: Bulk) -> None:
    found = rows(bulk)
    assert list(found) == ["0.png", "2.png", "broken.png", "1.png", "3.png"]
    assert bulk.is_finished()
    assert [name for name, _ in bulk.failures()] == ["broken.png"]
    assert found["broken.png"]["values"] is None
    assert str(bulk.folder.parent) not in found["broken.png"]["error"]
    assert not (bulk.folder / dataset.OPEN).exists()


def test_a_row_is_what_explain_gives(bulk: Bulk, run: Run, pictures: Path) -> None:
    for name, row in rows(bulk).items():
        if row["error"] is not None:
            continue
        alone = Explainer(run).explain(next(pictures.rglob(name)), **QUICK, sources=False)
        assert torch.equal(torch.tensor(row["values"]), alone.class_map.values.float())
        assert torch.equal(torch.tensor(row["standard_errors"]), alone.class_map.standard_errors.float())
        assert math.isclose(row["total"], alone.class_map.total)
        assert row["class"] == alone.class_names[alone.target]
        assert [one["prototype"] for one in row["prototypes"]] == [one.prototype for one in alone.evidence]
        assert row["evaluations"] == alone.evaluations


def test_a_generator_of_paths_is_a_list(run: Run, pictures: Path, tmp_path: Path) -> None:
    paths = (pictures / "ward1" / name for name in ("3.png",))
    assert list(rows(explain_bulk(run, paths, tmp_path, **QUICK))) == ["3.png"]


def test_an_image_does_not_depend_on_those_beside_it(
    bulk: Bulk, run: Run, pictures: Path, tmp_path: Path
) -> None:
    alone = explain_bulk(run, [pictures / "ward1" / "3.png"], tmp_path, **QUICK)
    first, second = rows(alone)["3.png"], rows(bulk)["3.png"]
    for row in (first, second):
        del row["seconds"], row["position"]
    assert first == second


def test_shards_give_the_same_without_a_lock(
    bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bulk.table().drop_columns(["seconds"])
    for module in (dataset, explain):
        monkeypatch.setattr(module, "PART", 2)
    whole = explain_bulk(run, [pictures], tmp_path / "whole", **QUICK)
    for number in (3, 1, 2):
        shared = explain_bulk(run, [pictures], tmp_path / "shards", shard=(number, 3), **QUICK)
        assert shared.is_finished() == (number == 2)
    same(whole, shared)
    assert whole.table().drop_columns(["seconds"]).equals(expected)


def test_an_interruption_loses_only_what_was_being_computed(
    bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = explain.Answering.__call__, []

    def interrupted(self: explain.Answering, position: int, item: object) -> dict:
        asked.append(position)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(self, position, item)  # type: ignore[arg-type]

    monkeypatch.setattr(explain.Answering, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explain_bulk(run, [pictures], tmp_path, **QUICK)
    assert not open_bulk(tmp_path).is_finished()
    again = explain_bulk(run, [pictures], tmp_path, **QUICK)
    assert asked == [0, 1, 2, 2, 3, 4]
    same(bulk, again)
    explain_bulk(run, [pictures], tmp_path, **QUICK)
    assert len(asked) == 6


def test_rows_that_are_damaged_are_made_again(bulk: Bulk, run: Run, pictures: Path, tmp_path: Path) -> None:
    begun = dataset.begin(tmp_path, bulk.manifest)
    for position in range(3):
        begun.keep(bulk.table().to_pylist()[position])
    next(iter(begun.open_rows(0).values())).write_bytes(b"PAR1")
    same(bulk, explain_bulk(run, [pictures], tmp_path, **QUICK))


@pytest.mark.parametrize("change", [{"budget": 160}, {"target": 1}, {"baseline": "blur:2"}, {"seed": 1}])
def test_another_request_needs_another_folder(bulk: Bulk, run: Run, pictures: Path, change: dict) -> None:
    with pytest.raises(ProtoPFaithError, match="with other settings"):
        explain_bulk(run, [pictures], bulk.folder, **{**QUICK, **change})


def test_other_images_need_another_folder(bulk: Bulk, run: Run, pictures: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="of other images"):
        explain_bulk(run, [pictures / "ward1"], bulk.folder, **QUICK)


def test_names_can_be_numbers(run: Run, pictures: Path, tmp_path: Path) -> None:
    bulk = explain_bulk(run, [pictures], tmp_path / "out", anonymous=True, **QUICK)
    assert list(rows(bulk)) == [f"image-{number:04d}" for number in range(1, 6)]
    for path in (tmp_path / "out").iterdir():
        assert b"ward" not in path.read_bytes()
        assert str(tmp_path).encode() not in path.read_bytes()
    assert (tmp_path / "out-where.parquet").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1, 0), "x", None, (1.5,), (1, 10**9)])
def test_wrong_shards_are_refused(run: Run, pictures: Path, tmp_path: Path, shard: object) -> None:
    with pytest.raises(ProtoPFaithError, match=r"A shard is i/n|'shard' of explain_bulk"):
        explain_bulk(run, [pictures], tmp_path / "out", shard=shard, **QUICK)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("at_once", [2, 3])
def test_images_at_the_same_time_are_what_they_are_alone(
    bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, at_once: int
) -> None:
    same(bulk, explain_bulk(run, [pictures], tmp_path, at_once=at_once, **QUICK))


@pytest.mark.parametrize("broken", [0, 1, 3, 6])
def test_images_go_alone_until_one_succeeds(broken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = {}

    def answer(self: explain.Answering, position: int, item: object) -> dict:
        threads[position] = threading.current_thread()
        return {"position": position, "error": "broken" if position < broken else None}

    monkeypatch.setattr(explain.Answering, "__call__", answer)
    monkeypatch.setattr(explain.Answering, "settle", lambda self: None)
    answering = object.__new__(explain.Answering)
    found = answering.several([(position, None) for position in range(6)], at_once=2)  # type: ignore[misc]
    assert [row["position"] for row in found] == list(range(6))
    alone = [position for position in range(6) if threads[position] is threading.current_thread()]
    assert alone == list(range(6))[: broken + 1]


def test_an_interruption_ends_all_that_is_done_at_the_same_time(
    bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = explain.Work.take

    def interrupted(self: explain.Work, row: dict) -> None:
        real(self, row)
        raise KeyboardInterrupt

    monkeypatch.setattr(explain.Work, "take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explain_bulk(run, [pictures], tmp_path, at_once=2, **QUICK)
    monkeypatch.undo()
    same(bulk, explain_bulk(run, [pictures], tmp_path, at_once=2, **QUICK))


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_device_that_failed_ends_the_run_and_spoils_no_row(
    bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, at_once: int
) -> None:
    real, failed = Explainer.explain, []

    def failing(self: Explainer, image: Path, **options: object) -> object:
        if failed or image.name == "1.png":
            failed.append(image.name)
            raise RuntimeError("CUDA error: device-side assert triggered")
        return real(self, image, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Explainer, "explain", failing)
    monkeypatch.setattr(explain, "has_failed", lambda device: bool(failed))
    with pytest.raises(ProtoPFaithError, match=r"The device cpu failed.*give the same command again"):
        explain_bulk(run, [pictures], tmp_path, at_once=at_once, **QUICK)
    assert failed[0] == "1.png"
    monkeypatch.undo()
    same(bulk, explain_bulk(run, [pictures], tmp_path, at_once=at_once, **QUICK))


def test_easy_images_stop_early_and_hard_ones_say_so(run: Run, pictures: Path, tmp_path: Path) -> None:
    usual = explain_bulk(run, [pictures], tmp_path / "usual", players=6)
    found = [row for row in rows(usual).values() if row["error"] is None]
    assert {row["evaluations"] < 1024 for row in found if row["reached"]} <= {True}
    assert all(row["precision"] <= 0.2 for row in found if row["reached"])
    assert all(row["evaluations"] >= 1000 for row in found if not row["reached"])
    assert usual.hard() == sum(not row["reached"] for row in found)
    strict = explain_bulk(run, [pictures], tmp_path / "strict", players=6, budget=256, precision=1e-6)
    assert strict.hard() == len(found)
    fixed = explain_bulk(run, [pictures], tmp_path / "fixed", players=6, budget=256)
    assert fixed.hard() == 0
    assert {row["evaluations"] for row in rows(fixed).values() if row["error"] is None} == {256}


@pytest.mark.parametrize("at_once", [0, -1, 65, 1.5, "two"])
def test_a_number_at_a_time_makes_sense(run: Run, pictures: Path, tmp_path: Path, at_once: object) -> None:
    with pytest.raises(ProtoPFaithError, match=r"at a time|'at_once' of explain_bulk"):
        explain_bulk(run, [pictures], tmp_path, at_once=at_once, **QUICK)  # type: ignore[arg-type]
