"""Files of torch.save read without running anything from them.

A pickle is a program: it names functions and calls them. Here it may name a few that make tensors and plain
containers, which are this module's own; everything else that it names becomes a stub, a class without any
code, which can hold attributes and cannot be called.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from protopfaith import arguments
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, reason

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001
DTYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


class ForeignPickleError(Exception):
    """Why a file is not read, in a few words: callers make a sentence of it."""


class _StubType(type):
    """Classes that cannot be called: in a pickle, a call is the first step of running something."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise ForeignPickleError(f"it calls {cls.__module__}.{cls.__name__}")


class Stub(metaclass=_StubType):
    """Stands for an object of a class that is not loaded: its attributes, and no code."""

    known_as: ClassVar[str] = ""

    def __new__(cls, *args: Any) -> Stub:
        return object.__new__(cls)

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) == 2:  # of a class with slots
            state = {**(state[0] or {}), **(state[1] or {})}
        if isinstance(state, dict):
            vars(self).update({str(key): value for key, value in state.items()})

    def __repr__(self) -> str:
        return f"<{type(self).known_as}>"


def stub_class(module: str, name: str) -> Any:
    """A class without code that stands for `module.name`."""
    return _StubType(name, (Stub,), {"__module__": module, "known_as": f"{module}.{name}"})


class Storage:
    """The numbers of some tensors: a name, until `fill` gives them."""

    def __init__(self, dtype: torch.dtype, length: int):
        self.dtype, self.length = dtype, length
        self.tensor: Tensor | None = None

    def fill(self, content: bytes) -> None:
        if len(content) != self.length * self.dtype.itemsize:
            raise ForeignPickleError("it is cut short")
        self.tensor = torch.zeros(0, dtype=self.dtype)
        if content:
            self.tensor = torch.frombuffer(bytearray(content), dtype=self.dtype)


class LazyTensor:
    """A view of a storage that may not have its numbers yet: in the old format they come after the pickle."""

    def __init__(self, storage: Any, offset: Any, size: Any, stride: Any):
        numbers = (offset, *size, *stride)
        if not isinstance(storage, Storage) or not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise ForeignPickleError("a tensor in it is none")
        self.storage, self.offset, self.size, self.stride = storage, offset, tuple(size), tuple(stride)

    def tensor(self) -> Tensor:
        assert self.storage.tensor is not None
        elements = torch.Size(self.size).numel()
        if elements > max(self.storage.length, 1):
            raise ForeignPickleError("a tensor in it is larger than its numbers")
        try:
            view = self.storage.tensor.as_strided(self.size, self.stride, self.offset)
        except RuntimeError as error:
            raise ForeignPickleError("a tensor in it lies outside of its numbers") from error
        return view.clone()


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> LazyTensor:
    return LazyTensor(storage, offset, size, stride)


def _rebuild_parameter(data: Any, *_: Any) -> Any:
    return data


def _reconstructor(cls: Any, *_: Any) -> Any:
    if not isinstance(cls, _StubType):
        raise ForeignPickleError("it makes an object that is no container")
    made: Any = Stub.__new__(cls)  # type: ignore[arg-type]
    return made


def _text(value: Any, *_: Any) -> str:
    return str(value)


def _inert(*_: Any) -> Any:
    """Stands for a value that says nothing about a network: a number or array of NumPy, a path, a date."""
    return Stub.__new__(stub_class("protopfaith.conversion", "NotRead"))


