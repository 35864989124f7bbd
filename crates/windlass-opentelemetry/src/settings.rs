//! The environment variables that OpenTelemetry's specification names.

use std::{path::PathBuf, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

/// The time between two exports of metrics, by default.
const METRIC_INTERVAL: Duration = Duration::from_secs(60);

/// The default time limit of an export.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A variable that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {variable} {problem}")]
pub struct SettingsError {
    /// The variable's name.
    pub variable: String,
    /// The problem, and the expected value. The message never quotes a header, because headers can be
    /// secrets.
    pub problem: String,
}

/// The destinations and time limits of the export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) spans: Option<Destination>,
    pub(crate) metrics: Option<Destination>,
    /// The time between two exports of metrics.
    pub(crate) metric_interval: Duration,
    /// A file with the authorities that certificates of collectors are checked against, instead of the system's.
    pub(crate) authorities: Option<PathBuf>,
}

/// The destination of traces or of metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) endpoint: Uri,
    pub(crate) headers: HeaderMap,
    /// The time limit of an export.
    pub(crate) timeout: Duration,
}

/// A kind of telemetry.
#[derive(Clone, Copy)]
enum Signal {
    Spans,
    Metrics,
}

impl Signal {
    /// Returns the signal's word in the names of variables.
    const fn word(self) -> &'static str {
        match self {
            Self::Spans => "TRACES",
            Self::Metrics => "METRICS",
        }
    }

    /// Returns the variable of this signal: `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`.
    fn variable(self, setting: &str) -> String {
        format!("OTEL_EXPORTER_OTLP_{}_{setting}", self.word())
    }
}

impl Settings {
    /// Reads the settings; `variable` returns the value of a variable. An empty value counts as absent.
    ///
    /// Without an endpoint, no telemetry is exported.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let environment = Environment(&|name: &str| variable(name).filter(|value| !value.trim().is_empty()));
        let disabled =
            environment.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let destination = |signal| if disabled { Ok(None) } else { environment.destination(signal) };
        Ok(Self {
            spans: destination(Signal::Spans)?,
            metrics: destination(Signal::Metrics)?,
            metric_interval: environment
                .milliseconds("OTEL_METRIC_EXPORT_INTERVAL")?
                .unwrap_or(METRIC_INTERVAL),
            authorities: environment.get("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from),
        })
    }
}

/// Looks up variables.
struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }

    /// Returns the value for a signal, or else the value for all signals, with the variable's name.
    fn of_signal(&self, signal: Signal, setting: &str) -> Option<(String, String)> {
        let names = [signal.variable(setting), format!("OTEL_EXPORTER_OTLP_{setting}")];
        names.into_iter().find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    /// Returns the destination of a signal. Returns `None` if the signal is not exported.
    fn destination(&self, signal: Signal) -> Result<Option<Destination>, SettingsError> {
        let Some(endpoint) = self.endpoint(signal)? else { return Ok(None) };
        let timeout = self.timeout(signal)?.unwrap_or(TIMEOUT);
        Ok(Some(Destination { endpoint, headers: self.headers(signal)?, timeout }))
    }

    fn endpoint(&self, signal: Signal) -> Result<Option<Uri>, SettingsError> {
        let exporter = format!("OTEL_{}_EXPORTER", signal.word());
        match self.get(&exporter).as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => {
                return Err(wrong(exporter, format!("is {other:?}; only otlp and none are supported")));
            }
        }
        let endpoint = match self.get(&signal.variable("ENDPOINT")) {
            Some(url) => Some((signal.variable("ENDPOINT"), url)),
            None => self.get("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| {
                let url = format!("{}/v1/{}", base.trim_end_matches('/'), signal.word().to_lowercase());
                ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), url)
            }),
        };
        let Some((variable, url)) = endpoint else { return Ok(None) };
        if let Some((variable, protocol)) = self.of_signal(signal, "PROTOCOL")
            && protocol != "http/protobuf"
        {
            return Err(wrong(variable, format!("is {protocol:?}; only http/protobuf is supported")));
        }
        match url.parse::<Uri>() {
            Ok(uri) if matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() => {
                Ok(Some(uri))
            }
            _ => Err(wrong(variable, format!("is not an http or https URL: {url:?}"))),
        }
    }

    /// Returns the headers of each request: `name=value,other=value`, with values percent-encoded.
    fn headers(&self, signal: Signal) -> Result<HeaderMap, SettingsError> {
        let mut headers = HeaderMap::new();
        let Some((variable, text)) = self.of_signal(signal, "HEADERS") else { return Ok(headers) };
        for (number, pair) in text.split(',').enumerate().filter(|(_, pair)| !pair.trim().is_empty()) {
            let parse = || {
                let (name, value) = pair.split_once('=')?;
                let name: HeaderName = name.trim().parse().ok()?;
                let mut value =
                    HeaderValue::from_bytes(&percent_decode_str(value.trim()).collect::<Vec<u8>>()).ok()?;
                value.set_sensitive(true);
                Some((name, value))
            };
            let (name, value) = parse().ok_or_else(|| {
                wrong(
                    variable.clone(),
                    format!("has a malformed entry number {}; expected name=value", number + 1),
                )
            })?;
            headers.insert(name, value);
        }
        Ok(headers)
    }

    fn timeout(&self, signal: Signal) -> Result<Option<Duration>, SettingsError> {
        match self.of_signal(signal, "TIMEOUT") {
            Some((variable, _)) => self.milliseconds(&variable),
            None => Ok(None),
        }
    }

    fn milliseconds(&self, variable: &str) -> Result<Option<Duration>, SettingsError> {
        let Some(text) = self.get(variable) else { return Ok(None) };
        match text.trim().parse::<u64>() {
            Ok(number @ 1..) => Ok(Some(Duration::from_millis(number))),
            _ => Err(wrong(variable, format!("is {text:?}; expected a positive number of milliseconds"))),
        }
    }
}

