"""A server on a port of this machine, with a worker beside it."""

import importlib.util
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("onnxruntime")

PLACE = Path(__file__).parent.parent / "server" / "conftest.py"
made: Any = importlib.util.spec_from_file_location("server_conftest", PLACE)
server: Any = importlib.util.module_from_spec(made)
made.loader.exec_module(server)
_no_waiting = server._no_waiting


@pytest.fixture(scope="session", autouse=True)
def _patient() -> Iterator[None]:
    """Clients wait a quarter of an hour, not a minute, for a server on the same busy cores."""
    from heldout.client import Server

    defaults: Any = Server.__init__.__kwdefaults__
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(defaults, "timeout", 900.0)
        yield


class Running:
    """The address of a server, its site, and a model."""

    def __init__(self, site: Any, url: str, folder: Path) -> None:
        self.site, self.url, self.folder = site, url, folder
        self.model = folder / "model.json"
        self.model.write_text(json.dumps(server.LINEAR))
        self.token_file = folder / "token.txt"
        self.token_file.write_text(site.tokens["ana"] + "\n")
        self.key = site.worker.signer.public

    def opened(self, who: str = "ana", **more: Any) -> Any:
        from heldout.client import Server

        return Server(self.url, self.site.tokens[who], **more)


def opened_site(folder: Path) -> Any:
    """A site with rows and a share for ana."""
    site = server.Site(folder / "server", tick=0.02)
    site.register(server.write_rows(folder / "rows.parquet"), budget="1000")
    site.grant(budget="500")
    return site


@contextmanager
def serving(site: Any, folder: Path) -> Iterator[Running]:
    """The site on a port, with a worker, for as long as this lasts."""
    import uvicorn

    from heldout.server.worker import run

    place = socket.create_server(("127.0.0.1", 0))  # kept, so that nobody else takes the port
    port = place.getsockname()[1]
    web = uvicorn.Server(uvicorn.Config(site.app, log_level="error"))
    stop = threading.Event()
    threads = [
        threading.Thread(target=web.run, args=([place],)),
        threading.Thread(target=run, args=(site.service,), kwargs={"stop": stop}),
    ]
    for each in threads:
        each.start()
    try:
        while not web.started:
            time.sleep(0.01)
        yield Running(site, f"http://127.0.0.1:{port}", folder)
    finally:
        web.should_exit = True
        stop.set()
        for each in threads:
            each.join()
        site.service.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("client")
    with serving(opened_site(folder), folder) as found:
        yield found


@pytest.fixture
def put_back(tmp_path: Path) -> Iterator[tuple[Any, dict[str, Any], str]]:
    """A server whose ledger and witness were put back; what was seen before, and a page of then."""
    from heldout import questions as q

    folder = tmp_path / "server"
    site = opened_site(tmp_path)
    site.service.close()
    before = {each: each.read_bytes() for each in folder.glob("ledger.sqlite*")}
    with serving(site, tmp_path) as now:
        paid = now.opened().dataset("readmissions").submit(q.Brier(epsilon=1), model=now.model)
        seen = paid.wait() and now.opened().head()
        page = paid.page()
    for each in folder.glob("ledger.sqlite*"):
        each.unlink()
    for each, content in before.items():
        each.write_bytes(content)
    again = object.__new__(server.Site)
    again.__dict__.update(site.__dict__)
    again.service = server.Service(site.service.settings)
    again.app = server.make_app(again.service)
    with serving(again, tmp_path) as now:
        yield now, seen, page
