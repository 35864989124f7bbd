//! A cluster of JSON objects.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};
use windlass_runtime::ObjectKey;

use crate::scheduler::cluster::{Cluster, NodeFacts, PodFacts};
use crate::scheduler::decision::{Decision, Room, Wait, decide};
use crate::scheduler::filters::{Filters, Request};
use crate::scheduler::volumes::PodVolumes;

/// Nodes and pods for a decision.
#[derive(Default)]
pub(super) struct TestCluster {
    pub(super) cluster: Cluster,
    budgets: Vec<Value>,
}

impl TestCluster {
    /// Makes nodes with 2 CPUs, 4 GiB of memory and room for 2 pods.
    pub(super) fn of(nodes: &[&str]) -> Self {
        nodes.iter().fold(Self::default(), |cluster, name| cluster.node(name, json!({}), json!({})))
    }

    pub(super) fn node(mut self, name: &str, labels: Value, spec: Value) -> Self {
        let mut node = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": spec,
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "2"}},
        });
        merge(&mut node["metadata"]["labels"], labels);
        let node: Node = serde_json::from_value(node).unwrap();
        self.cluster.set_node(NodeFacts::of(&node));
        self
    }

    pub(super) fn resources(mut self, name: &str, allocatable: Value) -> Self {
        let labels = json!({"kubernetes.io/hostname": name});
        let node = json!({
            "metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable},
        });
        let node: Node = serde_json::from_value(node).unwrap();
        self.cluster.set_node(NodeFacts::of(&node));
        self
    }

    /// Puts a pod on a node.
    pub(super) fn with(mut self, node: &str, pod: Value) -> Self {
        self.place(node, pod);
        self
    }

    pub(super) fn place(&mut self, node: &str, pod: Value) {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.cluster.place(&key_of(&pod), node, PodFacts::of(&pod));
    }

    pub(super) fn namespace(mut self, name: &str, labels: Value) -> Self {
        self.cluster.set_namespace(name, Some(serde_json::from_value(labels).unwrap()));
        self
    }

    pub(super) fn budget(mut self, labels: Value, allowed: i32) -> Self {
        self.budgets.push(json!({
            "metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": labels}},
            "status": {
                "disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
            },
        }));
        self
    }

    pub(super) fn decide(&self, pod: Value) -> Decision {
        self.decide_as(pod, None, true)
    }

    pub(super) fn decide_as(&self, pod: Value, obstacle: Option<&str>, is_strict: bool) -> Decision {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let (key, facts) = (key_of(&pod), PodFacts::of(&pod));
        let volumes = PodVolumes::default();
        let request = Request { key: &key, pod: &pod, facts: &facts, volumes: &volumes, is_strict };
        let budget = |budget: &Value| serde_json::from_value::<PodDisruptionBudget>(budget.clone()).unwrap();
        let budgets = || Ok(self.budgets.iter().map(budget).map(std::sync::Arc::new).collect());
        decide(request, &self.cluster, obstacle.map(str::to_owned), budgets).unwrap()
    }

    /// Returns the nodes that can take the pod.
    pub(super) fn allowed(&self, pod: Value) -> Vec<String> {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let (key, facts) = (key_of(&pod), PodFacts::of(&pod));
        let volumes = PodVolumes::default();
        let request = Request { key: &key, pod: &pod, facts: &facts, volumes: &volumes, is_strict: true };
        let filters = Filters::new(request, &self.cluster);
        let allowed = self.cluster.nodes().filter(|node| filters.rejection(*node).is_none());
        allowed.map(|node| node.facts.name.clone()).collect()
    }

    /// Returns the chosen node, or the message.
    pub(super) fn choose(&self, pod: Value) -> Result<String, String> {
        match self.decide(pod) {
            Decision::Bind(node) => Ok(node),
            Decision::Wait(wait) => Err(wait.message),
        }
    }

    /// Returns the message about a pod that fits on no node, without the part about the preemption.
    pub(super) fn refusal(&self, pod: Value) -> String {
        let message = self.choose(pod).unwrap_err();
        message.split(" no new claims to deallocate, preemption: ").next().unwrap().to_owned()
    }

    /// Returns the node and the victims of a preemption, or the message.
    pub(super) fn victims(&self, pod: Value) -> Result<(String, Vec<String>), String> {
        match self.decide(pod) {
            Decision::Wait(Wait { room: Room::Victims { node, pods }, .. }) => {
                Ok((node, pods.iter().map(|key| key.name().to_owned()).collect()))
            }
            Decision::Wait(wait) => Err(wait.message),
            Decision::Bind(node) => panic!("the pod fits on {node}"),
        }
    }
}

pub(super) fn key_of(pod: &Pod) -> ObjectKey {
    let namespace = pod.metadata.namespace.as_deref();
    ObjectKey::new(namespace, pod.metadata.name.as_deref().unwrap_or_default())
}

/// Returns a pod in the namespace `default`.
pub(super) fn pod(name: &str, spec: Value) -> Value {
    labelled(name, json!({}), spec)
}

pub(super) fn labelled(name: &str, labels: Value, mut spec: Value) -> Value {
    let containers = json!([{"name": "c"}]);
    spec.as_object_mut().unwrap().entry("containers").or_insert(containers);
    let metadata = json!({"name": name, "namespace": "default", "uid": name, "labels": labels});
    json!({"metadata": metadata, "spec": spec})
}

/// Returns the containers of a pod that requests resources.
pub(super) fn requesting(requests: Value) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": requests}}]})
}

pub(super) fn merge(object: &mut Value, change: Value) {
    match (object, change) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(fields.entry(key).or_insert(Value::Null), change);
            }
        }
        (place, change) => *place = change,
    }
}
