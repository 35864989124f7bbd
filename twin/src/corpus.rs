//! Random objects of CRDs with validation rules, on both servers.
//!
//! Each CRD is created on both servers. A search then makes objects of the CRD's versions, guided by the rules that no
//! object has satisfied or violated yet, and sends each object to both servers. The replies must be equal.

mod search;
mod tally;

mod exchange;
mod mutation;

mod generator;
mod sampler;

mod definition;
mod rule;

use std::fs;
use std::path::Path;

use self::definition::Definition;
use self::exchange::Exchange;
use self::search::Search;
use self::tally::Tally;
use crate::server::Backend;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Sends `objects` objects of the CRDs in a file to both servers, and prints the differences and counts. Returns whether
/// the servers agree. The file has a CRD on each line, as JSON.
pub async fn run(real: &Backend, file: &Path, objects: usize, seed: u64) -> Result<bool> {
    let mut definitions = Vec::new();
    for line in fs::read_to_string(file)?.lines() {
        definitions.push(Definition::new(serde_json::from_str(line)?));
    }
    let exchange = Exchange::open(real).await?;
    let mut tally = Tally::default();
    let shares = shares(&definitions, objects);
    for (index, (definition, share)) in definitions.iter().zip(shares).enumerate() {
        if exchange.create_definition(definition, &mut tally).await? {
            for (version, objects) in definition.versions.iter().zip(share) {
                let seed = seed.wrapping_mul(1_000_003).wrapping_add(index as u64);
                Search::new(definition, version, &exchange, seed).run(objects, &mut tally).await;
            }
        }
        exchange.delete_definition(definition).await?;
        tally.progress(index + 1, definitions.len(), definition);
    }
    tally.print();
    Ok(tally.agrees())
}

/// Divides the objects among the versions: a third equally, the rest by the number of rules.
fn shares(definitions: &[Definition], objects: usize) -> Vec<Vec<usize>> {
    let versions: usize = definitions.iter().map(|definition| definition.versions.len()).sum();
    let rules: usize = definitions
        .iter()
        .flat_map(|definition| &definition.versions)
        .map(|version| version.rules.len())
        .sum();
    let share = |of_version: usize| {
        (objects / 3).div_ceil(versions.max(1)) + (objects * 2 / 3 * of_version).div_ceil(rules.max(1))
    };
    let of_definition = |definition: &Definition| {
        definition.versions.iter().map(|version| share(version.rules.len())).collect()
    };
    definitions.iter().map(of_definition).collect()
}
