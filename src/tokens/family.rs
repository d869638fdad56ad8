//! What the same text costs at different vendors, and what they add to it.
//!
//! | family | text, against o200k | a message | a tool call | a tool result | source |
//! |---|---|---|---|---|---|
//! | Anthropic | 1.3 | 4 | 12 | 12 | no tokenizer is published; the vendor's notes on Claude Opus 4.7 and later speak of up to 1.35 times the tokens of its earlier models; what frames a message is not published and assumed to be as in the harmony format |
//! | OpenAI | 1.0 | 4 | 12 | 12 | o200k is the vendor's own for GPT-4o and later; a message in the published harmony format is start, role, message and end; a call adds channel, recipient and constraint |
//! | unknown | 1.3 | 4 | 4 | 4 | text as the dearest known; frames as the leanest: whose calls are framed by 12 is known not to count text by 1.3, and with both a budget would stay a third empty there |
//!
//! Claude's window counts what its own tokenizer gives, so a budget is compared with [`Family::tokens`], not with o200k.

use super::image::Size;

/// Models that count alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Anthropic's models.
    Anthropic,
    /// OpenAI's models from GPT-4o on.
    OpenAi,
    /// Any other model.
    Unknown,
}

/// What a part of a conversation costs besides its text, in tokens of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// A message: its role and its ends.
    pub message: u64,
    /// A tool call besides its name and input: its id and frame.
    pub tool_call: u64,
    /// A tool result besides its text: its id and frame.
    pub tool_result: u64,
}

impl Family {
    /// Thousandths of a token of this family for one token of o200k.
    pub fn factor(self) -> u64 {
        match self {
            Self::OpenAi => 1000,
            Self::Anthropic | Self::Unknown => 1300,
        }
    }

    /// `o200k` tokens of text in tokens of this family, rounded up.
    pub fn tokens(self, o200k: u64) -> u64 {
        let exact = (u128::from(o200k) * u128::from(self.factor())).div_ceil(1000);
        u64::try_from(exact).unwrap_or(u64::MAX)
    }

    /// What comes on top of the text.
    pub fn overhead(self) -> Overhead {
        match self {
            Self::Anthropic | Self::OpenAi => Overhead { message: 4, tool_call: 12, tool_result: 12 },
            Self::Unknown => Overhead { message: 4, tool_call: 4, tool_result: 4 },
        }
    }

    /// Tokens of an image of `size` pixels; of a large screenshot where the size is not known.
    ///
    /// Anthropic: width × height / 750 after scaling to 2,576 pixels on the long edge, at most 4,784 (Claude Opus 4.7 and later; earlier
    /// models stop at 1,568 pixels and about 1,600 tokens, so this is never too low). OpenAI: scaled into 2,048 × 2,048, then to at most
    /// 768 on the short edge, 85 tokens and 170 for each tile of 512 × 512 (GPT-4o and 4.1; GPT-5 takes 70 and 140). An unknown family
    /// pays the dearer of the two.
    pub fn image(self, size: Option<Size>) -> u64 {
        match self {
            Self::Anthropic => size.map_or(1600, anthropic_image),
            Self::OpenAi => size.map_or(1445, openai_image),
            Self::Unknown => Self::Anthropic.image(size).max(Self::OpenAi.image(size)),
        }
    }
}

fn anthropic_image(size: Size) -> u64 {
    let size = size.scaled_to(2576, u32::MAX);
    (u64::from(size.width) * u64::from(size.height)).div_ceil(750).clamp(1, 4784)
}

fn openai_image(size: Size) -> u64 {
    let size = size.scaled_to(2048, 768);
    85 + 170 * u64::from(size.width.div_ceil(512)) * u64::from(size.height.div_ceil(512))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_rounds_up_and_never_overflows() {
        assert_eq!(Family::Anthropic.tokens(0), 0);
        assert_eq!(Family::Anthropic.tokens(1), 2);
        assert_eq!(Family::Anthropic.tokens(1000), 1300);
        assert_eq!(Family::OpenAi.tokens(1234), 1234);
        assert_eq!(Family::Anthropic.tokens(u64::MAX), u64::MAX);
    }

    #[test]
    fn images_cost_what_the_vendors_say() {
        let size = |width, height| Some(Size { width, height });
        // The tables of the vendors' guides: 1,092 × 1,092 is about 1,590; 1,024 × 1,024 is 765 and 2,048 × 4,096 is 1,105.
        assert_eq!(Family::Anthropic.image(size(1092, 1092)), 1590);
        assert_eq!(Family::OpenAi.image(size(1024, 1024)), 765);
        assert_eq!(Family::OpenAi.image(size(2048, 4096)), 1105);
        assert_eq!(Family::Anthropic.image(size(3456, 2234)), 4784);
        assert_eq!(Family::Anthropic.image(size(1, 1)), 1);
        assert_eq!(Family::OpenAi.image(size(1, 1)), 255);
        assert_eq!(Family::Anthropic.image(size(u32::MAX, u32::MAX)), 4784);
        assert!(Family::OpenAi.image(size(u32::MAX, 1)) <= 1445);
        assert_eq!(Family::Unknown.image(None), 1600);
        assert_eq!(Family::OpenAi.image(None), 1445);
    }
}
