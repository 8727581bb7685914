//! Reads parts of a certificate (RFC 5280, section 4.1): names, key, and validity. The library that
//! verifies chains exposes none of these parts, and rejects certificates of version 1.
//!
//! ```text
//! Certificate ::= SEQUENCE { tbsCertificate SEQUENCE {
//!     [0] version?  serialNumber  signature  issuer  validity { notBefore notAfter }
//!     subject  subjectPublicKeyInfo … } … }
//! ```

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;

/// Parts of a certificate. Names and keys are in their encoded form, for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate<'a> {
    /// Encoded name of the signer.
    pub issuer: &'a [u8],
    /// Encoded name of the owner.
    pub subject: &'a [u8],
    pub key: &'a [u8],
    /// Start of validity, in seconds since the epoch.
    pub begins: i64,
    /// Time of expiry, in seconds since the epoch.
    pub expires: i64,
}

impl<'a> Certificate<'a> {
    /// Reads a certificate in DER; `None` if it is damaged.
    pub fn read(der: &'a [u8]) -> Option<Certificate<'a>> {
        let (outer, _) = expect(der, SEQUENCE)?;
        let (body, _) = expect(outer, SEQUENCE)?;
        // A certificate of version 1 has no version field.
        let rest = match element(body)? {
            (VERSION, _, rest) => rest,
            _ => body,
        };
        let (_, rest) = expect(rest, INTEGER)?;
        let (_, rest) = expect(rest, SEQUENCE)?;
        let (issuer, rest) = expect(rest, SEQUENCE)?;
        let (validity, rest) = expect(rest, SEQUENCE)?;
        let (subject, rest) = expect(rest, SEQUENCE)?;
        let (key, _) = expect(rest, SEQUENCE)?;
        let (tag, text, not_after) = element(validity)?;
        let begins = time(tag, text)?;
        let (tag, text, _) = element(not_after)?;
        Some(Certificate { issuer, subject, key, begins, expires: time(tag, text)? })
    }
}

/// Splits off the first element; returns its tag, its content and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // DER's long form: the low bits are the number of length bytes.
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = bytes.iter().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
            (usize::try_from(length).ok()?, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Splits off an element with this tag; returns its content and the rest.
fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(der)?;
    (found == tag).then_some((content, rest))
}

/// Parses `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`; two digits mean 1950 to 2049.
fn time(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0_i64, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let year = number(&digits[..2])?;
            (if year < 50 { 2000 + year } else { 1900 + year }, &digits[2..])
        }
        (GENERALIZED_TIME, 14) => (number(&digits[..4])?, &digits[4..]),
        _ => return None,
    };
    let mut parts = rest.chunks_exact(2).map(number);
    let mut next = || parts.next().flatten();
    let (month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Returns the days from the epoch to a day of the Gregorian calendar. Years begin in March, so
/// that the leap day is the last day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719468 days from March 1 of year 0 to the epoch; each five months from March have 153 days.
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    /// Unix times as `date -u +%s` has them.
    #[test]
    fn the_expiry_is_read() {
        for ((year, month, day), expected) in [
            ((2030, 1, 1), 1_893_456_000),
            ((2048, 2, 29), 2_466_547_200),
            ((2096, 3, 1), 3_981_398_400),
        ] {
            let key = KeyPair::generate().expect("a key");
            let mut parameters = CertificateParams::new(["a".to_owned()]).expect("a name");
            parameters.distinguished_name.push(DnType::CommonName, "x".repeat(200));
            parameters.not_before = date_time_ymd(1970, 1, 2);
            parameters.not_after = date_time_ymd(year, month, day);
            let made = parameters.self_signed(&key).expect("a certificate");
            let read = Certificate::read(made.der()).expect("a certificate");
            assert_eq!(read.begins, 86_400);
            assert_eq!(read.expires, expected, "{year}-{month}-{day}");
            assert_eq!(read.issuer, read.subject);
            for end in 0..150 {
                assert_eq!(Certificate::read(&made.der()[..end]), None, "{end}");
            }
        }
    }

    #[test]
    fn two_digits_mean_years_from_1950_to_2049() {
        assert_eq!(time(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(time(UTC_TIME, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(GENERALIZED_TIME, b"19700101000001Z"), Some(1));
        assert_eq!(time(UTC_TIME, b"7001010000Z"), None);
        assert_eq!(time(GENERALIZED_TIME, b"1970010100000xZ"), None);
    }
}
