//! From OpenMetrics text to the message that a collector takes.

use std::{collections::BTreeMap, time::SystemTime};

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
        ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point::Value,
    },
    resource::v1::Resource,
};

use crate::open_metrics::{Family, Sample, families};

/// Makes the messages of a process.
pub(crate) struct MetricMessages {
    resource: Resource,
    /// When the counters were zero, in nanoseconds since 1970.
    start: u64,
}

impl MetricMessages {
    pub(crate) fn new(resource: &opentelemetry_sdk::Resource, start: SystemTime) -> Self {
        let attributes =
            resource.iter().map(|(key, value)| attribute(key.as_str(), &value.as_str())).collect();
        Self { resource: Resource { attributes, ..Resource::default() }, start: nanoseconds(start) }
    }

    /// Converts the text of a registry. The metric names are the names of Prometheus' text format, so that
    /// existing dashboards work.
    pub(crate) fn message(&self, text: &str, now: SystemTime) -> ExportMetricsServiceRequest {
        let times = Times { start: self.start, now: nanoseconds(now) };
        let metrics = families(text).iter().filter_map(|family| metric(family, times)).collect();
        let scope = InstrumentationScope {
            name: "windlass".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() }];
        let resource = Some(self.resource.clone());
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() }],
        }
    }
}

/// The start and end of a measurement, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Times {
    start: u64,
    now: u64,
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Converts a family. Returns `None` for a family without values.
fn metric(family: &Family<'_>, times: Times) -> Option<Metric> {
    let cumulative = AggregationTemporality::Cumulative as i32;
    let (ending, data) = match family.kind {
        "histogram" => {
            let data_points = histograms(family, times);
            ("", Data::Histogram(Histogram { data_points, aggregation_temporality: cumulative }))
        }
        "counter" => {
            let data_points = numbers(family, "_total", times);
            (
                "_total",
                Data::Sum(Sum { data_points, aggregation_temporality: cumulative, is_monotonic: true }),
            )
        }
        "info" => ("_info", Data::Gauge(Gauge { data_points: numbers(family, "_info", times) })),
        _ => ("", Data::Gauge(Gauge { data_points: numbers(family, "", times) })),
    };
    let empty = match &data {
        Data::Histogram(histogram) => histogram.data_points.is_empty(),
        Data::Sum(sum) => sum.data_points.is_empty(),
        Data::Gauge(gauge) => gauge.data_points.is_empty(),
        _ => true,
    };
    (!empty).then(|| Metric {
        name: format!("{}{ending}", family.name),
        description: family.help.to_owned(),
        unit: unit(family.unit).to_owned(),
        data: Some(data),
        ..Metric::default()
    })
}

/// Returns the UCUM code of a unit.
fn unit(name: &str) -> &str {
    match name {
        "seconds" => "s",
        "bytes" => "By",
        other => other,
    }
}

/// Converts the samples of a family that have this name ending.
fn numbers(family: &Family<'_>, ending: &str, times: Times) -> Vec<NumberDataPoint> {
    let of_ending = |sample: &&Sample<'_>| sample.name.strip_prefix(family.name) == Some(ending);
    let point = |sample: &Sample<'_>| {
        Some(NumberDataPoint {
            attributes: attributes(&sample.labels),
            start_time_unix_nano: times.start,
            time_unix_nano: times.now,
            value: Some(number(sample.value)?),
            ..NumberDataPoint::default()
        })
    };
    family.samples.iter().filter(of_ending).filter_map(point).collect()
}

fn number(text: &str) -> Option<Value> {
    text.parse().map(Value::AsInt).or_else(|_| text.parse().map(Value::AsDouble)).ok()
}

/// A histogram while the lines are read.
#[derive(Default)]
struct Distribution {
    /// Upper bounds, and the number of values up to each bound.
    buckets: Vec<(f64, u64)>,
    sum: Option<f64>,
    count: u64,
}

