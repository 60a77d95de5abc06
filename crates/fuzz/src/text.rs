//! Valid texts with random changes.

use crate::Choices;

/// Returns `text` with a few parts removed, inserted or replaced. Most new text is one of `parts`.
pub fn change_text(text: &str, parts: &[&str], choices: &mut Choices<'_>) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + choices.below(3) {
        let at = choices.below(chars.len() + 1);
        let mut end = (at + choices.below(4)).min(chars.len());
        // Most removals take a whole number.
        while chars.get(end).is_some_and(char::is_ascii_digit) {
            end += 1;
        }
        let new: Vec<char> = match choices.below(8) {
            0 | 1 => Vec::new(),
            2 => choices.border().to_string().chars().collect(),
            3 => chars[at..end].repeat(2),
            4 => vec![any_char(choices)],
            _ => choices.pick(parts).chars().collect(),
        };
        chars.splice(at..end, new);
    }
    chars.into_iter().collect()
}

/// Returns up to `most` of `parts` in a row, sometimes with other text between them.
pub fn text_of(parts: &[&str], most: usize, choices: &mut Choices<'_>) -> String {
    let mut text = String::new();
    for _ in 0..choices.below(most + 1) {
        match choices.below(16) {
            0 => text.push(any_char(choices)),
            1 => text.push_str(&choices.border().to_string()),
            _ => text.push_str(choices.pick(parts)),
        }
    }
    text
}

fn any_char(choices: &mut Choices<'_>) -> char {
    match choices.below(3) {
        0 => char::from(choices.below(256) as u8),
        1 => choices.pick(&['\u{0}', '\n', '\r', '\t', '\u{85}', '\u{a0}', '\u{2028}', 'İ', 'ß']),
        _ => char::from_u32(choices.below(0x11_0000) as u32).unwrap_or('\u{fffd}'),
    }
}
