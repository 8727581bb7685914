//! A text that is written up to a limit.

#[derive(Debug)]
pub struct Sink {
    text: String,
    bytes_max: usize,
    is_full: bool,
}

impl Sink {
    pub fn new(bytes_max: usize) -> Sink {
        Sink { text: String::new(), bytes_max, is_full: false }
    }

    /// Returns whether something was left out.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    pub fn push(&mut self, text: &str) {
        match self.has_room(text.len()) {
            true => self.text.push_str(text),
            false => self.is_full = true,
        }
    }

    pub fn push_char(&mut self, letter: char) {
        self.push(letter.encode_utf8(&mut [0; 4]));
    }

    /// Appends an ASCII character several times.
    pub fn pad(&mut self, letter: char, count: usize) {
        match self.has_room(count) {
            true => self.text.extend(std::iter::repeat_n(letter, count)),
            false => self.is_full = true,
        }
    }

    /// Returns the text; `None` if something was left out.
    pub fn into_text(self) -> Option<String> {
        (!self.is_full).then_some(self.text)
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    fn has_room(&self, bytes: usize) -> bool {
        !self.is_full && self.bytes_max - self.text.len() >= bytes
    }
}
