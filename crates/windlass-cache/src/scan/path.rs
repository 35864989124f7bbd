//! Reads the values at a field path.

use super::{
    ScanError,
    cursor::{Cursor, ReadContainers},
    transform::Segment,
};

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
        (Segment::Elements, b'[') => cursor.each_element(|cursor| collect(cursor, rest, values)),
        (Segment::AnyMember, b'{') => cursor.each_member(|cursor, _| collect(cursor, rest, values)),
        (Segment::Member(name), b'{') => {
            let before = values.len();
            cursor.each_member(|cursor, key| {
                if *cursor.unescaped(key)? != *name.as_bytes() {
                    return cursor.skip_value();
                }
                // The last of duplicate keys wins.
                values.truncate(before);
                collect(cursor, rest, values)
            })
        }
        _ => cursor.skip_value(),
    }
}

fn scalar(cursor: &mut Cursor<'_>, first: u8, values: &mut Vec<String>) -> Result<(), ScanError> {
    let start = cursor.at;
    match first {
        b'"' => {
            let token = cursor.string("a string")?;
            values.push(String::from_utf8_lossy(&cursor.unescaped(token)?).into_owned());
        }
        b'{' | b'[' | b'n' => cursor.skip_value()?,
        _ => {
            cursor.skip_value()?;
            values.push(String::from_utf8_lossy(&cursor.bytes[start..cursor.at]).into_owned());
        }
    }
    Ok(())
}
