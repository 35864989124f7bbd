"""The official client: the first example of docs/testing-python.md."""

import time

from kubernetes import client, config


def test_a_deployment_gets_its_pods(windlass_cluster):
    config.load_kube_config(str(windlass_cluster.kubeconfig))
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment("default", deployment("web", replicas=2))
    deadline = time.monotonic() + 30
    while apps.read_namespaced_deployment("web", "default").status.ready_replicas != 2:
        assert time.monotonic() < deadline, "the pods are not ready"
        time.sleep(0.05)


def deployment(name, replicas):
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
