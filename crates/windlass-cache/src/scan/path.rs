//! Reads the values at a field path.

use super::{ScanError, cursor::Cursor, text::unescape, transform::Segment};

/// Collects the scalars at a path within the value at the cursor, and moves past the value.
pub(super) fn collect(
    cursor: &mut Cursor<'_>,
    path: &[Segment],
    values: &mut Vec<String>,
) -> Result<(), ScanError> {
    let first = cursor.peek()?;
    let Some((segment, rest)) = path.split_first() else {
        return scalar(cursor, first, values);
    };
    match (segment, first) {
        (Segment::Elements, b'[') => elements(cursor, rest, values),
        (Segment::Member(_) | Segment::AnyMember, b'{') => members(cursor, segment, rest, values),
        _ => cursor.skip_value(),
    }
}

fn scalar(cursor: &mut Cursor<'_>, first: u8, values: &mut Vec<String>) -> Result<(), ScanError> {
    let start = cursor.at;
    match first {
        b'"' => {
            let token = cursor.string("a string")?;
            let content = unescape(&cursor.bytes[token.start..token.end], token.start)?;
            values.push(String::from_utf8_lossy(&content).into_owned());
        }
        b'{' | b'[' | b'n' => cursor.skip_value()?,
        _ => {
            cursor.skip_value()?;
            values.push(String::from_utf8_lossy(&cursor.bytes[start..cursor.at]).into_owned());
        }
    }
    Ok(())
}

fn elements(cursor: &mut Cursor<'_>, rest: &[Segment], values: &mut Vec<String>) -> Result<(), ScanError> {
    cursor.expect(b'[', "`[`")?;
    if cursor.eat(b']')? {
        return Ok(());
    }
    loop {
        collect(cursor, rest, values)?;
        if cursor.eat(b']')? {
            return Ok(());
        }
        cursor.expect(b',', "`,` or `]`")?;
    }
}

fn members(
    cursor: &mut Cursor<'_>,
    segment: &Segment,
    rest: &[Segment],
    values: &mut Vec<String>,
) -> Result<(), ScanError> {
    cursor.expect(b'{', "`{`")?;
    let before = values.len();
    if cursor.eat(b'}')? {
        return Ok(());
    }
    loop {
        let key = cursor.key()?;
        match segment {
            Segment::Member(name) => {
                let text = unescape(&cursor.bytes[key.start..key.end], key.start)?;
                if *text == *name.as_bytes() {
                    // The last of duplicate keys wins.
                    values.truncate(before);
                    collect(cursor, rest, values)?;
                } else {
                    cursor.skip_value()?;
                }
            }
            _ => collect(cursor, rest, values)?,
        }
        if cursor.eat(b'}')? {
            return Ok(());
        }
        cursor.expect(b',', "`,` or `}`")?;
    }
}
