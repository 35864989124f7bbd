//! Lists of indexes of an indexed job: `1,3-5,7`.

/// Returns the number of indexes in a list, or the error of a malformed list. Indexes are below
/// `completions`.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    if text.is_empty() {
        return Ok(0);
    }
    for part in text.split(',') {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let quote = windlass_schema::go_quote;
    let parts: Vec<&str> = text.split('-').collect();
    if parts.len() > 2 {
        return Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            quote(text)
        ));
    }
    let number = |part: &str| {
        let number: i64 = part
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {}", quote(part)))?;
        if number >= completions {
            return Err(format!("too large index: {}", quote(part)));
        }
        Ok(number)
    };
    let first = number(parts[0])?;
    let Some(end) = parts.get(1) else { return Ok((first, first)) };
    let end = number(end)?;
    if first >= end {
        return Err(format!("non-increasing order, previous: {first}, current: {end}"));
    }
    Ok((first, end))
}

/// Returns an index that is in both lists, the first that kube-apiserver finds.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| {
        let parts = text.split(',').filter_map(|part| interval(part, completions).ok());
        parts.collect::<Vec<_>>()
    };
    if completed.is_empty() || failed.is_empty() {
        return None;
    }
    let (completed, failed) = (intervals(completed), intervals(failed));
    let (mut left, mut right) = (0, 0);
    while let (Some(a), Some(b)) = (completed.get(left), failed.get(right)) {
        if a.0 <= b.1 && b.0 <= a.1 {
            return Some(a.0.max(b.0));
        }
        if a.0 <= b.0 {
            left += 1;
        } else {
            right += 1;
        }
    }
    None
}
