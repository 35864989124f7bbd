//! Recorded outcomes of a real server: a comparison with the recording needs no real server.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::compare::{Difference, compare, parts_states};
use crate::op::Op;
use crate::outcome::Outcome;
use crate::player::Player;
use crate::server::Backend;

/// A step and the outcome on the real server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The step.
    pub op: Op,
    /// The normalised outcome.
    pub real: Outcome,
}

/// The steps of a script.
pub type Recording = Vec<Step>;

/// Plays a script twice on a real server. Returns `None` if the outcomes differ, and are therefore not
/// reproducible.
pub async fn record(real: &Backend, ops: &[Op]) -> Result<Option<Recording>, Box<dyn std::error::Error>> {
    let first = play(real, ops).await?;
    let second = play(real, ops).await?;
    if first != second {
        return Ok(None);
    }
    let steps = ops.iter().cloned().zip(first).map(|(op, real)| Step { op, real });
    Ok(Some(steps.collect()))
}

async fn play(real: &Backend, ops: &[Op]) -> Result<Vec<Outcome>, Box<dyn std::error::Error>> {
    let mut player = Player::new(real.open().await?);
    let mut outcomes = Vec::new();
    for op in ops {
        outcomes.push(player.play(op, None).await);
    }
    player.clean_up().await;
    Ok(outcomes)
}

/// Plays a recorded script on the embedded server and returns the differences. Ends when the servers' states differ.
pub async fn replay(recording: &[Step]) -> Result<Vec<Difference>, Box<dyn std::error::Error>> {
    let mut player = Player::new(Backend::Embedded.open().await?);
    let mut differences = Vec::new();
    for Step { op, real } in recording {
        let ours = player.play(op, None).await;
        differences.extend(compare(op, &ours, real));
        if parts_states(op, &ours, real) {
            break;
        }
    }
    Ok(differences)
}

/// Writes recordings: a line of JSON for each step, an empty line between scripts, all compressed.
pub fn write(path: &Path, recordings: &[Recording]) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = GzEncoder::new(std::fs::File::create(path)?, Compression::best());
    for recording in recordings {
        for step in recording {
            serde_json::to_writer(&mut file, step)?;
            file.write_all(b"\n")?;
        }
        file.write_all(b"\n")?;
    }
    file.finish()?;
    Ok(())
}

/// Reads recordings.
pub fn read(path: &Path) -> Result<Vec<Recording>, Box<dyn std::error::Error>> {
    let file = BufReader::new(std::fs::File::open(path)?);
    let mut recordings = vec![Recording::new()];
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let line = line?;
        if line.is_empty() {
            recordings.push(Recording::new());
        } else if let Some(last) = recordings.last_mut() {
            last.push(serde_json::from_str(&line)?);
        }
    }
    recordings.retain(|recording| !recording.is_empty());
    Ok(recordings)
}
