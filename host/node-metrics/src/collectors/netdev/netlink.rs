//! Asks the kernel for its network devices by rtnetlink (`rtnetlink(7)`, `netlink(7)`,
//! `linux/if_link.h`). All numbers are in the byte order of the machine.
//!
//! ```text
//! message:    u32 length │ u16 type │ u16 flags │ u32 sequence │ u32 port │ body, padded to 4
//! body:       16 bytes of `ifinfomsg` │ attributes
//! attribute:  u16 length │ u16 type │ value, padded to 4
//! ```

use super::Device;
use crate::read::{FILE_BYTES_MAX, Reader};
use crate::text::valid_utf8;
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::os::fd::OwnedFd;
use std::time::Duration;

const HEADER_BYTES: usize = 16;
const IFINFO_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;

const IFLA_IFNAME: u16 = 3;
const IFLA_STATS: u16 = 7;
const IFLA_STATS64: u16 = 23;
/// Removes the two highest bits of a type, which are flags.
const TYPE_MASK: u16 = 0x3fff;

/// Maximum number of bytes that are received at once.
const RECEIVED_BYTES_MAX: usize = 32 << 10;
/// Timeout of an answer. The kernel normally answers at once.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Indices in `rtnl_link_stats64`. `rtnl_link_stats` has the same counters with half the width. As
/// in `net/dev` (`net/core/net-procfs.c`), some of [`super::FAMILIES`] are sums.
const STATS: [&[usize]; super::COUNTS] = [
    &[2],              // rx_bytes
    &[0],              // rx_packets
    &[4],              // rx_errors
    &[6, 15],          // rx_dropped, rx_missed_errors
    &[14],             // rx_fifo_errors
    &[13, 10, 11, 12], // rx_frame_errors, rx_length_errors, rx_over_errors, rx_crc_errors
    &[21],             // rx_compressed
    &[8],              // multicast
    &[3],              // tx_bytes
    &[1],              // tx_packets
    &[5],              // tx_errors
    &[7],              // tx_dropped
    &[18],             // tx_fifo_errors
    &[9],              // collisions
    &[17, 16, 19, 20], // tx_carrier_errors, tx_aborted_errors, tx_heartbeat_errors, tx_window_errors
    &[22],             // tx_compressed
    &[23],             // rx_nohandler
];

pub(super) struct Socket {
    socket: OwnedFd,
    sequence: u32,
}

impl Socket {
    pub(super) fn open() -> Result<Socket> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        // `None` is protocol 0, which is `NETLINK_ROUTE`.
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
        Ok(Socket { socket, sequence: 0 })
    }

    /// Reads all devices of this network namespace.
    pub(super) fn read_links(
        &mut self,
        reader: &mut Reader,
        devices: &mut Vec<Device>,
    ) -> Result<()> {
        // Answers to an earlier request have another number and are ignored.
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(self.sequence);
        let kernel = SocketAddrNetlink::new(0, 0);
        let flags = SendFlags::empty();
        retry_on_intr(|| rustix::net::sendto(&self.socket, &request, flags, &kernel))?;
        let buffer = reader.buffer(RECEIVED_BYTES_MAX);
        let mut total = 0;
        loop {
            let received =
                retry_on_intr(|| rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::TRUNC));
            let (_, len) = received?;
            total += len;
            // Bounded like a file, so that the loop ends.
            if total > FILE_BYTES_MAX {
                return Err(Errno::NOBUFS);
            }
            // If a message did not fit into the buffer, the rest of its bytes is lost.
            let messages = buffer.get(..len).ok_or(Errno::MSGSIZE)?;
            if parse(messages, self.sequence, devices)? {
                return Ok(());
            }
        }
    }
}

