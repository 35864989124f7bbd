//! The challenges of the header `WWW-Authenticate`.

/// The authentication that a registry asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A name and a password.
    Basic,
    /// A token of a token service.
    Bearer {
        /// The address of the token service.
        realm: String,
        /// The name of the registry at the token service.
        service: Option<String>,
        /// The rights that the request needs.
        scope: Option<String>,
    },
}

impl Challenge {
    /// Parses the value of one header. Other schemes are ignored.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parameters(rest);
        let get = |name: &str| {
            let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        Some(Self::Bearer { realm: get("realm")?, service: get("service"), scope: get("scope") })
    }
}

/// Parses `key="value", key=value`.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let key = key.trim_matches([' ', ',']).to_owned();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted_string(quoted),
            None => match after.split_once(',') {
                Some((value, after)) => (value.trim().to_owned(), after),
                None => (after.trim().to_owned(), ""),
            },
        };
        found.push((key, value));
        rest = after;
    }
    found
}

/// Reads up to the closing quote. Returns the text and the rest behind the quote.
fn quoted_string(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return (value, &text[index + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(character),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = Challenge::parse(
            "Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\", scope=\"repository:a/b:pull,push\"",
        );
        assert_eq!(
            bearer,
            Some(Challenge::Bearer {
                realm: "https://auth.docker.io/token".into(),
                service: Some("registry.docker.io".into()),
                scope: Some("repository:a/b:pull,push".into()),
            })
        );
        assert_eq!(Challenge::parse("basic realm=\"x\""), Some(Challenge::Basic));
        for text in ["Bearer", "Bearer service=x", "Negotiate", "", "Bearer realm"] {
            assert_eq!(Challenge::parse(text), None, "{text}");
        }
        assert!(Challenge::parse("Bearer realm=\"un\\\"closed").is_some());
    }
}
