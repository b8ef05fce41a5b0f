"""People take turns, have quotas, and may cancel: one of them cannot take the server over."""

import itertools
import json
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from tests.server.conftest import LINEAR, Site, write_rows
from tests.server.watched import AUC, Steady, all_keys, predictions

from heldout.errors import ScoringFailed
from heldout.server import artifacts, evaluations, jobs, storage, worker
from heldout.server.service import TooLarge
from heldout.server.storage import Store
from heldout.server.worker import run

API = "/api/v1"


def bookings(site: Site) -> list[Any]:
    entries = site.client("olga").get(f"{API}/ledger").json()
    return [entry for entry in entries if entry["charge"] is not None]


INTERCEPTS = itertools.cycle(range(4, 10))


def send(site: Site, who: str = "ana", **more: Any) -> Any:
    """An upload that no worker has looked at yet."""
    headers = {"Content-Type": "application/json", "Prefer": "wait=0"}
    # A file that was sent before is not sent again: each is another model of the same size.
    content = json.dumps(LINEAR | {"intercept": -next(INTERCEPTS)} | more)
    return site.client(who).put(f"{API}/artifacts", content=content, headers=headers)


def small(tmp_path: Path, **settings: Any) -> Site:
    tmp_path.mkdir(exist_ok=True)
    site = Site(tmp_path / "server", **settings)
    site.register(write_rows(tmp_path / "rows.parquet", 50))
    site.grant()
    return site


# --- the table of jobs ---------------------------------------------------------------------------


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    found = Store(url)
    found.migrate()
    yield found
    found.migrate("base")
    found.close()


def put(store: Store, owner: str, *subjects: str, after: int | None = None) -> int:
    with store.write() as connection:
        for subject in subjects:
            counts: dict[str, Any] = {"owner": owner, "seconds": 1.0}
            last = jobs.enqueue(connection, "evaluate", subject, after=after, **counts)
    return last


def take(store: Store, **more: Any) -> Any:
    return jobs.claim(store, worker="w", **{"lease": 30.0, "most_running": 1} | more)


def end(store: Store, job: Any, **more: Any) -> None:
    with store.write() as connection:
        jobs.finish(connection, job, **more)


def test_people_take_turns_however_many_jobs_one_of_them_has(store: Store) -> None:
    put(store, "ana", *(f"a{n}" for n in range(100)))
    first = take(store)
    put(store, "bert", "b0", "b1")
    put(store, "cleo", "c0")
    end(store, first)
    order = [first.subject]
    for _ in range(6):
        job = take(store)
        order.append(job.subject)
        end(store, job)
    assert order == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]


def test_one_person_has_one_job_running_and_a_silent_worker_holds_no_place(store: Store) -> None:
    put(store, "ana", "a0", "a1")
    assert take(store).subject == "a0"
    assert take(store) is None
    assert take(store, most_running=2).subject == "a1"
    put(store, "bert", "b0")
    assert take(store).subject == "b0"
    with store.write() as connection:
        connection.execute(storage.jobs.update().values(lease=0.0))
    assert take(store).subject == "a0", "their leases have run out"


def test_what_comes_after_a_job_begins_when_it_is_done_and_due(store: Store) -> None:
    first = put(store, "ana", "first")
    put(store, "ana", "second", after=first)
    job = take(store)
    assert take(store, most_running=9) is None
    end(store, job, due=storage.now() + 0.3)
    assert take(store) is None
    storage.wait_until(storage.now() + 0.35)
    assert take(store).subject == "second"


def test_a_cancelled_job_is_not_begun_and_comes_back_when_it_is_asked_for_again(
    store: Store,
) -> None:
    put(store, "ana", "a0", "a1")
    running = take(store)
    with store.write() as connection:
        assert not jobs.cancel(connection, "evaluate", "a0"), "a worker has it"
        assert jobs.cancel(connection, "evaluate", "a1")
    end(store, running)
    assert take(store) is None
    put(store, "ana", "a1")
    assert take(store).subject == "a1"


# --- cancelling ----------------------------------------------------------------------------------