fn histograms(family: &Family<'_>, times: Times) -> Vec<HistogramDataPoint> {
    let mut distributions: BTreeMap<Vec<(&str, &str)>, Distribution> = BTreeMap::new();
    for sample in &family.samples {
        let labels = sample.labels.iter().map(|(name, value)| (*name, value.as_str()));
        let (bounds, labels): (Vec<_>, Vec<_>) = labels.partition(|(name, _)| *name == "le");
        let distribution = distributions.entry(labels).or_default();
        match sample.name.strip_prefix(family.name) {
            Some("_bucket") => {
                let bound = bounds.first().and_then(|(_, bound)| bound.parse().ok());
                distribution.buckets.extend(bound.zip(sample.value.parse().ok()));
            }
            Some("_sum") => distribution.sum = sample.value.parse().ok(),
            Some("_count") => distribution.count = sample.value.parse().unwrap_or_default(),
            _ => {}
        }
    }
    distributions.into_iter().map(|(labels, distribution)| distribution.point(&labels, times)).collect()
}

impl Distribution {
    /// Counts each value in exactly one bucket. In the text, a bucket includes the counts of the lower
    /// buckets.
    fn point(self, labels: &[(&str, &str)], times: Times) -> HistogramDataPoint {
        let mut below = 0;
        let mut bucket_counts = Vec::with_capacity(self.buckets.len());
        for (_, count) in &self.buckets {
            bucket_counts.push(count.saturating_sub(below));
            below = *count;
        }
        HistogramDataPoint {
            attributes: labels.iter().map(|(name, value)| attribute(name, value)).collect(),
            start_time_unix_nano: times.start,
            time_unix_nano: times.now,
            count: self.count,
            sum: self.sum,
            bucket_counts,
            explicit_bounds: self
                .buckets
                .iter()
                .map(|(bound, _)| *bound)
                .filter(|bound| bound.is_finite())
                .collect(),
            ..HistogramDataPoint::default()
        }
    }
}

fn attributes(labels: &[(&str, String)]) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(name: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: name.to_owned(), value: Some(value), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Converts a text and returns the metrics.
    fn converted(text: &str) -> Vec<Metric> {
        let resource = opentelemetry_sdk::Resource::builder_empty().with_service_name("backup").build();
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let messages = MetricMessages::new(&resource, start);
        let mut message = messages.message(text, start + Duration::from_secs(1));
        let mut resource = message.resource_metrics.remove(0);
        assert_eq!(resource.resource.unwrap().attributes, [attribute("service.name", "backup")]);
        resource.scope_metrics.remove(0).metrics
    }

    #[test]
    fn a_counter_is_a_sum_under_the_name_that_prometheus_sees() {
        let metrics = converted(
            "# HELP reconciles Number of reconciles.\n# TYPE reconciles counter\nreconciles_total{result=\"success\"} 3\n",
        );
        assert_eq!(
            (&*metrics[0].name, &*metrics[0].description),
            ("reconciles_total", "Number of reconciles.")
        );
        let Some(Data::Sum(sum)) = &metrics[0].data else { panic!("{metrics:?}") };
        assert!(sum.is_monotonic);
        let point = &sum.data_points[0];
        assert_eq!(point.attributes, [attribute("result", "success")]);
        assert_eq!(point.value, Some(Value::AsInt(3)));
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1_000_000_000, 2_000_000_000));
    }

    #[test]
    fn a_histogram_counts_each_value_once() {
        let metrics = converted(
            "# TYPE wait_seconds histogram\n# UNIT wait_seconds seconds\n\
             wait_seconds_sum{queue=\"a\"} 4.5\nwait_seconds_count{queue=\"a\"} 6\n\
             wait_seconds_bucket{le=\"0.1\",queue=\"a\"} 1\nwait_seconds_bucket{le=\"1.0\",queue=\"a\"} 4\n\
             wait_seconds_bucket{le=\"+Inf\",queue=\"a\"} 6\n",
        );
        assert_eq!(metrics[0].unit, "s");
        let Some(Data::Histogram(histogram)) = &metrics[0].data else { panic!("{metrics:?}") };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum), (6, Some(4.5)));
        assert_eq!((&*point.bucket_counts, &*point.explicit_bounds), (&[1, 3, 2][..], &[0.1, 1.0][..]));
        assert_eq!(point.attributes, [attribute("queue", "a")]);
    }

    #[test]
    fn a_family_without_values_is_left_out() {
        assert!(converted("# TYPE reconciles counter\n# TYPE wait histogram\n").is_empty());
    }

    #[test]
    fn gauges_keep_fractions() {
        let metrics = converted("# TYPE open gauge\nopen 1.5\n");
        let Some(Data::Gauge(gauge)) = &metrics[0].data else { panic!("{metrics:?}") };
        assert_eq!(gauge.data_points[0].value, Some(Value::AsDouble(1.5)));
    }
}
