//! Random texts that match a regular expression.

use fastrand::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Returns a random text that should match a pattern, or `None` if the pattern is not understood. Lookaround and
/// boundaries are ignored.
pub(super) fn sample(pattern: &str, rng: &mut Rng) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    write(&hir, rng, &mut text);
    Some(text)
}

fn write(hir: &Hir, rng: &mut Rng, text: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.extend(character(class, rng)),
        HirKind::Repetition(repetition) => {
            let more = repetition.max.map_or(3, |max| max.saturating_sub(repetition.min)).min(3);
            for _ in 0..repetition.min.min(300) + rng.u32(..=more) {
                write(&repetition.sub, rng, text);
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, rng, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, rng, text)),
        HirKind::Alternation(parts) => {
            if let Some(part) = rng.choice(parts) {
                write(part, rng, text);
            }
        }
    }
}

/// Returns a character of a class: in printable ASCII, if the class has such characters.
fn character(class: &Class, rng: &mut Rng) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect()
        }
    };
    let printable = ranges.iter().filter_map(|(start, end)| {
        let (start, end) = ((*start).max(' '), (*end).min('~'));
        (start <= end).then_some((start, end))
    });
    let printable: Vec<_> = printable.collect();
    let (start, end) = *rng.choice(if printable.is_empty() { &ranges } else { &printable })?;
    Some(rng.char(start..=end))
}
