//! Credentials of clients. The caller decides which access a credential allows.
//!
//! A file has one credential per line: `basic USER:PASSWORD`, where the password may be a bcrypt
//! hash, or `bearer TOKEN`. Passwords and tokens are kept only as hashes, keyed with a random key
//! of this process. A client's credential is hashed with the same key and compared in constant
//! time. A password that bcrypt has verified is kept in this form as well, since bcrypt takes tens
//! of milliseconds and senders send every second.

use super::AccessError;
use super::reload::Reloaded;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::hmac::{self, HMAC_SHA256, Key, Tag};
use ring::rand::SystemRandom;
use std::fmt;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::{Mutex, PoisonError};

/// Maximum number of credentials in a file.
const CREDENTIALS_MAX: usize = 1000;

/// Maximum cost of a bcrypt hash. With it, a small node already needs seconds per wrong password.
const BCRYPT_COST_MAX: u32 = 14;

const BCRYPT_PREFIXES: [&str; 4] = ["$2a$", "$2b$", "$2x$", "$2y$"];

/// The accepted kinds of credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    pub basic: bool,
    pub bearer: bool,
}

/// The credentials of a file.
pub struct Credentials {
    key: Key,
    plain: Vec<Tag>,
    hashed: Vec<Hashed>,
    kinds: Kinds,
}

/// A user with a bcrypt hash of the password.
struct Hashed {
    user: String,
    bcrypt: String,
    /// The password that bcrypt verified last.
    verified: Mutex<Option<Tag>>,
}

/// A credential presented by a client.
pub struct Attempt {
    kind: Kind,
    /// The token, or user and password separated by a colon.
    secret: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Basic,
    Bearer,
}

/// Result of a check without bcrypt.
#[derive(Debug, PartialEq, Eq)]
pub enum Verified {
    Yes,
    No,
    /// The password must be checked with bcrypt.
    NeedsHash,
}

pub fn open(path: &Path) -> Result<Reloaded<Credentials>, AccessError> {
    let path = path.to_path_buf();
    Reloaded::open(move |files| Credentials::parse(&path, files.read(&path)?))
}

