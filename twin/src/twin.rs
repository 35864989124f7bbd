//! Plays a script on both servers.

use crate::compare::{Difference, compare, parts_states};
use crate::op::Op;
use crate::outcome::Outcome;
use crate::player::Player;
use crate::server::Backend;

/// The servers that are compared.
#[derive(Clone, Debug)]
pub struct Twin {
    /// The server under test.
    pub embedded: Backend,
    /// The reference.
    pub real: Backend,
}

/// The result of a script.
#[derive(Debug, Default)]
pub struct Run {
    /// The outcomes on the real server.
    pub real: Vec<Outcome>,
    /// The differences.
    pub differences: Vec<Difference>,
}

impl Twin {
    /// Plays a script step by step, on the embedded server first. Ends when the servers' states differ.
    pub async fn play(&self, ops: &[Op]) -> Result<Run, Box<dyn std::error::Error>> {
        let mut embedded = Player::new(self.embedded.open().await?);
        let mut real = Player::new(self.real.open().await?);
        let mut run = Run::default();
        for op in ops {
            let ours = embedded.play(op, None).await;
            let theirs = real.play(op, Some(&ours)).await;
            run.differences.extend(compare(op, &ours, &theirs));
            let apart = parts_states(op, &ours, &theirs);
            run.real.push(theirs);
            if apart {
                break;
            }
        }
        real.clean_up().await;
        Ok(run)
    }

    /// Plays a script on the embedded server alone and returns the outcome of a step.
    pub(crate) async fn embedded_outcome(
        &self,
        ops: &[Op],
        step: u32,
    ) -> Result<Option<Outcome>, Box<dyn std::error::Error>> {
        let mut embedded = Player::new(self.embedded.open().await?);
        for op in ops {
            let outcome = embedded.play(op, None).await;
            if op.id == step {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }
}
