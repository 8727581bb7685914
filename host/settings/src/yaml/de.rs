//! Deserializes nodes with serde.
//!
//! Types are distinguished as in Prometheus' configuration: a text may have quotes; a number,
//! `true` or `false` must not, and is spelled as [`Scalar`] describes. A missing value is read as
//! an empty text, list or mapping, as zero or as false.

use super::scalar::Scalar;
use super::{Data, Entry, Error, Node, Position};
use serde::de::value::{StrDeserializer, U32Deserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer as _, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

/// Name by which `Reader` recognizes [`At`].
const AT: &str = "tidepool::yaml::At";

/// A value with its position in the file, for errors that only the reader of the section can find.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// Position at which the value begins.
    pub place: Position,
    pub value: T,
}

/// Name by which `Reader` recognizes [`With`].
const WITH: &str = "tidepool::yaml::With";

/// A set of keys that several sections share. The set is read into a type of its own.
pub trait Part {
    const KEYS: &'static [&'static str];
}

/// A section that shares a [`Part`] of its keys with other sections. Serde's flattening would lose
/// positions and accept unknown keys.
#[derive(Clone, Debug)]
pub struct With<P, T> {
    /// Read from the part's own keys.
    pub part: P,
    /// Read from all keys that are not the part's.
    pub rest: T,
}

#[derive(Clone, Copy)]
pub(super) struct Reader<'n>(pub &'n Node);

impl Reader<'_> {
    /// Reads a value that must not have quotes; a missing value is `T::default()`.
    fn plain<T: Default>(
        self,
        expected: &str,
        read: impl FnOnce(Scalar) -> Option<T>,
    ) -> Result<T, Error> {
        let read = match &self.0.data {
            Data::Nothing => Some(T::default()),
            Data::Plain(text) => read(Scalar::of(text)),
            // A value in quotes is always text, as in upstream.
            Data::Quoted(_) | Data::List(_) | Data::Map(_) => None,
        };
        read.ok_or_else(|| self.wrong(expected))
    }

    fn whole<T: Default + TryFrom<i128>>(self, expected: &str) -> Result<T, Error> {
        // `i128` holds both `i64` and `u64`.
        self.plain(expected, |scalar| T::try_from(scalar.whole()?).ok())
    }

    fn wrong(self, expected: &str) -> Error {
        Error::new(self.0.place, "", format_args!("expected {expected}"))
    }
}

