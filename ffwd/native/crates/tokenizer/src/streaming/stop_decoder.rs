//! Decoding token by token, up to a stop.

use std::sync::Arc;

use super::error::UnknownToken;
use super::stops::{SearchState, Stop, Stops};
use super::stream::DecodeStream;
use crate::vocabulary::TokenId;

/// The output of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// Text that can be shown.
    Text(&'a str),
    /// Nothing that can be shown yet.
    Held,
    /// The text has stopped, and nothing more is shown.
    Stopped,
    /// The text stops after this.
    StoppedWithText(&'a str),
}

/// Decodes a text token by token, up to the first stop token or stop string. It holds back only the
/// longest suffix that starts a stop string.
#[derive(Clone, Debug)]
pub struct StopDecoder {
    stream: DecodeStream,
    text: Jail,
    num_tokens: usize,
}

/// The decoded text that is not returned yet.
#[derive(Clone, Debug)]
struct Jail {
    stops: Arc<Stops>,
    state: SearchState,
    /// The text that may become a stop string.
    held: String,
    /// The text to return.
    out: String,
    stopped: Option<Stop>,
}

impl StopDecoder {
    /// The stream may follow a prompt, which is not searched.
    pub fn new(stream: DecodeStream, stops: Arc<Stops>) -> Self {
        let state = stops.start();
        let text = Jail { stops, state, held: String::new(), out: String::new(), stopped: None };
        Self { stream, text, num_tokens: 0 }
    }

    /// Returns the reason of the stop.
    pub fn stopped(&self) -> Option<&Stop> {
        self.text.stopped.as_ref()
    }

    /// Returns the text that is held back because it may become a stop string.
    pub fn held(&self) -> &str {
        &self.text.held
    }

    /// The bytes held back because they are the beginning of a character.
    pub fn unfinished(&self) -> &[u8] {
        self.stream.unfinished()
    }

    /// How many tokens were read, with the one that stopped.
    pub fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    /// Reads a token. An unknown one changes nothing. A stop token stops before its own text, which
    /// is not searched, and the text held back before it is returned.
    #[inline]
    pub fn step(&mut self, token: TokenId) -> Result<Output<'_>, UnknownToken> {
        let Self { stream, text, num_tokens } = self;
        if text.stopped.is_some() {
            return Ok(Output::Stopped);
        }
        if text.stops.token(token).is_some() {
            text.out.clear();
            text.stop_at(token, stream)?;
            *num_tokens += 1;
            return Ok(text.output());
        }
        let new = stream.step(token)?;
        *num_tokens += 1;
        Ok(text.pass(new))
    }

    /// Reads tokens up to the one that stops. If one of them is unknown, none is read.
    pub fn step_batch(&mut self, tokens: &[TokenId]) -> Result<Output<'_>, UnknownToken> {
        let Self { stream, text, num_tokens } = self;
        if text.stopped.is_some() {
            return Ok(Output::Stopped);
        }
        for &token in tokens {
            stream.decoder().token(token)?;
        }
        text.out.clear();
        for &token in tokens {
            if text.stops.token(token).is_some() {
                text.stop_at(token, stream)?;
            } else {
                text.take(stream.step(token)?);
            }
            *num_tokens += 1;
            if text.stopped.is_some() {
                break;
            }
        }
        Ok(text.output())
    }

    /// Ends the text: returns the text held back, and restarts unless the text has stopped.
    pub fn flush(&mut self) -> Output<'_> {
        let Self { stream, text, num_tokens } = self;
        if text.stopped.is_some() {
            return Output::Stopped;
        }
        text.out.clear();
        text.take(stream.flush());
        if text.stopped.is_none() {
            text.let_go();
            *num_tokens = 0;
        }
        text.output()
    }

    /// Restarts at the start of a text, and drops the text held back.
    pub fn reset(&mut self) {
        self.stream.restart();
        self.text.held = String::new();
        self.text.out = String::new();
        self.text.stopped = None;
        self.text.state = self.text.stops.start();
        self.num_tokens = 0;
    }
}

impl Jail {
    /// Adds text without a copy if nothing is or must be held back.
    #[inline]
    fn pass<'a>(&'a mut self, new: &'a str) -> Output<'a> {
        if new.is_empty() {
            return Output::Held;
        }
        let mut state = self.state;
        if self.held.is_empty()
            && self.stops.read(&mut state, new).is_none()
            && self.stops.held(state) == 0
        {
            self.state = state;
            return Output::Text(new);
        }
        self.out.clear();
        self.take(new);
        self.output()
    }

    /// Adds text, and releases the part that cannot become a stop string.
    fn take(&mut self, new: &str) {
        if self.stopped.is_some() {
            return;
        }
        let found = self.stops.read(&mut self.state, new);
        // The returned text ends within the held part or the added one.
        let end = match found {
            Some(found) => {
                let end = self.held.len() + found.end;
                self.stopped = Some(Stop::String(Arc::clone(&found.string.text)));
                if found.string.visible {
                    end
                } else {
                    end - found.string.text.len()
                }
            }
            None => self.held.len() + new.len() - self.stops.held(self.state),
        };
        let kept = end.min(self.held.len());
        self.out.push_str(&self.held[..kept]);
        self.out.push_str(&new[..end - kept]);
        if self.stopped.is_some() {
            self.held.clear();
        } else {
            self.held.drain(..kept);
            self.held.push_str(&new[end - kept..]);
        }
    }

    /// Stops at a token.
    fn stop_at(&mut self, token: TokenId, stream: &mut DecodeStream) -> Result<(), UnknownToken> {
        let stops = Arc::clone(&self.stops);
        let Some(stop) = stops.token(token) else { return Ok(()) };
        // A character that stays incomplete is text like any other.
        let unfinished = stream.clone().flush().to_owned();
        if stop.visible {
            let mut shown = stream.step_shown(token)?.to_owned();
            shown.push_str(stream.flush());
            // The token's own text, which is not searched, may complete the character.
            let own = shown.strip_prefix(&unfinished).unwrap_or(&shown);
            self.take(&shown[..shown.len() - own.len()]);
            if self.stopped.is_none() {
                self.let_go();
                self.out.push_str(own);
            }
        } else {
            stream.flush();
            self.take(&unfinished);
            self.let_go();
        }
        self.stopped.get_or_insert_with(|| stop.stop.clone());
        Ok(())
    }

    /// Releases the text held back: it can no longer become a stop string.
    fn let_go(&mut self) {
        self.out.push_str(&self.held);
        self.held.clear();
        self.state = self.stops.start();
    }

    fn output(&self) -> Output<'_> {
        match (self.out.is_empty(), self.stopped.is_some()) {
            (false, false) => Output::Text(&self.out),
            (true, false) => Output::Held,
            (false, true) => Output::StoppedWithText(&self.out),
            (true, true) => Output::Stopped,
        }
    }
}
