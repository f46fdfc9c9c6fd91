//! The addresses of this host, and the order in which addresses of another host are dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

/// The addresses of this host at which others may reach it, without those of one link. Those of the given networks come
/// first, in the order of the networks. The loopback address stands for a host that has no other.
pub(crate) fn here(networks: &[IpNet]) -> Vec<IpAddr> {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let mut all = of_version_4(&text("/proc/net/fib_trie"));
    all.extend(of_version_6(&text("/proc/net/if_inet6")));
    if all.is_empty() {
        all.push(Ipv4Addr::LOCALHOST.into());
    }
    all.sort_by_key(|address| {
        networks.iter().position(|network| network.contains(address)).unwrap_or(networks.len())
    });
    all
}

/// The local addresses in the kernel's table of routes.
fn of_version_4(table: &str) -> Vec<IpAddr> {
    let (mut found, mut last) = (Vec::new(), None);
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last.filter(|address| !address.is_loopback())
            && !found.contains(&IpAddr::V4(address))
        {
            found.push(address.into());
        }
    }
    found
}

/// The addresses of global scope in the kernel's list.
fn of_version_6(list: &str) -> Vec<IpAddr> {
    /// An address that is not, or not yet, in use: duplicate detection failed or goes on.
    const UNUSABLE: u8 = 0x08 | 0x40;
    let each = list.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let address = u128::from_str_radix(fields.next()?, 16).ok()?;
        let (scope, flags) = (fields.nth(2)?, fields.next()?);
        let is_usable = u8::from_str_radix(flags, 16).ok()? & UNUSABLE == 0;
        (scope == "00" && is_usable).then(|| IpAddr::V6(Ipv6Addr::from(address)))
    });
    each.collect()
}

/// The address in its simplest form: IPv4 in IPv6 becomes IPv4.
pub(crate) fn simple(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The addresses of another host in the order in which they are tried: those that share the longest prefix with an
/// address of this host come first, and otherwise their order stays.
pub(crate) fn in_order(own: &[IpAddr], theirs: &[SocketAddr]) -> Vec<SocketAddr> {
    let nearness = |address: &SocketAddr| {
        own.iter().map(|own| common_bits(*own, address.ip())).max().unwrap_or(0)
    };
    let mut ordered = theirs.to_vec();
    // A prefix is counted in whole bytes: two addresses of one network of 24 bits are equally near.
    ordered.sort_by_key(|address| std::cmp::Reverse(nearness(address) / 8));
    ordered
}

fn common_bits(one: IpAddr, other: IpAddr) -> u32 {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            // A network of IPv6 has 64 bits, one of IPv4 usually 24.
            (one.to_bits() ^ other.to_bits()).leading_zeros().min(64) * 24 / 64
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_found() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     \
            +-- 127.0.0.0/8 2 0 2\n           |-- 127.0.0.1\n              /32 host LOCAL\n     |-- 192.0.2.2\n        \
            /32 host LOCAL\n     |-- 192.0.2.255\n        /32 link BROADCAST\nLocal:\n     |-- 192.0.2.2\n        \
            /32 host LOCAL\n";
        assert_eq!(of_version_4(table), ["192.0.2.2".parse::<IpAddr>().unwrap()]);
        let list = "00000000000000000000000000000001 01 80 10 80       lo\n\
            fd000000000000000000000000000002 02 40 00 02     eth0\n\
            fd000000000000000000000000000003 02 40 00 40     eth0\n\
            fe8000000000000000fc00fffe000001 02 40 20 80     eth0\n";
        assert_eq!(of_version_6(list), ["fd00::2".parse::<IpAddr>().unwrap()]);
        assert_eq!((of_version_4("rubbish"), of_version_6("rubbish")), (vec![], vec![]));
    }

    #[test]
    fn near_addresses_come_first() {
        let own = ["10.1.2.3", "fd00::2"].map(|text| text.parse().unwrap());
        let theirs = ["172.17.0.1:9", "[fe00::1]:9", "10.1.2.9:9", "[fd00::9]:9"];
        let theirs = theirs.map(|text| text.parse().unwrap());
        let order: Vec<String> = in_order(&own, &theirs).iter().map(ToString::to_string).collect();
        assert_eq!(order, ["10.1.2.9:9", "[fd00::9]:9", "172.17.0.1:9", "[fe00::1]:9"]);
    }

    #[test]
    fn one_form_stands_for_each_address() {
        assert_eq!(simple("[::ffff:10.0.0.1]:7".parse().unwrap()), "10.0.0.1:7".parse().unwrap());
        assert_eq!(simple("[fd00::1]:7".parse().unwrap()), "[fd00::1]:7".parse().unwrap());
    }
}
