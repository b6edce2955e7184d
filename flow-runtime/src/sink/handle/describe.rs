//! Encoded values as text.

use std::fmt::Write;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

/// Longer texts and lists are cut, for a handle may carry an epoch's output; the names of transactions are not.
const LONGEST: usize = 256;

/// What a field holds, as text.
pub(super) fn text(bytes: &[u8]) -> String {
    match rmp_serde::from_slice::<Text>(bytes) {
        Ok(Text(text)) => text,
        Err(_) => format!("<{} bytes>", bytes.len()),
    }
}

struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Describe).map(Text)
    }
}

struct Describe;

macro_rules! as_is {
    ($($method:ident: $t:ty),* $(,)?) => { $(
        fn $method<E: de::Error>(self, value: $t) -> Result<String, E> {
            Ok(value.to_string())
        }
    )* };
}

impl<'de> Visitor<'de> for Describe {
    type Value = String;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    as_is!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

    fn visit_str<E: de::Error>(self, value: &str) -> Result<String, E> {
        let mut characters = value.chars();
        let start: String = characters.by_ref().take(LONGEST).collect();
        Ok(if characters.next().is_some() { format!("{start:?}..") } else { format!("{start:?}") })
    }

    fn visit_bytes<E: de::Error>(self, value: &[u8]) -> Result<String, E> {
        Ok(format!("<{} bytes>", value.len()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<String, E> {
        Ok("none".to_owned())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<String, A::Error> {
        let mut text = String::from("[");
        let mut count = 0;
        while let Some(Text(element)) = list.next_element()? {
            if count < LONGEST {
                let separator = if count == 0 { "" } else { ", " };
                let _ = write!(text, "{separator}{element}");
            }
            count += 1;
        }
        if count > LONGEST {
            let _ = write!(text, ", {} more", count - LONGEST);
        }
        text.push(']');
        Ok(text)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        let mut text = String::from("{");
        while let Some((Text(key), Text(value))) = map.next_entry()? {
            let separator = if text.len() == 1 { "" } else { ", " };
            let _ = write!(text, "{separator}{}: {value}", key.trim_matches('"'));
        }
        text.push('}');
        Ok(text)
    }
}
