"""Image files that are broken, hostile, or merely unusual."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable

import numpy as np
from PIL import Image

from tests.robustness.harness import Case, Place
from tests.robustness.options import QUICK


def picture(size: tuple[int, int] = (30, 24), mode: str = "RGB") -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def where_read(name: str, data: bytes) -> dict[str, bytes]:
    """The file, unless the installed Pillow cannot read what it wrote (12.3 and such TIFFs)."""
    try:
        Image.open(io.BytesIO(data)).load()
    except OSError:
        return {}
    return {name: data}


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    return buffer.getvalue()


def png(width: int, height: int, depth: int = 8, color: int = 0, data: bytes = b"") -> bytes:
    """A PNG file whose header says what it likes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def bomb(width: int, height: int, depth: int) -> bytes:
    row = 1 + width * depth // 8
    compressor = zlib.compressobj(9)
    body = b"".join(compressor.compress(bytes(row)) for _ in range(height)) + compressor.flush()
    return png(width, height, depth, 0, body)


def tiff_pages() -> bytes:
    return encoded(picture(), "TIFF", save_all=True, append_images=[picture((30, 24)), picture()])


def animated(kind: str) -> bytes:
    frames = [picture(), Image.new("RGB", (30, 24), "red")]
    return encoded(frames[0], kind, save_all=True, append_images=frames[1:])


GOOD_PNG = encoded(picture(), "PNG")
GOOD_JPEG = encoded(picture(), "JPEG")
GOOD_TIFF = encoded(picture(), "TIFF")
GOOD_GIF = encoded(picture(), "GIF")
GOOD_WEBP = encoded(picture(), "WEBP")