fn wrong(variable: impl Into<String>, problem: impl Into<String>) -> SettingsError {
    SettingsError { variable: variable.into(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_exported_without_an_endpoint() {
        let exports = |variables: &[(&str, &str)]| {
            let settings = read(variables).unwrap();
            (settings.spans.is_some(), settings.metrics.is_some())
        };
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert_eq!(exports(&[("OTEL_METRIC_EXPORT_INTERVAL", "5")]), (false, false));
        assert_eq!(exports(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), (false, false));
        assert_eq!(exports(&[("OTEL_SDK_DISABLED", "true"), endpoint]), (false, false));
        assert_eq!(exports(&[("OTEL_TRACES_EXPORTER", "none"), endpoint]), (false, true));
        assert_eq!(exports(&[endpoint]), (true, true));
    }

    #[test]
    fn paths_are_added_to_the_common_endpoint_only() {
        let common = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/base/")]).unwrap();
        assert_eq!(common.spans.unwrap().endpoint, "http://collector:4318/base/v1/traces");
        assert_eq!(common.metrics.unwrap().endpoint, "http://collector:4318/base/v1/metrics");

        let own = read(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://collector/m")]).unwrap();
        assert_eq!(own.spans, None);
        assert_eq!(own.metrics.unwrap().endpoint, "https://collector/m");
    }

    #[test]
    fn headers_are_decoded_and_hidden() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc%, x-team = ops,"),
        ]);
        let headers = settings.unwrap().metrics.unwrap().headers;
        assert_eq!(headers["authorization"], "Bearer abc%");
        assert_eq!(headers["x-team"], "ops");
        assert!(!format!("{headers:?}").contains("abc"));
    }

    #[test]
    fn errors_name_the_variable_and_what_is_expected() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        let message = |more: (&'static str, &'static str)| read(&[more, endpoint]).unwrap_err().to_string();
        assert_eq!(
            message(("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")),
            "the environment variable OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\"; only http/protobuf is supported"
        );
        assert_eq!(
            message(("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317")),
            "the environment variable OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an http or https URL: \"collector:4317\""
        );
        assert_eq!(
            message(("OTEL_METRIC_EXPORT_INTERVAL", "1s")),
            "the environment variable OTEL_METRIC_EXPORT_INTERVAL is \"1s\"; expected a positive number of milliseconds"
        );
        assert_eq!(
            message(("OTEL_EXPORTER_OTLP_HEADERS", "a=b,secret")),
            "the environment variable OTEL_EXPORTER_OTLP_HEADERS has a malformed entry number 2; expected name=value"
        );
        assert_eq!(
            message(("OTEL_METRICS_EXPORTER", "prometheus")),
            "the environment variable OTEL_METRICS_EXPORTER is \"prometheus\"; only otlp and none are supported"
        );
    }
}
