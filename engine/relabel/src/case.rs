//! Case conversion letter by letter, as in Go; Rust's turns some letters into several letters.

pub fn lower(text: &str) -> String {
    // Rust turns `İ` into `i` and a combining dot; Go keeps only the first of these.
    text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect()
}

pub fn upper(text: &str) -> String {
    text.chars().map(upper_letter).collect()
}

fn upper_letter(letter: char) -> char {
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        // A letter whose upper case is several letters stays, except Greek with an iota subscript.
        _ => match letter {
            // Go uses the simple upper case of these letters, a title-case letter at this distance.
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
                char::from_u32(letter as u32 + 8).unwrap_or(letter)
            }
            '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => {
                char::from_u32(letter as u32 + 9).unwrap_or(letter)
            }
            other => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_change_one_for_one() {
        assert_eq!(upper("straße ŉ ᾳ ᾀ ǆ é"), "STRAßE ŉ ᾼ ᾈ Ǆ É");
        assert_eq!(lower("İ ΣΑΣ ᾼ ǅ É"), "i σασ ᾳ ǆ é");
    }
}
