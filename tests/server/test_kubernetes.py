"""The manifests are what Kubernetes takes, and give each part the least that it needs."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from heldout.cli import make_app
from heldout.server.settings import PREFIX, offered

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "deploy" / "kubernetes" / "heldout.yaml").read_text(encoding="utf-8")


def named(kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in yaml.safe_load_all(TEXT) if one["kind"] == kind}


def pods() -> dict[str, Any]:
    found = named("Deployment") | named("Job")
    return {name: one["spec"]["template"]["spec"] for name, one in found.items()}


@pytest.mark.parametrize("version", ["1.28", "1.33"])
def test_every_manifest_fits_its_schema(version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    kinds = set()
    for one in yaml.safe_load_all(TEXT):
        validate.validate(one, version, strict=True)
        kinds.add(one["kind"])
    assert {"Deployment", "Job", "NetworkPolicy", "Service", "Ingress"} <= kinds


def test_the_schema_notices_a_wrong_field() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    wrong = next(one for one in yaml.safe_load_all(TEXT) if one["kind"] == "Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["securityContex"] = {}
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, "1.33", strict=True)


@pytest.mark.parametrize("part", ["prepare", "web", "worker"])
def test_every_pod_is_confined(part: str) -> None:
    pod = pods()[part]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False  # they would be taken for settings
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    confined = container["securityContext"]
    assert confined["allowPrivilegeEscalation"] is False
    assert confined["readOnlyRootFilesystem"] is True
    assert confined["capabilities"] == {"drop": ["ALL"]}
    assert "memory" in container["resources"]["limits"]
    enforced = named("Namespace")["heldout"]["metadata"]["labels"]
    assert enforced["pod-security.kubernetes.io/enforce"] == "restricted"


def test_workers_alone_have_rows_scores_and_their_key() -> None:
    claims, secrets = {}, {}
    for part, pod in pods().items():
        claims[part] = {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["volumes"]
            if "persistentVolumeClaim" in volume
        }
        variables = pod["containers"][0]["env"]
        secrets[part] = {one["valueFrom"]["secretKeyRef"]["name"] for one in variables}
        names = {one["name"] for one in variables}
        assert (f"{PREFIX}ROWS_KEY" in names) == (part == "worker")
    assert claims == {
        "prepare": {"server"},
        "web": {"server"},
        "worker": {"server", "private", "rows"},
    }
    assert secrets == {
        "prepare": {"heldout-owner"},
        "web": {"heldout-web"},
        "worker": {"heldout-worker"},
    }
    mounts = pods()["worker"]["containers"][0]["volumeMounts"]
    assert next(one for one in mounts if one["name"] == "rows")["readOnly"] is True


def test_no_worker_has_a_way_out() -> None:
    policies = [one["spec"] for one in named("NetworkPolicy").values()]
    assert {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]} in policies
    ways = [way for policy in policies for way in policy.get("egress", ())]
    assert len(ways) == 2
    for way in ways:
        assert {port["port"] for port in way["ports"]} <= {5432, 53}
        (to,) = way["to"]
        assert "ipBlock" not in to
        assert to != {"namespaceSelector": {}}


def test_settings_and_commands_exist() -> None:
    known = {one.variable for one in offered()}
    given = set(named("ConfigMap")["heldout"]["data"])
    for pod in pods().values():
        (container,) = pod["containers"]
        given |= {one["name"] for one in container["env"]}
        tokens = [str(one) for one in container["args"]]
        app = make_app()
        app.parse_args(shlex.join(tokens), print_error=False, exit_on_error=False)
    roles = {"HELDOUT_WEB_PASSWORD", "HELDOUT_WORKER_PASSWORD"}
    assert given - roles <= known