def test_an_evaluation_is_cancelled_by_its_owner_and_nothing_is_charged(opened: Any) -> None:
    model = opened.upload()["id"]
    asked = opened.ask(AUC, artifact=model, key="k").json()["id"]
    path = f"{API}/evaluations/{asked}"
    for other, status in (("bert", 404), ("carol", 403)):
        assert opened.client(other).delete(path).status_code == status
    for _ in range(2):  # twice is once
        found = opened.client("ana").delete(path)
        assert (found.status_code, found.json()["state"]) == (200, "cancelled")
        assert "Nothing was charged" in found.json()["words"]
    opened.work()
    assert bookings(opened) == []
    with opened.service.store.read() as connection:
        assert connection.execute(sa.select(storage.scorings)).all() == [], "nor was it scored"
    again = opened.answer(AUC, artifact=model, key="other")
    assert again["state"] == "answered"
    late = opened.client("ana").delete(f"{API}/evaluations/{again['id']}")
    assert (late.status_code, "over already" in late.json()["detail"]) == (409, True)
    assert len(bookings(opened)) == 1


def test_a_scoring_goes_on_while_another_evaluation_needs_it(opened: Any) -> None:
    model = opened.upload()["id"]
    first, second = (opened.ask(AUC, artifact=model, key=k).json()["id"] for k in "ab")
    opened.client("ana").delete(f"{API}/evaluations/{first}").raise_for_status()
    opened.work()
    headers = {"Prefer": "wait=5"}
    found = opened.client("ana").get(f"{API}/evaluations/{second}", headers=headers).json()
    assert found["state"] == "answered"
    assert len(bookings(opened)) == 1


