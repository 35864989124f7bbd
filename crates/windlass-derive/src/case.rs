//! serde's `rename_all` for the names of fields.

/// A rule of `rename_all`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Case {
    #[default]
    Snake,
    Upper,
    Pascal,
    Camel,
    Kebab,
    UpperKebab,
}

impl Case {
    pub(crate) fn parse(rule: &str) -> Option<Self> {
        Some(match rule {
            "snake_case" | "lowercase" => Self::Snake,
            "UPPERCASE" | "SCREAMING_SNAKE_CASE" => Self::Upper,
            "PascalCase" => Self::Pascal,
            "camelCase" => Self::Camel,
            "kebab-case" => Self::Kebab,
            "SCREAMING-KEBAB-CASE" => Self::UpperKebab,
            _ => return None,
        })
    }

    /// Renames a field. The name is in snake case.
    pub(crate) fn rename(self, field: &str) -> String {
        match self {
            Self::Snake => field.to_owned(),
            Self::Upper => field.to_ascii_uppercase(),
            Self::Kebab => field.replace('_', "-"),
            Self::UpperKebab => field.to_ascii_uppercase().replace('_', "-"),
            Self::Pascal => pascal(field),
            Self::Camel => {
                let pascal = pascal(field);
                let mut chars = pascal.chars();
                chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
            }
        }
    }
}

fn pascal(field: &str) -> String {
    let mut upper = true;
    let mut out = String::with_capacity(field.len());
    for c in field.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                out.push(c.to_ascii_uppercase());
                upper = false;
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn fields_are_renamed_as_serde_does() {
        let rename = |rule: &str| Case::parse(rule).map(|case| case.rename("pod_names2_x")).unwrap();
        assert_eq!(rename("camelCase"), "podNames2X");
        assert_eq!(rename("PascalCase"), "PodNames2X");
        assert_eq!(rename("kebab-case"), "pod-names2-x");
        assert_eq!(rename("SCREAMING_SNAKE_CASE"), "POD_NAMES2_X");
        assert_eq!(rename("snake_case"), "pod_names2_x");
        assert_eq!(Case::parse("Camel"), None);
    }
}