/// Defines the methods for integers, each with its range in words.
macro_rules! numbers {
    ($($method:ident $visit:ident $expected:literal),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.whole($expected)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Error;

    /// Passes plain text as text: the target type interprets it.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.data {
            Data::Nothing => visitor.visit_unit(),
            Data::Plain(text) | Data::Quoted(text) => visitor.visit_str(text),
            Data::List(_) => self.deserialize_seq(visitor),
            Data::Map(_) => self.deserialize_map(visitor),
        }
    }

    numbers! {
        deserialize_i8 visit_i8 "a whole number from -128 to 127",
        deserialize_i16 visit_i16 "a whole number of at most 16 bits",
        deserialize_i32 visit_i32 "a whole number of at most 32 bits",
        deserialize_i64 visit_i64 "a whole number of at most 64 bits",
        deserialize_u8 visit_u8 "a whole number from 0 to 255",
        deserialize_u16 visit_u16 "a whole number from 0 to 65535",
        deserialize_u32 visit_u32 "a whole number from 0 to 4294967295",
        deserialize_u64 visit_u64 "a whole number from 0 to 18446744073709551615",
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.plain("true or false", |scalar| match scalar {
            Scalar::Bool(flag) => Some(flag),
            _ => None,
        })?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(self.plain("a number", Scalar::number)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.0.text().ok_or_else(|| self.wrong("one plain value"))?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.data {
            Data::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        // Recognized by name, because serde has no method to request a value's position.
        match name {
            AT => visitor.visit_seq(Located { node: self.0, given: 0 }),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.data {
            Data::Nothing => visitor.visit_seq(Items { items: &[], given: 0 }),
            Data::List(items) => visitor.visit_seq(Items { items, given: 0 }),
            _ => Err(self.wrong("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.data {
            Data::Nothing => visitor.visit_map(Entries { entries: &[], given: 0 }),
            Data::Map(entries) => visitor.visit_map(Entries { entries, given: 0 }),
            _ => Err(self.wrong("lines of the form `key: value`")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        keys: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name != WITH {
            return self.deserialize_map(visitor);
        }
        let entries = match &self.0.data {
            Data::Nothing => Vec::new(),
            Data::Map(entries) => entries.clone(),
            _ => return Err(self.wrong("lines of the form `key: value`")),
        };
        // Entries share their values by `Rc`, so this copies only keys.
        let is_own = |entry: &Entry| keys.contains(&entry.key.as_str());
        let (part, rest): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(is_own);
        // `values` is used only while aliases are expanded.
        let node = |entries| Node { place: self.0.place, data: Data::Map(entries), values: 1 };
        visitor.visit_seq(Split { nodes: [node(part), node(rest)], keys, given: 0 })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = self.0.text().ok_or_else(|| self.wrong("one plain value"))?;
        let name: StrDeserializer<'_, Error> = text.into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 char byte_buf unit unit_struct tuple tuple_struct
    }
}

struct Items<'n> {
    items: &'n [Rc<Node>],
    given: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.get(self.given) else { return Ok(None) };
        let number = self.given;
        self.given += 1;
        let value = seed.deserialize(Reader(item));
        value.map(Some).map_err(|error| error.within(item.place, &format!("[{number}]")))
    }
}

struct Entries<'n> {
    entries: &'n [Entry],
    /// Number of keys that were returned. The last one's value may still be due.
    given: usize,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.entries.get(self.given) else { return Ok(None) };
        self.given += 1;
        let key: StrDeserializer<'_, Error> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| error.within(entry.place, &entry.key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        // `next_key_seed` has already incremented `given` for this entry.
        let last = self.given.checked_sub(1).and_then(|last| self.entries.get(last));
        let entry = last.ok_or_else(|| de::Error::custom("a value without a key"))?;
        let value = seed.deserialize(Reader(&entry.value));
        value.map_err(|error| error.within(entry.value.place, &entry.key))
    }
}

/// Yields three elements: the line, the column and the value of an [`At`].
struct Located<'n> {
    node: &'n Node,
    given: u8,
}

impl<'de> de::SeqAccess<'de> for Located<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.given += 1;
        let Position { line, column } = self.node.place;
        let number = |number: u32| -> U32Deserializer<Error> { number.into_deserializer() };
        match self.given {
            1 => seed.deserialize(number(line)).map(Some),
            2 => seed.deserialize(number(column)).map(Some),
            3 => seed.deserialize(Reader(self.node)).map(Some),
            _ => Ok(None),
        }
    }
}

/// Yields the two parts of a [`With`].
struct Split {
    nodes: [Node; 2],
    keys: &'static [&'static str],
    given: usize,
}

impl<'de> de::SeqAccess<'de> for Split {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(node) = self.nodes.get(self.given) else { return Ok(None) };
        self.given += 1;
        let value = seed.deserialize(Reader(node));
        // The rest knows only its own keys, so the message would lack the part's keys.
        value.map(Some).map_err(|error| error.knowing_more_keys(self.keys))
    }
}

impl<'de, P: Part + Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for With<P, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<With<P, T>, D::Error> {
        deserializer.deserialize_struct(WITH, P::KEYS, WithVisitor(PhantomData))
    }
}

struct WithVisitor<P, T>(PhantomData<(P, T)>);

impl<'de, P: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for WithVisitor<P, T> {
    type Value = With<P, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lines of the form `key: value`")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut parts: A) -> Result<With<P, T>, A::Error> {
        let missing = || de::Error::custom("a section has no parts");
        let part = parts.next_element()?.ok_or_else(missing)?;
        let rest = parts.next_element()?.ok_or_else(missing)?;
        Ok(With { part, rest })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<At<T>, D::Error> {
        deserializer.deserialize_newtype_struct(AT, AtVisitor(PhantomData))
    }
}

struct AtVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for AtVisitor<T> {
    type Value = At<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut parts: A) -> Result<At<T>, A::Error> {
        let missing = || de::Error::custom("a value has no place");
        let line = parts.next_element()?.ok_or_else(missing)?;
        let column = parts.next_element()?.ok_or_else(missing)?;
        let value = parts.next_element()?.ok_or_else(missing)?;
        Ok(At { place: Position { line, column }, value })
    }
}
