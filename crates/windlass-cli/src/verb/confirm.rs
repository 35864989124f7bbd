//! Questions before a deletion.

use std::io::{self, IsTerminal};

use crate::error::{Advice, Result};
use crate::output::Output;

/// Says that objects would be deleted.
pub(super) fn of_objects(count: usize) -> String {
    format!("the cluster has {count} objects of the project's kinds, which would be deleted")
}

/// Asks whether to delete.
///
/// # Errors
///
/// The answer is no, or standard input is not a terminal. `hint` names the flag that answers the question.
pub(super) fn confirm(reason: &str, hint: &str) -> Result<()> {
    if !io::stdin().is_terminal() {
        return Err(Advice::new(reason, hint));
    }
    Output::stderr().line(format_args!("{reason}. Delete? [y/N]"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Advice::new("nothing was deleted", hint))
    }
}
