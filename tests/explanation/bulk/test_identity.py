"""Whether an image is the one that was explained: by its file, or else by what the network says of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, explain_bulk, open_bulk
from protopfaith.explanation.bulk.identity import fingerprint
from protopfaith.explanation.bulk.rebuild import rebuild
from protopfaith.files import sha256
from protopfaith.training import Run
from tests.explanation.bulk.conftest import QUICK, rows


def test_a_row_has_the_hash_of_its_file_in_a_folder_or_a_tar(
    bulk: Bulk, run: Run, tar: Path, pictures: Path, tmp_path: Path
) -> None:
    packed = explain_bulk(run, [tar], tmp_path / "out", **QUICK)
    for name in ("1.png", "3.png"):
        known = sha256(pictures / "ward1" / name)
        assert rows(bulk)[name]["file_sha256"] == rows(packed)[name]["file_sha256"] == known
    assert rows(bulk)["broken.png"]["file_sha256"] is None


def test_a_frame_is_not_another_one_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_bytes(b"pages")
    whole, first, third = (fingerprint(tmp_path / name) for name in ("a.tif", "a.tif#1", "a.tif#3"))
    assert whole == first == sha256(tmp_path / "a.tif")
    assert third == f"{whole}#3"


def test_results_without_names_have_no_hash_and_are_told_by_what_the_network_says(
    run: Run, pictures: Path, tmp_path: Path
) -> None:
    images = [pictures / "ward0" / "0.png", pictures / "ward1" / "3.png"]
    bulk = explain_bulk(run, images, tmp_path / "out", anonymous=True, **QUICK)
    assert {row["file_sha256"] for row in rows(bulk).values()} == {None}
    assert rebuild(bulk, "image-0001").name == "image-0001"
    with pytest.raises(ProtoPFaithError, match=r"another image than the one that .* calls image-0001"):
        rebuild(bulk, "image-0001", file=images[1])


def test_data_sets_of_earlier_versions_have_no_hashes(bulk: Bulk, pictures: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bulk.folder, tmp_path / "out")
    (part,) = folder.glob("part-*.parquet")
    parquet.write_table(parquet.read_table(part).drop_columns(["file_sha256"]), part)
    old = open_bulk(folder)
    assert old.table(["file_sha256"])["file_sha256"].null_count == 5
    assert rebuild(old, "3.png").name == "3.png"
    with pytest.raises(ProtoPFaithError, match=r"another image than the one that .* calls 3\.png"):
        rebuild(old, "3.png", file=pictures / "ward0" / "0.png")


def test_a_row_that_says_other_probabilities_is_not_of_this_image(bulk: Bulk, tmp_path: Path) -> None:
    folder = shutil.copytree(bulk.folder, tmp_path / "out")
    (part,) = folder.glob("part-*.parquet")
    table = parquet.read_table(part)
    turned = [one and one[::-1] for one in table["probabilities"].to_pylist()]
    place, field = table.column_names.index("probabilities"), table.schema.field("probabilities")
    parquet.write_table(table.set_column(place, field, pa.array(turned, field.type)), part)
    with pytest.raises(ProtoPFaithError, match=r"another image than the one .* or the row was"):
        rebuild(open_bulk(folder), "3.png")
