//! Takes the names of functions out of a component: they are most of its bytes, and serve only
//! people who read its backtraces.
//!
//! A component and the modules in it are framed alike (the component model's `Binary.md`): eight
//! bytes that say which of the two it is, then sections, each a number, a length and as many bytes.

/// The eight bytes.
const PREAMBLE_BYTES: usize = 8;

/// What they are of a component, from the fifth on.
const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];

/// Sections for tools, such as names.
const CUSTOM: u8 = 0;

/// Sections of a component that hold a module or another component.
const NESTED: [u8; 2] = [1, 4];

/// The same without custom sections of modules. `None` if the bytes are no component.
pub fn stripped(bytes: &[u8]) -> Option<Vec<u8>> {
    let (preamble, mut rest) = bytes.split_at_checked(PREAMBLE_BYTES)?;
    let is_component = preamble.ends_with(&COMPONENT);
    let mut out = preamble.to_vec();
    while let Some((&number, after)) = rest.split_first() {
        let (len, after) = uleb(after)?;
        let (content, after) = after.split_at_checked(len)?;
        rest = after;
        let nested = match is_component && NESTED.contains(&number) {
            true => Some(stripped(content)?),
            false => None,
        };
        if number == CUSTOM && !is_component {
            continue;
        }
        let content = nested.as_deref().unwrap_or(content);
        out.push(number);
        push_uleb(&mut out, content.len());
        out.extend_from_slice(content);
    }
    Some(out)
}

/// A length, seven bits a byte, and what follows it.
fn uleb(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

fn push_uleb(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: [u8; 8] = [0, b'a', b's', b'm', 1, 0, 0, 0];

    fn section(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number];
        push_uleb(&mut out, content.len());
        [out, content.to_vec()].concat()
    }

    #[test]
    fn custom_sections_of_modules_go_and_the_component_keeps_its_own() {
        let preamble = [&MODULE[..4], &COMPONENT].concat();
        let code = section(10, &[7; 300]);
        let named = [&MODULE[..], &section(CUSTOM, &[1; 200]), &code].concat();
        let bare = [&MODULE[..], &code].concat();
        let own = section(CUSTOM, b"own");
        let inner = |module: &[u8]| [&preamble[..], &section(1, module)].concat();
        let whole = |module: &[u8]| {
            [&preamble[..], &own, &section(1, module), &section(4, &inner(module))].concat()
        };
        assert_eq!(stripped(&whole(&named)), Some(whole(&bare)));
        assert_eq!(stripped(&whole(&named)[..100]), None);
    }
}
