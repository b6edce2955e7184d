//! Windows as long as the days, weeks and months of a time zone: the day on which clocks change has 23 or 25 hours.

use std::{cell::Cell, iter, time::Duration};

use jiff::{ToSpan, civil::Date, tz::TimeZone};

use super::{Assigner, Windowing};
use crate::{error::BoxError, time::Timestamp, window::Window};

/// The days of a time zone, which is named as in `Europe/Berlin`, or given as a [`TimeZone`].
///
/// ```
/// use flow_runtime::{time::Timestamp, window::{Assigner, calendar}};
///
/// let days = calendar::days("Europe/Berlin");
/// // The last Sunday of March.
/// let noon: jiff::Timestamp = "2026-03-29T12:00:00Z".parse()?;
/// let day = days.assign(&"a record", noon.into()).next().unwrap();
/// assert_eq!(day.end.since(day.start).as_secs(), 23 * 3600);
/// # Ok::<(), jiff::Error>(())
/// ```
#[must_use]
pub fn days(zone: impl Zone) -> Calendar {
    Calendar::new(zone, Unit::Day)
}

/// The weeks of a time zone, from Monday to Sunday.
///
/// ```
/// use flow_runtime::window::calendar;
///
/// let weeks = calendar::weeks("America/New_York");
/// ```
#[must_use]
pub fn weeks(zone: impl Zone) -> Calendar {
    Calendar::new(zone, Unit::Week)
}

/// The months of a time zone.
///
/// ```
/// use flow_runtime::window::calendar;
///
/// let months = calendar::months("UTC");
/// ```
#[must_use]
pub fn months(zone: impl Zone) -> Calendar {
    Calendar::new(zone, Unit::Month)
}

/// What names a time zone.
pub trait Zone {
    /// The time zone.
    ///
    /// # Errors
    /// There is none of this name.
    fn zone(self) -> Result<TimeZone, String>;
}

impl Zone for &str {
    fn zone(self) -> Result<TimeZone, String> {
        TimeZone::get(self).map_err(|error| {
            format!("no time zone `{self}`: {error}; names are those of the IANA database, as `Europe/Berlin`, which the system has in /usr/share/zoneinfo (package `tzdata`)")
        })
    }
}

impl Zone for TimeZone {
    fn zone(self) -> Result<TimeZone, String> {
        Ok(self)
    }
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Day,
    Week,
    Month,
}

/// Windows over a calendar; see [`days`], [`weeks`] and [`months`].
#[derive(Clone, Debug)]
pub struct Calendar {
    zone: Result<TimeZone, String>,
    unit: Unit,
    /// The windows of the last records, since calendars are slow: around midnight two of them take turns.
    recent: [Cell<Window>; 2],
}

impl Calendar {
    fn new(zone: impl Zone, unit: Unit) -> Self {
        let none = Window { start: Timestamp::MAX, end: Timestamp::MAX };
        Calendar { zone: zone.zone(), unit, recent: [Cell::new(none), Cell::new(none)] }
    }

    fn window(&self, timestamp: Timestamp) -> Window {
        for recent in &self.recent {
            if recent.get().contains(timestamp) {
                return recent.get();
            }
        }
        let window = self.look_up(timestamp);
        self.recent[1].set(self.recent[0].replace(window));
        window
    }

    /// The window by the calendar.
    fn look_up(&self, timestamp: Timestamp) -> Window {
        if let Some(beyond) = beyond(timestamp) {
            return beyond;
        }
        let calendar = || {
            // Without a zone there is no first record.
            let zone = self.zone.as_ref().ok()?;
            let date = jiff::Timestamp::try_from(timestamp).ok()?.to_zoned_datetime(zone.clone()).date();
            let (first, next) = self.unit.bounds(date)?;
            Some(Window { start: start(first, zone)?, end: start(next, zone)? })
        };
        calendar().unwrap_or(Window { start: timestamp, end: timestamp.plus_millis(1) })
    }
}

/// The first moment of a date: not always midnight, since clocks change at midnight in some places.
fn start(date: Date, zone: &TimeZone) -> Option<Timestamp> {
    Some(Timestamp::from(&date.to_zoned_datetime(zone.clone()).ok()?.start_of_day().ok()?))
}

/// What is left to no calendar: the last year before 9999 ends and all after it, the first one of -9999 and all before.
fn beyond(timestamp: Timestamp) -> Option<Window> {
    let year = Duration::from_secs(366 * 86_400);
    let first = Timestamp::from(jiff::Timestamp::MIN) + year;
    let last = Timestamp::from(jiff::Timestamp::MAX) - year;
    if timestamp < first {
        Some(Window { start: Timestamp::MIN, end: first })
    } else if timestamp >= last {
        Some(Window { start: last, end: Timestamp::MAX })
    } else {
        None
    }
}

impl Unit {
    /// The first date of the window that contains `date`, and the first one of the next window.
    fn bounds(self, date: Date) -> Option<(Date, Date)> {
        match self {
            Unit::Day => Some((date, date.tomorrow().ok()?)),
            Unit::Week => {
                let monday = date.checked_sub(date.weekday().to_monday_zero_offset().days()).ok()?;
                Some((monday, monday.checked_add(1.week()).ok()?))
            }
            Unit::Month => {
                let first = date.first_of_month();
                Some((first, first.checked_add(1.month()).ok()?))
            }
        }
    }
}

impl Windowing for Calendar {
    over_time!(TilingEventTime);

    fn check(&self) -> Result<(), BoxError> {
        match &self.zone {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone().into()),
        }
    }
}

impl<In> Assigner<In> for Calendar {
    type Windows = iter::Once<Window>;

    #[inline]
    fn assign(&self, _: &In, timestamp: Timestamp) -> Self::Windows {
        iter::once(self.window(timestamp))
    }
}