def _dictionary(_: Any = None, content: Any = ()) -> dict[Any, Any]:
    """A defaultdict without the function that makes its values."""
    return dict(content)


ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter,
    ("torch", "Size"): lambda size=(): tuple(size),
    ("torch", "device"): _text,
    ("copyreg", "_reconstructor"): _reconstructor,
    ("copy_reg", "_reconstructor"): _reconstructor,
}
ALLOWED |= {
    **{(f"{core}.multiarray", name): _inert for core in ("numpy.core", "numpy._core")
       for name in ("scalar", "_reconstruct")},
    # Python 3.13 writes another module than all others.
    **{(module, f"{kind}Path"): _inert for module in ("pathlib", "pathlib._local")
       for kind in ("Posix", "Windows", "PurePosix", "PureWindows")},
    **{("datetime", name): _inert for name in ("datetime", "date", "time", "timedelta", "timezone")},
    ("numpy", "dtype"): _inert,
    ("_codecs", "encode"): _inert,
    ("functools", "partial"): _inert,
    ("collections", "defaultdict"): _dictionary,
}  # fmt: skip
"""Values that stand beside networks in many files: they are not made, and nothing of them is run."""
CONTAINERS: dict[tuple[str, str], type] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("__builtin__", "frozenset"): frozenset,
}


def _only(function: Callable[..., Any]) -> Callable[..., Any]:
    """A new function each time: a pickle may set attributes of what it finds."""

    def call(*args: Any) -> Any:
        return function(*args)

    return call


def _check_numbering(file: Any) -> None:
    """Raises if the next pickle numbers a value far beyond those that it has: room is made for all numbers
    below, so that a few bytes would take all memory."""
    begin = file.tell()
    for count, (step, number, _) in enumerate(pickletools.genops(file)):
        if step.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(number or 0) > count:
            raise ForeignPickleError("it numbers values that it does not have")
    file.seek(begin)


class _Unpickler(pickle.Unpickler):
    """Finds tensors and plain containers; everything else is a stub."""

    def __init__(self, file: Any):
        super().__init__(file, encoding="utf-8")
        self.file, self.storages = file, dict[str, Storage]()

    def load(self) -> Any:
        _check_numbering(self.file)
        return super().load()

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in CONTAINERS:
            return CONTAINERS[module, name]
        if (module, name) in ALLOWED:
            return _only(ALLOWED[module, name])
        return stub_class(module, name)

    def persistent_load(self, identity: Any) -> Any:
        if isinstance(identity, tuple) and identity[:1] == ("module",) and len(identity) > 1:
            return identity[1]  # the class of a module, which comes with its source in the old format
        if not isinstance(identity, tuple) or identity[:1] != ("storage",) or len(identity) < 5:
            raise ForeignPickleError("it refers to something outside")
        kind, key, length = getattr(identity[1], "__name__", ""), str(identity[2]), identity[4]
        if kind not in DTYPES or not isinstance(length, int) or length < 0:
            raise ForeignPickleError(f"it holds numbers of the unknown type {kind or 'none'}")
        if len(identity) > 5 and identity[5] is not None:
            raise ForeignPickleError("it holds views of numbers, as very old versions of torch made them")
        known = self.storages.setdefault(key, Storage(DTYPES[kind], length))
        if (known.dtype, known.length) != (DTYPES[kind], length):
            raise ForeignPickleError("two of its tensors contradict each other")
        return known


def read_foreign(path: Path | str) -> Any:
    """What `torch.save` wrote into a file, with stubs in the place of all objects that are no tensors,
    numbers, texts or plain containers. Nothing in the file is run.

    Args:
        path: a file in torch's format, new (a zip archive) or old

    Raises:
        ProtoPFaithError: if it is anything else, or tries to call something

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     torch.save({"layer": torch.nn.Linear(2, 1), "epoch": 3}, f"{folder}/model.pth")
    ...     found = read_foreign(f"{folder}/model.pth")
    >>> found["layer"], found["epoch"], vars(found["layer"])["_parameters"]["weight"].shape
    (<torch.nn.modules.linear.Linear>, 3, torch.Size([1, 2]))
    """
    path = arguments.path(path, "A checkpoint")
    if not is_file(path):
        raise ProtoPFaithError(f"There is no file {path}; give a checkpoint that torch.save wrote.")
    try:
        content = _read_zip(path) if zipfile.is_zipfile(path) else _read_legacy(path)
        return _with_tensors(content, {})
    except ForeignPickleError as error:
        raise ProtoPFaithError(
            f"{path} is not read because {error}: checkpoints hold tensors and layers, and loading runs no "
            "code from a file; give a checkpoint of a network, such as its state dict alone."
        ) from error
    except Exception as error:  # unpickling raises almost anything on a broken or foreign file
        _refuse_stand_ins(path)
        why = f" ({reason(error)})" if isinstance(error, OSError) else ""
        raise ProtoPFaithError(
            f"{path} is no file of torch.save, or it is cut short{why}; give a .pth file of a network."
        ) from error


