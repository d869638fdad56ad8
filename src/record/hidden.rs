//! Characters that a terminal does more with than draw them, or that hide what a text says. One list for all that is
//! printed, quoted in a command line or told in a note.

/// Whether the character is one of them: controls of both sets, separators of lines, marks that change the direction
/// of text (Unicode UAX #9), characters without width, tags. The two joiners (U+200C, U+200D) are none: Persian words
/// and many emoji are spelled with them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
