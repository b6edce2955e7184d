//! `checkpoints inspect`.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Which;
use crate::{
    checkpoint::{CheckpointError, Manifest, OperatorEntry, Store, Wanted, choose},
    error::Error,
    ops::show::{Answer, Format, several, size, time},
    plan::Plan,
    sink::describe_handle,
};

/// What one checkpoint holds.
pub(super) async fn inspect(
    store: &Store,
    which: Which,
    format: Format,
    plan: &Plan,
) -> Result<Answer, Error> {
    let wanted = match which {
        Which::Newest => Wanted::Newest,
        Which::Number(id) => Wanted::Exactly(id),
    };
    let found = store.manifests().await?;
    // Of the newest, even a damaged one is worth a word; there is none to fall back to.
    let chosen = choose(&found, wanted, false, store.location())?;
    let none = || CheckpointError::NoneFound { location: store.location().to_owned() };
    let manifest = chosen.manifest.ok_or_else(none)?;
    let transactions = transactions(store, &manifest).await;
    let fits = fits(&manifest, plan);
    let text = match format {
        Format::Text => text(&manifest, &transactions, &fits),
        Format::Json => format!("{:#}\n", to_json(&manifest, &transactions, &fits)),
    };
    Ok(Answer { text, good: true })
}

/// Each in words, in the order of the manifest.
async fn transactions(store: &Store, manifest: &Manifest) -> Vec<String> {
    let mut texts = Vec::new();
    for part in &manifest.sinks {
        texts.push(match store.get_part(&part.file).await {
            Ok(handle) => describe_handle(&handle),
            Err(damage) => damage.to_string(),
        });
    }
    texts
}

/// Whether this program could go on from here, or why not.
fn fits(manifest: &Manifest, plan: &Plan) -> Result<(), String> {
    let max_parallelism = plan.max_parallelism.unwrap_or(manifest.max_parallelism);
    manifest.check(plan.name, &plan.remembered(), max_parallelism, false).map_err(|e| e.to_string())
}

fn text(manifest: &Manifest, transactions: &[String], fits: &Result<(), String>) -> String {
    let mut out = format!("checkpoint {} of job `{}`\n", manifest.id, manifest.job);
    let finished = if manifest.finished { "all input read" } else { "not finished" };
    let files = several(manifest.files().count(), "file");
    let _ = writeln!(out, "  created      {} by flow {}", time(manifest.created), manifest.flow_version);
    let _ = writeln!(out, "  size         {} in {files}, {finished}", size(manifest.bytes()));
    let _ = writeln!(out, "  fingerprint  {:016x}", manifest.fingerprint());
    let _ = writeln!(out, "  key groups   {}", manifest.max_parallelism);
    let _ = match fits {
        Ok(()) => writeln!(out, "  this program can go on from here"),
        Err(why) => writeln!(out, "  this program cannot go on from here: {why}"),
    };
    for operator in &manifest.operators {
        let OperatorEntry { uid, kind, parallelism } = operator;
        let _ = write!(out, "{uid}  ({kind} x{parallelism})");
        let (parts, bytes) = state(manifest, uid);
        if parts > 0 {
            let _ = write!(out, "  state {} in {}", size(bytes), several(parts, "part"));
        }
        for list in lists(manifest, uid) {
            let List { name, items, bytes, .. } = list;
            let _ = write!(out, "  {name}: {} in {}", several(items, "item"), size(bytes));
        }
        out.push('\n');
        for source in manifest.sources.iter().filter(|source| source.uid == *uid) {
            for split in &source.splits {
                let subtask = source.subtask;
                let _ = writeln!(out, "  subtask {subtask}: split `{}` at {}", split.id, split.position);
            }
        }
        for (part, text) in manifest.sinks.iter().zip(transactions).filter(|(part, _)| part.uid == *uid) {
            let (subtask, checkpoint, size) = (part.subtask, part.checkpoint, size(part.file.bytes));
            let _ =
                writeln!(out, "  subtask {subtask}: transaction of checkpoint {checkpoint}, {size}: {text}");
        }
    }
    out
}

fn state(manifest: &Manifest, uid: &str) -> (usize, u64) {
    manifest
        .states(uid)
        .flat_map(|part| &part.files)
        .fold((0, 0), |(files, bytes), file| (files + 1, bytes + file.bytes))
}

/// A list of an operator that belongs to no key, over all subtasks.
struct List<'m> {
    name: &'m str,
    parts: usize,
    items: usize,
    bytes: u64,
}

fn lists<'m>(manifest: &'m Manifest, uid: &str) -> Vec<List<'m>> {
    let mut lists: Vec<List<'m>> = Vec::new();
    for part in manifest.operator_states.iter().filter(|part| part.uid == uid) {
        let at = lists.iter().position(|list| list.name == part.name).unwrap_or_else(|| {
            lists.push(List { name: &part.name, parts: 0, items: 0, bytes: 0 });
            lists.len() - 1
        });
        let list = &mut lists[at];
        list.parts += 1;
        list.items += part.items;
        list.bytes += part.file.bytes;
    }
    lists.sort_by_key(|list| list.name);
    lists
}

fn to_json(manifest: &Manifest, transactions: &[String], fits: &Result<(), String>) -> Value {
    let operators: Vec<_> = manifest
        .operators
        .iter()
        .map(|OperatorEntry { uid, kind, parallelism }| {
            let (parts, bytes) = state(manifest, uid);
            let lists = lists(manifest, uid).into_iter().map(|List { name, parts, items, bytes }| {
                json!({ "name": name, "parts": parts, "items": items, "bytes": bytes })
            });
            let sources = manifest.sources.iter().filter(|source| source.uid == *uid);
            let splits = sources.flat_map(|source| {
                source.splits.iter().map(
                    |split| json!({ "subtask": source.subtask, "id": split.id, "position": split.position }),
                )
            });
            let sinks = manifest.sinks.iter().zip(transactions).filter(|(part, _)| part.uid == *uid);
            let transactions = sinks.map(|(part, text)| {
                json!({
                    "subtask": part.subtask, "checkpoint": part.checkpoint, "bytes": part.file.bytes,
                    "file": part.file.path, "transaction": text,
                })
            });
            json!({
                "uid": uid, "kind": kind, "parallelism": parallelism,
                "state": { "parts": parts, "bytes": bytes },
                "lists": lists.collect::<Vec<_>>(),
                "splits": splits.collect::<Vec<_>>(),
                "transactions": transactions.collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "id": manifest.id,
        "job": manifest.job,
        "created": time(manifest.created),
        "flow_version": manifest.flow_version,
        "finished": manifest.finished,
        "bytes": manifest.bytes(),
        "files": manifest.files().count(),
        "fingerprint": format!("{:016x}", manifest.fingerprint()),
        "max_parallelism": manifest.max_parallelism,
        "fits": fits.is_ok(),
        "misfit": fits.as_ref().err(),
        "operators": operators,
    })
}
