//! Functions of texts: version 2 of cel-go's extension, as Kubernetes has it.

use super::{as_int, as_list, as_text};
use crate::declare::Row;
use crate::error::Error;
use crate::library::format;
use crate::meter::Meter;
use crate::value::{List, Text, Value};

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("charAt", "string_char_at_int", ".string int", "string", char_at),
    Row("indexOf", "string_index_of_string", ".string string", "int", |meter, v| index_of(meter, v, 0)),
    Row("indexOf", "string_index_of_string_int", ".string string int", "int", |meter, v| {
        let offset = as_int(&v[2])?;
        index_of(meter, v, offset)
    }),
    Row("lastIndexOf", "string_last_index_of_string", ".string string", "int", |meter, v| {
        last_index_of(meter, v, None)
    }),
    Row("lastIndexOf", "string_last_index_of_string_int", ".string string int", "int", |meter, v| {
        let offset = as_int(&v[2])?;
        last_index_of(meter, v, Some(offset))
    }),
    Row("lowerAscii", "string_lower_ascii", ".string", "string", |meter, v| {
        map_text(meter, &v[0], str::to_ascii_lowercase)
    }),
    Row("upperAscii", "string_upper_ascii", ".string", "string", |meter, v| {
        map_text(meter, &v[0], str::to_ascii_uppercase)
    }),
    Row("trim", "string_trim", ".string", "string", |meter, v| {
        map_text(meter, &v[0], |text| text.trim().to_owned())
    }),
    Row("replace", "string_replace_string_string", ".string string string", "string", |meter, v| {
        replace(meter, v, -1)
    }),
    Row("replace", "string_replace_string_string_int", ".string string string int", "string", |meter, v| {
        let limit = as_int(&v[3])?;
        replace(meter, v, limit)
    }),
    Row("split", "string_split_string", ".string string", "list(string)", |meter, v| split(meter, v, -1)),
    Row("split", "string_split_string_int", ".string string int", "list(string)", |meter, v| {
        let limit = as_int(&v[2])?;
        split(meter, v, limit)
    }),
    Row("substring", "string_substring_int", ".string int", "string", |meter, v| substring(meter, v, None)),
    Row("substring", "string_substring_int_int", ".string int int", "string", |meter, v| {
        let end = as_int(&v[2])?;
        substring(meter, v, Some(end))
    }),
    Row("format", "string_format", ".string list(dyn)", "string", |meter, v| {
        format::format(meter, as_text(&v[0])?, as_list(&v[1])?)
    }),
    Row("strings.quote", "strings_quote", "string", "string", |meter, v| {
        map_text(meter, &v[0], quote)
    }),
    Row("join", "list_join", ".list(string)", "string", |meter, v| join(meter, &v[0], "")),
    Row("join", "list_join_string", ".list(string) string", "string", |meter, v| {
        let separator = as_text(&v[1])?.to_owned();
        join(meter, &v[0], &separator)
    }),
];

/// Functions of later versions.
pub(super) const EXTENDED: &[Row] = &[Row("reverse", "string_reverse", ".string", "string", |meter, v| {
    map_text(meter, &v[0], |text| text.chars().rev().collect())
})];

fn map_text<'a>(meter: &mut Meter, value: &Value<'_>, map: fn(&str) -> String) -> Result<Value<'a>, Error> {
    let text = as_text(value)?;
    meter.work(text.len())?;
    let mapped = map(text);
    meter.allocate(mapped.len())?;
    Ok(Value::text(mapped))
}

fn out_of_range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

/// Returns the characters of a text.
fn characters(meter: &mut Meter, text: &str) -> Result<Vec<char>, Error> {
    meter.work(text.len() * 2)?;
    Ok(text.chars().collect())
}

fn char_at<'a>(meter: &mut Meter, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (text, index) = (as_text(&arguments[0])?, as_int(&arguments[1])?);
    let characters = characters(meter, text)?;
    match usize::try_from(index).ok().filter(|index| *index <= characters.len()) {
        Some(index) => Ok(Value::text(characters.get(index).map_or(String::new(), char::to_string))),
        None => Err(out_of_range(index)),
    }
}

