//! Replays the recorded requests of a real server (`cargo xtask twin --record`) on the embedded server.
//!
//! `UPDATE_EXPECT=1` writes the differences that there are to `transcript.differences.txt`: a list that should become shorter.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use windlass_twin::{Backend, Known, Twin, script, transcript};

#[tokio::test]
async fn the_embedded_server_answers_as_the_real_one_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (known, mut found) = (Known::list(), BTreeMap::new());
    for recording in transcript::read(&folder.join("transcript.jsonl.gz")).unwrap() {
        for difference in transcript::replay(&recording).await.unwrap() {
            if !known.covers(&difference.signature) {
                found.entry(difference.signature.clone()).or_insert(difference);
            }
        }
    }
    let list = folder.join("transcript.differences.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&list, found.keys().fold(String::new(), |text, signature| text + signature + "\n"))
            .unwrap();
        return;
    }
    let old = fs::read_to_string(&list).unwrap();
    let mut new = String::new();
    for (signature, difference) in found {
        if !old.lines().any(|line| line == signature) {
            writeln!(new, "{signature}\n{difference}\n").unwrap();
        }
    }
    let help = "A fix may uncover later differences of the same script; UPDATE_EXPECT=1 accepts them.";
    assert!(new.is_empty(), "the embedded server differs from the real one. {help}\n\n{new}");
}

#[tokio::test]
async fn two_embedded_servers_answer_alike() {
    let twin = Twin { embedded: Backend::Embedded, real: Backend::Embedded };
    for number in 0..5 {
        let run = twin.play(&script(3, number)).await.unwrap();
        assert!(run.differences.is_empty(), "script {number} of seed 3: {:#?}", run.differences);
    }
}
