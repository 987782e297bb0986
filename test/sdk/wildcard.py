"""wildcard.py ADDRESS DOMAIN: a DNS server on a loopback address, at port 53, for tests: each name below DOMAIN leads to
ADDRESS, and no other name is known."""

import ipaddress
import socket
import struct
import sys


def answer(query, address, domain):
    """The answer to a query of one question."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii").lower())
        at += 1 + query[at]
    kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
    name, question = ".".join(labels), query[12 : at + 5]
    known = name == domain or name.endswith("." + domain)
    record = b""
    if known and kind == 1:
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + address.packed
    return query[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, 1 if record else 0, 0, 0) + question + record


def main():
    address, domain = ipaddress.IPv4Address(sys.argv[1]), sys.argv[2].lower()
    if not address.is_loopback:
        sys.exit("it answers on loopback addresses alone")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((str(address), 53))
        while True:
            query, client = server.recvfrom(4096)
            try:
                server.sendto(answer(query, address, domain), client)
            except (IndexError, struct.error, UnicodeDecodeError) as err:
                print("no query:", err, file=sys.stderr)


if __name__ == "__main__":
    main()
