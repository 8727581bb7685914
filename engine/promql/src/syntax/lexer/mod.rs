//! Splits the text of an expression into tokens, one at a time.
//!
//! The tokens depend on the context: within braces no word is a keyword, within brackets only the
//! words of duration expressions are.

mod literal;

use super::token::{Token, TokenKind};
use super::{BinaryOp, Keyword, ParseError, Span, quote};

/// The set of tokens that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LexContext {
    /// Any token, also within brackets after a number.
    Expression,
    Braces,
    /// Tokens of a duration expression, up to its first number.
    Brackets,
}

#[derive(Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Offset of the token that is being read.
    start: usize,
    place: LexContext,
    parens: i32,
    in_brackets: bool,
    has_colon: bool,
    /// Whether any brackets had a number.
    has_duration: bool,
    /// Error after the last returned token.
    failed: Option<ParseError>,
}

type Read = Result<TokenKind, ParseError>;

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            text,
            at: 0,
            start: 0,
            place: LexContext::Expression,
            parens: 0,
            in_brackets: false,
            has_colon: false,
            has_duration: false,
            failed: None,
        }
    }

    /// Returns the next token; after the last token always `End`.
    pub fn next(&mut self) -> Result<Token<'a>, ParseError> {
        // The parser may call again to build its own error, and must get the same error.
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.skip_blank();
        self.start = self.at;
        let read = match self.place {
            LexContext::Expression => self.expression(),
            LexContext::Braces => self.braces(),
            LexContext::Brackets => self.brackets(),
        };
        match read {
            Ok(kind) => {
                let text = &self.text[self.start..self.at];
                Ok(Token { kind, start: self.start as u32, text })
            }
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Skips blanks and, where they are allowed, comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') || self.place == LexContext::Brackets {
                return;
            }
            self.at += trimmed.find(['\n', '\r']).unwrap_or(trimmed.len());
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn eat(&mut self, test: impl Fn(char) -> bool) -> bool {
        let fits = self.peek().is_some_and(test);
        if fits {
            self.bump();
        }
        fits
    }

    /// Makes an error from the start of the token to the end of the text.
    fn error(&self, text: impl Into<String>) -> ParseError {
        let span = Span { start: self.start as u32, end: self.text.len() as u32 };
        ParseError::new(span, text, self.text)
    }

    /// Makes an error whose text ends with a letter.
    fn wrong(&self, text: &str, letter: Option<char>) -> ParseError {
        // Upstream prints its end of input as the replacement character.
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        self.error(format!("{text} {}", quote::quoted_letter(letter)))
    }

    /// Makes an error about a letter that is a token of its own, positioned after the letter.
    fn wrong_behind(&mut self, text: &str, letter: char) -> ParseError {
        self.start = self.at;
        self.wrong(text, Some(letter))
    }

    fn expression(&mut self) -> Read {
        let Some(letter) = self.bump() else {
            return match (self.parens, self.in_brackets) {
                (0, false) => Ok(TokenKind::End),
                (0, true) => Err(self.error("unclosed left bracket")),
                _ => Err(self.error("unclosed left parenthesis")),
            };
        };
        match letter {
            '=' if self.eat(|next| next == '=') => Ok(TokenKind::Operator(BinaryOp::Equal)),
            // `=~` is valid within braces only.
            '=' if self.peek() == Some('~') => {
                Err(self.wrong("unexpected character after '=':", Some('~')))
            }
            '=' => Ok(TokenKind::Assign),
            '!' => match self.bump() {
                Some('=') => Ok(TokenKind::Operator(BinaryOp::NotEqual)),
                other => Err(self.wrong("unexpected character after '!':", other)),
            },
            '<' | '>' => Ok(TokenKind::Operator(self.comparison(letter))),
            '0'..='9' | '.' if letter != '.' || self.peek_is_digit() => self.number_or_duration(),
            '"' | '\'' => self.string(letter),
            '`' => self.raw_string(),
            ':' if self.in_brackets => match self.has_colon {
                true => Err(self.wrong("unexpected colon", Some(letter))),
                false => {
                    self.has_colon = true;
                    Ok(TokenKind::Colon)
                }
            },
            // After a number in brackets, upstream knows only the words of duration expressions.
            _ if is_name_start(letter) || letter == ':' => match self.in_brackets {
                false => Ok(self.word()),
                true => self.duration_word(letter).ok_or_else(|| {
                    let text =
                        format!("unexpected character: {}, expected", quote::quoted_letter(letter));
                    self.wrong(&text, Some(':'))
                }),
            },
            '{' => {
                self.place = LexContext::Braces;
                Ok(TokenKind::LeftBrace)
            }
            '[' if self.in_brackets => Err(self.wrong("unexpected left bracket", Some(letter))),
            '[' => {
                self.in_brackets = true;
                // Each pair of brackets may have one colon, that of a subquery.
                self.has_colon = false;
                self.place = LexContext::Brackets;
                Ok(TokenKind::LeftBracket)
            }
            ']' if !self.in_brackets => Err(self.wrong("unexpected right bracket", Some(letter))),
            ']' => {
                self.in_brackets = false;
                Ok(TokenKind::RightBracket)
            }
            '@' => Ok(TokenKind::At),
            _ => match self.common(letter) {
                Some(read) => read,
                None => Err(self.wrong("unexpected character:", Some(letter))),
            },
        }
    }

    /// Reads a sign that is the same in expressions and in brackets.
    fn common(&mut self, letter: char) -> Option<Read> {
        Some(Ok(match letter {
            ',' => TokenKind::Comma,
            '*' => TokenKind::Operator(BinaryOp::Mul),
            '/' => TokenKind::Operator(BinaryOp::Div),
            '%' => TokenKind::Operator(BinaryOp::Mod),
            '+' => TokenKind::Operator(BinaryOp::Add),
            '-' => TokenKind::Operator(BinaryOp::Sub),
            '^' => TokenKind::Operator(BinaryOp::Pow),
            '(' => {
                self.parens += 1;
                TokenKind::LeftParen
            }
            ')' => {
                self.parens -= 1;
                // Upstream's lexer, not its parser, refuses an unmatched parenthesis.
                if self.parens < 0 {
                    return Some(Err(self.wrong_behind("unexpected right parenthesis", letter)));
                }
                TokenKind::RightParen
            }
            _ => return None,
        }))
    }

    fn comparison(&mut self, letter: char) -> BinaryOp {
        let is_less = letter == '<';
        match self.peek() {
            Some('=') => {
                self.at += 1;
                if is_less { BinaryOp::LessEqual } else { BinaryOp::GreaterEqual }
            }
            Some('/') => {
                self.at += 1;
                if is_less { BinaryOp::TrimUpper } else { BinaryOp::TrimLower }
            }
            _ if is_less => BinaryOp::Less,
            _ => BinaryOp::Greater,
        }
    }

    fn braces(&mut self) -> Read {
        let Some(letter) = self.bump() else {
            return Err(self.error("unexpected end of input inside braces"));
        };
        match letter {
            // Names in braces are labels, which have no colons, and no word is a keyword.
            _ if is_name_start(letter) => {
                while self.eat(is_name_part) {}
                Ok(TokenKind::Name)
            }
            ',' => Ok(TokenKind::Comma),
            '"' | '\'' => self.string(letter),
            '`' => self.raw_string(),
            '=' if self.eat(|next| next == '~') => Ok(TokenKind::MatchRegex),
            '=' => Ok(TokenKind::Assign),
            '!' => match self.bump() {
                Some('~') => Ok(TokenKind::NotMatchRegex),
                Some('=') => Ok(TokenKind::Operator(BinaryOp::NotEqual)),
                other => Err(self.wrong("unexpected character after '!' inside braces:", other)),
            },
            '{' => Err(self.wrong("unexpected left brace", Some(letter))),
            '}' => {
                self.place = LexContext::Expression;
                Ok(TokenKind::RightBrace)
            }
            _ => Err(self.wrong("unexpected character inside braces:", Some(letter))),
        }
    }

    fn brackets(&mut self) -> Read {
        let Some(letter) = self.bump() else {
            return Err(self.error("unexpected end of input in duration expression"));
        };
        match letter {
            ']' => {
                self.in_brackets = false;
                self.has_colon = false;
                self.place = LexContext::Expression;
                Ok(TokenKind::RightBracket)
            }
            ':' if !self.has_duration => {
                // Upstream reports these two errors after the colon.
                self.start = self.at;
                Err(self.error("unexpected colon before duration in duration expression"))
            }
            ':' if self.has_colon => {
                self.start = self.at;
                Err(self.error("unexpected repeated colon in duration expression"))
            }
            ':' => {
                self.has_colon = true;
                Ok(TokenKind::Colon)
            }
            '0'..='9' | '.' if letter != '.' || self.peek_is_digit() => {
                // After the first number, upstream's lexer is in its general state.
                self.has_duration = true;
                self.place = LexContext::Expression;
                self.number_or_duration()
            }
            _ => match self.common(letter) {
                Some(read) => read,
                None => self.duration_word(letter).ok_or_else(|| {
                    self.wrong("unexpected character in duration expression:", Some(letter))
                }),
            },
        }
    }

    /// Reads the rest of a function of duration expressions; `None` for other words.
    fn duration_word(&mut self, first: char) -> Option<TokenKind> {
        if !is_name_start(first) {
            return None;
        }
        while self.eat(is_name_start) {}
        TokenKind::of_duration_word(&self.text[self.start..self.at])
    }

    fn word(&mut self) -> TokenKind {
        while self.eat(|letter| is_name_part(letter) || letter == ':') {}
        let word = &self.text[self.start..self.at];
        match TokenKind::of_word(word) {
            // Without a value, these words are names, which are older than the modifiers.
            Some(TokenKind::Keyword(Keyword::Fill | Keyword::FillLeft | Keyword::FillRight))
                if !self.text[self.at..]
                    .trim_start_matches([' ', '\t', '\n', '\r'])
                    .starts_with('(') =>
            {
                TokenKind::Name
            }
            Some(kind) => kind,
            None if word.contains(':') => TokenKind::MetricName,
            None => TokenKind::Name,
        }
    }
}

fn is_name_start(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphabetic()
}

fn is_name_part(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphanumeric()
}
