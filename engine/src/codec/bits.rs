//! Bit streams, most significant bit first, as upstream's chunk encodings use them.
pub struct BitReader;
pub struct BitWriter;