impl Credentials {
    fn parse(path: &Path, content: &[u8]) -> Result<Credentials, AccessError> {
        // Only fixed texts, so that no error quotes a secret of the file.
        let wrong = |line: usize, problem| {
            let path = path.to_path_buf();
            AccessError::Line { path, line: line + 1, problem }
        };
        let text = std::str::from_utf8(content).map_err(|_| wrong(0, "it is not UTF-8"))?;
        let mut credentials = Credentials::none().map_err(|problem| wrong(0, problem))?;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            credentials.add(line).map_err(|problem| wrong(number, problem))?;
            // Each attempt is compared with all credentials, so their number bounds its time.
            if credentials.plain.len() + credentials.hashed.len() > CREDENTIALS_MAX {
                return Err(wrong(number, "there are more than 1000 credentials"));
            }
        }
        // An empty file would lock out all clients, so it is probably a mistake.
        match credentials.kinds == Kinds::default() {
            true => Err(AccessError::Empty { path: path.to_path_buf() }),
            false => Ok(credentials),
        }
    }

    /// Builds credentials from users with bcrypt hashes that [`check_hash`] has accepted.
    pub fn of_users(users: Vec<(String, String)>) -> Result<Credentials, &'static str> {
        let mut credentials = Credentials::none()?;
        for (user, bcrypt) in users {
            credentials.add_hashed(user, bcrypt);
        }
        Ok(credentials)
    }

    fn none() -> Result<Credentials, &'static str> {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the operating system provides no random numbers")?;
        Ok(Credentials { key, plain: Vec::new(), hashed: Vec::new(), kinds: Kinds::default() })
    }

    fn add_hashed(&mut self, user: String, bcrypt: String) {
        self.kinds.basic = true;
        self.hashed.push(Hashed { user, bcrypt, verified: Mutex::default() });
    }

    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let (kind, secret) = line.split_once(char::is_whitespace).ok_or("it has only one word")?;
        let secret = secret.trim();
        match kind {
            "bearer" if secret.contains(char::is_whitespace) => {
                Err("a token must not contain spaces")
            }
            "bearer" => {
                self.kinds.bearer = true;
                self.plain.push(self.tag(Kind::Bearer, secret.as_bytes()));
                Ok(())
            }
            "basic" => {
                let (user, password) = secret
                    .split_once(':')
                    .ok_or("the colon between user and password is missing")?;
                // With an empty password, everyone who knows the user name would be accepted.
                if password.is_empty() {
                    return Err("the password is empty");
                }
                if !BCRYPT_PREFIXES.iter().any(|prefix| password.starts_with(prefix)) {
                    self.kinds.basic = true;
                    self.plain.push(self.tag(Kind::Basic, secret.as_bytes()));
                    return Ok(());
                }
                check_hash(password)?;
                self.add_hashed(user.to_owned(), password.to_owned());
                Ok(())
            }
            _ => Err("its first word is neither basic nor bearer"),
        }
    }

    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    fn tag(&self, kind: Kind, secret: &[u8]) -> Tag {
        // The kind is part of the hash, so a password is never accepted as a token.
        hmac::sign(&self.key, &[&[kind as u8], secret].concat())
    }

    /// Checks an attempt as far as possible without bcrypt.
    pub fn verify(&self, attempt: &Attempt) -> Verified {
        let tag = self.tag(attempt.kind, &attempt.secret);
        let is_it = |known: &Tag| same(known, &tag);
        // No early exit, so that the time does not reveal which credential matches.
        let plain = self.plain.iter().fold(false, |found, known| found | is_it(known));
        let remembered = self.hashed.iter().fold(false, |found, hashed| {
            let verified = hashed.verified.lock().unwrap_or_else(PoisonError::into_inner);
            found | verified.as_ref().is_some_and(is_it)
        });
        match plain || remembered {
            true => Verified::Yes,
            false if attempt.kind == Kind::Basic && !self.hashed.is_empty() => Verified::NeedsHash,
            false => Verified::No,
        }
    }

    /// Checks an attempt with bcrypt; blocks for tens of milliseconds or more.
    pub fn verify_hashed(&self, attempt: &Attempt) -> bool {
        if self.verify(attempt) != Verified::NeedsHash {
            // Another request verified the password while this one waited for its turn.
            return self.verify(attempt) == Verified::Yes;
        }
        let mut parts = attempt.secret.splitn(2, |byte| *byte == b':');
        let (user, password) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let of_user = self.hashed.iter().filter(|hashed| hashed.user.as_bytes() == user);
        // Hashing for unknown users as well keeps the time from revealing user names.
        let candidates = match of_user.clone().next() {
            Some(_) => of_user.collect::<Vec<_>>(),
            None => self.hashed.iter().take(1).collect(),
        };
        for hashed in candidates {
            let fits = bcrypt::verify(password, &hashed.bcrypt).unwrap_or(false);
            // Compared again, because for an unknown user the hash is that of another user.
            if fits && hashed.user.as_bytes() == user {
                let tag = self.tag(attempt.kind, &attempt.secret);
                let mut verified = hashed.verified.lock().unwrap_or_else(PoisonError::into_inner);
                *verified = Some(tag);
                return true;
            }
        }
        false
    }
}

/// Checks that a text is a bcrypt hash whose cost is not too high.
pub fn check_hash(text: &str) -> Result<(), &'static str> {
    let parts = bcrypt::HashParts::from_str(text);
    let cost = parts.map_err(|_| "the bcrypt hash is damaged")?.get_cost();
    match cost > BCRYPT_COST_MAX {
        true => Err("the bcrypt hash has a cost above 14"),
        false => Ok(()),
    }
}

