//! Windows that become one when they touch: sessions.
//!
//! Sessions that are open do not touch, so in their order they are in the order of their ends, too, and those that a
//! record joins lie next to each other. In between there may be sessions that were closed for good by a purge.

use super::{Core, StateOf, WindowsMut};
use crate::{
    error::BoxError,
    state::{Key, StoredKey},
    time::{Timestamp, Watermark},
    window::{
        Assigner, Bounds, Definition, Window,
        contents::Contents,
        state::{List, Open},
        timing::{Timing, Triggering},
    },
};

impl<K: StoredKey, In: Clone, S: Definition<K, In>> WindowsMut<'_, K, In, S> {
    #[inline(always)]
    pub(super) fn add_to_session<Q: Key<Stored = K>>(
        &mut self,
        hash: u64,
        key: &Q,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        let Some(window) = core.definition.spec().assigner.assign(&record, timestamp).next() else {
            return Ok(None);
        };
        // Nearly all records come before the watermark has passed them.
        if core.firing.watermark.has_passed(window.span().start) {
            return self.add_behind_watermark(hash, key, window, timestamp, record);
        }
        let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
        // And nearly all are in the session that is open, and perhaps prolong it. The watermark has not passed the end of
        // that, then.
        if S::Timing::AT_THE_END
            && let Some((open, held)) = state.open.only()
            && holds(open.span(), window.span())
        {
            core.definition.spec().contents.add(held, record, timestamp)?;
            // Whether it prolongs the session cannot be foretold, so nothing branches on it.
            state.open.set_window(0, open.cover(&window));
            return Ok(None);
        }
        core.put_into_session(key, state, hash, window, timestamp, record)?;
        Ok(None)
    }

    /// A record that would be late alone may belong to a session that is not over; otherwise it changes nothing.
    #[inline(never)]
    fn add_behind_watermark<Q: Key<Stored = K>>(
        &mut self,
        hash: u64,
        key: &Q,
        window: S::Window,
        timestamp: Timestamp,
        record: In,
    ) -> Result<Option<In>, BoxError> {
        let (core, table) = (&mut *self.core, &mut *self.table);
        if core.firing.is_over::<S::Assigner>(&window) {
            let session = table.get(hash, key).map_or(window, |state| {
                let joined = joined::<K, In, S>(state, &window, core.firing.watermark);
                cover::<K, In, S>(joined, state, window)
            });
            if core.firing.is_over::<S::Assigner>(&session) {
                return Ok(Some(core.late(record)));
            }
        }
        let (key, state) = table.entry(hash, key, StateOf::<K, In, S>::default);
        core.put_into_session(key, state, hash, window, timestamp, record)?;
        Ok(None)
    }
}

/// Whether a session reaches beyond the beginning of a window that it touches.
#[inline(always)]
fn holds(session: Window, window: Window) -> bool {
    session.start <= window.end && window.start < session.end
}

/// A session that is open.
type OpenOf<K, In, S> = Open<
    <S as Definition<K, In>>::Window,
    <S as Definition<K, In>>::Held,
    <<S as Definition<K, In>>::Timing as Timing>::OfWindow,
>;

/// Whether an open session and a new one are the same activity. A session that has been purged when the watermark
/// passed its end is closed for good, and is there for its trigger's state only.
fn joins<W: Bounds>(open: &W, holds: bool, window: &W, watermark: Watermark) -> bool {
    let closed = !holds && watermark.has_passed(open.max_timestamp());
    open.touches(window) && (!closed || open == window)
}

/// The places of the sessions that a record joins which is alone in `window`, from the last to the first.
fn joined<K, In, S: Definition<K, In>>(
    state: &StateOf<K, In, S>,
    window: &S::Window,
    watermark: Watermark,
) -> impl Iterator<Item = usize> {
    let end = window.span().end;
    let places = (0..state.open.partition_point(|open| open.span().start <= end)).rev();
    let open = places.filter_map(|at| Some((at, state.open.window(at)?, state.open.held(at).is_some())));
    let near = open.take_while(|(_, open, holds)| !holds || open.touches(window));
    near.filter(move |(_, open, holds)| joins(open, *holds, window, watermark)).map(|(at, ..)| at)
}

