//! `checkpoints list`.

use std::collections::BTreeSet;

use serde_json::json;

use crate::{
    checkpoint::Store,
    error::Error,
    ops::show::{Answer, Format, size, table, time},
};

/// The checkpoints, newest first; what is being written, or never was, at its place.
pub(super) async fn list(store: &Store, format: Format) -> Result<Answer, Error> {
    let found = store.manifests().await?;
    let complete: BTreeSet<_> = found.iter().map(|(id, _)| *id).collect();
    let folders = store.folders().await?;
    let mut lines: Vec<_> = found
        .into_iter()
        .map(|(id, manifest)| match manifest {
            Ok(manifest) => {
                let (created, bytes, finished) = (manifest.created, manifest.bytes(), manifest.finished);
                let row = [
                    id.to_string(),
                    time(created),
                    size(bytes),
                    if finished { "yes" } else { "no" }.to_owned(),
                    "complete".to_owned(),
                ];
                let value = json!({
                    "id": id, "created": time(created), "bytes": bytes, "finished": finished,
                    "state": "complete",
                });
                (id, row, value)
            }
            Err(damage) => {
                let [id_text, unknown] = [id.to_string(), "-".to_owned()];
                let row = [id_text, unknown.clone(), unknown.clone(), unknown, format!("damaged: {damage}")];
                let value = json!({ "id": id, "state": "damaged", "damage": damage.to_string() });
                (id, row, value)
            }
        })
        .collect();
    for id in folders.into_iter().filter(|id| !complete.contains(id)) {
        let [id_text, unknown] = [id.to_string(), "-".to_owned()];
        let row = [id_text, unknown.clone(), unknown.clone(), unknown, "incomplete".to_owned()];
        lines.push((id, row, json!({ "id": id, "state": "incomplete" })));
    }
    lines.sort_by(|(a, ..), (b, ..)| b.cmp(a));
    let text = match format {
        Format::Text if lines.is_empty() => format!("there are no checkpoints in `{}`\n", store.location()),
        Format::Text => {
            let rows: Vec<_> = lines.into_iter().map(|(_, row, _)| row).collect();
            table(["ID", "CREATED", "SIZE", "FINISHED", "STATE"], &rows)
        }
        Format::Json => {
            let values: Vec<_> = lines.into_iter().map(|(.., value)| value).collect();
            format!("{:#}\n", json!(values))
        }
    };
    Ok(Answer { text, good: true })
}
