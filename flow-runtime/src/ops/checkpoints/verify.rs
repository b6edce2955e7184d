//! `checkpoints verify`.

use std::{collections::HashMap, fmt::Write};

use futures_util::{StreamExt, stream};
use serde_json::json;

use super::Which;
use crate::{
    checkpoint::{CheckpointError, CheckpointId, PartFile, Store},
    error::Error,
    ops::show::{Answer, Format, several, size},
};

/// How many files are read at the same time.
const CONCURRENCY: usize = 16;

/// Reads every file that the chosen checkpoints need, and names each that is damaged or missing.
pub(super) async fn verify(store: &Store, which: Option<Which>, format: Format) -> Result<Answer, Error> {
    let mut found = store.manifests().await?;
    match which {
        None => {}
        Some(Which::Newest) => found.truncate(1),
        Some(Which::Number(wanted)) => {
            let available = found.iter().map(|(id, _)| *id).collect();
            found.retain(|(id, _)| *id == wanted);
            if found.is_empty() {
                let location = store.location().to_owned();
                return Err(CheckpointError::NotFound { location, id: wanted, available }.into());
            }
        }
    }
    if found.is_empty() {
        return Err(CheckpointError::NoneFound { location: store.location().to_owned() }.into());
    }
    let checked = read(store, found.iter().filter_map(|(_, manifest)| manifest.as_ref().ok())).await;
    let (mut out, mut values, mut good) = (String::new(), Vec::new(), true);
    for (id, manifest) in &found {
        let (files, bytes, damages) = match manifest {
            Ok(manifest) => {
                let damages: Vec<_> =
                    manifest.files().filter_map(|file| checked.get(file)?.clone()).collect();
                (manifest.files().count(), manifest.bytes(), damages)
            }
            Err(damage) => (0, 0, vec![damage.to_string()]),
        };
        good &= damages.is_empty();
        describe(&mut out, *id, files, bytes, &damages);
        values.push(json!({ "id": id, "files": files, "bytes": bytes, "damages": damages }));
    }
    let text = match format {
        Format::Text => out,
        Format::Json => format!("{:#}\n", json!({ "good": good, "checkpoints": values })),
    };
    Ok(Answer { text, good })
}

fn describe(out: &mut String, id: CheckpointId, files: usize, bytes: u64, damages: &[String]) {
    let _ = match damages {
        [] => writeln!(out, "checkpoint {id}: good, {} in {}", size(bytes), several(files, "file")),
        _ => writeln!(out, "checkpoint {id}: DAMAGED"),
    };
    for damage in damages {
        let _ = writeln!(out, "  {damage}");
    }
}

/// What is wrong with each file, if anything; a file that several checkpoints name is read once.
async fn read<'m>(
    store: &Store,
    manifests: impl Iterator<Item = &'m crate::checkpoint::Manifest>,
) -> HashMap<PartFile, Option<String>> {
    let files: HashMap<&PartFile, ()> =
        manifests.flat_map(|manifest| manifest.files()).map(|file| (file, ())).collect();
    let reads: Vec<_> = files
        .into_keys()
        .map(|file| async move { (file.clone(), store.get_part(file).await.err().map(|e| e.to_string())) })
        .collect();
    stream::iter(reads).buffer_unordered(CONCURRENCY).collect().await
}
