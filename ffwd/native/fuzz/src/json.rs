//! JSON texts, read by somebody else.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// One JSON text; panics where it is none, or has an object with a key twice.
pub fn read(text: &[u8]) -> Value {
    let shown = String::from_utf8_lossy(text);
    let distinct: Result<Distinct, _> = serde_json::from_slice(text);
    if let Err(error) = distinct {
        panic!("no JSON that ffwd may write: {error}: {shown}");
    }
    serde_json::from_slice(text).expect("it was read before")
}

/// A value whose objects have no key twice.
struct Distinct;

impl<'de> serde::Deserialize<'de> for Distinct {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> serde::de::Visitor<'de> for Visitor {
    type Value = Distinct;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_str<E>(self, _: &str) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Distinct, A::Error> {
        while items.next_element::<Distinct>()?.is_some() {}
        Ok(Distinct)
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Distinct, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<Distinct>()?;
            if let Some(key) = keys.replace(key) {
                return Err(serde::de::Error::custom(format!("the key {key:?} comes twice")));
            }
        }
        Ok(Distinct)
    }
}