fn index_of<'a>(meter: &mut Meter, arguments: &[Value<'a>], offset: i64) -> Result<Value<'a>, Error> {
    let (text, part) = (as_text(&arguments[0])?, as_text(&arguments[1])?);
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    meter.work(text.len() * 2)?;
    let Ok(skipped) = usize::try_from(offset) else { return Err(out_of_range(offset)) };
    let Some((start, _)) = text.char_indices().nth(skipped) else { return Ok(Value::Int(-1)) };
    let found = text[start..].find(part);
    let index = found.map_or(-1, |at| offset + text[start..start + at].chars().count() as i64);
    Ok(Value::Int(index))
}

fn last_index_of<'a>(
    meter: &mut Meter,
    arguments: &[Value<'a>],
    offset: Option<i64>,
) -> Result<Value<'a>, Error> {
    let (text, part) = (as_text(&arguments[0])?, as_text(&arguments[1])?);
    meter.work(text.len() * 2)?;
    let length = text.chars().count();
    if part.is_empty() {
        return Ok(Value::Int(offset.unwrap_or(length as i64)));
    }
    if offset.is_none() && text.len() < part.len() {
        return Ok(Value::Int(-1));
    }
    let offset = offset.unwrap_or(length as i64 - 1);
    let Ok(last) = usize::try_from(offset) else { return Err(out_of_range(offset)) };
    if last >= length {
        return Ok(Value::Int(-1));
    }
    // The part may begin at the offset at the latest.
    let start = text.char_indices().nth(last).map_or(text.len(), |(at, _)| at);
    let (bytes, part) = (text.as_bytes(), part.as_bytes());
    let end = start.saturating_add(part.len()).min(bytes.len());
    let found = memchr::memmem::rfind(&bytes[..end], part);
    Ok(Value::Int(found.map_or(-1, |at| text[..at].chars().count() as i64)))
}

fn replace<'a>(meter: &mut Meter, arguments: &[Value<'a>], limit: i64) -> Result<Value<'a>, Error> {
    let (text, old, new) = (as_text(&arguments[0])?, as_text(&arguments[1])?, as_text(&arguments[2])?);
    meter.work(text.len())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).take(limit).count() };
    let longer = new.len().saturating_sub(old.len()).saturating_mul(count.min(limit));
    meter.allocate(text.len().saturating_add(longer))?;
    Ok(Value::text(text.replacen(old, new, limit)))
}

fn split<'a>(meter: &mut Meter, arguments: &[Value<'a>], limit: i64) -> Result<Value<'a>, Error> {
    let (text, separator) = (as_text(&arguments[0])?, as_text(&arguments[1])?);
    meter.work(text.len() * 2)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut push = |part: &str| {
        meter.allocate(part.len() + 16 + size_of::<Value<'_>>())?;
        parts.push(Value::String(Text::from(part)));
        Ok::<(), Error>(())
    };
    if separator.is_empty() {
        let mut rest = text;
        let mut taken = 0;
        while let Some(character) = rest.chars().next() {
            taken += 1;
            let length = if taken >= limit { rest.len() } else { character.len_utf8() };
            if limit == 0 {
                break;
            }
            push(&rest[..length])?;
            rest = &rest[length..];
        }
    } else if limit > 0 {
        text.splitn(limit, separator).try_for_each(push)?;
    }
    Ok(Value::List(List::of(parts)))
}

fn substring<'a>(meter: &mut Meter, arguments: &[Value<'a>], end: Option<i64>) -> Result<Value<'a>, Error> {
    let (text, start) = (as_text(&arguments[0])?, as_int(&arguments[1])?);
    meter.work(text.len())?;
    let length = text.chars().count() as i64;
    let last = end.unwrap_or(length);
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Error::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    for index in [start, last] {
        if !(0..=length).contains(&index) {
            return Err(out_of_range(index));
        }
    }
    let part: String = text.chars().skip(start as usize).take((last - start).max(0) as usize).collect();
    meter.allocate(part.len())?;
    Ok(Value::text(part))
}

/// Writes a text as a literal.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn join<'a>(meter: &mut Meter, list: &Value<'_>, separator: &str) -> Result<Value<'a>, Error> {
    let mut joined = String::new();
    for (index, element) in as_list(list)?.iter().enumerate() {
        if index > 0 {
            meter.allocate(separator.len())?;
            joined.push_str(separator);
        }
        match element? {
            Value::String(text) => {
                meter.allocate(text.len() + 1)?;
                joined.push_str(&text);
            }
            other => return Err(Error::new(format!("join: invalid input: {other}"))),
        }
    }
    Ok(Value::text(joined))
}
