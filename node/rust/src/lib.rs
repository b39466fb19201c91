//! A node's port on any pins that implement `OutputPin` of embedded-hal 1.0.
//!
//! ```
//! # use embedded_hal::digital::{ErrorType, OutputPin};
//! # struct Pin;
//! # impl ErrorType for Pin { type Error = core::convert::Infallible; }
//! # impl OutputPin for Pin {
//! #     fn set_low(&mut self) -> Result<(), Self::Error> { Ok(()) }
//! #     fn set_high(&mut self) -> Result<(), Self::Error> { Ok(()) }
//! # }
//! # let (d0, d1, d2, d3, strobe) = (Pin, Pin, Pin, Pin, Pin);
//! use hypermon_node::{Edges, Port};
//!
//! let mut port = Port::new([d0, d1, d2, d3], strobe, Edges::Rising)?;
//! port.event(17, b"abc")?;
//! port.word(0x1234_5678)?;
//! # Ok::<(), hypermon_node::Error<core::convert::Infallible>>(())
//! ```
//!
//! The pins change one after the other, the strobe last. Each change must take at least one period of the board's
//! clock, as it does wherever a pin is written through a method that is not inlined to a single store; on a faster
//! processor wrap the pins in a type that waits. If an interrupt handler writes to the same port, call the methods
//! within a critical section.
//!
//! Pins of different types need a type that covers them all; most HALs have one (`DynPin`, `AnyPin`).
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use embedded_hal::digital::OutputPin;

/// Maximum bytes of an event after its id.
pub const PAYLOAD_MAX: usize = 14;

/// Which edges of the strobe the board takes nibbles at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// The rising one: a nibble is strobe 0, then 1.
    Rising,
    /// Both: a nibble is one change of the strobe. The board needs `--edge both --sample before`.
    Both,
}

/// Why something was not written, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The payload has more than [`PAYLOAD_MAX`] bytes. Nothing was written.
    TooLong,
    /// A pin failed. The item may be incomplete; the host finds its end after a silence.
    Pin(E),
}

impl<E> From<E> for Error<E> {
    fn from(error: E) -> Self {
        Error::Pin(error)
    }
}

/// `BITS` data pins (4 or 8), the lowest first, and a strobe.
pub struct Port<P, S, const BITS: usize> {
    data: [P; BITS],
    strobe: S,
    edges: Edges,
    shown: u8,
    level: bool,
}

impl<P, S, const BITS: usize> Port<P, S, BITS>
where
    P: OutputPin,
    S: OutputPin<Error = P::Error>,
{
    const WIDTH: () = assert!(BITS == 4 || BITS == 8, "a port has 4 or 8 data pins");

    /// Takes the pins, which must be outputs, and makes them 0.
    pub fn new(mut data: [P; BITS], mut strobe: S, edges: Edges) -> Result<Self, Error<P::Error>> {
        let () = Self::WIDTH;
        strobe.set_low()?;
        for pin in data.iter_mut() {
            pin.set_low()?;
        }
        Ok(Port {
            data,
            strobe,
            edges,
            shown: 0,
            level: false,
        })
    }

    /// Returns the pins: data, strobe.
    pub fn release(self) -> ([P; BITS], S) {
        (self.data, self.strobe)
    }

    /// One nibble, its lower four bits; with 8 data pins a byte.
    pub fn nibble(&mut self, nibble: u8) -> Result<(), Error<P::Error>> {
        if self.edges == Edges::Rising {
            self.strobe.set_low()?;
        }
        let changed = self.shown ^ nibble;
        for (bit, pin) in self.data.iter_mut().enumerate() {
            if changed >> bit & 1 == 1 {
                pin.set_state((nibble >> bit & 1 == 1).into())?;
            }
        }
        self.shown = nibble;
        self.level = self.edges == Edges::Rising || !self.level;
        Ok(self.strobe.set_state(self.level.into())?)
    }

    /// 32 bits, for a node in word mode, the lowest first.
    pub fn word(&mut self, word: u32) -> Result<(), Error<P::Error>> {
        word.to_le_bytes()
            .iter()
            .try_for_each(|&byte| self.byte(byte))
    }

    /// An event: its id and up to [`PAYLOAD_MAX`] bytes. The board stamps it with the time of its first nibble.
    pub fn event(&mut self, id: u8, payload: &[u8]) -> Result<(), Error<P::Error>> {
        if payload.len() > PAYLOAD_MAX {
            return Err(Error::TooLong);
        }
        self.nibble(payload.len() as u8 + 1)?;
        self.byte(id)?;
        payload.iter().try_for_each(|&byte| self.byte(byte))
    }

    fn byte(&mut self, byte: u8) -> Result<(), Error<P::Error>> {
        self.nibble(byte)?;
        if BITS == 4 {
            self.nibble(byte >> 4)?;
        }
        Ok(())
    }
}
