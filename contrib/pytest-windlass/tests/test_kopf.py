"""An operator with kopf: the second example of docs/testing-python.md."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from kubernetes import client, config

OPERATOR = Path(__file__).with_name("greeter.py")

TEXT = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"name": TEXT}},
        "status": {"type": "object", "properties": {"text": TEXT}},
    },
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "greetings.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Greeting", "plural": "greetings"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


@pytest.fixture
def operator(windlass_cluster):
    config.load_kube_config(str(windlass_cluster.kubeconfig))
    client.ApiextensionsV1Api().create_custom_resource_definition(CRD)
    command = [sys.executable, "-m", "kopf", "run", "--all-namespaces", OPERATOR]
    process = subprocess.Popen(command, env=windlass_cluster.environ)
    yield
    process.terminate()
    process.wait()


def test_a_greeting_is_answered(operator):
    greetings = client.CustomObjectsApi()
    kind = {"apiVersion": "example.com/v1", "kind": "Greeting"}
    place = {"group": "example.com", "version": "v1", "namespace": "default", "plural": "greetings"}
    greetings.create_namespaced_custom_object(
        **place, body={**kind, "metadata": {"name": "ada"}, "spec": {"name": "Ada"}}
    )
    deadline = time.monotonic() + 30
    while True:
        greeting = greetings.get_namespaced_custom_object(**place, name="ada")
        if greeting.get("status", {}).get("text") == "Hello Ada":
            break
        assert time.monotonic() < deadline, greeting
        time.sleep(0.05)
