//! `txn list`.

use serde_json::json;

use super::doubts::Doubts;
use crate::{
    ops::show::{Answer, Format, several, size, table},
    sink::Standing,
};

/// All transactions in doubt; not good when a server could not be asked.
pub(super) async fn list(doubts: &Doubts, format: Format) -> Answer {
    let (mut rows, mut values, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for sink in &doubts.sinks {
        for (which, carried) in sink.carried.iter().enumerate() {
            let standing = match &sink.desk {
                Some(desk) => desk.standing(carried).await.unwrap_or_else(|error| {
                    errors.push(format!("sink `{}` cannot be asked: {error}", sink.uid));
                    Standing::Unknown
                }),
                None => Standing::Unknown,
            };
            let (subtask, checkpoint, handle) = carried;
            let (id, text) = (sink.id(which), sink.describe(which));
            let standing = if sink.desk.is_none() { "no such sink any more" } else { word(standing) };
            let bytes = handle.len() as u64;
            values.push(json!({
                "id": id, "sink": sink.uid, "subtask": subtask, "checkpoint": checkpoint, "bytes": bytes,
                "standing": standing, "carried": true, "transaction": text,
            }));
            rows.push([id, size(bytes), standing.to_owned(), text]);
        }
        let Some(desk) = &sink.desk else { continue };
        let held = desk.in_doubt().await.unwrap_or_else(|error| {
            errors.push(format!("sink `{}`: its server cannot be asked: {error}", sink.uid));
            Vec::new()
        });
        for held in held.iter().filter(|held| sink.carries(held).is_none()) {
            let id = sink.id_at_server(held);
            values.push(json!({
                "id": id, "sink": sink.uid, "standing": "pending", "carried": false,
                "transaction": held.detail,
            }));
            rows.push([id, "-".to_owned(), "only at its server".to_owned(), held.detail.clone()]);
        }
    }
    errors.dedup();
    let (checkpoint, good) = (doubts.manifest.id, errors.is_empty());
    let text = match format {
        Format::Json => {
            format!("{:#}\n", json!({ "checkpoint": checkpoint, "transactions": values, "errors": errors }))
        }
        Format::Text if rows.is_empty() => {
            format!("checkpoint {checkpoint} carries no transactions\n{}", lines(&errors))
        }
        Format::Text => format!(
            "{}\n{}checkpoint {checkpoint} carries {}: the job commits what is pending when it starts, and so does `txn commit`\n",
            table(["ID", "SIZE", "STANDING", "TRANSACTION"], &rows),
            lines(&errors),
            several(values.iter().filter(|value| value["carried"] == true).count(), "transaction"),
        ),
    };
    Answer { text, good }
}

fn lines(errors: &[String]) -> String {
    errors.iter().map(|error| format!("{error}\n")).collect()
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Committed => "committed",
        Standing::Pending => "pending",
        Standing::Unknown => "unknown",
    }
}