/// The session of these and one more.
fn cover<K, In, S: Definition<K, In>>(
    joined: impl Iterator<Item = usize>,
    state: &StateOf<K, In, S>,
    window: S::Window,
) -> S::Window {
    joined.filter_map(|at| state.open.window(at)).fold(window, |session, open| session.cover(&open))
}

impl<K: StoredKey, In, S: Definition<K, In>> Core<K, In, S> {
    #[inline(never)]
    fn put_into_session(
        &mut self,
        key: &K,
        state: &mut StateOf<K, In, S>,
        hash: u64,
        window: S::Window,
        timestamp: Timestamp,
        record: In,
    ) -> Result<(), BoxError> {
        let watermark = self.firing.watermark;
        let session = cover::<K, In, S>(joined::<K, In, S>(state, &window, watermark), state, window);
        let two = {
            let mut places = joined::<K, In, S>(state, &window, watermark);
            (places.next(), places.next())
        };
        match two {
            (None, _) => {}
            (Some(at), None) => self.prolong(session, at, state),
            _ => {
                let places: Vec<usize> = joined::<K, In, S>(state, &window, watermark).collect();
                let sessions = places.into_iter().filter_map(|at| state.open.remove(at)).collect();
                self.merge(session, sessions, state)?;
            }
        }
        self.put(key, state, hash, session, timestamp, record)?;
        Ok(())
    }

    /// Makes one session of several, of which the earliest is the last.
    fn merge(
        &mut self,
        session: S::Window,
        mut sessions: Vec<OpenOf<K, In, S>>,
        state: &mut StateOf<K, In, S>,
    ) -> Result<(), BoxError> {
        let contents = &self.definition.spec().contents;
        let Some(mut merged) = sessions.pop() else { return Ok(()) };
        merged.window = session;
        let mut triggers = Vec::with_capacity(sessions.len());
        for other in sessions.into_iter().rev() {
            match (&mut merged.held, other.held) {
                (Some(held), Some(other)) => contents.merge(held, other)?,
                (held @ None, Some(other)) => *held = Some(other),
                (_, None) => {}
            }
            triggers.push(S::Timing::append(&mut merged.timing, other.timing));
        }
        self.put_back(merged, triggers, state);
        Ok(())
    }

    /// Makes a session longer, if it is not so long already.
    fn prolong(&mut self, session: S::Window, at: usize, state: &mut StateOf<K, In, S>) {
        if state.open.window(at) == Some(session) {
            return;
        }
        // Sessions do not pass each other, but may pass closed ones.
        let before = at.checked_sub(1).and_then(|before| state.open.window(before));
        let passes = before.is_some_and(|before| before >= session)
            || state.open.window(at + 1).is_some_and(|next| next <= session);
        if !passes {
            let (trigger, moment) = (&self.definition.spec().trigger, self.firing.moment());
            state.open.set_window(at, session);
            state.open.with(at, |session, of| trigger.on_merge(session, Vec::new(), of, moment));
        } else if let Some(mut open) = state.open.remove(at) {
            open.window = session;
            self.put_back(open, Vec::new(), state);
        }
    }

    /// Puts a session back, and tells the trigger.
    fn put_back(
        &mut self,
        mut session: OpenOf<K, In, S>,
        others: Vec<<S::Timing as Timing>::TriggerState>,
        state: &mut StateOf<K, In, S>,
    ) {
        let (trigger, moment) = (&self.definition.spec().trigger, self.firing.moment());
        trigger.on_merge(&session.window, others, &mut session.timing, moment);
        let at = match state.find(&session.window) {
            // One that was closed for good, by a purge.
            Ok(at) => {
                state.open.remove(at);
                at
            }
            Err(at) => at,
        };
        state.open.insert(at, session);
    }
}
