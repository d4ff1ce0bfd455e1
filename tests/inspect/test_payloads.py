"""Payloads as plain data: what nodes, groups, kernels and lines say; JSON can hold them."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np

import jaxlite as jax
from jaxlite import lax
from jaxlite.inspect import fusion_payload, fusion_text, graph_payload, graph_text

X = np.ones((3, 4), np.float32)


def nested(x):
    def body(carry, _):
        return lax.sin(carry), lax.cos(carry)

    carry, _ = lax.scan(body, lax.exp(x), None, length=3)
    return lax.neg(carry)


def report_of(function, *args):
    return jax.jit(function).lower(*args).compile().report


def by_label(payload):
    return {n["label"]: n for n in payload["nodes"]}


def test_nodes_say_type_bytes_and_line():
    payload = graph_payload(jax.make_jaxpr(nested)(X))
    node = by_label(payload)["exp"]
    assert node["values"][0]["shape"] == [3, 4] and node["values"][0]["dtype"] == "float32"
    assert node["values"][0]["bytes"] == {"value": 48, "unit": "B", "basis": "predicted"}
    assert node["source"]["text"] == "carry, _ = lax.scan(body, lax.exp(x), None, length=3)"
    assert node["source"]["label"].startswith("test_payloads.py, line ")
    assert node["source"]["key"] in [line["key"] for line in payload["lines"]]


def test_nested_jaxprs_are_groups_between_an_entry_and_an_exit():
    payload = graph_payload(jax.make_jaxpr(nested)(X))
    nodes = by_label(payload)
    assert [(g["label"], g["parent"], g["kind"]) for g in payload["groups"]] == [("scan", None, "jaxpr")]
    home = payload["groups"][0]["id"]
    assert nodes["sin"]["parent"] == nodes["scan"]["parent"] == home
    edges = {tuple(e) for e in payload["edges"]}
    ids = {label: n["id"] for label, n in nodes.items()}
    path = ["x", "exp", "scan", "sin", "end of scan", "neg", "result"]
    assert all((ids[a], ids[b]) in edges for a, b in itertools.pairwise(path))


def test_branches_are_groups_of_their_own():
    def traced(p, x):
        return lax.cond(p, lax.sin, lax.cos, x)

    payload = graph_payload(jax.make_jaxpr(traced)(True, 1.0))
    labels = {g["label"]: g for g in payload["groups"]}
    assert labels["branches[0]"]["parent"] == labels["branches[1]"]["parent"] == labels["cond"]["id"]


def test_edges_go_from_earlier_nodes_to_later_ones():
    payload = graph_payload(jax.make_jaxpr(jax.grad(lambda x: lax.sin(lax.exp(x))))(1.0))
    place = {n["id"]: i for i, n in enumerate(payload["nodes"])}
    assert all(place[a] < place[b] for a, b in payload["edges"])


def test_what_a_transformation_made_says_so():
    payload = graph_payload(jax.make_jaxpr(jax.grad(lambda x: lax.sin(x)))(1.0))
    assert any(n["source"] and n["source"]["made_by"] for n in payload["nodes"])


def test_kernels_are_clusters_with_their_reason():
    report = report_of(nested, X)
    payload = graph_payload(report.simplified, report.groups)
    clusters = {g["id"]: g for g in payload["groups"] if g["kind"] == "kernel"}
    nodes = by_label(payload)
    assert clusters[nodes["exp"]["kernel"]]["reason"]
    assert clusters[nodes["sin"]["parent"]]["parent"] == nodes["scan"]["parent"]
    kernels = {k["id"]: k for k in fusion_payload(report)["kernels"]}
    assert kernels[nodes["exp"]["kernel"]]["name"] == nodes["exp"]["kernel_name"]


def test_closed_over_arrays_are_constants():
    w = jax.device_put(np.ones(4, np.float32))
    report = report_of(lambda x: lax.mul(x, w), np.ones(4, np.float32))
    kinds = {n["label"]: n["kind"] for n in graph_payload(report.jaxpr)["nodes"]}
    assert kinds["x"] == "input" and "constant" in kinds.values()


def test_fusion_says_what_is_in_each_kernel_and_why():
    payload = fusion_payload(report_of(lambda x: lax.sin(lax.exp(x)), X))
    (kernel,) = payload["kernels"]
    assert [e["text"].split(" = ")[1].split()[0] for e in kernel["equations"]] == ["exp", "sin"]
    assert kernel["reads"]["value"] == kernel["writes"]["value"] == 48
    assert kernel["reads"]["basis"] == "predicted" and kernel["loop_nest"]
    decisions = [d for p in payload["passes"] for d in p["decisions"]]
    assert decisions and all(d["reason"] for d in decisions)
    assert all(p["seconds"]["basis"] == "measured" for p in payload["passes"])


def test_payloads_are_json():
    report = report_of(nested, X)
    for payload in (graph_payload(report.simplified, report.groups), fusion_payload(report)):
        assert json.loads(json.dumps(payload)) == payload
        assert payload["version"] == 1


def test_text_forms_name_lines_and_say_what_is_predicted():
    report = report_of(nested, X)
    text = graph_text(graph_payload(report.simplified, report.groups))
    assert "exp  f32[3,4] 48 B  # test_payloads.py, line" in text and "[scan]" in text
    text = fusion_text(fusion_payload(report))
    assert "(predicted)" in text and "Decisions:" in text
    assert "simplify over the body of scan" in text
    assert str(report) == text


def test_every_number_in_the_text_says_whether_it_is_predicted_or_measured():
    text = str(report_of(nested, X))
    units = re.findall(r"[\d.,]+ (?:B|ns|µs|ms|s)\b(?:[^\n]*?)(\(predicted\)|\(measured\)|, predicted\)|$)", text, re.M)
    assert len(units) > 10 and all(units)