def _refuse_stand_ins(path: Path) -> None:
    """Raises if a file is one of those that downloads end with instead of the checkpoint itself."""
    with path.open("rb") as file:
        begin = file.read(256).lstrip().lower()
    if begin.startswith(b"version https://git-lfs"):
        raise ProtoPFaithError(
            f"{path} is no checkpoint but a pointer of Git LFS to it; fetch the file itself (git lfs pull)."
        )
    if begin.startswith((b"<!doctype", b"<html")):
        raise ProtoPFaithError(
            f"{path} is no checkpoint but a web page; a browser shows what it says of the download."
        )


def _read_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        program = next((name for name in names if name.endswith("/data.pkl") or name == "data.pkl"), None)
        if program is None:
            raise ForeignPickleError("it is a zip archive without tensors")
        folder = program.removesuffix("data.pkl")
        if f"{folder}constants.pkl" in names:
            raise ForeignPickleError("it is a TorchScript program")
        if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
            raise ForeignPickleError("it is compressed, which torch.save never does")
        order = archive.read(f"{folder}byteorder") if f"{folder}byteorder" in names else b"little"
        if order != b"little":
            raise ForeignPickleError("it was written on a machine with another byte order")
        unpickler = _Unpickler(io.BytesIO(archive.read(program)))
        content = unpickler.load()
        for key, storage in unpickler.storages.items():
            info = archive.getinfo(f"{folder}data/{key}")
            if info.file_size != storage.length * storage.dtype.itemsize:
                raise ForeignPickleError("it is cut short")
            storage.fill(archive.read(info))
    return content


def _read_legacy(path: Path) -> Any:
    """Pickles of a magic number, a version, facts of the machine, the content and the names of its storages;
    then the numbers of each storage behind their count."""
    with path.open("rb") as file:
        if _Unpickler(file).load() != LEGACY_MAGIC or _Unpickler(file).load() != LEGACY_PROTOCOL:
            raise ForeignPickleError("it is a pickle, but none of torch")
        facts = _Unpickler(file).load()
        if not isinstance(facts, dict) or not facts.get("little_endian", True):
            raise ForeignPickleError("it was written on a machine with another byte order")
        unpickler = _Unpickler(file)
        content = unpickler.load()
        for key in _Unpickler(file).load():
            storage = unpickler.storages[str(key)]
            (length,) = struct.unpack("<q", file.read(8))
            if length != storage.length:
                raise ForeignPickleError("two of its tensors contradict each other")
            storage.fill(file.read(length * storage.dtype.itemsize))
    return content


def _with_tensors(value: Any, done: dict[int, Any]) -> Any:
    """The same with tensors for lazy ones, in place where it can be; `done` keeps cycles from going round."""
    if isinstance(value, LazyTensor):
        return value.tensor()
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, dict):
        done[id(value)] = value
        for key in list(value):
            value[key] = _with_tensors(value[key], done)
    elif isinstance(value, list):
        done[id(value)] = value
        value[:] = [_with_tensors(item, done) for item in value]
    elif isinstance(value, tuple):  # each once: tuples of tuples of the same tuple multiply
        done[id(value)] = tuple(_with_tensors(item, done) for item in value)
        return done[id(value)]
    elif isinstance(value, Stub):
        done[id(value)] = value
        _with_tensors(vars(value), done)
    return value
