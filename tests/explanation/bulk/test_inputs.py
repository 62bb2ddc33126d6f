from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protopfaith.data.images import read_image
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import explain_bulk
from protopfaith.explanation.bulk.inputs import list_fingerprint, list_items
from protopfaith.training import Run
from tests.data.dicom_files import write_dicom
from tests.explanation.bulk.conftest import QUICK, rows


def test_a_tar_holds_the_same_images(run: Run, pictures: Path, tar: Path, tmp_path: Path) -> None:
    from_files = rows(explain_bulk(run, sorted(pictures.rglob("?.png")), tmp_path / "files", **QUICK))
    from_tar = rows(explain_bulk(run, [tar], tmp_path / "tar", **QUICK))
    assert len(from_tar) == 5
    assert sum(row["error"] is not None for row in from_tar.values()) == 1
    for name, row in from_files.items():
        assert from_tar[name]["values"] == row["values"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_list_may_have_boxes(run: Run, pictures: Path, tmp_path: Path, suffix: str) -> None:
    import pandas as pd

    names = [path.relative_to(pictures).as_posix() for path in sorted(pictures.rglob("?.png"))]
    half = pd.DataFrame(
        {"file": names, "left": 0.0, "top": 0.0, "right": [24.0, 24, 24, None], "bottom": 48.0}
    )
    half.loc[3, ["left", "top", "bottom"]] = None
    table = pd.concat([half, half.assign(left=half["left"] + 24, right=half["right"] + 24)])  # a row per box
    listed = pictures / f"list{suffix}"
    table.to_csv(listed, index=False) if suffix == ".csv" else table.to_parquet(listed)
    found = rows(explain_bulk(run, [listed], tmp_path / "out", **QUICK))
    listed.unlink()
    assert len(found) == 4
    whole = [row for row in found.values() if row["box_share"] is not None]
    assert len(whole) == 3
    assert all(row["box_share"] == 1.0 and row["inside"] in (1.0, None) for row in whole)


def test_an_image_has_the_boxes_of_all_its_rows(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(
        "file,left,top,right,bottom\na.png,0,0,2,2\nb.png,,,,\na.png,5,5,8,8\na.png,0,0,2,2\n"
    )
    first, second = list_items([tmp_path / "list.csv"])
    assert (first.name, first.boxes) == ("a.png", ((0, 0, 2, 2), (5, 5, 8, 8)))
    assert (second.name, second.boxes) == ("b.png", ())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_list_may_have_masks(run: Run, pictures: Path, tmp_path: Path, suffix: str) -> None:
    import pandas as pd

    there = np.zeros((3, 48, 48), bool)
    there[0, :20, :30] = there[1, 30:, 5:] = there[2, 40:, :9] = True
    for number, one in enumerate(there):
        Image.fromarray(one.astype(np.uint8)).save(tmp_path / f"mask{number}.png")  # 1, not 255
    files = [str(pictures / name) for name in ("ward0/0.png", "ward0/2.png", "ward0/0.png", "ward1/1.png")]
    table = pd.DataFrame({"file": files, "Mask": ["mask0.png", "mask1.png", "mask2.png", None]})
    table = table.assign(left=0.0, top=0.0, right=48.0, bottom=48.0)  # the mask counts where there is one
    listed = tmp_path / f"list{suffix}"
    table.to_csv(listed, index=False) if suffix == ".csv" else table.to_parquet(listed)
    found = rows(explain_bulk(run, [listed], tmp_path / "out", **QUICK))
    for name, mask in {"0.png": there[0] | there[2], "2.png": there[1]}.items():
        assert found[name]["box_share"] == pytest.approx(mask.mean())
        assert found[name]["inside"] == pytest.approx(slow_share_inside(found[name]["values"], mask))
    assert found["1.png"]["box_share"] == 1.0


def slow_share_inside(values: list[float], mask: np.ndarray) -> float:
    """Pixel by pixel: every window of 16 x 16 spreads what speaks for the class evenly on its pixels."""
    inside = total = 0.0
    for y in range(48):
        for x in range(48):
            here = max(values[(y // 16) * 3 + x // 16], 0.0) / 256
            total += here
            inside += here * mask[y, x]
    return inside / total


def test_a_bad_mask_is_said_in_the_row_of_its_image(run: Run, pictures: Path, tmp_path: Path) -> None:
    Image.new("L", (48, 48)).save(tmp_path / "empty.png")
    Image.new("L", (6, 6), 255).save(tmp_path / "small.png")
    (tmp_path / "jane.png").write_bytes(b"no image")
    files = [pictures / "ward0" / "0.png", pictures / "ward0" / "2.png", pictures / "ward1" / "1.png"]
    masks = ["empty.png", "missing/jane.png", "jane.png", "small.png"]
    lines = [
        f"{file},{mask}" for file, mask in zip([*files, pictures / "ward1" / "3.png"], masks, strict=True)
    ]
    (tmp_path / "list.csv").write_text("\n".join(["file,mask", *lines]))
    bulk = explain_bulk(run, [tmp_path / "list.csv"], tmp_path / "out", anonymous=True, **QUICK)
    empty, missing, broken, good = rows(bulk).values()
    assert "The mask is empty" in empty["error"]
    assert missing["error"] == (
        "There is no mask image-0002 (mask) where the list says, whose paths count from its own folder; "
        "correct the list."
    )
    assert broken["error"].startswith("The image image-0003 (mask) cannot be read")
    assert (good["error"], good["box_share"]) == (None, 1.0)
    assert not any("jane" in row["error"] or str(tmp_path) in row["error"] for row in (missing, broken))


def test_a_page_is_named_as_everywhere(tmp_path: Path) -> None:
    pages = [Image.new("L", (4, 4), value) for value in (10, 200)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    (item,) = list_items([f"{tmp_path}/a.tif#2"])
    assert np.asarray(read_image(item.path)).max() == 200


def test_a_mask_of_other_proportions_is_said_in_the_row(run: Run, pictures: Path, tmp_path: Path) -> None:
    Image.new("L", (48, 24), 255).save(tmp_path / "wide.png")
    (tmp_path / "list.csv").write_text(f"file,mask\n{pictures / 'ward0' / '0.png'},wide.png\n")
    (row,) = rows(explain_bulk(run, [tmp_path / "list.csv"], tmp_path / "out", **QUICK)).values()
    assert "The mask has 48 x 24 pixels" in row["error"]


def test_other_masks_are_another_data_set(run: Run, pictures: Path, tmp_path: Path) -> None:
    listed = tmp_path / "list.csv"
    listed.write_text(f"file\n{pictures / 'ward0' / '0.png'}\n")
    explain_bulk(run, [listed], tmp_path / "out", **QUICK)
    listed.write_text(f"file,mask\n{pictures / 'ward0' / '0.png'},mask.png\n")
    with pytest.raises(ProtoPFaithError, match="of other images or masks"):
        explain_bulk(run, [listed], tmp_path / "out", **QUICK)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("heading", ["File", "Image Index", "filename"])
def test_the_column_of_files_has_one_of_its_names(tmp_path: Path, suffix: str, heading: str) -> None:
    import pandas as pd

    table, listed = pd.DataFrame({heading: ["a.png"], "Left": [1.0]}), tmp_path / f"list{suffix}"
    table.to_csv(listed, index=False) if suffix == ".csv" else table.to_parquet(listed)
    assert [item.path for item in list_items([listed])] == [str(tmp_path / "a.png")]


def test_a_tree_of_dicom_files_needs_no_suffixes(tmp_path: Path) -> None:
    pixels = np.zeros((8, 8), np.uint8)
    for name in ("1.2.840.1", "scan.dcm", "deep/IM0001"):
        write_dicom(tmp_path / name, pixels)
    (tmp_path / "DICOMDIR.txt").write_text("no image")
    found = list_items([tmp_path])
    assert [item.name for item in found] == ["1.2.840.1", "scan.dcm", "IM0001"]
    assert [read_image(item.path).size for item in found] == [(8, 8)] * 3


def test_dicom_files_in_a_tar_are_read_without_their_names(tmp_path: Path) -> None:
    write_dicom(tmp_path / "scan.dcm", np.zeros((8, 8), np.uint8))
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.add(tmp_path / "scan.dcm", "scan.dcm")
    (item,) = list_items([tmp_path / "x.tar"], anonymous=True)
    with item.file() as file:
        assert read_image(file).size == (8, 8)


def test_names_differ_and_the_order_stays(tmp_path: Path) -> None:
    for folder in ("b", "a"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.png").write_bytes(b"")
    found = list_items([tmp_path])
    assert [item.name for item in found] == ["a/x.png", "b/x.png"]
    assert list_fingerprint(found) != list_fingerprint(found[::-1])
    assert list_items([tmp_path, tmp_path]) == found


def test_a_tar_cannot_lead_outside(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"12345")
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.add(tmp_path / "x.png", "../../etc/x.png")
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    (item,) = list_items([tmp_path / "x.tar"])
    assert ".." not in item.name
    with item.file() as file:
        assert file.read_bytes() == b"12345"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.csv", "a,b\n1,2\n", "has no column named"),
        ("x.csv", "file,age\n,7\n", "row without a file"),
        ("x.csv", "file\n.\n", "row without a file"),
        ("x.csv", "", "no images"),
        ("x.csv", "a.png\n", "has no column named .* in the first line"),
        ("x.tsv", "a.png\tred\n", "has no column named .* in the first line"),
        ("x.csv", "file,left,top,right,bottom\na.png,x,0,1,1\n", "no number"),
        ("x.csv", "file,left,top,right\na.png,0,0,1\n", "no column 'bottom'"),
        ("x.parquet", "PAR1", "no readable Parquet .* write it anew"),
        ("x.tar", "no tar at all", "no readable tar"),
        ("x.tar.gz", "", "compressed tar"),
    ],
)
def test_wrong_lists_are_one_sentence(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ProtoPFaithError, match=complaint):
        list_items([tmp_path / name])


def test_a_name_with_a_comma_is_told(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("file,mask\na,b.png,m.png\n")
    with pytest.raises(ProtoPFaithError, match=r"more cells than headings.*a,b\.png,m\.png"):
        list_items([tmp_path / "list.csv"])


def test_files_of_a_list_are_text(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"file": [["a.png"]]})
    parquet.write_table(table, tmp_path / "list.parquet")
    with pytest.raises(ProtoPFaithError, match="as text"):
        list_items([tmp_path / "list.parquet"])


def test_links_in_a_tar_are_left_out_with_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tarfile.open(tmp_path / "w.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("a.png"))
        link = tarfile.TarInfo("b.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert [item.name for item in list_items([tmp_path / "w.tar"])] == ["a.png"]
    assert "b.png" in caplog.text


def test_a_parquet_list_has_each_column_once_whatever_its_case(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for other in ("FILE", "file", " file"):
        table = pa.Table.from_arrays([pa.array(["a.png"]), pa.array(["b.png"])], names=["file", other])
        parquet.write_table(table, tmp_path / "list.parquet")
        with pytest.raises(ProtoPFaithError, match="two columns named file"):
            list_items([tmp_path / "list.parquet"])


def test_what_holds_no_images_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "list.csv").write_text("file\n")
    with pytest.raises(ProtoPFaithError, match=r"no images in .*list\.csv"):
        list_items([tmp_path / "list.csv"])
    (tmp_path / "a.png").touch()
    assert [item.name for item in list_items([tmp_path / "list.csv", tmp_path / "a.png"])] == ["a.png"]
    assert "no images in" in caplog.text
    assert "list.csv" in caplog.text


def test_a_list_may_have_tabs(tmp_path: Path) -> None:
    for suffix, between in ((".csv", ","), (".tsv", "\t")):
        (tmp_path / f"list{suffix}").write_text(f"file{between}label\na.png{between}red\n")
    commas, tabs = (list_items([tmp_path / f"list{suffix}"]) for suffix in (".csv", ".tsv"))
    assert [(item.name, item.path) for item in tabs] == [(item.name, item.path) for item in commas]


@pytest.mark.parametrize("anonymous", [False, True])
def test_a_file_of_a_list_that_is_not_there_is_told_without_folders_of_this_machine(
    run: Run, pictures: Path, tmp_path: Path, anonymous: bool
) -> None:
    files = ["sub/gone.png", str(tmp_path / "away.png"), str(pictures / "ward0" / "0.png")]
    (tmp_path / "list.csv").write_text("\n".join(["file", *files]))
    bulk = explain_bulk(run, [tmp_path / "list.csv"], tmp_path / "out", anonymous=anonymous, **QUICK)
    relative, absolute, good = (row["error"] for row in rows(bulk).values())
    assert good is None
    assert str(tmp_path) not in relative + absolute
    assert ("no image sub/gone.png in the folder of the list list.csv" in relative) is not anonymous
    assert any(word in relative + absolute for word in ("gone", "away", "list.csv")) is not anonymous
    assert "correct" in relative
    assert "correct" in absolute


def test_files_of_one_name_in_a_tar_have_names_of_their_own(pictures: Path, tmp_path: Path) -> None:
    files = [pictures / "ward0" / "0.png", pictures / "ward1" / "1.png", pictures / "ward0" / "2.png"]
    with tarfile.open(tmp_path / "same.tar", "w") as archive:
        for file, name in zip(files, ("x.png", "x.png", "x (2).png"), strict=True):
            archive.add(file, name)
    items = list_items([tmp_path / "same.tar"])
    assert len({item.name for item in items}) == 3
    assert items[0].name == "x.png"
    assert all(item.name.endswith(".png") for item in items)
    assert [item.content() for item in items] == [file.read_bytes() for file in files]


def test_which_of_several_masks_is_wrong_is_told(run: Run, pictures: Path, tmp_path: Path) -> None:
    Image.new("L", (48, 48), 255).save(tmp_path / "good.png")
    Image.new("L", (48, 48)).save(tmp_path / "black.png")
    image = pictures / "ward0" / "0.png"
    (tmp_path / "list.csv").write_text(f"file,mask\n{image},good.png\n{image},black.png\n")
    (row,) = rows(explain_bulk(run, [tmp_path / "list.csv"], tmp_path / "out", **QUICK)).values()
    assert "black.png cannot be used. The mask is empty" in row["error"]


@pytest.mark.parametrize("sub", ["masks/none.png", "{folder}/away/none.png"])
def test_a_mask_that_is_not_there_is_named_as_in_the_list(
    run: Run, pictures: Path, tmp_path: Path, sub: str
) -> None:
    image = pictures / "ward0" / "0.png"
    (tmp_path / "list.csv").write_text(f"file,mask\n{image},{sub.format(folder=tmp_path)}\n")
    (row,) = rows(explain_bulk(run, [tmp_path / "list.csv"], tmp_path / "out", **QUICK)).values()
    assert f"There is no mask {'none.png' if '{' in sub else sub} where the list says" in row["error"]
    assert str(tmp_path) not in row["error"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["file,left,top,right,bottom", "a.png,1,,3,"], r"a side is missing \(1, , 3, \)"),
        (["file,left,top", "a.png,1,3"], "no column 'right' and no column 'bottom'"),
        (["file,left,top,right,bottom", "a.png,1_0,1,30,40"], "a box that is no number"),
    ],
)
def test_half_a_box_is_told(tmp_path: Path, lines: list[str], words: str) -> None:
    (tmp_path / "list.csv").write_text("\n".join(lines))
    with pytest.raises(ProtoPFaithError, match=words):
        list_items([tmp_path / "list.csv"])


@pytest.mark.parametrize("header", ["file,left", "file,left,top,right,bottom"])
def test_rows_without_a_box_have_none(tmp_path: Path, header: str) -> None:
    """A column named left may mean a side of the body."""
    cells = "L" if header == "file,left" else ",,,"
    (tmp_path / "list.csv").write_text(f"{header}\na.png,{cells}\n")
    (item,) = list_items([tmp_path / "list.csv"])
    assert item.boxes == ()