/// Compares two hashes in a time that does not depend on the position of a difference.
fn same(one: &Tag, other: &Tag) -> bool {
    let pairs = one.as_ref().iter().zip(other.as_ref());
    pairs.fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

impl Attempt {
    /// Parses the value of `Authorization` (RFC 9110, section 11.6.2; RFC 7617; RFC 6750). Clients
    /// of InfluxDB write `Token` for `Bearer`.
    pub fn read(value: &[u8]) -> Option<Attempt> {
        let space = value.iter().position(|byte| *byte == b' ')?;
        let (scheme, rest) = (&value[..space], value[space..].trim_ascii());
        if [&b"bearer"[..], b"token"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Some(Attempt { kind: Kind::Bearer, secret: rest.to_vec() });
        }
        let is_basic = scheme.eq_ignore_ascii_case(b"basic");
        let secret = BASE64_STANDARD.decode(rest).ok().filter(|_| is_basic)?;
        Some(Attempt { kind: Kind::Basic, secret })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits secrets and user names.
        f.debug_struct("Credentials").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Credentials, String> {
        Credentials::parse(Path::new("file"), text.as_bytes()).map_err(|error| error.to_string())
    }

    fn basic(user_and_password: &str) -> Option<Attempt> {
        Attempt::read(format!("Basic {}", BASE64_STANDARD.encode(user_and_password)).as_bytes())
    }

    fn is_let_in(credentials: &Credentials, attempt: Option<Attempt>) -> bool {
        attempt.is_some_and(|attempt| match credentials.verify(&attempt) {
            Verified::Yes => true,
            Verified::No => false,
            Verified::NeedsHash => credentials.verify_hashed(&attempt),
        })
    }

    #[test]
    fn plain_credentials_let_in_whoever_has_them() -> Result<(), String> {
        let text = "# nodes\n\n basic anna:a:b c \r\nbearer t0ken==\n";
        let credentials = parsed(text)?;
        assert_eq!(credentials.kinds(), Kinds { basic: true, bearer: true });
        assert!(is_let_in(&credentials, basic("anna:a:b c")));
        assert!(is_let_in(&credentials, Attempt::read(b"bearer  t0ken==")));
        assert!(is_let_in(&credentials, Attempt::read(b"Token t0ken==")));
        for wrong in ["anna:a:b", "anna:", "anna", "", "t0ken==", "Anna:a:b c", "anna:a:b c "] {
            assert!(!is_let_in(&credentials, basic(wrong)), "{wrong:?}");
        }
        for wrong in ["Bearer", "Bearer ", "Bearer anna:a:b c", "Tok t0ken==", "Basic !", ""] {
            assert!(!is_let_in(&credentials, Attempt::read(wrong.as_bytes())), "{wrong:?}");
        }
        Ok(())
    }

    #[test]
    fn hashed_passwords_are_verified_once() -> Result<(), String> {
        let hash = bcrypt::hash("secret", 4).map_err(|error| error.to_string())?;
        let credentials = parsed(&format!("basic ben:{hash}\nbasic anna:{hash}"))?;
        let attempt = |text: &str| basic(text).ok_or("base64");
        let good = attempt("anna:secret")?;
        assert_eq!(credentials.verify(&good), Verified::NeedsHash);
        assert!(credentials.verify_hashed(&good) && credentials.verify_hashed(&good));
        assert_eq!(credentials.verify(&good), Verified::Yes);
        for wrong in ["anna:Secret", "nobody:secret", "anna:", &format!("anna:{hash}")] {
            let wrong = attempt(wrong)?;
            assert_eq!(credentials.verify(&wrong), Verified::NeedsHash);
            assert!(!credentials.verify_hashed(&wrong));
        }
        assert_eq!(credentials.verify(&good), Verified::Yes, "wrong ones do not push it out");
        Ok(())
    }

    /// The example of a web configuration in Prometheus' documentation.
    #[test]
    fn hashes_of_other_tools_are_taken() -> Result<(), String> {
        let hash = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";
        let credentials = parsed(&format!("basic admin:{hash}"))?;
        assert!(!is_let_in(&credentials, basic("admin:wrong")));
        Ok(())
    }

    #[test]
    fn errors_name_the_line_and_keep_its_secret() {
        for (text, problem) in [
            ("", "no credential"),
            ("# only a comment", "no credential"),
            ("\nbearer", "line 2"),
            ("basic hunter2", "the colon between"),
            ("basic hunter2:", "empty"),
            ("bearer hunter2 hunter2", "must not contain spaces"),
            ("digest hunter2", "neither"),
            ("basic a:$2y$hunter2", "damaged"),
            ("basic a:$2y$31$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi", "cost"),
        ] {
            let Err(error) = parsed(text) else { panic!("{text:?} is taken") };
            assert!(error.contains(problem) && !error.contains("hunter2"), "{error}");
        }
        assert!(!format!("{:?}", parsed("bearer hunter2")).contains("hunter2"));
    }
}
