//! Records as they are handed on: one directly after the other, so that they are copied at once.

/// Whole records, in the order in which they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// All their bytes.
    pub bytes: Vec<u8>,
    /// The length of each in bytes; together they are the length of `bytes`.
    pub lengths: Vec<u32>,
}

impl Records {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The records.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |len| {
            let (record, after) = rest.split_at(rest.len().min(*len as usize));
            rest = after;
            record
        })
    }
}

impl<R: AsRef<[u8]>> FromIterator<R> for Records {
    fn from_iter<I: IntoIterator<Item = R>>(records: I) -> Records {
        let mut all = Records::default();
        for record in records {
            all.bytes.extend_from_slice(record.as_ref());
            all.lengths.push(record.as_ref().len() as u32);
        }
        all
    }
}
