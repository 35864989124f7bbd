//! DNS messages, as bytes.

use std::net::IpAddr;

use simple_dns::rdata::{CNAME, OPT, PTR, RData, SRV};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

use super::zone::{Data, Kind, Record};

/// How long a client may keep a record, in seconds.
const TTL: u32 = 5;
/// The longest answer to a datagram whose sender states no length.
const SHORT: usize = 512;
/// The longest answer to any datagram: longer datagrams are cut into fragments.
const LONG: usize = 1232;

/// The most records of a question: a client's options, and a signature.
const MAX_RECORDS: u32 = 4;

/// A question of a client.
pub(super) struct Query<'a> {
    packet: Packet<'a>,
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Reads a question. `Err` is the answer to a message that is no question that this server understands, or nothing if the message deserves
/// no answer.
pub(super) fn read(message: &[u8]) -> Result<Query<'_>, Option<Vec<u8>>> {
    if !is_small(message) {
        return Err(refuse(message, RCODE::FormatError));
    }
    let Ok(packet) = Packet::parse(message) else { return Err(refuse(message, RCODE::NotImplemented)) };
    if packet.has_flags(PacketFlag::RESPONSE) {
        return Err(None);
    }
    let [question] = packet.questions.as_slice() else {
        return Err(refuse(message, RCODE::FormatError));
    };
    if packet.opcode() != simple_dns::OPCODE::StandardQuery {
        return Err(refuse(message, RCODE::NotImplemented));
    }
    let kind = match question.qtype {
        QTYPE::TYPE(TYPE::A) => Kind::A,
        QTYPE::TYPE(TYPE::AAAA) => Kind::Aaaa,
        QTYPE::TYPE(TYPE::SRV) => Kind::Srv,
        QTYPE::TYPE(TYPE::PTR) => Kind::Ptr,
        QTYPE::TYPE(TYPE::CNAME) => Kind::Cname,
        QTYPE::ANY => Kind::Any,
        _ => Kind::Other,
    };
    let name = question.qname.to_string();
    Ok(Query { packet, name, kind })
}

/// Returns whether the header of a message counts as few parts as the header of a question does. Thousands of names in one message, each
/// a pointer to a long name, take long to read.
fn is_small(message: &[u8]) -> bool {
    let count = |position: usize| {
        let bytes = message.get(position..position + 2).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u16::from_be_bytes)
    };
    let records = [6, 8, 10].map(|position| u32::from(count(position)));
    count(4) <= 1 && records.iter().sum::<u32>() <= MAX_RECORDS
}

/// Refuses a message that cannot be read.
fn refuse(message: &[u8], code: RCODE) -> Option<Vec<u8>> {
    let header = message.get(..12)?;
    let id = u16::from_be_bytes([header[0], header[1]]);
    let is_response = header[2] & 0x80 != 0;
    if is_response {
        return None;
    }
    let mut reply = Packet::new_reply(id);
    *reply.rcode_mut() = code;
    reply.build_bytes_vec().ok()
}

impl Query<'_> {
    /// Returns the answer with these records, followed by the records of `further`, an answer of another server.
    ///
    /// With `is_datagram`, an answer that is too long is cut, and the client asks again over TCP.
    pub(super) fn reply(
        &self,
        code: RCODE,
        records: &[Record],
        further: Option<&[u8]>,
        is_datagram: bool,
    ) -> Option<Vec<u8>> {
        let mut reply = Packet::new_reply(self.packet.id());
        reply.set_flags(PacketFlag::AUTHORITATIVE_ANSWER | PacketFlag::RECURSION_AVAILABLE);
        if self.packet.has_flags(PacketFlag::RECURSION_DESIRED) {
            reply.set_flags(PacketFlag::RECURSION_DESIRED);
        }
        *reply.rcode_mut() = code;
        reply.questions.clone_from(&self.packet.questions);
        reply.answers = records.iter().filter_map(encode).collect();
        if let Some(further) = further.and_then(|bytes| Packet::parse(bytes).ok()) {
            reply.answers.extend(further.answers.into_iter().map(ResourceRecord::into_owned));
        }
        if self.packet.opt().is_some() {
            *reply.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: LONG as u16, version: 0 });
        }
        let bytes = reply.build_bytes_vec_compressed().ok()?;
        let stated = self.packet.opt().map_or(SHORT, |opt| usize::from(opt.udp_packet_size));
        if !is_datagram || bytes.len() <= stated.clamp(SHORT, LONG) {
            return Some(bytes);
        }
        reply.answers.clear();
        reply.set_flags(PacketFlag::TRUNCATION);
        reply.build_bytes_vec_compressed().ok()
    }

    /// Returns the question for the same records of another name.
    pub(super) fn about(&self, name: &str) -> Option<Vec<u8>> {
        let mut query = Packet::new_query(self.packet.id());
        query.set_flags(PacketFlag::RECURSION_DESIRED);
        let mut question = self.packet.questions.first()?.clone();
        question.qname = Name::new(name).ok()?;
        query.questions.push(question);
        query.build_bytes_vec().ok()
    }
}

