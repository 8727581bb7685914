//! The rules of updates, on a copy of all silences.
//!
//! An update may not rewrite the past: what an active silence matched and when it began stays. An
//! update that would change this ends the silence, and a new one begins. Source:
//! prometheus/alertmanager, `silence/silence.go` (`Set`, `canUpdate`, `expire`) and `api/v2/api.go`
//! (`postSilencesHandler`).

use super::timeline::{Now, STEP_MS_MIN};
use super::{EXPRESSIONS_BYTES_MAX, Map, RETENTION_MS, SILENCE_BYTES_MAX, SilenceError};
use super::{Silence, SilenceId, SilenceState, json};
use crate::matchers::{Matcher, Matchers};
use std::sync::Arc;
use tidepool_model::MatchOp;
use tidepool_rules::file::Labels;

/// A silence that somebody wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The silence to change; a new one without it.
    pub id: Option<SilenceId>,
    pub matchers: Matchers,
    /// `None` means now.
    pub starts_at_ms: Option<i64>,
    pub ends_at_ms: i64,
    pub created_by: String,
    pub comment: String,
    pub annotations: Labels,
}

pub struct Draft {
    pub silences: Map,
    pub is_changed: bool,
    pub judged_ms: i64,
    silences_max: usize,
    now: Now,
}

impl Draft {
    pub fn new(silences: Map, silences_max: usize, judged_ms: i64, now: Now) -> Draft {
        Draft { silences, is_changed: false, judged_ms, silences_max, now }
    }

    /// Sets a silence; `new` is its identifier if it becomes a new one.
    pub fn set(&mut self, wanted: &Wanted, new: SilenceId) -> Result<SilenceId, SilenceError> {
        let (mut silence, is_moved) = self.of(wanted, new);
        if silence.starts_at_ms >= silence.ends_at_ms {
            return Err(SilenceError::Order);
        }
        if silence.ends_at_ms < self.judged_ms {
            return Err(SilenceError::Past);
        }
        check_matchers(&silence.matchers).map_err(SilenceError::Invalid)?;
        let before = match wanted.id {
            Some(id) => Some(self.silences.get(&id).cloned().ok_or(SilenceError::NotFound)?),
            None => None,
        };
        let earlier = before.as_ref().and_then(|before| before.doubted_since);
        silence.doubted_since = earlier.or(is_moved.then_some(self.now.monotonic));
        if let Some(before) = before.as_deref().filter(|before| self.can_update(before, &silence)) {
            silence.id = before.id;
            return self.put(silence);
        }
        self.make_room()?;
        silence.starts_at_ms = silence.starts_at_ms.max(self.judged_ms);
        if earlier.is_some() {
            silence.doubted_since = Some(self.now.monotonic);
        }
        let id = self.put(silence)?;
        match before {
            // An expired one may have made room.
            Some(before) if before.state(self.judged_ms) != SilenceState::Expired => {
                self.expire(before.id)?;
            }
            _ => {}
        }
        Ok(id)
    }

    /// Ends a silence.
    pub fn expire(&mut self, id: SilenceId) -> Result<(), SilenceError> {
        let silence = self.silences.get_mut(&id).ok_or(SilenceError::NotFound)?;
        let state = silence.state(self.judged_ms);
        if state == SilenceState::Expired {
            return Ok(());
        }
        let silence = Arc::make_mut(silence);
        // Just before now, because the end is included.
        silence.ends_at_ms = self.judged_ms - 1;
        silence.starts_at_ms = silence.starts_at_ms.min(silence.ends_at_ms);
        silence.updated_at_ms = self.judged_ms;
        self.is_changed = true;
        Ok(())
    }

    /// Returns the silence as wanted, and whether its times were moved to the time of judgement.
    fn of(&self, wanted: &Wanted, id: SilenceId) -> (Silence, bool) {
        let Wanted { matchers, ends_at_ms, created_by, comment, annotations, .. } = wanted;
        let wall_ms = self.now.wall_ms;
        let starts_at_ms = wanted.starts_at_ms.unwrap_or(wall_ms);
        // By the doubted clock it would be active now: the client shares that clock.
        let is_moved = self.now.is_doubted
            && starts_at_ms <= wall_ms.saturating_add(STEP_MS_MIN)
            && *ends_at_ms > wall_ms;
        let shift_ms = if is_moved { self.judged_ms.saturating_sub(wall_ms) } else { 0 };
        let silence = Silence {
            id,
            matchers: matchers.clone(),
            starts_at_ms: starts_at_ms.saturating_add(shift_ms),
            ends_at_ms: ends_at_ms.saturating_add(shift_ms),
            updated_at_ms: self.judged_ms,
            created_by: created_by.clone(),
            comment: comment.clone(),
            annotations: annotations.clone(),
            doubted_since: None,
        };
        (silence, is_moved)
    }

    /// Returns whether a silence can become another without a change of the past.
    fn can_update(&self, from: &Silence, to: &Silence) -> bool {
        let second = |ms: i64| ms.div_euclid(1000);
        from.matchers == to.matchers
            && match from.state(self.judged_ms) {
                SilenceState::Active => second(from.starts_at_ms) == second(to.starts_at_ms),
                SilenceState::Pending => to.starts_at_ms >= self.judged_ms,
                SilenceState::Expired => false,
            }
    }

    /// Makes room for one silence more, by removing those that expired first.
    fn make_room(&mut self) -> Result<(), SilenceError> {
        let judged_ms = self.judged_ms;
        let is_expired = |silence: &Silence| silence.state(judged_ms) == SilenceState::Expired;
        if !self.now.is_doubted {
            self.silences
                .retain(|_, silence| silence.ends_at_ms.saturating_add(RETENTION_MS) > judged_ms);
        }
        while self.silences.len() >= self.silences_max {
            let expired = self.silences.values().filter(|silence| is_expired(silence));
            let Some(oldest) = expired.min_by_key(|silence| silence.ends_at_ms) else {
                let (count, silences_max) = (self.silences.len(), self.silences_max);
                return Err(SilenceError::TooMany { count, silences_max });
            };
            let id = oldest.id;
            self.silences.remove(&id);
        }
        Ok(())
    }

    fn put(&mut self, silence: Silence) -> Result<SilenceId, SilenceError> {
        let bytes = json::stored(&silence).to_string().len();
        if bytes > SILENCE_BYTES_MAX {
            return Err(SilenceError::TooLarge { bytes });
        }
        let id = silence.id;
        self.silences.insert(id, Arc::new(silence));
        let expressions = self.silences.values().map(|silence| silence.matchers.compiled_bytes());
        if expressions.sum::<usize>() > EXPRESSIONS_BYTES_MAX {
            return Err(SilenceError::Expressions);
        }
        self.is_changed = true;
        Ok(id)
    }
}

/// Refuses matchers that match every alert. As in Alertmanager, `!=` and `!~` never count as such.
fn check_matchers(matchers: &Matchers) -> Result<(), String> {
    if matchers.is_empty() {
        return Err("matcher set 0 is empty".to_owned());
    }
    let takes_empty = |matcher: &Matcher| {
        matches!(matcher.op(), MatchOp::Equal | MatchOp::Regex) && matcher.matches("")
    };
    match matchers.iter().all(takes_empty) {
        true => Err("matcher set 0: at least one matcher must not match the empty string".into()),
        false => Ok(()),
    }
}
