"""The prices are append-only: a line here is never changed, only added."""

import pickle
from fractions import Fraction

import pytest

from heldout.errors import ArgumentError, PrivacyError, UnknownEvent
from heldout.kernel import events
from heldout.kernel.events import Event, leaves, price, priced_kinds

LAPLACE = (
    '{"kind":"discrete-laplace","parameters":{"dimension":"4","l1_sensitivity":"2","scale":"10"},'
    '"version":1}'
)
GAUSSIAN = (
    '{"kind":"discrete-gaussian","parameters":{"dimension":"4","l2_sensitivity_squared":"2",'
    '"sigma_squared":"8"},"version":1}'
)
EXPONENTIAL = '{"kind":"exponential","parameters":{"epsilon":"1/4"},"version":1}'
APPROXIMATE = (
    '{"kind":"smooth-laplace-2015","parameters":{"delta":"1/1000000","epsilon":"1/2"},"version":1}'
)


def polynomial_tail(nu: str) -> str:
    parameters = '{"a":"1/2","beta":"1/8","nu":"' + nu + '"}'
    return '{"kind":"smooth-polynomial-tail","parameters":' + parameters + ',"version":1}'


def composed(*parts: str) -> str:
    return '{"kind":"composed","parameters":{"parts":[' + ",".join(parts) + ']},"version":1}'


GOLDEN = {
    LAPLACE: "epsilon 0.2",
    GAUSSIAN: "rho 0.125",
    EXPONENTIAL: "epsilon 0.25",
    APPROXIMATE: "epsilon 0.5, delta 0.000001",
    polynomial_tail("5"): "epsilon 1",
    polynomial_tail("3/2"): "epsilon 0.625",
    '{"kind":"smooth-cauchy","parameters":{"a":"1/3","beta":"1/6"},"version":1}': "epsilon 0.5",
    '{"kind":"smooth-cauchy-2015","parameters":{"epsilon":"1/2"},"version":1}': "epsilon 0.5",
    '{"kind":"piecewise-laplace","parameters":{"epsilon":"1/2"},"version":1}': "epsilon 0.5",
    '{"kind":"disjoint-rows","parameters":{"epsilon":"1/2"},"version":1}': "epsilon 0.5",
    '{"kind":"adaptive","parameters":{"epsilon":"1/2"},"version":1}': "epsilon 0.5",
    '{"kind":"weighted-laplace","parameters":{"epsilon":"1/2"},"version":1}': "epsilon 0.5",
    '{"kind":"noise-share","parameters":{"dimension":"4","honest":"3","l1_sensitivity":"2","scale":"8"},'
    '"version":1}': "epsilon 0.25",
    '{"kind":"wishart-difference","parameters":{"scale":"4","size":"3","trace":"2"},"version":1}': (
        "epsilon 0.25"
    ),
    '{"kind":"covered","parameters":{"entry":"7"},"version":1}': "epsilon 0",
    '{"kind":"sparse-vector","parameters":{"epsilon":"1/2"},"version":1}': "epsilon 0.5",
    '{"kind":"objective-perturbation","parameters":{"epsilon":"1/2"},"version":1}': "epsilon 0.5",
    '{"kind":"declared","parameters":{"epsilon":"1/2"},"version":1}': "epsilon 0.5",
    composed(LAPLACE, EXPONENTIAL): "epsilon 0.45",
    composed(LAPLACE, APPROXIMATE): "epsilon 0.7, delta 0.000001",
    composed(EXPONENTIAL, GAUSSIAN): "rho 0.15625",
    composed(composed(LAPLACE), LAPLACE): "epsilon 0.4",
}


@pytest.mark.parametrize("text", GOLDEN, ids=lambda text: text[:60])
def test_an_event_of_the_past_is_read_written_and_priced_as_ever(text):
    event = Event.decode(text)
    assert event.encode() == text
    assert str(price(event)) == GOLDEN[text]
    assert pickle.loads(pickle.dumps(event)) == event


def test_every_kind_has_a_golden_event():
    decoded = [Event.decode(text) for text in GOLDEN]
    assert {(event.kind, event.version) for event in decoded} == set(priced_kinds())
    for event in decoded:
        assert priced_kinds()[event.kind, event.version] == set(event.parameters)


def test_a_price_cannot_be_replaced():
    with pytest.raises(RuntimeError, match="add a version"):
        events._priced("exponential", 1)(lambda: None)


@pytest.mark.parametrize(
    "event",
    [
        Event("hope", {"epsilon": 1}),
        Event("exponential", {"epsilon": 1}, 2),
        Event("exponential", {}),
        Event("exponential", {"epsilon": 1, "rows": 5}),
        Event("composed", {"parts": [Event("hope", {})]}),
        Event("composed", {"parts": [Event("exponential", {"epsilon": 1})], "count": 2}),
    ],
    ids=lambda event: event.encode()[:70],
)
def test_what_has_no_price_is_refused(event):
    with pytest.raises(UnknownEvent):
        price(event)
    with pytest.raises(UnknownEvent):
        [price(part) for part in leaves(event)]


@pytest.mark.parametrize(
    "event",
    [
        Event("exponential", {"epsilon": 0}),
        Event("exponential", {"epsilon": -1}),
        Event("exponential", {"epsilon": []}),
        Event("discrete-laplace", {"l1_sensitivity": 1, "scale": 0, "dimension": 1}),
        Event("discrete-laplace", {"l1_sensitivity": -1, "scale": 1, "dimension": 1}),
        Event("discrete-laplace", {"l1_sensitivity": 1, "scale": 1, "dimension": "1/2"}),
        Event("smooth-polynomial-tail", {"a": 1, "beta": 1, "nu": 1}),
        Event("smooth-polynomial-tail", {"a": 1, "beta": -1, "nu": 3}),
        Event("smooth-cauchy", {"a": 1, "beta": -1}),
        Event("smooth-laplace-2015", {"epsilon": 1, "delta": 1}),
        Event("smooth-laplace-2015", {"epsilon": 1, "delta": 0}),
        Event("composed", {"parts": []}),
        Event("composed", {"parts": "3"}),
    ],
    ids=lambda event: event.encode()[:90],
)
def test_a_parameter_out_of_its_range_has_no_price(event):
    with pytest.raises(ArgumentError):
        price(event)


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}",
             '{"kind":"exponential","parameters":{"epsilon":0.5},"version":1}',
             '{"kind":"exponential","parameters":{"epsilon":"x"},"version":1}',
             '{"kind":"exponential","parameters":[],"version":1}',
             '{"kind":"exponential","parameters":{"epsilon":"1"},"version":1,"more":1}',
             '{"kind":"exponential","parameters":{"epsilon":"1"},"version":true}']
)  # fmt: skip
def test_text_that_is_no_event_is_refused(text):
    with pytest.raises(UnknownEvent):
        Event.decode(text)


def test_an_event_is_frozen_and_equal_to_its_spelling():
    event = Event("exponential", {"epsilon": 0.25})
    assert event == Event("exponential", {"epsilon": Fraction(1, 4)}) == Event.decode(EXPONENTIAL)
    assert len({event, Event.decode(EXPONENTIAL)}) == 1
    with pytest.raises(AttributeError):
        event.kind = "hope"
    with pytest.raises(TypeError):
        event.parameters["epsilon"] = "0"


def test_deltas_that_add_up_to_one_are_no_privacy():
    half = Event("smooth-laplace-2015", {"epsilon": 1, "delta": "1/2"})
    with pytest.raises(PrivacyError, match="add up to less than 1"):
        price(Event.composed([half, half]))
