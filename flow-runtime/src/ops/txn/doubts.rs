//! Finding the transactions in doubt.

use tokio::runtime::Runtime;

use crate::{
    checkpoint::{Manifest, Restored, Store, Wanted, choose},
    error::Error,
    job::{Definition, Job},
    sink::{Carried, Desk, InDoubt, describe_handle},
    worker::{Config, desks},
};

/// What the newest checkpoint carries, and who can settle it.
pub(super) struct Doubts {
    pub(super) manifest: Manifest,
    pub(super) sinks: Vec<SinkDoubts>,
}

/// One sink's.
pub(super) struct SinkDoubts {
    pub(super) uid: String,
    /// In the order of checkpoint and subtask.
    pub(super) carried: Vec<Carried>,
    /// `None` for a sink that the pipeline no longer has.
    pub(super) desk: Option<Box<dyn Desk>>,
}

/// One transaction among them.
pub(super) enum Found<'d> {
    /// The checkpoint carries it.
    Carried(&'d SinkDoubts, usize),
    /// Its server holds it, and no checkpoint knows of it.
    AtServer(&'d dyn Desk, InDoubt),
}

impl Doubts {
    pub(super) fn find<D: Definition>(
        job: &Job<D>,
        config: &Config,
        store: &Store,
        tokio: &Runtime,
    ) -> Result<Self, Error> {
        let restored = tokio.block_on(async {
            let found = store.manifests().await?;
            let chosen = choose(&found, Wanted::Newest, false, store.location())?;
            let manifest = chosen.manifest.ok_or_else(|| super::none(store))?;
            // Only that it is this job's: its state need not fit.
            manifest.check(D::PLAN.name, &[], manifest.max_parallelism, true)?;
            Ok::<_, Error>(Restored::load_handles(store, manifest).await?)
        })?;
        let manifest = restored.manifest.clone();
        let mut uids: Vec<String> = manifest.sinks.iter().map(|part| part.uid.clone()).collect();
        let handles: Vec<_> = uids.iter().map(|uid| (uid.clone(), restored.handles(uid))).collect();
        let carried = |uid: &str| {
            handles
                .iter()
                .find(|(other, _)| other == uid)
                .map(|(_, handles)| handles.clone())
                .unwrap_or_default()
        };
        let desks = desks(job, config, store, restored, tokio.handle().clone())?;
        let mut sinks: Vec<_> = desks
            .into_iter()
            .map(|desk| SinkDoubts {
                uid: desk.uid().to_owned(),
                carried: carried(desk.uid()),
                desk: Some(desk),
            })
            .collect();
        uids.sort_unstable();
        uids.dedup();
        for uid in uids {
            if sinks.iter().all(|sink| sink.uid != uid) {
                sinks.push(SinkDoubts { carried: carried(&uid), uid, desk: None });
            }
        }
        Ok(Doubts { manifest, sinks })
    }

    /// The transaction of this name.
    pub(super) async fn get(&self, id: &str) -> Result<Found<'_>, Error> {
        for sink in &self.sinks {
            if let Some(which) = (0..sink.carried.len()).find(|which| sink.id(*which) == id) {
                return Ok(Found::Carried(sink, which));
            }
        }
        for sink in &self.sinks {
            let Some(desk) = &sink.desk else { continue };
            if !id.starts_with(&format!("{}/", sink.uid)) {
                continue;
            }
            let held = desk.in_doubt().await.map_err(|e| sink.failed(&e.to_string()))?;
            let held = held.into_iter().find(|held| sink.id_at_server(held) == id);
            if let Some(held) = held {
                return match sink.carries(&held) {
                    Some(which) => Ok(Found::Carried(sink, which)),
                    None => Ok(Found::AtServer(&**desk, held)),
                };
            }
        }
        Err(super::unknown(id))
    }
}

impl SinkDoubts {
    /// What people call a transaction that the checkpoint carries.
    pub(super) fn id(&self, which: usize) -> String {
        let (subtask, checkpoint, _) = &self.carried[which];
        format!("{}/{checkpoint}/{subtask}", self.uid)
    }

    /// What people call one that the server holds.
    pub(super) fn id_at_server(&self, held: &InDoubt) -> String {
        format!("{}/{}", self.uid, held.id)
    }

    /// What a handle says, in words.
    pub(super) fn describe(&self, which: usize) -> String {
        describe_handle(&self.carried[which].2)
    }

    /// The transaction of the checkpoint that is this one: a handle says what its server calls it.
    pub(super) fn carries(&self, held: &InDoubt) -> Option<usize> {
        (0..self.carried.len()).find(|which| self.describe(*which).contains(&held.id))
    }

    pub(super) fn failed(&self, why: &str) -> Error {
        Error::Config(format!("sink `{}`: {why}", self.uid))
    }
}
