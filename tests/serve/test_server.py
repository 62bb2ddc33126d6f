"""A server takes its port, loads its runs and says where it is; or says in one sentence why not."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.safety import is_local
from protopfaith.serve.server import opened
from protopfaith.training import Run


def test_other_addresses_get_a_token_and_local_ones_do_not_need_one(run: Run) -> None:
    said: list[str] = []
    with opened([run.folder], host="0.0.0.0", port=0, device="cpu", say=said.append) as server:
        assert "?token=" in server.address
    assert any("token" in line for line in said)
    assert is_local("127.0.0.1")
    assert is_local("::1")
    assert not is_local("0.0.0.0")


def test_a_port_that_is_taken_is_one_sentence(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ProtoPFaithError, match=rf"cannot listen on 127\.0\.0\.1, port {port} .*--port"),
            opened([run.folder], port=port, say=lambda text: None),
        ):
            raise AssertionError


@pytest.mark.parametrize("token", ["short", "with a space in it", "<script>", "a" * 201, "12345678\n"])
def test_a_token_that_does_not_fit_into_an_address_is_refused(run: Run, token: str) -> None:
    with (
        pytest.raises(ProtoPFaithError, match="A token is at least 8 letters"),
        opened([run.folder], port=0, token=token, say=lambda text: None),
    ):
        raise AssertionError


def test_there_must_be_a_run() -> None:
    with pytest.raises(ProtoPFaithError, match="no run to serve"), opened([], port=0, device="cpu"):
        raise AssertionError


def test_runs_of_one_name_are_numbered_and_ready(run: Run) -> None:
    said: list[str] = []
    with opened([run.folder, run.folder], port=0, device="cpu", say=said.append) as server:
        names = [network.name for network in server.state.networks]
        assert [name.rpartition(" ")[2] for name in names] == ["(1)", "(2)"]
        folder = server.folder.path
        assert folder.is_dir()
        assert f"The explorer: {server.address}" in said
        assert server.address == f"http://127.0.0.1:{server.listening.getsockname()[1]}/"
    assert not folder.exists()
    assert server.listening.fileno() == -1  # the port is free again


def test_a_folder_of_images_is_that_of_the_runs_that_have_one(run: Run, tmp_path: Path) -> None:
    assert run.recipe().data.name == "birds"
    with opened([run.folder, run.folder], root=tmp_path, port=0, device="cpu", say=lambda _: None) as server:
        assert len(server.state.networks) == 2
    with (
        pytest.raises(ProtoPFaithError, match="drawn, not read"),
        opened([run.folder], root=tmp_path, port=0, device="cpu", say=lambda _: None),
    ):
        pass
