//! Expands `$(NAME)` in commands, arguments and values of environment variables.

/// Replaces `$(NAME)` by the value of a variable. A reference to an unknown variable stays, and `$$` is a dollar sign.
pub(in crate::kubelet) fn expand<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let reference = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        let Some((name, after)) = reference else {
            expanded.push('$');
            continue;
        };
        match value(name) {
            Some(value) => expanded.push_str(value),
            None => expanded.extend(["$(", name, ")"]),
        }
        rest = after;
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn references_are_replaced_and_dollars_can_be_escaped() {
        let value = |name: &str| match name {
            "A" => Some("1"),
            "B" => Some("$(A)"),
            _ => None,
        };
        for (text, expected) in [
            ("a $(A) b", "a 1 b"),
            ("$(A)$(A)", "11"),
            ("$(B)", "$(A)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$(NONE)", "$(NONE)"),
            ("$A $ $(A", "$A $ $(A"),
            ("cost: 5$", "cost: 5$"),
        ] {
            assert_eq!(expand(text, value), expected, "{text}");
        }
    }
}
