//! The table of results.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::measure::Cell;
use super::rows::{Better, Goal, Row};

/// A row with results: medians, and the lowest and highest value of all repeats.
#[derive(serde::Serialize)]
pub(crate) struct MeasuredRow {
    name: &'static str,
    peer: &'static str,
    /// The corpus and the seed of the objects; empty if there are none.
    data: String,
    /// The number of runs.
    runs: usize,
    unit: &'static str,
    ours: f64,
    ours_spread: (f64, f64),
    theirs: Option<f64>,
    theirs_spread: Option<(f64, f64)>,
    /// The factor by which ours is better.
    ratio: Option<f64>,
    goal: String,
    holds: Option<bool>,
    /// The servers that compressed replies.
    gzip: Option<String>,
}

/// The compression of a server's replies, as the number that the client reports.
pub(crate) enum Gzip {
    NotAsked,
    Unused,
    Used,
}

impl From<f64> for Gzip {
    fn from(number: f64) -> Self {
        match number {
            number if number < 0.0 => Gzip::NotAsked,
            number if number > 0.0 => Gzip::Used,
            _ => Gzip::Unused,
        }
    }
}

/// Computes the results of a row; returns `None` if a run has no values.
pub(crate) fn line(row: &Row, measured: &BTreeMap<&str, Cell>, data: &str) -> Option<MeasuredRow> {
    let ours = values(row.ours, row.value, row, measured)?;
    let theirs = values(row.theirs, row.theirs_value, row, measured);
    if !row.theirs.is_empty() && theirs.is_none() && !row.alone {
        return None;
    }
    let ratio = theirs.as_ref().map(|theirs| match row.better {
        Better::Higher => median(&ours) / median(theirs),
        Better::Lower => median(theirs) / median(&ours),
    });
    let (goal, holds) = match row.goal {
        Goal::Times(times) => (format!("≥{times}×"), ratio.map(|ratio| ratio >= times)),
        Goal::AtMost(most) => (format!("≤{most}"), Some(median(&ours) <= most)),
        Goal::AtLeast(least) => (format!("≥{least}"), Some(median(&ours) >= least)),
        Goal::Report => ("–".to_owned(), None),
    };
    Some(MeasuredRow {
        name: row.name,
        peer: row.peer,
        data: data.trim_start_matches("; ").to_owned(),
        runs: ours.len(),
        unit: row.unit,
        ours: median(&ours),
        ours_spread: spread(&ours),
        theirs: theirs.as_deref().map(median),
        theirs_spread: theirs.as_deref().map(spread),
        ratio,
        goal,
        holds,
        gzip: gzip(row, measured),
    })
}

/// Returns the servers that compressed replies, if the row has a value for compression.
fn gzip(row: &Row, measured: &BTreeMap<&str, Cell>) -> Option<String> {
    let of = |run: &str| {
        let number = measured.get(run)?.get(row.gzip?)?.first()?;
        Some(Gzip::from(*number))
    };
    let text = match (of(row.ours)?, of(row.theirs)) {
        (Gzip::NotAsked, _) => "not asked",
        (Gzip::Used, None | Some(Gzip::Used)) => "used",
        (Gzip::Unused, Some(Gzip::Used)) => "theirs only",
        (Gzip::Used, _) => "ours only",
        (Gzip::Unused, _) => "unused",
    };
    Some(text.to_owned())
}

fn values(run: &str, value: &str, row: &Row, measured: &BTreeMap<&str, Cell>) -> Option<Vec<f64>> {
    let values = measured.get(run)?;
    let mut of = values.get(value)?.clone();
    if let Some(per) = row.per {
        of.iter_mut().zip(values.get(per)?).for_each(|(value, per)| *value /= per);
    }
    of.iter_mut().for_each(|value| *value *= row.factor);
    Some(of)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

fn spread(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)))
}

pub(crate) fn render(lines: &[MeasuredRow]) -> String {
    let head =
        ["name", "peer", "unit", "ours", "theirs", "ratio", "goal", "holds", "gzip"].map(str::to_owned);
    let columns = if lines.iter().any(|line| line.gzip.is_some()) { 9 } else { 8 };
    let rows: Vec<[String; 9]> = std::iter::once(head).chain(lines.iter().map(MeasuredRow::cells)).collect();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            let pad = width - cell.chars().count() + 2;
            let _ = write!(out, "{cell}{:pad$}", "");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

impl MeasuredRow {
    fn cells(&self) -> [String; 9] {
        let with_spread = |value: f64, (low, high): (f64, f64)| {
            if low < high {
                format!("{} ({}..{})", number(value), number(low), number(high))
            } else {
                number(value)
            }
        };
        [
            self.name.to_owned(),
            self.peer.to_owned(),
            self.unit.to_owned(),
            with_spread(self.ours, self.ours_spread),
            self.theirs
                .zip(self.theirs_spread)
                .map_or("–".to_owned(), |(value, spread)| with_spread(value, spread)),
            self.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.1}×")),
            self.goal.clone(),
            self.holds.map_or("–", |holds| if holds { "yes" } else { "NO" }).to_owned(),
            self.gzip.clone().unwrap_or_default(),
        ]
    }
}

/// Formats a number with a suffix (`12.3k`).
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => number(value / 1e9) + "G",
        size if size >= 1e6 => number(value / 1e6) + "M",
        size if size >= 1e4 => number(value / 1e3) + "k",
        size if size >= 1e-2 || size == 0.0 => number(value),
        _ => format!("{value:.2e}"),
    }
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::rows::{Goal, Row, peak, rate};
    use super::{MeasuredRow, line};

    fn with(row: Row) -> Option<MeasuredRow> {
        let cell = |name: &str, values: &[f64]| BTreeMap::from([(name.to_owned(), values.to_vec())]);
        let mut ours = cell("rate", &[8e6, 1e6, 6e6]);
        ours.extend(cell("peak", &[10e6]));
        let mut theirs = cell("rate", &[2e6, 2e6]);
        theirs.extend(cell("peak", &[45e6]));
        line(&row, &BTreeMap::from([("ours", ours), ("theirs", theirs)]), "")
    }

    #[test]
    fn medians_are_compared_in_the_direction_that_is_better() {
        let faster =
            with(rate("r", ("ours", "them", "theirs"), Goal::Times(4.0))).expect("both were measured");
        assert_eq!((faster.ours, faster.ratio, faster.holds), (6.0, Some(3.0), Some(false)));
        assert_eq!(faster.ours_spread, (1.0, 8.0));
        let smaller =
            with(peak("p", ("ours", "them", "theirs"), Goal::Times(4.0))).expect("both were measured");
        assert_eq!((smaller.ratio, smaller.holds), (Some(4.5), Some(true)));
        let alone = with(rate("r", ("ours", "", ""), Goal::AtLeast(6.5))).expect("ours was measured");
        assert_eq!((alone.theirs, alone.holds), (None, Some(false)));
    }

    #[test]
    fn a_contender_that_was_not_measured_has_no_row() {
        assert!(with(rate("r", ("ours", "them", "absent"), Goal::Report)).is_none());
        assert!(with(rate("r", ("absent", "", ""), Goal::Report)).is_none());
        let row = Row { alone: true, ..rate("r", ("ours", "them", "absent"), Goal::Times(2.0)) };
        let alone = with(row).expect("ours was measured");
        assert_eq!((alone.theirs, alone.ratio, alone.holds), (None, None, None));
    }
}