/// Encodes a record. Returns `None` for a name that DNS does not allow.
fn encode(record: &Record) -> Option<ResourceRecord<'_>> {
    let data = match &record.data {
        Data::Address(IpAddr::V4(address)) => RData::A((*address).into()),
        Data::Address(IpAddr::V6(address)) => RData::AAAA((*address).into()),
        Data::Alias(target) => RData::CNAME(CNAME(Name::new(target).ok()?)),
        Data::Pointer(target) => RData::PTR(PTR(Name::new(target).ok()?)),
        Data::Port { port, target } => {
            RData::SRV(SRV { priority: 0, weight: 100, port: *port, target: Name::new(target).ok()? })
        }
    };
    Some(ResourceRecord::new(Name::new(&record.name).ok()?, CLASS::IN, TTL, data))
}

#[cfg(test)]
mod tests {
    use simple_dns::Question;

    use super::*;

    const NAME: &str = "web.shop.svc.cluster.local";

    fn question(size: Option<u16>) -> Vec<u8> {
        let mut packet = Packet::new_query(7);
        let class = simple_dns::QCLASS::CLASS(CLASS::IN);
        packet.questions.push(Question::new(Name::new(NAME).unwrap(), TYPE::A.into(), class, false));
        *packet.opt_mut() =
            size.map(|udp_packet_size| OPT { opt_codes: Vec::new(), udp_packet_size, version: 0 });
        packet.build_bytes_vec().unwrap()
    }

    fn records(count: u8) -> Vec<Record> {
        let record = |last| Record { name: NAME.to_owned(), data: Data::Address([10, 0, 0, last].into()) };
        (0..count).map(record).collect()
    }

    #[test]
    fn an_answer_repeats_the_question_and_has_the_records() {
        let bytes = question(None);
        let query = read(&bytes).unwrap_or_else(|_| panic!("the question is not read"));
        assert_eq!((query.name.as_str(), query.kind), (NAME, Kind::A));
        let answer = query.reply(RCODE::NoError, &records(2), None, true).unwrap();
        let answer = Packet::parse(&answer).unwrap();
        assert_eq!((answer.id(), answer.questions.len(), answer.answers.len()), (7, 1, 2));
        assert!(answer.has_flags(PacketFlag::RESPONSE) && !answer.has_flags(PacketFlag::TRUNCATION));
    }

    #[test]
    fn an_answer_that_is_too_long_for_a_datagram_is_cut() {
        for (size, is_cut) in [(None, true), (Some(512), true), (Some(1232), false), (Some(60_000), false)] {
            let bytes = question(size);
            let query = read(&bytes).unwrap_or_else(|_| panic!("the question is not read"));
            let answer = query.reply(RCODE::NoError, &records(50), None, true).unwrap();
            assert!(answer.len() <= 1232);
            let answer = Packet::parse(&answer).unwrap();
            assert_eq!(answer.has_flags(PacketFlag::TRUNCATION), is_cut, "{size:?}");
            let stream = query.reply(RCODE::NoError, &records(200), None, false).unwrap();
            assert_eq!(Packet::parse(&stream).unwrap().answers.len(), 200);
        }
    }

    #[test]
    fn a_message_that_is_no_question_is_refused_or_dropped() {
        for length in 0..12 {
            assert!(matches!(read(&question(None)[..length]), Err(None)));
        }
        let mut answer = question(None);
        answer[2] |= 0x80;
        assert!(matches!(read(&answer), Err(None)));
        let whole = question(Some(512));
        for length in 12..whole.len() {
            let Err(Some(refusal)) = read(&whole[..length]) else { panic!("{length} bytes are read") };
            assert_eq!(Packet::parse(&refusal).unwrap().id(), 7);
        }
        // A message with many questions is not read.
        let mut many = whole.clone();
        many[4..6].copy_from_slice(&2_u16.to_be_bytes());
        let Err(Some(refusal)) = read(&many) else { panic!("two questions are read") };
        assert_eq!(Packet::parse(&refusal).unwrap().rcode(), RCODE::FormatError);
        many[4..6].copy_from_slice(&1_u16.to_be_bytes());
        many[6..8].copy_from_slice(&9999_u16.to_be_bytes());
        assert!(matches!(read(&many), Err(Some(_))));
        // No byte and no count makes the server panic.
        for position in 0..whole.len() {
            for value in [0, 1, 0x3f, 0x40, 0x80, 0xc0, 0xff] {
                let mut broken = whole.clone();
                broken[position] = value;
                if let Ok(query) = read(&broken) {
                    let _ = query.reply(RCODE::NoError, &records(1), Some(&broken), true);
                }
            }
        }
    }
}