fn request(sequence: u32) -> [u8; HEADER_BYTES + IFINFO_BYTES] {
    let mut request = [0; HEADER_BYTES + IFINFO_BYTES];
    let len = request.len() as u32;
    request[..4].copy_from_slice(&len.to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request[8..12].copy_from_slice(&sequence.to_ne_bytes());
    request
}

/// Parses the devices in messages; returns whether the final message was among them.
fn parse(mut messages: &[u8], sequence: u32, devices: &mut Vec<Device>) -> Result<bool> {
    while messages.len() >= HEADER_BYTES {
        let len = u32_at(messages, 0).ok_or(Errno::BADMSG)? as usize;
        let kind = u16_at(messages, 4).ok_or(Errno::BADMSG)?;
        let body = messages.get(HEADER_BYTES..len).ok_or(Errno::BADMSG)?;
        if u32_at(messages, 8) == Some(sequence) {
            match kind {
                RTM_NEWLINK => devices.extend(device(body)),
                NLMSG_DONE | NLMSG_ERROR => return ended(body),
                _ => {}
            }
        }
        messages = messages.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Returns the result in the final message: 0, or a negative error number.
fn ended(body: &[u8]) -> Result<bool> {
    match u32_at(body, 0).map(u32::cast_signed) {
        None | Some(0) => Ok(true),
        Some(error) => Err(Errno::from_raw_os_error(error.saturating_neg())),
    }
}

/// Parses a device. As in upstream, a device without a name or without counts is skipped.
fn device(body: &[u8]) -> Option<Device> {
    let mut attributes = body.get(IFINFO_BYTES..)?;
    let (mut name, mut stats, mut stats_64) = (None, None, None);
    while attributes.len() >= ATTRIBUTE_HEADER_BYTES {
        let len = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(ATTRIBUTE_HEADER_BYTES..len)?;
        match u16_at(attributes, 2)? & TYPE_MASK {
            IFLA_IFNAME => name = value.split(|byte| *byte == 0).next(),
            IFLA_STATS => stats = Some(value),
            IFLA_STATS64 => stats_64 = Some(value),
            _ => {}
        }
        attributes = attributes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    let name = valid_utf8(name?).into_owned();
    let stat = |place: usize| match (stats_64, stats) {
        (Some(stats), _) => u64_at(stats, place * 8),
        (None, Some(stats)) => u32_at(stats, place * 4).map(u64::from),
        (None, None) => None,
    };
    // Older kernels have fewer counters, so the last families may be missing.
    let sums = STATS.iter().map_while(|places| {
        let parts = places.iter().map(|place| stat(*place));
        parts.sum::<Option<u64>>()
    });
    let counts: Vec<u64> = sums.collect();
    (!counts.is_empty()).then_some(Device { name, counts })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut message = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend([0; 2]);
        message.extend(sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        message.resize(message.len().next_multiple_of(4), 0);
        message
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut attribute = ((ATTRIBUTE_HEADER_BYTES + value.len()) as u16).to_ne_bytes().to_vec();
        attribute.extend(kind.to_ne_bytes());
        attribute.extend(value);
        attribute.resize(attribute.len().next_multiple_of(4), 0);
        attribute
    }

    /// Each counter has a bit of its own, so that a sum shows its parts.
    fn link(name: &[u8], is_wide: bool) -> Vec<u8> {
        let counters = (0..24).map(|place| 1u32 << place);
        let stats = match is_wide {
            true => attribute(
                IFLA_STATS64,
                &counters.flat_map(|c| u64::from(c).to_ne_bytes()).collect::<Vec<_>>(),
            ),
            false => {
                attribute(IFLA_STATS, &counters.flat_map(u32::to_ne_bytes).collect::<Vec<_>>())
            }
        };
        [vec![0; IFINFO_BYTES], attribute(99, b"xyz"), attribute(IFLA_IFNAME, name), stats].concat()
    }

    fn parsed(messages: &[Vec<u8>]) -> (Result<bool>, Vec<Device>) {
        let mut devices = Vec::new();
        (parse(&messages.concat(), 7, &mut devices), devices)
    }

    #[test]
    fn counters_are_those_of_net_dev() {
        let bits = |places: &[u32]| places.iter().map(|place| 1u64 << place).sum::<u64>();
        let counts = vec![
            bits(&[2]),
            bits(&[0]),
            bits(&[4]),
            bits(&[6, 15]),
            bits(&[14]),
            bits(&[10, 11, 12, 13]),
            bits(&[21]),
            bits(&[8]),
            bits(&[3]),
            bits(&[1]),
            bits(&[5]),
            bits(&[7]),
            bits(&[18]),
            bits(&[9]),
            bits(&[16, 17, 19, 20]),
            bits(&[22]),
            bits(&[23]),
        ];
        for is_wide in [true, false] {
            let (result, devices) = parsed(&[
                message(RTM_NEWLINK, 6, &link(b"old\0", is_wide)),
                message(RTM_NEWLINK, 7, &link(b"eth0\0", is_wide)),
                message(RTM_NEWLINK, 7, &[0; IFINFO_BYTES]),
                message(NLMSG_DONE, 7, &[0; 4]),
                message(RTM_NEWLINK, 7, &link(b"late\0", is_wide)),
            ]);
            assert_eq!(result, Ok(true));
            assert_eq!(devices, [Device { name: "eth0".to_owned(), counts: counts.clone() }]);
        }
    }

    #[test]
    fn the_kernel_says_when_it_ends_or_fails() {
        let link = message(RTM_NEWLINK, 7, &link(b"eth0\0", true));
        assert_eq!(parsed(std::slice::from_ref(&link)).0, Ok(false));
        let denied = message(NLMSG_ERROR, 7, &(-Errno::PERM.raw_os_error()).to_ne_bytes());
        assert_eq!(parsed(&[link.clone(), denied]).0, Err(Errno::PERM));
        let cut = link[..link.len() - 8].to_vec();
        assert_eq!(parsed(&[cut]).0, Err(Errno::BADMSG));
    }

    proptest! {
        #[test]
        fn hostile_messages_end(
            mut bytes in prop::collection::vec(any::<u8>(), 0..400),
            at in 0usize..400,
            is_cut: bool,
        ) {
            let _parsed = parse(&bytes, 7, &mut Vec::new());
            // Also messages with a valid beginning.
            let mut good = message(RTM_NEWLINK, 7, &link(b"eth0\0", true));
            let at = at.min(good.len());
            if is_cut {
                good.truncate(at);
            }
            good.splice(at.min(good.len()).., bytes.drain(..));
            let _parsed = parse(&good, 7, &mut Vec::new());
        }
    }
}
