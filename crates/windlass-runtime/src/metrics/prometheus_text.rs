//! Prometheus' text format, version 0.0.4, from OpenMetrics text.

use std::fmt::Write;

/// Converts the OpenMetrics text of `prometheus_client`.
///
/// The formats differ in the names of counters in comments, in types, units, exemplars and the end marker.
pub(super) fn from_open_metrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            out.push_str(without_exemplar(line));
            out.push('\n');
            continue;
        };
        let mut words = comment.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            // Written together with the type, because the type decides the name.
            (Some("HELP"), Some(name), text) => help = Some((name, text.unwrap_or_default())),
            (Some("TYPE"), Some(name), Some(kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "stateset" => ("", "gauge"),
                    "unknown" => ("", "untyped"),
                    "gaugehistogram" => ("", "histogram"),
                    kind => ("", kind),
                };
                if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                    let _ = writeln!(out, "# HELP {name}{suffix} {help}");
                }
                let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
            }
            // `# UNIT` and `# EOF`.
            _ => {}
        }
    }
    out
}

/// Removes ` # {..} value` after a sample.
fn without_exemplar(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'#' if !quoted => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_becomes_prometheus_text() {
        let text = "# HELP requests Number of requests.\n# TYPE requests counter\n\
                    requests_total{path=\"a # \\\" b\"} 3 # {trace=\"x\"} 1\n\
                    # HELP wait_seconds Waits.\n# TYPE wait_seconds histogram\n# UNIT wait_seconds seconds\n\
                    wait_seconds_bucket{le=\"1.0\"} 1\n\
                    # HELP build Build.\n# TYPE build info\nbuild_info{version=\"1\"} 1\n\
                    # HELP odd Odd.\n# TYPE odd unknown\nodd 1\n# EOF\n";
        let wanted = "# HELP requests_total Number of requests.\n# TYPE requests_total counter\n\
                      requests_total{path=\"a # \\\" b\"} 3\n\
                      # HELP wait_seconds Waits.\n# TYPE wait_seconds histogram\n\
                      wait_seconds_bucket{le=\"1.0\"} 1\n\
                      # HELP build_info Build.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n\
                      # HELP odd Odd.\n# TYPE odd untyped\nodd 1\n";
        assert_eq!(from_open_metrics(text), wanted);
    }
}
