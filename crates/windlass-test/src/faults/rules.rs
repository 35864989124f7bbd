//! The faults that a test adds.

use windlass_runtime::permission::Access;

use super::fault::{Fault, FaultRule, RequestFacts};

/// The rules of a test: the rules that may strike, and the unfinished rules that were cleared.
#[derive(Debug, Default)]
pub(crate) struct FaultRules {
    armed: Vec<FaultRule>,
    /// The cleared rules that had not struck the wanted number of times.
    cleared: Vec<FaultRule>,
}

impl FaultRules {
    pub(crate) fn add(&mut self, rule: FaultRule) {
        self.armed.push(rule);
    }

    /// Returns the fault of the first rule that strikes a request for the object with a name.
    pub(crate) fn strike(
        &mut self,
        access: &Access,
        name: Option<&str>,
        facts: RequestFacts,
    ) -> Option<Fault> {
        self.armed.iter_mut().find_map(|rule| rule.strike(access, name, facts))
    }

    /// Lets no rule strike any more.
    pub(crate) fn clear(&mut self) {
        self.cleared.extend(self.armed.drain(..).filter(|rule| !rule.is_over()));
    }

    /// Describes the rules that have not struck the wanted number of times, cleared rules included. Empty without such rules.
    pub(crate) fn unfinished(&self) -> String {
        let rules = self.cleared.iter().chain(&self.armed).filter(|rule| !rule.is_over());
        rules.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}