def test_whoever_cancels_while_a_worker_waits_for_the_tick_pays_nothing(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = opened.ask(AUC, artifact=opened.upload()["id"], key="k").json()["id"]
    path, codes = f"{API}/evaluations/{asked}", []

    def waiting(moment: float) -> None:
        codes.append(opened.client("ana").delete(path).status_code)

    monkeypatch.setattr(worker, "wait_until", waiting)
    opened.work()
    assert codes == [200]
    assert bookings(opened) == []


def test_what_is_being_booked_can_no_longer_be_cancelled(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = opened.ask(AUC, artifact=opened.upload()["id"], key="k").json()["id"]
    path, told, sign = f"{API}/evaluations/{asked}", [], opened.worker.signer.sign

    def signed(stated: Any) -> Any:
        told.append(opened.client("ana").delete(path))
        return sign(stated)

    monkeypatch.setattr(opened.worker.signer, "sign", signed)
    opened.work()
    assert [answer.status_code for answer in told] == [409]
    assert "no longer be cancelled" in told[0].json()["detail"]
    headers = {"Prefer": "wait=5"}
    assert opened.client("ana").get(path, headers=headers).json()["state"] == "answered"


def test_a_model_is_deleted_with_its_scores_and_makes_room(opened: Any) -> None:
    model = opened.upload()["id"]
    asked = opened.ask(AUC, artifact=model, key="k").json()["id"]
    ana, path = opened.client("ana"), f"{API}/artifacts/{model}"
    assert ana.delete(path).status_code == 409, "somebody waits for an answer about it"
    opened.work()
    ana.get(f"{API}/evaluations/{asked}", headers={"Prefer": "wait=5"})
    private = opened.service.settings.private
    assert list(private.glob(f"scores-*{model}*"))
    assert opened.client("bert").delete(path).status_code == 404
    assert ana.delete(path).status_code == 204
    opened.work()
    assert not list(private.glob(f"*{model}*"))
    assert not list(opened.service.settings.artifacts.glob(f"{model}*"))
    assert ana.get(path).status_code == 404
    with opened.service.store.read() as connection:
        assert jobs.bytes_of(opened.service, connection, "ana") == 0
    assert ana.get(f"{API}/reports/{asked}.html").status_code == 200, "its answers stay"


# --- quotas --------------------------------------------------------------------------------------


def test_every_kind_of_job_counts_as_waiting(tmp_path: Path) -> None:
    site = small(tmp_path, most_waiting=3)
    model = site.upload()["id"]
    assert [send(site).status_code for _ in range(2)] == [201, 201]
    assert site.ask(AUC, artifact=model, key="1").status_code == 202
    for refused in (send(site), site.ask(AUC, artifact=model, key="2")):
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        assert "cancel some" in refused.json()["detail"]
    assert send(site, "bert").status_code == 201, "another person's"
    waiting = site.client("ana").get(f"{API}/artifacts").json()
    assert len(waiting) == 3, "nothing of a refused upload stays"
    site.client("ana").delete(f"{API}/artifacts/{waiting[0]['id']}").raise_for_status()
    assert send(site).status_code == 201
    site.service.close()


def test_processor_seconds_are_counted_by_public_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = small(tmp_path, processor_seconds_per_hour=100)
    assert [send(site).status_code for _ in range(2)] == [201, 201]
    site.work()
    refused = send(site)
    assert refused.status_code == 429
    assert "100 processor seconds" in refused.json()["detail"]
    assert "Come back in 60 minutes" in refused.json()["detail"]
    assert 3500 < int(refused.headers["retry-after"]) <= 3600
    assert send(site, "bert").status_code == 201
    begun = storage.now()
    later = SimpleNamespace(time=lambda: begun + 3601)
    monkeypatch.setattr(storage, "time", later)
    assert send(site).status_code == 201
    site.service.close()


def test_scores_and_copies_count_towards_the_room_of_their_owner(tmp_path: Path) -> None:
    file = len(json.dumps(LINEAR))
    site = small(tmp_path, most_kept=2 * file + 50 * jobs.SCORE_BYTES)
    first, second = site.upload()["id"], site.upload(LINEAR | {"intercept": -2})["id"]
    assert site.answer(AUC, artifact=first, key="1")["state"] == "answered"
    refused = site.ask(AUC, artifact=second, key="2")
    assert (refused.status_code, "not enough room" in refused.json()["detail"]) == (413, True)
    assert send(site).status_code == 413
    site.client("ana").delete(f"{API}/artifacts/{first}").raise_for_status()
    site.work()
    assert site.ask(AUC, artifact=second, key="2").status_code == 202
    site.service.close()


def test_predictions_count_with_the_copy_that_is_made_of_them(tmp_path: Path) -> None:
    content = predictions(all_keys())
    site = small(tmp_path, most_kept=len(content) + 100)
    headers = {"Content-Type": "text/csv", "Prefer": "wait=0"}
    sent = site.client("ana").put(f"{API}/artifacts", content=content, headers=headers).json()
    site.work()
    found = site.client("ana").get(f"{API}/artifacts/{sent['id']}").json()
    assert (found["state"], "not enough room" in found["words"]) == ("refused", True)
    assert not list(site.service.settings.private.glob("predictions-*"))
    site.service.close()


def test_uploads_at_once_share_the_room_that_there_is(tmp_path: Path) -> None:
    from heldout.server.accounts import Person

    site = small(tmp_path, most_kept=1000)
    ana = Person("ana", "analyst", "", "api", ("ask",))
    assert artifacts.Upload(site.service, ana, 700).most == 700
    with pytest.raises(TooLarge):
        artifacts.Upload(site.service, ana, 400)
    assert artifacts.Upload(site.service, ana, None).most == 300
    with pytest.raises(TooLarge):
        artifacts.Upload(site.service, ana, None)
    site.service.close()


def test_a_slow_upload_counts_until_it_can_no_longer_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    from heldout.server.accounts import Person
    from heldout.server.service import TooMany, TooSlow

    clock, site = Steady(monkeypatch), small(tmp_path, most_kept=1000, most_waiting=1)
    ana = Person("ana", "analyst", "", "api", ("ask",))
    slow = artifacts.Upload(site.service, ana, 700)
    clock.at += 2 * site.service.settings.upload_seconds - 1
    with pytest.raises(TooMany):
        artifacts.Upload(site.service, ana, 100)
    clock.at += 2
    other = artifacts.Upload(site.service, ana, 700)  # the slow one holds nothing any more

    async def pieces() -> Any:
        yield b"{}"

    with pytest.raises(TooSlow):
        asyncio.run(slow.take(pieces(), content_type="application/json", name="slow"))
    slow.give_up()
    assert not list(site.service.settings.artifacts.glob(f"{slow.id}*"))
    asyncio.run(other.take(pieces(), content_type="application/json", name="other"))
    assert [each["name"] for each in site.client("ana").get(f"{API}/artifacts").json()] == ["other"]
    site.service.close()


@pytest.mark.parametrize("path", ["/api/v1/artifacts", "/artifacts"])
def test_a_body_that_does_not_come_is_given_up_and_frees_its_room(
    path: str, tmp_path: Path
) -> None:
    import asyncio

    from heldout.server import accounts as people

    site = small(tmp_path, upload_seconds=0.2, most_waiting=1)
    session = people.sign_in_by_link(site.service, people.new_link(site.service, "ana"))
    api = path.startswith("/api")
    credential = (
        (b"authorization", f"Bearer {site.tokens['ana']}".encode())
        if api
        else (b"cookie", f"heldout={session}".encode())
    )
    kind = b"application/json" if api else b"multipart/form-data; boundary=b"
    headers = [(b"host", b"testserver"), (b"content-type", kind), credential]
    scope = {"type": "http", "http_version": "1.1", "method": "PUT" if api else "POST"}
    scope |= {"path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http"}
    scope |= {"headers": headers, "client": ("192.0.2.1", 1), "server": ("testserver", 80)}
    begun = b"{" if api else b"--b\r\n"
    first = iter([{"type": "http.request", "body": begun, "more_body": True}])
    answers: list[Any] = []

    async def receive() -> Any:
        for message in first:
            return message
        await asyncio.sleep(60)

    async def answer(message: Any) -> None:
        answers.append(message)

    asyncio.run(site.app(scope, receive, answer))
    assert answers[0]["status"] == 408
    assert send(site).status_code == 201, "it holds no place"
    assert len(list(site.service.settings.artifacts.iterdir())) == 1
    site.service.close()


def test_a_form_has_its_room_before_a_byte_of_it_is_read(tmp_path: Path) -> None:
    from heldout.server import accounts as people

    site = small(tmp_path, most_waiting=1)
    assert send(site).status_code == 201
    ana = site.client()
    secret = people.sign_in_by_link(site.service, people.new_link(site.service, "ana"))
    ana.cookies.set("heldout", secret)

    def pieces() -> Any:
        raise AssertionError("nobody may read it")
        yield b""

    # Who waits to be let in sends nothing after a refusal, so that no byte of it is read.
    kind = {"Content-Type": "multipart/form-data; boundary=b", "Expect": "100-continue"}
    assert ana.post("/artifacts", content=pieces(), headers=kind).status_code == 429
    site.service.close()


def test_free_work_has_a_budget_and_says_when_to_come_back(tmp_path: Path) -> None:
    site = small(tmp_path, free_seconds_per_minute=1e-6)  # less than any quote takes
    ask = {"dataset": "readmissions", "questions": [AUC]}
    first = site.client("ana").post(f"{API}/quotes", json=ask)
    assert first.status_code == 200
    again = site.client("ana").post(f"{API}/quotes", json=ask)
    assert (again.status_code, again.json()["type"]) == (429, "TooMany")
    assert "1e-06 processor seconds per minute. Come back in" in again.json()["detail"]
    assert int(again.headers["retry-after"]) >= 1
    twin = site.client("ana").get(f"{API}/datasets/readmissions/twin.csv")
    assert twin.status_code == 429
    site.grant("bert", budget="1")
    assert site.client("bert").post(f"{API}/quotes", json=ask).status_code == 200
    site.service.close()


def test_to_read_an_answer_through_the_api_is_free_work(opened: Site) -> None:
    """The curves of many groups take seconds whenever no answer is remembered."""
    model, ana = opened.upload()["id"], opened.client("ana")
    found = opened.answer(AUC, artifact=model, key="k")
    opened.service.free._set("ana", -60.0)
    again = opened.ask(AUC, artifact=model, key="k")
    for sent in (ana.get(f"{API}/evaluations/{found['id']}"), again):
        assert sent.status_code == 429
        assert int(sent.headers["retry-after"]) >= 1
    assert ana.get(f"{API}/evaluations").status_code == 200  # without answers
    opened.service.free._left.clear()
    assert ana.get(f"{API}/evaluations/{found['id']}").json() == found


# --- ticks ---------------------------------------------------------------------------------------


def test_bookings_receipts_and_answers_are_at_ticks_whatever_the_work_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scoring, opening and drawing take longer, as a row could make them: no time moves."""
    from heldout.server import rows

    clock, told = Steady(monkeypatch), []
    site = small(tmp_path, tick=0.5, scoring_tick=2.0)
    score, opened, sign = rows.score_rows, rows.open_scored, site.worker.signer.sign
    for slower in (0.0, 0.3):

        def later(work: Any, slower: float = slower) -> Any:
            def done(*all_of_it: Any, **more: Any) -> Any:
                clock.at += slower
                return work(*all_of_it, **more)

            return done

        monkeypatch.setattr(rows, "score_rows", later(score))
        monkeypatch.setattr(rows, "open_scored", later(opened))
        monkeypatch.setattr(site.worker.signer, "sign", later(sign))
        clock.at = 1_900_000_000.0 + 1000 * len(told) + 0.123
        model = site.upload(LINEAR | {"intercept": slower})["id"]
        asked = site.ask(AUC, artifact=model, key=str(slower)).json()
        begun = clock.at
        assert site.worker.step()  # the scoring
        clock.at = begun + 1.9
        assert not site.worker.step(), "nothing is booked before the scoring's tick"
        assert bookings(site) == bookings(site)[: len(told)]
        site.work()
        clock.at += 60
        found = site.client("ana").get(f"{API}/evaluations/{asked['id']}").json()
        assert found["state"] == "answered"
        assert found["finished"] % 0.5 == 0
        told.append((found["finished"] - asked["created"], found["receipt"]["time"]))
    assert told[0][0] == pytest.approx(told[1][0])
    assert all(_seconds(moment) % 0.5 == 0 for _, moment in told)
    times = [entry["time"] for entry in site.client("olga").get(f"{API}/ledger").json()]
    assert all(_seconds(moment) % 0.5 == 0 for moment in times)
    site.service.close()


@pytest.mark.parametrize(
    ("reading", "failure"),
    [
        ("score_rows", None),
        ("score_rows", ScoringFailed("late")),
        ("score_rows", RuntimeError("out of memory")),
        ("open_scored", None),
        ("open_scored", RuntimeError("out of memory")),
        ("copy_rows", None),
        ("copy_rows", RuntimeError("out of memory")),
    ],
)
def test_whatever_waits_for_a_job_on_rows_begins_at_a_tick_however_long_it_took(
    reading: str, failure: Exception | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads that come while rows are read wait for the worker, or for their owner's turn."""
    from heldout.server import rows

    clock, moments, work = Steady(monkeypatch), [], getattr(rows, reading)
    for slower in (0.0, 0.7):
        clock.restart()
        site = small(tmp_path / str(slower), tick=1.0, scoring_tick=2.0)
        model, sent = site.upload()["id"], []

        def read(*all_of_it: Any, **more: Any) -> Any:
            clock.at += slower  # noqa: B023
            if not sent:  # noqa: B023
                sent.extend(send(site, who).json()["id"] for who in ("ana", "bert"))  # noqa: B023
            if failure is not None:
                raise failure
            return work(*all_of_it, **more)

        monkeypatch.setattr(rows, reading, read)
        clock.at = 1_900_001_000.123
        if reading == "copy_rows":
            site.register_again(tmp_path / str(slower) / "rows.parquet")
        else:
            site.ask(AUC, artifact=model, key="k").raise_for_status()
        site.work()
        monkeypatch.setattr(rows, reading, work)
        moments.append(_begun(site, sent))
        site.service.close()
    assert len(moments[0]) == 2
    assert moments[1] == moments[0]


def _begun(site: Site, artifacts: list[str]) -> list[float]:
    """When a worker took each upload up."""
    query = sa.select(storage.jobs.c.begun).where(storage.jobs.c.subject.in_(artifacts))
    with site.service.store.read() as connection:
        return sorted(connection.execute(query).scalars())


def _seconds(time: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(time).timestamp()


def test_a_scoring_that_is_late_fails_whole_unpaid_and_says_so(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heldout.server import rows

    def late(*_: Any, **__: Any) -> None:
        raise ScoringFailed("late")

    monkeypatch.setattr(rows, "score_rows", late)
    found = opened.answer(AUC, artifact=opened.upload()["id"], key="k")
    assert found["state"] == "refused"
    seconds = evaluations.declared_seconds(
        rows=400, seconds_per_row=opened.service.settings.seconds_per_row, one_process_per_row=False
    )
    assert f"within {seconds:g} seconds" in found["words"]
    assert "All scores were discarded" in found["words"]
    assert "Nothing was charged" in found["words"]
    assert bookings(opened) == []
    assert not list(opened.service.settings.private.glob("scores-*"))


# --- the promise ---------------------------------------------------------------------------------


@pytest.fixture
def two_workers(opened: Site) -> Iterator[Site]:
    stop = threading.Event()
    threads = [
        threading.Thread(target=run, args=(opened.service,), kwargs={"stop": stop})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    yield opened
    with opened.service.store.write() as connection:
        connection.execute(storage.jobs.update().values(state="done"))
    stop.set()
    for thread in threads:
        thread.join()


@pytest.mark.slow
def test_a_small_question_takes_at_most_three_times_as_long_while_another_has_100_jobs(
    two_workers: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the 100 is a scoring without end, which no quota of one worker would let pass."""
    from heldout.server import rows

    site = two_workers
    site.grant("bert", budget="2")
    headers = {"Prefer": "wait=30"}

    def asks(who: str, artifact: str, key: str) -> float:
        begun = time.monotonic()
        asked = site.ask(AUC | {"epsilon": "1/100"}, artifact=artifact, key=key, who=who).json()
        found = site.client(who).get(f"{API}/evaluations/{asked['id']}", headers=headers).json()
        assert found["state"] == "answered", found
        return time.monotonic() - begun

    def uploaded(who: str, **more: Any) -> str:
        sent = send(site, who, **more).json()["id"]
        found = site.client(who).get(f"{API}/artifacts/{sent}", headers=headers).json()
        assert found["state"] == "ready"
        return str(sent)

    small_one, long_one = uploaded("bert"), uploaded("ana")
    asks("bert", small_one, "scores it")
    idle = statistics.median(asks("bert", small_one, f"idle {n}") for n in range(5))
    released, score = threading.Event(), rows.score_rows

    def endless(held: Any, artifact: Any, *more: Any, **words: Any) -> None:
        if artifact.id == long_one:
            assert released.wait(120)
        score(held, artifact, *more, **words)

    monkeypatch.setattr(rows, "score_rows", endless)
    row = {"kind": "quarantine", "state": "waiting", "owner": "ana", "created": storage.now()}
    asked = site.ask(AUC, artifact=long_one, key="long")
    assert asked.status_code == 202
    with site.service.store.write() as connection:
        many = [row | {"subject": long_one + f"-{n}"} for n in range(100)]
        connection.execute(storage.jobs.insert(), many)
    busy = [asks("bert", small_one, f"busy {n}") for n in range(5)]
    with site.service.store.read() as connection:
        left = sa.select(sa.func.count()).where(storage.jobs.c.state == "waiting")
        assert connection.execute(left).scalar_one() >= 100, "they waited all the time"
    released.set()
    assert statistics.median(busy) <= 3 * idle, (idle, busy)


def test_an_evaluation_without_a_model_has_the_tick_of_reading_all_rows(
    tmp_path: Path,
) -> None:
    opened = Site(tmp_path / "server", tick=0.1, scoring_tick=0.3)
    opened.register(write_rows(tmp_path / "rows.parquet"))
    from heldout.server.datasets import find
    from heldout.server.evaluations import answer_tick, scoring_tick, tick_of

    registered = find(opened.service, "readmissions")
    service = opened.service
    ticks = [answer_tick(service, registered, [{"question": kind}]) for kind in ("auc", "training")]
    assert ticks == [tick_of(service, registered), scoring_tick(service, registered)]


def test_what_compares_rows_for_longer_than_a_tick_has_the_longer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A concordance of 100,000 rows takes 0.16 to 0.41 s, by what they hold; a tick is 0.2 s."""
    from heldout import questions as q
    from heldout.server.datasets import find
    from heldout.server.evaluations import answer_tick, scoring_tick

    site = Site(tmp_path / "server", tick=0.1, scoring_tick=0.3)
    site.register(write_rows(tmp_path / "rows.parquet"))
    registered = find(site.service, "readmissions")
    assert q.find("concordance").takes_long
    monkeypatch.setattr(q.find("auc"), "takes_long", True)
    both = [{"question": "confusion"}, {"question": "auc"}]
    tick = answer_tick(site.service, registered, both)
    assert tick == scoring_tick(site.service, registered)
