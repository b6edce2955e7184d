//! What can be a timestamp.

use std::time::SystemTime;

use crate::{error::BoxError, time::Timestamp};

/// The event time of a record, and what it says of those that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamp {
    /// When it happened.
    pub time: Timestamp,
    /// What a [`punctuated`](super::punctuated) stream says besides: that no record up to this time follows.
    pub punctuation: Option<Timestamp>,
}

impl Stamp {
    /// A time alone.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Stamp { time, punctuation: None }
    }
}

/// What the closure of `.watermarks(..)` may return: a [`Timestamp`], milliseconds since 1970 UTC (`i64` or `u64`), a
/// [`SystemTime`], and an `Option` or a `Result` of these. One that is missing is an error, and never 1970.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a timestamp",
    label = "the closure of `.watermarks(..)` returns when the record happened",
    note = "return a `flow::time::Timestamp`, milliseconds since 1970 UTC as `i64` or `u64`, a `SystemTime`, a time of `jiff`, or an `Option` or `Result` of these; for `punctuated()` a pair of it and an `Option`"
)]
pub trait IntoTimestamp {
    /// The time as the engine knows it.
    ///
    /// # Errors
    /// When there is none, or none that can be represented.
    fn stamp(self) -> Result<Stamp, BoxError>;
}

impl IntoTimestamp for Timestamp {
    #[inline(always)]
    fn stamp(self) -> Result<Stamp, BoxError> {
        Ok(Stamp::at(self))
    }
}

impl IntoTimestamp for i64 {
    #[inline(always)]
    fn stamp(self) -> Result<Stamp, BoxError> {
        Ok(Stamp::at(Timestamp::from_millis(self)))
    }
}

impl IntoTimestamp for u64 {
    #[inline(always)]
    fn stamp(self) -> Result<Stamp, BoxError> {
        i64::try_from(self)
            .map_err(|_| out_of_range(&format!("{self} milliseconds after 1970")))
            .and_then(IntoTimestamp::stamp)
    }
}

macro_rules! times {
    ($($t:ty),*) => { $(
        impl IntoTimestamp for $t {
            #[inline]
            fn stamp(self) -> Result<Stamp, BoxError> { Ok(Stamp::at(self.into())) }
        }
    )* };
}
times!(SystemTime, jiff::Timestamp);

impl IntoTimestamp for &jiff::ZonedDateTime {
    #[inline]
    fn stamp(self) -> Result<Stamp, BoxError> {
        self.timestamp().stamp()
    }
}

impl IntoTimestamp for jiff::ZonedDateTime {
    #[inline]
    fn stamp(self) -> Result<Stamp, BoxError> {
        self.timestamp().stamp()
    }
}

impl<T: IntoTimestamp> IntoTimestamp for Option<T> {
    #[inline(always)]
    fn stamp(self) -> Result<Stamp, BoxError> {
        match self {
            Some(time) => time.stamp(),
            None => Err("the record has no timestamp".into()),
        }
    }
}

impl<T: IntoTimestamp, E: Into<BoxError>> IntoTimestamp for Result<T, E> {
    #[inline(always)]
    fn stamp(self) -> Result<Stamp, BoxError> {
        self.map_err(Into::into).and_then(T::stamp)
    }
}

/// For [`punctuated`](super::punctuated): when the record happened, and up to when no other follows, if it says so.
impl<T: IntoTimestamp, P: IntoTimestamp> IntoTimestamp for (T, Option<P>) {
    #[inline(always)]
    fn stamp(self) -> Result<Stamp, BoxError> {
        let time = self.0.stamp()?.time;
        let punctuation = match self.1 {
            Some(punctuation) => Some(punctuation.stamp()?.time),
            None => None,
        };
        Ok(Stamp { time, punctuation })
    }
}

#[cold]
fn out_of_range(what: &str) -> BoxError {
    format!("a timestamp that does not fit: {what}").into()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn millis(time: impl IntoTimestamp) -> i64 {
        time.stamp().expect("a time").time.as_millis()
    }

    #[test]
    fn times_of_all_kinds() {
        assert_eq!(millis(1_500i64), 1_500);
        assert_eq!(millis(Some(1_500u64)), 1_500);
        assert_eq!(millis("17".parse::<i64>()), 17);
        assert_eq!(millis(UNIX_EPOCH + Duration::from_micros(1_999)), 1);
        assert_eq!(millis(UNIX_EPOCH - Duration::from_micros(1)), -1);
        assert_eq!(millis("1970-01-01T01:00:00.25+01:00".parse::<jiff::Timestamp>()), 250);
        assert_eq!(millis("1970-01-01T01:00:00.25[Europe/Berlin]".parse::<jiff::ZonedDateTime>()), 250);
        assert!(u64::MAX.stamp().unwrap_err().to_string().contains("does not fit"));
    }

    #[test]
    fn what_is_missing_is_an_error() {
        assert_eq!(None::<i64>.stamp().unwrap_err().to_string(), "the record has no timestamp");
        assert!("x".parse::<i64>().stamp().is_err());
        assert!((1i64, Some(None::<i64>)).stamp().is_err());
    }

    #[test]
    fn a_punctuation_goes_with_the_time() {
        let stamp = (5i64, Some(3i64)).stamp().unwrap();
        assert_eq!((stamp.time.as_millis(), stamp.punctuation.map(Timestamp::as_millis)), (5, Some(3)));
    }
}
