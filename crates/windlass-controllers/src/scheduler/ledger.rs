//! What the pods on each node have asked for, kept up to date pod by pod.

use std::collections::BTreeMap;

use windlass_runtime::ObjectKey;

use super::fit::{Amounts, add};
use super::quantity::Milli;

/// Which pod takes what, and where.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pods: BTreeMap<ObjectKey, (String, Amounts)>,
    nodes: BTreeMap<String, Amounts>,
}

impl Ledger {
    /// A pod is on a node.
    pub(super) fn take(&mut self, pod: &ObjectKey, node: &str, amounts: Amounts) {
        self.release(pod);
        add(self.nodes.entry(node.to_owned()).or_default(), &amounts);
        self.pods.insert(pod.clone(), (node.to_owned(), amounts));
    }

    /// A pod is gone, or has ended.
    pub(super) fn release(&mut self, pod: &ObjectKey) {
        let Some((node, amounts)) = self.pods.remove(pod) else { return };
        let less: Amounts = amounts.into_iter().map(|(name, amount)| (name, Milli(-amount.0))).collect();
        if let Some(taken) = self.nodes.get_mut(&node) {
            add(taken, &less);
        }
    }

    /// What is taken on a node.
    pub(super) fn taken(&self, node: &str) -> Amounts {
        self.nodes.get(node).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pod_takes_is_counted_once_and_given_back() {
        let mut ledger = Ledger::default();
        let pod = ObjectKey::namespaced("default", "a");
        let half = || Amounts::from([("cpu".to_owned(), Milli(500))]);
        ledger.take(&pod, "n", half());
        ledger.take(&pod, "n", half());
        ledger.take(&ObjectKey::namespaced("default", "b"), "n", half());
        assert_eq!(ledger.taken("n")["cpu"], Milli(1000));
        ledger.release(&pod);
        ledger.release(&pod);
        assert_eq!(ledger.taken("n")["cpu"], Milli(500));
        assert!(ledger.taken("other").is_empty());
    }
}
