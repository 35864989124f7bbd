//! Content negotiation of an endpoint that offers kinds of its own, such as aggregated discovery.

use super::MediaType;

/// The kind that a media type of an `Accept` header names: `as=Statusz;v=v1beta1;g=config.k8s.io`. An absent parameter is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedKind {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl WantedKind {
    fn of(clause: &MediaType) -> Option<Self> {
        let parameter = |name| clause.parameter(name).map(str::to_owned);
        let (kind, group, version) = (parameter("as"), parameter("g"), parameter("v"));
        let is_wanted = kind.is_some() || group.is_some() || version.is_some();
        is_wanted.then(|| Self {
            group: group.unwrap_or_default(),
            version: version.unwrap_or_default(),
            kind: kind.unwrap_or_default(),
        })
    }

    /// Returns the group and version, as in `apiVersion`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Returns the `Content-Type` of a response with this kind.
    pub fn content_type(&self, media_type: &str) -> String {
        let Self { group, version, kind } = self;
        format!("{media_type};g={group};v={version};as={kind}")
    }
}

/// The media types and kinds of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The media types, the preferred media type of the server first.
    pub media_types: &'static [&'static str],
    /// The media types that may have the parameter `stream=watch`.
    pub streamed: &'static [&'static str],
    /// Returns whether the endpoint has the kind in a media type. `None` is a media type without a kind.
    pub allows: fn(&str, Option<&WantedKind>) -> bool,
}

/// The media type and the kind of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The media type, without parameters.
    pub media_type: &'static str,
    /// The kind; `None` if the client names no kind.
    pub kind: Option<WantedKind>,
    /// True if to indent JSON for people.
    pub pretty: bool,
}

impl Offer {
    /// Chooses the media type and the kind by the `Accept` header. Returns `None` if the header names none that the endpoint has.
    pub fn choose(&self, accept: &str) -> Option<Chosen> {
        let clauses = MediaType::parse_accept(accept);
        clauses.iter().find_map(|clause| {
            let mut included = self.media_types.iter().filter(|media_type| clause.includes(media_type));
            included.find_map(|media_type| self.meet(media_type, clause))
        })
    }

    fn meet(&self, media_type: &'static str, clause: &MediaType) -> Option<Chosen> {
        let is_given = |name| clause.parameter(name).filter(|value| !value.is_empty());
        let is_streamed = |stream| stream == "watch" && self.streamed.contains(&media_type);
        if is_given("sv").is_some() || is_given("stream").is_some_and(|stream| !is_streamed(stream)) {
            return None;
        }
        let kind = WantedKind::of(clause);
        let pretty = clause.parameter("pretty") == Some("1");
        (self.allows)(media_type, kind.as_ref()).then_some(Chosen { media_type, kind, pretty })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Offer = Offer {
        media_types: &["application/json", "application/yaml"],
        streamed: &["application/json"],
        allows: |media_type, kind| match kind {
            None => media_type == "application/yaml",
            Some(kind) => kind.kind == "Thing" && kind.api_version() == "a.test/v1",
        },
    };

    fn chosen(accept: &str) -> Option<String> {
        let chosen = OFFER.choose(accept)?;
        Some(
            chosen
                .kind
                .map_or_else(|| chosen.media_type.to_owned(), |kind| kind.content_type(chosen.media_type)),
        )
    }

    #[test]
    fn a_media_type_counts_only_with_a_kind_that_the_endpoint_has() {
        let json = Some("application/json;g=a.test;v=v1;as=Thing".to_owned());
        assert_eq!(chosen("application/json;as=Thing;v=v1;g=a.test"), json);
        assert_eq!(chosen("application/json, application/json;as=Thing;v=v1;g=a.test;q=0.1"), json);
        assert_eq!(chosen("*/*;as=Thing;v=v1;g=a.test"), json);
        assert_eq!(chosen("application/json;as=Thing;v=v1;g=a.test;stream=watch"), json);
        assert_eq!(
            chosen("application/json;as=Thing;v=v2;g=a.test, */*"),
            Some("application/yaml".to_owned())
        );
        assert_eq!(chosen("application/json;as=Thing;v=v1"), None);
        assert_eq!(chosen("application/yaml;as=Thing;v=v1;g=a.test;stream=watch"), None);
        assert_eq!(chosen("application/json;as=Thing;v=v1;g=a.test;sv=v1"), None);
    }
}
