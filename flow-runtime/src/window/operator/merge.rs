//! Windows that become one when they touch: sessions.

use super::{Core, StateOf, WindowsMut};
use crate::{
    error::BoxError,
    state::{Key, StoredKey, hash},
    time::{Timestamp, Watermark},
    window::{Assigner, Bounds, Definition, Trigger, contents::Contents, state::Open},
};

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    pub(super) fn add_to_session<Q: Key<Stored = K>>(
        &mut self,
        key: &Q,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        let Some(window) = core.definition.spec().assigner.assign(&record, timestamp).next() else {
            return Ok(None);
        };
        let (hash, watermark) = (hash(key), core.firing.watermark);
        let joins = |open: &Open<_, _, _>| joins(open, &window, watermark);
        let session = |state: &StateOf<K, In, S>| {
            let joined = state.open.iter().filter(|open| joins(open));
            joined.fold(window, |session, open| session.cover(&open.window))
        };
        // A record that would be late alone may belong to a session that is not over; otherwise it changes nothing.
        if core.firing.is_over::<S::Assigner>(&window) {
            let session = table.get(hash, key).map_or(window, session);
            if core.firing.is_over::<S::Assigner>(&session) {
                return Ok(Some(core.late(record)));
            }
        }
        let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
        let session = session(state);
        // Nearly all records are in the session that is open, and perhaps prolong it.
        let mut joined = state.open.iter().enumerate().filter(|(_, open)| joins(open)).map(|(at, _)| at);
        match (joined.next(), joined.next()) {
            (None, _) => {}
            (Some(at), None) => core.prolong(session, at, state),
            _ => {
                let sessions = state.open.extract(|open| joins(open));
                core.merge(session, sessions, state)?;
            }
        }
        core.put(key, state, hash, session, timestamp, record)?;
        Ok(None)
    }
}

/// Whether an open session and a new one are the same activity. A session that has been purged when the watermark
/// passed its end is closed for good, and is there for its trigger's state only.
fn joins<W: Bounds, H, T>(open: &Open<W, H, T>, window: &W, watermark: Watermark) -> bool {
    let closed = open.held.is_none() && watermark.has_passed(open.window.max_timestamp());
    open.window.touches(window) && (!closed || open.window == *window)
}

impl<K: StoredKey, In: Clone, S: Definition<K, In>> Core<K, In, S> {
    /// Makes one session of several.
    fn merge(
        &mut self,
        session: S::Window,
        sessions: Vec<Open<S::Window, S::Held, S::TriggerState>>,
        state: &mut StateOf<K, In, S>,
    ) -> Result<(), BoxError> {
        let contents = &self.definition.spec().contents;
        let mut sessions = sessions.into_iter();
        let Some(mut merged) = sessions.next() else { return Ok(()) };
        merged.window = session;
        let mut triggers = Vec::with_capacity(sessions.len());
        for other in sessions {
            match (&mut merged.held, other.held) {
                (Some(held), Some(other)) => contents.merge(held, other)?,
                (held @ None, Some(other)) => *held = Some(other),
                (_, None) => {}
            }
            merged.timers.event.append(other.timers.event);
            merged.timers.processing.append(other.timers.processing);
            triggers.push(other.trigger);
        }
        self.merged(merged, triggers, state);
        Ok(())
    }

    /// Makes a session longer, if it is not so long already.
    #[inline]
    fn prolong(&mut self, session: S::Window, mut at: usize, state: &mut StateOf<K, In, S>) {
        if state.open[at].window == session {
            return;
        }
        // One that was closed for good, by a purge.
        if let Some(closed) = state.open.iter().position(|open| open.window == session) {
            state.open.retain(|open| open.window != session);
            at -= usize::from(closed < at);
        }
        let trigger = &self.definition.spec().trigger;
        let open = &mut state.open[at];
        open.window = session;
        self.firing.ask(open, |window, cx| trigger.on_merge(window, Vec::new(), cx));
        // Sessions do not pass each other, but may pass closed ones.
        state.open.sort_by_key(|open| open.window);
    }

    /// Puts the session back, and tells the trigger.
    fn merged(
        &mut self,
        mut merged: Open<S::Window, S::Held, S::TriggerState>,
        others: Vec<S::TriggerState>,
        state: &mut StateOf<K, In, S>,
    ) {
        let trigger = &self.definition.spec().trigger;
        self.firing.ask(&mut merged, |window, cx| trigger.on_merge(window, others, cx));
        match state.open.binary_search_by(|open| open.window.cmp(&merged.window)) {
            // One that was closed for good, by a purge.
            Ok(at) => state.open[at] = merged,
            Err(at) => state.open.insert(at, merged),
        }
    }
}
