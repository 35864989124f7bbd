//! Plays the server line by line and records the steps of the reflector.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use bytes::Bytes;
use windlass_cache::{
    ObjectKey, Reflector, ReflectorAction, ReflectorConfig, ReflectorEvent, ReflectorStore, ScanError,
    ScanOptions, Scanned,
};

/// Plays a script with the default configuration.
pub(super) fn play(script: &str) -> String {
    play_with(|_| {}, script)
}

/// Plays a script. The lines:
///
/// ```text
/// answer CODE [retry-after SECONDS]   the response's head
/// body TEXT, piece TEXT, line TEXT    a piece of its body; `line` ends it
/// event TYPE NAME VERSION             an event of the watch
/// bookmark VERSION [initial-events-end]
/// end, break REASON                   the body's end
/// wait SECONDS                        time passes
/// list-again                          the driver asks for a list
/// ```
pub(super) fn play_with(configure: impl FnOnce(&mut ReflectorConfig), script: &str) -> String {
    let mut config = ReflectorConfig::new("pods");
    configure(&mut config);
    let start = Instant::now();
    let mut scene = Scene {
        reflector: Reflector::new(config, &ScanOptions::default(), start),
        start,
        now: start,
        log: Log(String::new()),
    };
    scene.settle();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writeln!(scene.log.0, "{line}").expect("a string");
        scene.play(line);
        scene.settle();
    }
    scene.log.0
}

struct Scene {
    reflector: Reflector,
    start: Instant,
    now: Instant,
    log: Log,
}

impl Scene {
    fn play(&mut self, line: &str) {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<_> = rest.split(' ').collect();
        match command {
            "answer" => {
                let code = words[0].parse().expect("a code");
                let wait = words.get(2).map(|seconds| Duration::from_secs(seconds.parse().expect("seconds")));
                self.reflector.on_response(self.now, code, wait, &mut self.log);
            }
            "body" | "piece" => self.piece(rest.to_owned()),
            "line" => self.piece(format!("{rest}\n")),
            "event" => {
                let [event, name, version] = words[..] else { panic!("{line}") };
                let metadata = format!(r#"{{"name":"{name}","resourceVersion":"{version}"}}"#);
                self.piece(format!("{{\"type\":\"{event}\",\"object\":{{\"metadata\":{metadata}}}}}\n"));
            }
            "bookmark" => {
                let end = match words.get(1) {
                    Some(annotation) => format!(r#","annotations":{{"k8s.io/{annotation}":"true"}}"#),
                    None => String::new(),
                };
                let metadata = format!(r#"{{"resourceVersion":"{}"{end}}}"#, words[0]);
                self.piece(format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{metadata}}}}}\n"));
            }
            "list-again" => self.reflector.list_again(self.now, "the test asks for it", &mut self.log),
            "end" => self.reflector.on_end(self.now, None, &mut self.log),
            "break" => self.reflector.on_end(self.now, Some(rest), &mut self.log),
            "wait" => self.wait(Duration::from_secs(rest.parse().expect("seconds"))),
            other => panic!("no such command: {other}"),
        }
    }

    fn piece(&mut self, text: String) {
        self.reflector.on_bytes(self.now, Bytes::from(text), &mut self.log);
    }

    /// Advances the time, and polls the reflector at every requested time.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(until) = self.settle().filter(|until| *until <= end) {
            self.now = until;
        }
        self.now = end;
    }

    /// Polls the reflector until the reflector waits; returns the time of the next poll.
    fn settle(&mut self) -> Option<Instant> {
        loop {
            match self.reflector.poll(self.now, &mut self.log) {
                ReflectorAction::Send(wanted) => {
                    let at = (self.now - self.start).as_secs_f64();
                    writeln!(self.log.0, "    {at:.1}s {wanted}").expect("a string");
                }
                ReflectorAction::Receive { until } | ReflectorAction::Sleep { until } => return Some(until),
            }
        }
    }
}

struct Log(String);

impl Log {
    fn line(&mut self, line: impl std::fmt::Display) {
        writeln!(self.0, "    {line}").expect("a string");
    }
}

impl ReflectorStore for Log {
    fn begin_list(&mut self) {
        self.line("list begins");
    }

    fn upsert(&mut self, object: Scanned<'_>) -> Result<(), ScanError> {
        let object = object.to_object()?;
        self.line(format_args!("upsert {object:?}"));
        Ok(())
    }

    fn delete(&mut self, object: Scanned<'_>) -> Result<(), ScanError> {
        let object = object.to_object()?;
        self.line(format_args!("delete {object:?}"));
        Ok(())
    }

    fn unreadable(&mut self, key: Option<&ObjectKey>) {
        self.line(format_args!("unreadable: {key:?}"));
    }

    fn end_list(&mut self) {
        self.line("list ends");
    }

    fn progress(&mut self, resource_version: &str) {
        self.line(format_args!("progress {resource_version}"));
    }

    fn notice(&mut self, notice: ReflectorEvent) {
        match notice {
            ReflectorEvent::Failed { error, retry_in } => {
                self.line(format_args!("failed, retry in {:.1}s: {error}", retry_in.as_secs_f64()));
            }
            ReflectorEvent::Recovered => self.line("recovered"),
            ReflectorEvent::Unreadable(error) => self.line(format_args!("skipped: {error}")),
            ReflectorEvent::IndexPanicked { .. } => unreachable!("a reflector has no index"),
            ReflectorEvent::WatchListUnsupported => self.line("watch list unsupported"),
            ReflectorEvent::Relisting { reason } => self.line(format_args!("relisting: {reason}")),
        }
    }
}
