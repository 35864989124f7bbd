//! The order: the next change of a set.

use std::collections::HashMap;

use crate::pods::{Member, State};

/// The next change of a set, or the awaited pod. There is one change at a time, because later changes depend
/// on the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Create the pod of an index.
    Create(u32),
    /// Delete the pod of an index.
    Delete(u32),
    /// The other pods wait for this pod.
    WaitFor(Member),
    /// All pods are there, ready and of the present template.
    Done,
}

impl Step {
    /// Returns the index of the pod that the step is about.
    pub(crate) fn index(&self) -> Option<u32> {
        match self {
            Self::Create(index) | Self::Delete(index) => Some(*index),
            Self::WaitFor(member) => Some(member.index),
            Self::Done => None,
        }
    }
}

/// Returns the next step of a set of `replicas` pods with the template of `revision`.
///
/// 1. From index 0 up, a missing pod is created, an ended pod is replaced, and a pod that is not ready keeps
///    higher pods waiting. A pod that is not ready and has an older template is replaced: a change of the
///    template repairs a blocked set.
/// 2. When all pods are ready, surplus pods are deleted, from the highest index down, one at a time.
/// 3. Then pods of older templates are deleted, from the highest index down, each when the previous pod has
///    been created again and is ready.
pub(crate) fn next(replicas: u32, revision: &str, members: &[Member]) -> Step {
    let by_index: HashMap<u32, &Member> = members.iter().map(|member| (member.index, member)).collect();
    for index in 0..replicas {
        let Some(&member) = by_index.get(&index) else { return Step::Create(index) };
        match &member.state {
            State::Ready => {}
            State::Ended => return Step::Delete(index),
            State::NotReady(_) if member.revision != revision => return Step::Delete(index),
            State::NotReady(_) | State::Terminating => return Step::WaitFor(member.clone()),
        }
    }
    if let Some(last) =
        members.iter().filter(|member| member.index >= replicas).max_by_key(|member| member.index)
    {
        return match last.state {
            State::Terminating => Step::WaitFor(last.clone()),
            _ => Step::Delete(last.index),
        };
    }
    let old = members.iter().filter(|member| member.revision != revision).max_by_key(|member| member.index);
    old.map_or(Step::Done, |member| Step::Delete(member.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(index: u32, revision: &str, state: State) -> Member {
        Member { index, revision: revision.to_owned(), state, since: None }
    }

    /// Pods in order of index: `r` ready, `n` not ready, `e` ended, `t` terminating, `-` missing; in capitals
    /// with an older template.
    fn step(replicas: u32, pods: &str) -> String {
        let members: Vec<Member> = (0..)
            .zip(pods.chars())
            .filter_map(|(index, letter)| {
                let state = match letter.to_ascii_lowercase() {
                    'r' => State::Ready,
                    'n' => State::NotReady(None),
                    'e' => State::Ended,
                    't' => State::Terminating,
                    _ => return None,
                };
                Some(member(index, if letter.is_ascii_uppercase() { "old" } else { "new" }, state))
            })
            .collect();
        match next(replicas, "new", &members) {
            Step::Create(index) => format!("create {index}"),
            Step::Delete(index) => format!("delete {index}"),
            Step::WaitFor(member) => format!("wait for {}", member.index),
            Step::Done => "done".to_owned(),
        }
    }

    #[test]
    fn pods_are_created_from_the_first_one_up() {
        assert_eq!(step(3, ""), "create 0");
        assert_eq!(step(3, "n"), "wait for 0");
        assert_eq!(step(3, "r"), "create 1");
        assert_eq!(step(3, "rrr"), "done");
        assert_eq!(step(0, ""), "done");
    }

    #[test]
    fn a_gap_is_filled_before_anything_else() {
        assert_eq!(step(3, "-rr"), "create 0");
        assert_eq!(step(2, "t-rr"), "wait for 0");
        assert_eq!(step(1, "nrr"), "wait for 0");
        assert_eq!(step(3, "rer"), "delete 1");
    }

    #[test]
    fn pods_are_deleted_from_the_last_one_down() {
        assert_eq!(step(1, "rrr"), "delete 2");
        assert_eq!(step(1, "rrt"), "wait for 2");
        assert_eq!(step(1, "rr"), "delete 1");
        assert_eq!(step(0, "nn"), "delete 1");
        assert_eq!(step(0, "n-e"), "delete 2");
    }

    #[test]
    fn pods_are_updated_from_the_last_one_down() {
        assert_eq!(step(3, "RRR"), "delete 2");
        assert_eq!(step(3, "RRt"), "wait for 2");
        assert_eq!(step(3, "RR"), "create 2");
        assert_eq!(step(3, "RRn"), "wait for 2");
        assert_eq!(step(3, "RRr"), "delete 1");
        assert_eq!(step(2, "RRR"), "delete 2");
        assert_eq!(step(3, "RNR"), "delete 1");
    }
}
