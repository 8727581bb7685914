//! Texts of the engine's errors, since the generated types can only print their structure.

use super::{Damage, Error, Limit, RefusalReason, StorageError, WriteOutcome};

/// Returns the text of an error for users.
pub fn in_words(error: &Error) -> String {
    match error {
        Error::NotOpen => "the engine's store is not open".to_owned(),
        Error::WrongRole(call) => format!("an engine instance of this role has no {call}"),
        Error::Invalid(why) => why.clone(),
        Error::Malformed(damage) | Error::Corrupt(damage) => {
            let Damage { where_, offset, reason } = damage;
            format!("{where_} is damaged at byte {offset}: {reason}")
        }
        Error::LimitExceeded(Limit { what, max }) => format!("at most {max} {what} are allowed"),
        Error::ShortOfMemory(bytes_max) => {
            format!("memory is short: the engine may use {bytes_max} bytes")
        }
        Error::Busy => "running reads use the data that this would drop; retry later".into(),
        Error::SeriesDropped => {
            "series of the head were dropped while they were counted; ask again".into()
        }
        Error::HeadLost(lost) => lost.to_string(),
        Error::Storage(StorageError::ReadOnly(what)) => {
            format!("{what} was opened for reading only")
        }
        Error::Storage(StorageError::NotFound(what)) => format!("{what} does not exist"),
        Error::Storage(StorageError::NoSpace(what)) => format!("no space is left for {what}"),
        Error::Storage(StorageError::Io(why)) => why.clone(),
    }
}

/// An outcome with nothing written and nothing refused.
pub fn nothing_written() -> WriteOutcome {
    WriteOutcome {
        samples_written: 0,
        histograms_written: 0,
        exemplars_written: 0,
        refused: 0,
        refusals: Vec::new(),
    }
}

/// Adds the host's flags to the engine's refusals: the engine does not know names of flags.
pub fn with_flags(mut outcome: WriteOutcome) -> WriteOutcome {
    for refusal in &mut outcome.refusals {
        let flag = match refusal.reason {
            RefusalReason::SeriesLimit => "--max-series",
            RefusalReason::MemoryLimit => "--memory-limit",
            RefusalReason::ExemplarsOff => "--max-exemplars=0",
            _ => continue,
        };
        refusal.detail.push_str(&format!(" ({flag})"));
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_structure_shows() {
        let damage = || Damage { where_: "the body".into(), offset: 4, reason: "it ends".into() };
        let limit = Limit { what: "samples".into(), max: 5 };
        for (error, expected) in [
            (Error::Invalid("no \"x\"".into()), "no \"x\""),
            (Error::Malformed(damage()), "the body is damaged at byte 4: it ends"),
            (Error::LimitExceeded(limit), "at most 5 samples are allowed"),
            (Error::Storage(StorageError::Io("the disk".into())), "the disk"),
        ] {
            assert_eq!(in_words(&error), expected);
        }
    }
}
