//! The status of an object.

use jiff::Timestamp;
use windlass::conditions;

use crate::{
    InvalidSpec,
    apis::samplecrd::v1::{Network, NetworkStatus},
    neutron::Error,
    sync::Actual,
};

/// The type of the condition.
const READY: &str = "Ready";

/// How the work on an object ended.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// True if Neutron agrees with the object.
    pub(crate) is_wanted: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    outcome: Outcome,
}

/// The state of Neutron.
#[derive(Clone, Debug)]
enum Outcome {
    Ready(Actual),
    /// The earlier state, if any.
    Unknown,
    Deleted,
}

/// A status that differs from the earlier status.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) status: NetworkStatus,
    /// True if the condition has a new status or reason.
    pub(crate) is_transition: bool,
}

impl Report {
    pub(crate) fn ready(actual: &Actual) -> Self {
        let message = format!("Neutron has network {} with subnet {}", actual.network_id, actual.subnet_id);
        Self { is_wanted: true, reason: "Synced", message, outcome: Outcome::Ready(actual.clone()) }
    }

    pub(crate) fn deleted() -> Self {
        let message = "Neutron has no network of this object, which is being deleted".to_owned();
        Self { is_wanted: true, reason: "Deleted", message, outcome: Outcome::Deleted }
    }

    pub(crate) fn invalid(invalid: &InvalidSpec) -> Self {
        let message = invalid.message.clone();
        Self { is_wanted: false, reason: invalid.reason, message, outcome: Outcome::Unknown }
    }

    pub(crate) fn failed(error: &Error) -> Self {
        let message = error.to_string();
        Self { is_wanted: false, reason: error.reason(), message, outcome: Outcome::Unknown }
    }
}

/// Returns whether the status says that Neutron agrees with this generation of the object.
pub(crate) fn is_synced(network: &Network) -> bool {
    let conditions = network.status.iter().flat_map(|status| &status.conditions);
    let is_ready = |condition: &conditions::Condition| {
        condition.type_ == READY
            && condition.status == "True"
            && condition.observed_generation == network.metadata.generation
    };
    conditions.into_iter().any(is_ready)
}

/// Returns the status after a report, or `None` for an unchanged status.
pub(crate) fn status(network: &Network, report: &Report, now: Timestamp) -> Option<Changed> {
    let before = network.status.clone().unwrap_or_default();
    let mut status = before.clone();
    match &report.outcome {
        Outcome::Ready(actual) => {
            status.network_id = Some(actual.network_id.clone());
            status.subnet_id = Some(actual.subnet_id.clone());
        }
        Outcome::Deleted => (status.network_id, status.subnet_id) = (None, None),
        Outcome::Unknown => {}
    }
    let is_ready = matches!(report.outcome, Outcome::Ready(_));
    let condition = conditions::condition(READY, is_ready, report.reason, &report.message)
        .observed_generation(network.metadata.generation);
    conditions::set(&mut status.conditions, condition, now);
    let of = |status: &NetworkStatus| {
        let ready = status.conditions.iter().find(|condition| condition.type_ == READY);
        ready.map(|condition| (condition.status.clone(), condition.reason.clone()))
    };
    let is_transition = of(&before) != of(&status);
    (status != before).then_some(Changed { status, is_transition })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apis::samplecrd::v1::NetworkSpec;

    #[test]
    fn a_status_is_written_when_it_changes() {
        let mut network = Network::new("a", NetworkSpec { cidr: String::new(), gateway: String::new() });
        let actual = Actual { network_id: "n".to_owned(), subnet_id: "s".to_owned(), is_recreated: false };
        let now = Timestamp::UNIX_EPOCH;
        let first = status(&network, &Report::ready(&actual), now).expect("changed");
        assert!(first.is_transition && first.status.network_id.as_deref() == Some("n"));
        network.status = Some(first.status);
        assert!(status(&network, &Report::ready(&actual), now).is_none());

        let down = |reason: &str| Error::Unreachable { server: "Neutron", reason: reason.to_owned() };
        let failed = status(&network, &Report::failed(&down("refused")), now).expect("changed");
        assert!(failed.is_transition && failed.status.network_id.as_deref() == Some("n"), "the ID is kept");
        network.status = Some(failed.status);
        let again = status(&network, &Report::failed(&down("timeout")), now).expect("another message");
        assert!(!again.is_transition, "the reason is the same");
    }
}
