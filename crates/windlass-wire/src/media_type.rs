//! Media types in `Accept` and `Content-Type`.

/// A media type with parameters: `application/json;as=Table;v=v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaType {
    /// `type/subtype`.
    pub essence: String,
    /// Parameters in order, with unchanged text; without `q`.
    pub parameters: Vec<(String, String)>,
    /// The preference `q` in thousandths; 1000 if there is none.
    pub quality: u16,
}

impl MediaType {
    /// Parses an `Accept` header like kube-apiserver. Returns the media types, the preferred media type
    /// first.
    ///
    /// The case of letters matters: `Application/JSON` is not `application/json`. Malformed clauses are left
    /// out.
    pub fn parse_accept(header: &str) -> Vec<Self> {
        let mut clauses: Vec<Self> = header.split(',').filter_map(Self::parse_clause).collect();
        // The order of the real server is not total: in a pairwise comparison, a type without wildcards comes
        // first regardless of the preference.
        for end in 1..clauses.len() {
            let mut at = end;
            while at > 0 && clauses[at].precedes(&clauses[at - 1]) {
                clauses.swap(at, at - 1);
                at -= 1;
            }
        }
        clauses
    }

    fn parse_clause(text: &str) -> Option<Self> {
        let mut parts = text.split(';');
        let (main, sub) = match parts.next()?.trim_matches(' ') {
            "*" => ("*", "*"),
            essence => essence.split_once('/')?,
        };
        if sub.is_empty() || sub.contains('/') {
            return None;
        }
        let essence = format!("{}/{}", main.trim_matches(' '), sub.trim_matches(' '));
        let mut clause = Self { essence, parameters: Vec::new(), quality: 1000 };
        for part in parts {
            let Some((name, value)) = part.split_once('=').filter(|(_, value)| !value.contains('=')) else {
                continue;
            };
            match (name.trim_matches(' '), value) {
                (_, "") => {}
                ("q", value) => {
                    let quality = value.parse::<f32>().unwrap_or(0.0).clamp(0.0, 65.0);
                    clause.quality = (quality * 1000.0) as u16;
                }
                (name, value) => {
                    clause.parameters.retain(|(known, _)| known != name);
                    clause.parameters.push((name.to_owned(), value.trim_matches(' ').to_owned()));
                }
            }
        }
        Some(clause)
    }

    fn precedes(&self, other: &Self) -> bool {
        let has_any_type = |clause: &Self| clause.essence.starts_with("*/");
        let has_any_subtype = |clause: &Self| clause.essence.ends_with("/*");
        self.quality > other.quality
            || !has_any_type(self) && has_any_type(other)
            || !has_any_subtype(self) && has_any_subtype(other)
    }

    /// Returns whether the clause of an `Accept` header stands for a media type.
    pub fn includes(&self, essence: &str) -> bool {
        let main = self.essence.strip_suffix("/*");
        self.essence == "*/*"
            || self.essence == essence
            || main.is_some_and(|main| essence.split_once('/').is_some_and(|(found, _)| found == main))
    }

    /// Returns the `type/subtype` of a `Content-Type` header, in lower case. `None` if the header is malformed.
    pub fn essence_of(header: &str) -> Option<String> {
        let mut parts = header.split(';');
        let essence = parts.next()?.trim().to_ascii_lowercase();
        let mut parts = parts.peekable();
        let mut names: Vec<String> = Vec::new();
        while let Some(part) = parts.next() {
            if part.trim().is_empty() && parts.peek().is_none() {
                break;
            }
            let (name, value) = part.split_once('=')?;
            let name = name.trim_start().to_ascii_lowercase();
            let is_quoted = value.len() > 1 && value.starts_with('"') && value.trim_end().ends_with('"');
            if !is_token(&name) || !(is_quoted || is_token(value.trim_end())) || names.contains(&name) {
                return None;
            }
            names.push(name);
        }
        let (main, sub) = essence.split_once('/')?;
        (is_token(main) && is_token(sub)).then_some(essence)
    }

    /// Returns the value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Returns whether a text is a token of HTTP.
fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}
