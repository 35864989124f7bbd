//! Media types in `Accept` and `Content-Type`.

/// A media type and its parameters: `application/json;as=Table;v=v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaType {
    /// `type/subtype` in lower case.
    pub essence: String,
    /// Parameters in their order, names in lower case, values unquoted; without `q`.
    pub parameters: Vec<(String, String)>,
    /// The preference `q` in thousandths; 1000 if there is none.
    pub quality: u16,
}

impl MediaType {
    /// Parses a media type; malformed parameters are ignored.
    pub fn parse(text: &str) -> Self {
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let mut media_type = Self { essence, parameters: Vec::new(), quality: 1000 };
        for part in parts {
            let Some((name, value)) = part.split_once('=') else { continue };
            let name = name.trim().to_ascii_lowercase();
            let value = value.trim().trim_matches('"');
            if name == "q" {
                let quality = value.parse::<f32>().unwrap_or(1.0).clamp(0.0, 1.0);
                media_type.quality = (quality * 1000.0) as u16;
            } else {
                media_type.parameters.push((name, value.to_owned()));
            }
        }
        media_type
    }

    /// Parses an `Accept` header. Returns its media types, the preferred one first.
    pub fn parse_accept(header: &str) -> Vec<Self> {
        let mut clauses: Vec<Self> =
            header.split(',').map(str::trim).filter(|clause| !clause.is_empty()).map(Self::parse).collect();
        clauses.sort_by_key(|clause| (std::cmp::Reverse(clause.quality), clause.wildcards()));
        clauses
    }

    fn wildcards(&self) -> u8 {
        match self.essence.as_str() {
            "*/*" => 2,
            other if other.ends_with("/*") => 1,
            _ => 0,
        }
    }

    /// Returns the value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}
