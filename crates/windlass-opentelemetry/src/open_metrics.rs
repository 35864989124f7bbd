//! Parses OpenMetrics text, the output of a registry of metrics.

/// The metrics with the same name.
#[derive(Debug, PartialEq)]
pub(crate) struct Family<'a> {
    pub(crate) name: &'a str,
    pub(crate) help: &'a str,
    /// `counter`, `gauge`, `histogram`, …
    pub(crate) kind: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) samples: Vec<Sample<'a>>,
}

/// A line with a value.
#[derive(Debug, PartialEq)]
pub(crate) struct Sample<'a> {
    /// The family's name with an ending, such as `_bucket`.
    pub(crate) name: &'a str,
    pub(crate) labels: Vec<(&'a str, String)>,
    pub(crate) value: &'a str,
}

/// Reads all families. Lines that are not OpenMetrics are left out.
pub(crate) fn families(text: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            describe(&mut families, comment);
        } else if let Some(sample) = sample(line)
            && let Some(family) = families.last_mut()
            && sample.name.starts_with(family.name)
        {
            family.samples.push(sample);
        }
    }
    families
}

/// Takes a line such as `TYPE requests counter`.
fn describe<'a>(families: &mut Vec<Family<'a>>, comment: &'a str) {
    let mut words = comment.splitn(3, ' ');
    let (Some(what @ ("HELP" | "TYPE" | "UNIT")), Some(name), text) =
        (words.next(), words.next(), words.next().unwrap_or_default())
    else {
        return;
    };
    if families.last().is_none_or(|last| last.name != name) {
        families.push(Family { name, help: "", kind: "unknown", unit: "", samples: Vec::new() });
    }
    if let Some(family) = families.last_mut() {
        match what {
            "HELP" => family.help = text,
            "TYPE" => family.kind = text,
            _ => family.unit = text,
        }
    }
}

/// Reads `name{label="value"} 3 # {exemplar}`.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split_ascii_whitespace().next()?;
    Some(Sample { name, labels, value })
}

/// Parses `label="value",other="value"}`, and returns the rest of the line.
fn labels(mut text: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let (value, rest) = quoted(rest)?;
        labels.push((name, value));
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// Parses a value up to the closing quote, and returns the rest of the line.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn samples_belong_to_the_family_above_them() {
        let text = "# HELP requests Number of requests.\n# TYPE requests counter\n\
                    requests_total{path=\"a # \\\"b\\\" \\\\ \\n\",code=\"200\"} 3 # {trace=\"x\"} 1\n\
                    # TYPE open gauge\nopen 1.5\nother 3\n# EOF\n";
        let families = families(text);
        assert_eq!(families.len(), 2);
        assert_eq!((families[0].name, families[0].kind), ("requests", "counter"));
        assert_eq!(families[0].help, "Number of requests.");
        assert_eq!(
            families[0].samples,
            [Sample {
                name: "requests_total",
                labels: vec![("path", "a # \"b\" \\ \n".to_owned()), ("code", "200".to_owned())],
                value: "3"
            }]
        );
        assert_eq!(families[1].samples, [Sample { name: "open", labels: Vec::new(), value: "1.5" }]);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "([ -~é]|\n|# TYPE |\\{|\\}|=\"){0,80}") {
            families(&text);
        }

        #[test]
        fn every_label_survives(value in "\\PC*") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let text = format!("# TYPE a gauge\na{{b=\"{escaped}\"}} 1\n");
            let families = families(&text);
            // `lines` splits only at \n and at \r\n; \r at the end of a value cannot occur here.
            prop_assert_eq!(&families[0].samples[0].labels[0].1, &value);
        }
    }
}