BROKEN: dict[str, bytes] = {
    "empty.png": b"",
    "text.png": b"hello, I am no image\n",
    "html.jpg": b"<html><body>404</body></html>",
    "random.png": np.random.default_rng(1).bytes(5000),
    "zeros.png": bytes(5000),
    "signature.png": b"\x89PNG\r\n\x1a\n",
    "signature.jpg": b"\xff\xd8\xff\xe0",
    "signature.tif": b"II*\0",
    "signature.gif": b"GIF89a",
    "signature.webp": b"RIFF\0\0\0\0WEBP",
    "signature.bmp": b"BM",
    "eps.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n%%EOF\n",
    "eps.jpg": b"\xc5\xd0\xd3\xc6" + bytes(60),
    "pdf.png": b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF",
    "svg.png": b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>',
    "psd.png": b"8BPS\0\1" + bytes(30),
    "fits.png": b"SIMPLE  =                    T" + b" " * 2850,
    "wmf.png": b"\xd7\xcd\xc6\x9a" + bytes(60),
    "icns.png": b"icns\0\0\0\x08",
    "fli.png": struct.pack("<IHHHHH", 200, 0xAF11, 1, 10, 10, 8) + bytes(200),
    "zip.png": b"PK\x03\x04" + bytes(60),
    "pickle.png": b"\x80\x04cposix\nsystem\n(S'true'\ntR.",
    "huge_header.png": png(40_000, 40_000),
    "no_data.png": png(20, 20),
    "zero_width.png": png(0, 20),
    "negative.png": png(2**31 - 1, 2**31 - 1),
    "bad_depth.png": png(20, 20, 7, 9),
    "bad_crc.png": GOOD_PNG[:29] + b"\0\0\0\0" + GOOD_PNG[33:],
    "corrupt_data.png": GOOD_PNG[:60] + bytes(100) + GOOD_PNG[160:],
    "huge.bmp": b"BM"
    + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, 2**30, 2**30, 1, 24, 0, 0, 0, 0, 0, 0),
    "huge.pgm": b"P5 1000000 1000000 255\n" + bytes(100),
    "text.pgm": b"P2 3 3 255\nx y z\n",
    "negative.pgm": b"P5 -3 3 255\n" + bytes(9),
    "long_number.pgm": b"P5 " + b"9" * 5000 + b" 3 255\n",
    "all_nan.tif": encoded(Image.fromarray(np.full((8, 8), np.nan, np.float32)), "TIFF"),
    **{f"cut_{n}.png": GOOD_PNG[: n * len(GOOD_PNG) // 5] for n in range(1, 5)},
    **{f"cut_{n}.jpg": GOOD_JPEG[: n * len(GOOD_JPEG) // 6] for n in range(1, 3)},
    **{f"cut_{n}.tif": GOOD_TIFF[: n * len(GOOD_TIFF) // 5] for n in range(1, 4)},
    **{f"cut_{n}.gif": GOOD_GIF[: n * len(GOOD_GIF) // 6] for n in range(1, 3)},
    **{f"cut_{n}.webp": GOOD_WEBP[: n * len(GOOD_WEBP) // 5] for n in range(1, 5)},
}

UNUSUAL: dict[str, bytes] = {
    "one_pixel.png": encoded(picture((1, 1)), "PNG"),
    "thin.png": encoded(picture((1, 300)), "PNG"),
    "wide.png": encoded(picture((3000, 2)), "PNG"),
    "sixteen.png": encoded(Image.fromarray(np.arange(400, dtype=np.uint16).reshape(20, 20) * 100), "PNG"),
    "float.tif": encoded(Image.fromarray(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)), "TIFF"),
    "palette.gif": GOOD_GIF,
    "animated.gif": animated("GIF"),
    "animated.png": animated("PNG"),
    "animated.webp": animated("WEBP"),
    "pages.tif": tiff_pages(),
    "cmyk.jpg": encoded(picture(mode="CMYK"), "JPEG"),
    "alpha.png": encoded(picture(mode="RGBA"), "PNG"),
    "gray_alpha.png": encoded(picture(mode="LA"), "PNG"),
    "bits.png": encoded(picture(mode="1"), "PNG"),
    "lab.tif": encoded(picture(mode="LAB"), "TIFF"),
    **where_read("ycc.tif", encoded(picture(mode="YCbCr"), "TIFF")),
    "black.png": encoded(Image.new("RGB", (20, 20)), "PNG"),
    "white.bmp": encoded(Image.new("RGB", (20, 20), "white"), "BMP"),
    "jpeg_named.png": GOOD_JPEG,
    "trailing.png": GOOD_PNG + b"and more",
    "maps.ppm": encoded(picture(), "PPM"),
    "broken_exif.webp": encoded(picture(), "WEBP", exif=b"no notes of a camera"),
    "broken_exif.png": encoded(picture(), "PNG", exif=b"II+\0\x08\0\0\0"),
}

NAMES = [
    "cost_$_a_$.png",
    "$\\frac{$.png",
    "with space.png",
    "new\nline.png",
    "tab\there.png",
    "ünï.png",
    "日本.png",
    "🐦.png",
    "-dash.png",
    "'quote\".png",
    "[brackets].png",
    "[red]markup[bold].png",
    "{braces}.png",
    "<script>alert(1)</script>.png".replace("/", "_"),
    "percent%20%s%n.png",
    "=formula.png",
    "a" * 251 + ".png",
    "back\\slash.png",
    "UPPER.PNG",
    "two.dots.png",
    "\x1b[31mred.png",
    "x\u202egnp.exe.png",
    b"latin\xe9.png",
    b"\xff\xfe\xfd.png",
]
HARDEST = [
    NAMES[0],
    NAMES[1],
    "new\nline.png",
    "a" * 251 + ".png",
    "🐦.png",
    "[red]markup[bold].png",
    b"latin\xe9.png",
]


def predict(name: str, content: bytes, *, good: bool = False) -> Case:
    says = () if good else (name,)
    return Case(
        f"predict {name}",
        lambda place: ["predict", place.run, place.write(name, content), "--device", "cpu"],
        good=good,
        says=says,
    )


def explain_beside(name: str, content: bytes) -> Case:
    """One bad image among good ones: the others are explained."""

    def others_done(place: Place) -> None:
        assert (place / "out" / "index.html").is_file(), "no index"
        assert list((place / "out").rglob("*good*")), "the good image is not explained"

    return Case(
        f"explain {name} beside a good one",
        lambda place: ["explain", place.run, place.write(name, content), place.image, *QUICK, "--out", "out"],
        says=(name,),
        check=others_done,
    )


def named(name: str | bytes, command: str) -> Case:
    def arguments(place: Place) -> list[object]:
        path = os.path.join(os.fsencode(place.folder), os.fsencode(name))
        with open(path, "wb") as file:
            file.write(GOOD_PNG)
        more = [*QUICK, "--out", "out"] if command == "explain" else ["--csv", "p.csv", "--device", "cpu"]
        return [command, place.run, path, *more]

    def lines(place: Place) -> None:
        if command == "predict":
            import csv

            with open(place / "p.csv", newline="", encoding="utf-8", errors="surrogateescape") as file:
                assert len(list(csv.reader(file))) == 2
        else:
            assert (place / "out" / "index.html").is_file()

    return Case(f"{command} a file named {name!r}"[:120], arguments, good=True, check=lines)


def all_named(command: str) -> Case:
    """Many names at once: none of them ends the batch."""

    def arguments(place: Place) -> list[object]:
        paths = [os.path.join(os.fsencode(place.folder), os.fsencode(name)) for name in HARDEST]
        for number, path in enumerate(paths):
            with open(path, "wb") as file:
                file.write(GOOD_PNG + bytes([number]))
        return [command, place.run, *paths, *QUICK, "--out", "out"]

    def explained(place: Place) -> None:
        found = list((place / "out").glob("*/report.html"))
        assert len(found) == len(HARDEST), f"{len(found)} of {len(HARDEST)} explained"

    return Case(f"{command} files with all kinds of names", arguments, good=True, check=explained)


def special(name: str, make: Callable[[Place], object], command: str = "predict", good: bool = False) -> Case:
    def arguments(place: Place) -> list[object]:
        path = make(place)
        more = QUICK if command == "explain" else ["--device", "cpu"]
        return [command, place.run, path, *more]

    return Case(f"{command} {name}", arguments, good=good)


def fifo(place: Place) -> object:
    os.mkfifo(place / "pipe.png")
    return place / "pipe.png"


def folder_as_image(place: Place) -> object:
    (place / "folder.png").mkdir()
    return place / "folder.png"


def dangling(place: Place) -> object:
    os.symlink("nowhere", place / "link.png")
    return place / "link.png"


def loop(place: Place) -> object:
    os.symlink("loop.png", place / "loop.png")
    return place / "loop.png"


def folder_loop(place: Place) -> object:
    """A folder that contains itself, through a link: its image is found once."""
    (place / "tree").mkdir()
    place.copy("good.png", "tree/good.png")
    os.symlink(".", place / "tree" / "self")
    return place / "tree"


CASES = [
    *(predict(name, content) for name, content in BROKEN.items()),
    *(explain_beside(name, BROKEN[name]) for name in ("empty.png", "text.png", "cut_2.png", "eps.png")),
    predict("bomb16.png", bomb(9_400, 9_400, 16)),
    special("a pipe", fifo),
    special("a pipe", fifo, "explain"),
    special("an empty folder", folder_as_image),
    special("a dangling link", dangling),
    special("a link to itself", loop),
    special("a device", lambda place: "/dev/zero"),
    special("a missing file", lambda place: "missing.png"),
    special("a name too long", lambda place: "x" * 300 + ".png"),
    special("a path too long", lambda place: "/".join(["x" * 200] * 30) + ".png"),
]

GOOD = [
    *(predict(name, content, good=True) for name, content in UNUSUAL.items()),
    *(named(name, "predict") for name in NAMES),
    all_named("explain"),
    special("a folder with a link to itself", folder_loop, good=True),
]
