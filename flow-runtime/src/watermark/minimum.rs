//! The minimum over inputs, of which some may have said nothing yet, and some may be idle.

use serde::{Deserialize, Serialize};

use crate::time::Watermark;

/// How far the event time of an input has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// `None` as long as nothing is known, which holds back everything.
    pub(crate) watermark: Option<Watermark>,
    /// Whether the input is to be left out until it says something again.
    pub(crate) idle: bool,
}

/// What is said of event time on an edge, in the order of the parcels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Signal {
    /// The sender's event time has come so far.
    Watermark(Watermark),
    /// The sender has nothing to send and does not know when it will.
    Idle,
    /// It has again.
    Active,
}

impl Mark {
    /// What is to be said before the records of a turn, to who was told `told`, and what after them.
    pub(crate) fn signals(self, told: Mark) -> (Option<Signal>, [Option<Signal>; 2]) {
        let active = (told.idle && !self.idle).then_some(Signal::Active);
        let watermark =
            self.watermark.filter(|new| told.watermark.is_none_or(|old| *new > old)).map(Signal::Watermark);
        let idle = (self.idle && !told.idle).then_some(Signal::Idle);
        (active, [watermark, idle])
    }
}

/// The minimum over inputs. It never goes back.
#[derive(Debug)]
pub(crate) struct Minimum {
    inputs: Vec<Mark>,
    reached: Option<Watermark>,
}

impl Minimum {
    /// `reached` is what a checkpoint knows to have been reached.
    pub(crate) fn of(inputs: usize, reached: Option<Watermark>) -> Self {
        Minimum { inputs: vec![Mark::default(); inputs], reached }
    }

    /// An input says something.
    pub(crate) fn hear(&mut self, input: usize, signal: Signal) {
        let mark = &mut self.inputs[input];
        match signal {
            Signal::Watermark(new) => mark.watermark = mark.watermark.max(Some(new)),
            Signal::Idle => mark.idle = true,
            Signal::Active => mark.idle = false,
        }
    }

    /// How far all have come.
    pub(crate) fn mark(&mut self) -> Mark {
        let mark = combine(self.inputs.iter().copied());
        self.reached = self.reached.max(mark.watermark);
        Mark { watermark: self.reached, idle: mark.idle }
    }
}

/// The minimum over those that are not idle; over none, the maximum that was seen.
pub(crate) fn combine(marks: impl Iterator<Item = Mark> + Clone) -> Mark {
    let mut active = marks.clone().filter(|mark| !mark.idle).peekable();
    if active.peek().is_none() {
        return Mark { watermark: marks.filter_map(|mark| mark.watermark).max(), idle: true };
    }
    // `None` is less than all others, so that an input without one holds back the rest.
    Mark { watermark: active.map(|mark| mark.watermark).min().flatten(), idle: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use Signal::{Active, Idle, Watermark as At};

    fn at(ms: i64) -> Watermark {
        Watermark::new(Timestamp::from_millis(ms))
    }

    fn watermark(minimum: &mut Minimum) -> Option<Watermark> {
        minimum.mark().watermark
    }

    #[test]
    fn an_input_with_none_yet_holds_all() {
        let mut minimum = Minimum::of(2, None);
        minimum.hear(0, At(at(5)));
        assert_eq!(watermark(&mut minimum), None);
        minimum.hear(1, At(at(3)));
        assert_eq!(watermark(&mut minimum), Some(at(3)));
        minimum.hear(1, At(at(9)));
        assert_eq!(watermark(&mut minimum), Some(at(5)));
    }

    #[test]
    fn an_idle_input_is_left_out_and_does_not_lower_the_rest_when_it_wakes() {
        let mut minimum = Minimum::of(2, None);
        minimum.hear(0, At(at(5)));
        minimum.hear(1, Idle);
        assert_eq!(watermark(&mut minimum), Some(at(5)));
        minimum.hear(0, At(at(50)));
        assert_eq!(watermark(&mut minimum), Some(at(50)));
        minimum.hear(1, Active);
        minimum.hear(1, At(at(7)));
        assert_eq!(watermark(&mut minimum), Some(at(50)));
        minimum.hear(0, At(at(60)));
        assert_eq!(watermark(&mut minimum), Some(at(50)), "it is behind, and holds back what comes");
        minimum.hear(1, At(at(55)));
        assert_eq!(watermark(&mut minimum), Some(at(55)));
    }

    #[test]
    fn when_all_are_idle_the_maximum_counts() {
        let mut minimum = Minimum::of(3, None);
        minimum.hear(0, At(at(5)));
        minimum.hear(1, At(at(8)));
        for input in 0..3 {
            minimum.hear(input, Idle);
        }
        assert_eq!(minimum.mark(), Mark { watermark: Some(at(8)), idle: true });
    }

    #[test]
    fn what_a_checkpoint_knows_is_not_taken_back() {
        let mut minimum = Minimum::of(1, Some(at(10)));
        minimum.hear(0, At(at(4)));
        assert_eq!(watermark(&mut minimum), Some(at(10)));
    }

    #[test]
    fn signals_are_what_has_changed() {
        let mark = |ms: i64, idle| Mark { watermark: Some(at(ms)), idle };
        assert_eq!(mark(1, false).signals(Mark::default()), (None, [Some(At(at(1))), None]));
        assert_eq!(mark(1, false).signals(mark(1, false)), (None, [None, None]));
        assert_eq!(mark(2, true).signals(mark(1, false)), (None, [Some(At(at(2))), Some(Idle)]));
        assert_eq!(mark(2, false).signals(mark(2, true)), (Some(Active), [None, None]));
    }
}
