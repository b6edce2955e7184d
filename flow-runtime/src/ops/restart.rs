//! Restart strategies as text: `fixed-delay:attempts=3,delay=1s`.

use std::time::Duration;

use humantime::format_duration;

use crate::worker::Restart;

/// Understands what `--restart` says.
pub(super) fn parse(text: &str) -> Result<Restart, String> {
    let (name, settings) = match text.split_once(':') {
        Some((name, settings)) => (name.trim(), settings),
        None => (text.trim(), ""),
    };
    let mut settings = Settings::parse(name, settings)?;
    let restart = match name {
        // Also as it was called before there were others.
        "none" | "never" => Restart::Never,
        "fixed-delay" => Restart::FixedDelay {
            attempts: settings.number("attempts")?.unwrap_or(Restart::ATTEMPTS),
            delay: settings.time("delay")?.unwrap_or(Restart::DELAY),
        },
        "exponential" => {
            let initial = settings.time("initial")?.unwrap_or(Restart::INITIAL);
            Restart::Exponential {
                attempts: settings.number("attempts")?.unwrap_or(Restart::ATTEMPTS),
                initial,
                // A first pause above the usual limit is meant.
                max: settings.time("max")?.unwrap_or(Restart::MAX.max(initial)),
                multiplier: settings.number("multiplier")?.unwrap_or(Restart::MULTIPLIER),
                reset_after: settings.time("reset-after")?.unwrap_or(Restart::RESET_AFTER),
            }
        }
        "failure-rate" => {
            let missing =
                || "a failure rate is so many failures per time: `failure-rate:max=3,per=5m`".to_owned();
            Restart::FailureRate {
                max: settings.number("max")?.ok_or_else(missing)?,
                per: settings.time("per")?.ok_or_else(missing)?,
                delay: settings.time("delay")?.unwrap_or(Restart::DELAY),
            }
        }
        _ => {
            return Err(format!(
                "no restart strategy named `{name}`: it is `none`, `fixed-delay`, `exponential` or `failure-rate`"
            ));
        }
    };
    settings.finish()?;
    restart.check()?;
    Ok(restart)
}

/// As [`parse`] understands it.
pub(super) fn show(restart: &Restart) -> String {
    let time = |time: Duration| format_duration(time).to_string().replace(' ', "");
    match restart {
        Restart::Never => "none".to_owned(),
        Restart::FixedDelay { attempts, delay } => {
            format!("fixed-delay:attempts={attempts},delay={}", time(*delay))
        }
        Restart::Exponential { attempts, initial, max, multiplier, reset_after } => format!(
            "exponential:attempts={attempts},initial={},max={},multiplier={multiplier},reset-after={}",
            time(*initial),
            time(*max),
            time(*reset_after)
        ),
        Restart::FailureRate { max, per, delay } => {
            format!("failure-rate:max={max},per={},delay={}", time(*per), time(*delay))
        }
    }
}

/// `key=value` pairs, each to be asked for once.
struct Settings<'t> {
    strategy: &'t str,
    pairs: Vec<(&'t str, &'t str)>,
    known: Vec<&'static str>,
}

impl<'t> Settings<'t> {
    fn parse(strategy: &'t str, text: &'t str) -> Result<Self, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("`{}` has no value: write `key=value`", pair.trim()))?;
            let (key, value) = (key.trim(), value.trim());
            if pairs.iter().any(|(other, _)| *other == key) {
                return Err(format!("`{key}` is said twice"));
            }
            pairs.push((key, value));
        }
        Ok(Settings { strategy, pairs, known: Vec::new() })
    }

    fn take(&mut self, key: &'static str) -> Option<&'t str> {
        self.known.push(key);
        let at = self.pairs.iter().position(|(other, _)| *other == key)?;
        Some(self.pairs.remove(at).1)
    }

    fn number<T: std::str::FromStr>(&mut self, key: &'static str) -> Result<Option<T>, String> {
        let parse = |value: &str| value.parse().map_err(|_| format!("`{key}={value}` is no such number"));
        self.take(key).map(parse).transpose()
    }

    fn time(&mut self, key: &'static str) -> Result<Option<Duration>, String> {
        let parse = |value: &str| {
            humantime::parse_duration(value).map_err(|_| {
                format!("`{key}={value}` is no time: write a number and a unit, as in 500ms or 10s")
            })
        };
        self.take(key).map(parse).transpose()
    }

    /// Refuses what nobody has asked for.
    fn finish(self) -> Result<(), String> {
        let Some((key, _)) = self.pairs.first() else { return Ok(()) };
        let strategy = self.strategy;
        match self.known.as_slice() {
            [] => Err(format!("`{strategy}` takes no `{key}`")),
            known => Err(format!("`{strategy}` takes no `{key}`: it takes {}", known.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_understood() {
        for text in [
            "none",
            "fixed-delay:attempts=3,delay=1s",
            "exponential:attempts=7,initial=50ms,max=1m,multiplier=1.5,reset-after=1h",
            "failure-rate:max=3,per=5m,delay=10s",
        ] {
            let restart = parse(text).unwrap();
            assert_eq!(show(&restart), text);
            assert_eq!(parse(&show(&restart)), Ok(restart));
        }
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        assert_eq!(parse("never"), Ok(Restart::Never));
        assert_eq!(parse("exponential"), Ok(Restart::default()));
        let usual = Restart::FixedDelay { attempts: Restart::ATTEMPTS, delay: Restart::DELAY };
        assert_eq!(parse("fixed-delay"), Ok(usual));
        let Ok(Restart::Exponential { max, .. }) = parse("exponential: initial = 2m") else {
            panic!("refused")
        };
        assert_eq!(max, Duration::from_secs(120));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, words) in [
            ("fixed", "no restart strategy named `fixed`"),
            ("none:delay=1s", "`none` takes no `delay`"),
            ("fixed-delay:max=3", "it takes attempts, delay"),
            ("fixed-delay:attempts", "`attempts` has no value"),
            ("fixed-delay:attempts=-1", "`attempts=-1` is no such number"),
            ("fixed-delay:delay=1", "`delay=1` is no time"),
            ("fixed-delay:delay=1s,delay=2s", "`delay` is said twice"),
            ("failure-rate:max=3", "failure-rate:max=3,per=5m"),
            ("failure-rate:max=3,per=0s", "per a time above 0"),
            ("exponential:multiplier=0.5", "must be at least 1"),
            ("exponential:max=1ms", "shorter than the first"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
