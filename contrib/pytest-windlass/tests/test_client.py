"""The official client: the first example of docs/testing-python.md."""

import time

from kubernetes import client, config


def test_a_deployment_gets_its_pods(windlass_cluster):
    config.load_kube_config(str(windlass_cluster.kubeconfig))
    labels = {"app": "web"}
    deployment = client.V1Deployment(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1DeploymentSpec(
            replicas=2,
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels),
                spec=client.V1PodSpec(containers=[client.V1Container(name="web", image="nginx")]),
            ),
        ),
    )
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment("default", deployment)
    deadline = time.monotonic() + 30
    while apps.read_namespaced_deployment("web", "default").status.ready_replicas != 2:
        assert time.monotonic() < deadline, "the pods are not ready"
        time.sleep(0.05)
