//! The back-off before a failed pod of a node is replaced.

use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

const FIRST: SignedDuration = SignedDuration::from_secs(1);
const LONGEST: SignedDuration = SignedDuration::from_mins(15);

/// The last replacement on each node, and the delay after the replacement.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(BTreeMap<String, (Timestamp, SignedDuration)>);

impl Failures {
    /// Allows the replacement of a failed pod on a node.
    ///
    /// # Errors
    /// The end of the back-off, if that is later than now.
    pub(super) fn replace(&mut self, node: &str, now: Timestamp) -> Result<(), Timestamp> {
        let mut delay = FIRST;
        if let Some((last, wait)) = self.0.get(node) {
            let end = last.checked_add(*wait).unwrap_or(Timestamp::MAX);
            if end > now {
                return Err(end);
            }
            // A node without failures for twice the longest delay begins anew.
            let forgotten = last.checked_add(LONGEST * 2).is_ok_and(|forgotten| forgotten < now);
            delay = if forgotten { FIRST } else { wait.saturating_mul(2).min(LONGEST) };
        }
        self.0.insert(node.to_owned(), (now, delay));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_on_a_node_are_replaced_ever_later() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut failures = Failures::default();
        assert_eq!(failures.replace("n", at(0)), Ok(()));
        assert_eq!(failures.replace("other", at(0)), Ok(()));
        assert_eq!(failures.replace("n", at(0)), Err(at(1)));
        assert_eq!(failures.replace("n", at(1)), Ok(()));
        assert_eq!(failures.replace("n", at(2)), Err(at(3)));
        assert_eq!(failures.replace("n", at(90_000)), Ok(()));
        assert_eq!(failures.replace("n", at(90_000)), Err(at(90_001)));
    }
}
