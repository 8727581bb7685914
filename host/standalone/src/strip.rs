//! Removes function names from a component: most of its bytes, which only backtraces need.
//!
//! A component and its modules have the same structure (the component model's `Binary.md`): a
//! preamble of eight bytes, which shows the kind, then sections of number, length and content.

const PREAMBLE_BYTES: usize = 8;

/// Version and layer in a component's preamble, bytes 4 to 7.
const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];

/// Number of custom sections, which have data for tools, such as function names.
const CUSTOM: u8 = 0;

/// Numbers of the sections of a component that contain a module or a component.
const NESTED: [u8; 2] = [1, 4];

/// Returns a component without the custom sections of its modules; `None` if it is invalid.
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
        // Function names are in modules. Custom sections of the component itself are kept.
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

/// Parses a length in unsigned LEB128; returns the length and the bytes after it.
fn uleb(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    // Lengths have at most 32 bits, and so at most five bytes with seven bits each.
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
