//! Shortens a script that shows a difference.

use serde_json::Value;

use crate::op::{Op, WATCH};
use crate::twin::Twin;

/// The maximum number of times that a script is played.
const ATTEMPTS: usize = 60;

/// A script and the script's difference.
struct Shrinker<'a> {
    twin: &'a Twin,
    signature: &'a str,
    attempts: usize,
    ops: Vec<Op>,
    /// The step with the difference, and the status code of the embedded server.
    step: u32,
    code: u16,
}

/// Returns a short script that still shows a difference with this signature, or `None` if the difference is
/// not reproducible.
pub async fn shrink(
    twin: &Twin,
    ops: &[Op],
    signature: &str,
) -> Result<Option<Vec<Op>>, Box<dyn std::error::Error>> {
    let run = twin.play(ops).await?;
    let Some(found) = run.differences.iter().find(|difference| difference.signature == signature) else {
        return Ok(None);
    };
    let step = found.op;
    let code = twin.embedded_outcome(ops, step).await?.map_or(0, |outcome| outcome.code);
    let end = ops.iter().position(|op| op.id == step).unwrap_or(ops.len() - 1);
    let ops = ops[..=end].to_vec();
    let mut shrinker = Shrinker { twin, signature, attempts: ATTEMPTS, ops, step, code };
    shrinker.keep_related().await?;
    shrinker.drop_steps().await?;
    shrinker.drop_parts().await?;
    Ok(Some(shrinker.ops))
}

impl Shrinker<'_> {
    async fn shows(&mut self, ops: &[Op]) -> Result<bool, Box<dyn std::error::Error>> {
        // The embedded server is fast: after a different code, the real server need not be asked.
        let ours = self.twin.embedded_outcome(ops, self.step).await?;
        if ours.is_none_or(|outcome| outcome.code != self.code) {
            return Ok(false);
        }
        self.attempts = self.attempts.saturating_sub(1);
        let run = self.twin.play(ops).await?;
        Ok(run.differences.iter().any(|difference| difference.signature == self.signature))
    }

    /// Keeps a shorter script that shows the difference.
    async fn offer(&mut self, ops: Vec<Op>) -> Result<bool, Box<dyn std::error::Error>> {
        if self.attempts == 0 || !self.shows(&ops).await? {
            return Ok(false);
        }
        self.ops = ops;
        Ok(true)
    }

    /// Keeps only the steps about the resource of the last step.
    async fn keep_related(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let Some(last) = self.ops.last() else { return Ok(()) };
        let paths: Vec<&str> = if last.parts().1.is_empty() {
            self.ops.iter().filter(|op| op.parts().0 == WATCH).map(Op::path).collect()
        } else {
            vec![last.path()]
        };
        let names: Vec<&str> = paths.iter().filter_map(|path| plural(path)).collect();
        let is_related = |op: &&Op| {
            plural(op.path()).is_none_or(|name| {
                names.contains(&name) || name == "namespaces" || name == "customresourcedefinitions"
            })
        };
        let related = self.ops.iter().filter(is_related).cloned().collect();
        self.offer(related).await?;
        Ok(())
    }

    /// Removes steps: first many at once, then single steps.
    async fn drop_steps(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let mut size = self.ops.len() / 2;
        while size > 0 && self.attempts > 0 {
            let mut end = self.ops.len().saturating_sub(1);
            while end > 0 && self.attempts > 0 {
                let start = end.saturating_sub(size);
                let mut shorter = self.ops.clone();
                shorter.drain(start..end);
                self.offer(shorter).await?;
                end = start;
            }
            size /= 2;
        }
        Ok(())
    }

    /// Removes fields of bodies, query parameters and headers.
    async fn drop_parts(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        for index in (0..self.ops.len()).rev() {
            for variant in without_header(&self.ops[index]) {
                self.offer_at(index, variant).await?;
            }
            let pairs = self.ops[index].run.matches(['?', '&']).count();
            for pair in (0..pairs).rev() {
                if let Some(variant) = without_parameter(&self.ops[index], pair) {
                    self.offer_at(index, variant).await?;
                }
            }
            // If a field is needed, some parts of the field may not be needed.
            let mut skipped = 0;
            while let Some(variant) = without_field(&self.ops[index], skipped) {
                if self.attempts == 0 {
                    return Ok(());
                }
                if !self.offer_at(index, variant).await? {
                    skipped += 1;
                }
            }
        }
        Ok(())
    }

    async fn offer_at(&mut self, index: usize, op: Op) -> Result<bool, Box<dyn std::error::Error>> {
        let mut ops = self.ops.clone();
        ops[index] = op;
        self.offer(ops).await
    }
}

/// Returns the plural in a path.
fn plural(path: &str) -> Option<&str> {
    let mut parts = path.trim_matches('/').split('/');
    let first = parts.nth(if path.starts_with("/api/") { 2 } else { 3 })?;
    if first == "namespaces" { parts.nth(1).or(Some(first)) } else { Some(first) }
}

fn without_header(op: &Op) -> Vec<Op> {
    let mut variants = Vec::new();
    if op.accept.is_some() {
        variants.push(Op { accept: None, ..op.clone() });
    }
    variants
}

fn without_parameter(op: &Op, index: usize) -> Option<Op> {
    let (path, query) = op.run.split_once('?')?;
    let mut pairs: Vec<&str> = query.split('&').collect();
    (index < pairs.len()).then(|| pairs.remove(index))?;
    let run = if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) };
    Some(Op { run, ..op.clone() })
}

/// Returns the step without the field with this number, counted in depth-first order.
fn without_field(op: &Op, number: usize) -> Option<Op> {
    let mut body = op.body.clone()?;
    let mut left = number;
    remove(&mut body, &mut left).then(|| Op { body: Some(body), ..op.clone() })
}

fn remove(value: &mut Value, left: &mut usize) -> bool {
    match value {
        Value::Object(fields) => {
            for name in fields.keys().cloned().collect::<Vec<_>>() {
                if *left == 0 {
                    fields.remove(&name);
                    return true;
                }
                *left -= 1;
                if remove(&mut fields[&name], left) {
                    return true;
                }
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                if *left == 0 {
                    items.remove(index);
                    return true;
                }
                *left -= 1;
                if remove(&mut items[index], left) {
                    return true;
                }
            }
        }
        _ => {}
    }
    false
}
