//! Records in one buffer, without space between them, so that all can be passed on by one copy.

/// Whole records, in the order in which they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    pub bytes: Vec<u8>,
    /// Length of each record in bytes; the sum is the length of `bytes`.
    pub lengths: Vec<u32>,
}

impl Records {
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |len| {
            // The fields are public, so lengths that exceed the bytes must not panic.
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
