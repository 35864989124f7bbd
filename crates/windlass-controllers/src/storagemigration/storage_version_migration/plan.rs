//! The order of the migrations of a resource.

use super::migration::Migration;

/// The next step for the migrations of a resource.
#[derive(Debug)]
pub(super) enum Step {
    /// A migration may begin.
    Begin(Migration),
    /// The running migration goes on.
    Migrate(Migration),
    /// A migration has ended.
    Finish(Migration),
}

/// Returns the next step: an end, then the running migration, then the oldest migration that waits.
pub(super) fn next(migrations: &[Migration]) -> Option<Step> {
    let mut running = migrations.iter().filter(|migration| migration.is_running());
    if let Some(ended) = running.clone().find(|migration| migration.has_ended()) {
        return Some(Step::Finish(ended.clone()));
    }
    if let Some(running) = running.next() {
        return Some(Step::Migrate(running.clone()));
    }
    let waiting = migrations.iter().filter(|migration| !migration.has_ended());
    waiting.min_by_key(|migration| (migration.created(), migration.name())).cloned().map(Step::Begin)
}

#[cfg(test)]
mod tests {
    use kube_core::DynamicObject;
    use serde_json::json;

    use super::*;

    /// A migration with a time of creation and conditions that are true.
    fn migration(name: &str, second: u8, conditions: &[&str]) -> Migration {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|kind| json!({"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}))
            .collect();
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
            "metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")},
            "status": {"conditions": conditions},
        }))
        .unwrap();
        Migration::of(&object)
    }

    fn shown(migrations: &[Migration]) -> String {
        match next(migrations) {
            None => "nothing".to_owned(),
            Some(Step::Begin(migration)) => format!("begin {}", migration.name()),
            Some(Step::Migrate(migration)) => format!("migrate {}", migration.name()),
            Some(Step::Finish(migration)) => format!("finish {}", migration.name()),
        }
    }

    #[test]
    fn one_migration_runs_at_a_time_and_the_oldest_is_first() {
        let waiting = [migration("c", 1, &[]), migration("b", 0, &[]), migration("a", 1, &[])];
        assert_eq!(shown(&waiting), "begin b");
        assert_eq!(shown(&[waiting[0].clone(), waiting[2].clone()]), "begin a");
        let running = migration("z", 9, &["Running"]);
        assert_eq!(shown(&[waiting[1].clone(), running]), "migrate z");
        let ended = migration("z", 9, &["Running", "Succeeded"]);
        assert_eq!(shown(&[migration("y", 0, &["Running"]), ended]), "finish z");
        assert_eq!(shown(&[migration("z", 9, &["Failed"])]), "nothing");
    }
}
