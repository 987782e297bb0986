package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// noise is how many sniffed bytes are printed at most.
const noise = 1 << 20

func allowBroadcast(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1) // sending says if it had to be
	})
}

func sockaddr(host string) (int, unix.Sockaddr, error) {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return 0, nil, err
	}
	if address.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Addr: address.As4()}, nil
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Addr: address.As16()}, nil
}

func checksum(data []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	if len(data)%2 == 1 {
		sum += uint32(data[len(data)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// send opens a socket and sends one message through it.
func send(family, kind, protocol int, message []byte, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return fmt.Errorf("socket(%d, %d, %d): %w", family, kind, protocol, err)
	}
	defer unix.Close(fd) // nothing to lose
	if err := unix.Sendto(fd, message, 0, to); err != nil {
		return fmt.Errorf("send on socket(%d, %d, %d): %w", family, kind, protocol, err)
	}
	return nil
}

// icmp ADDRESS TOKEN: an echo request with a payload, by the unprivileged kind
// of socket and by a raw one.
func icmp(args []string) error {
	family, to, err := sockaddr(args[0])
	if err != nil {
		return err
	}
	protocol, kind := unix.IPPROTO_ICMP, byte(8)
	if family == unix.AF_INET6 {
		protocol, kind = unix.IPPROTO_ICMPV6, 128
	}
	message := append([]byte{kind, 0, 0, 0, 0, 1, 0, 1}, args[1]...)
	binary.BigEndian.PutUint16(message[2:], checksum(message))
	plain := send(family, unix.SOCK_DGRAM, protocol, message, to)
	raw := send(family, unix.SOCK_RAW, protocol, message, to)
	if plain != nil && raw != nil {
		return errors.Join(plain, raw)
	}
	return nil
}

// rawIP PROTOCOL ADDRESS TOKEN: a datagram of another transport, by its own
// kind of socket, by a raw one, and with a header and source made by hand.
func rawIP(args []string) error {
	protocol, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	family, to, err := sockaddr(args[1])
	if err != nil {
		return err
	}
	message := []byte(args[2])
	own := send(family, unix.SOCK_DGRAM, protocol, message, to)
	if protocol == unix.IPPROTO_SCTP {
		own = send(family, unix.SOCK_SEQPACKET, protocol, message, to)
	}
	raw := send(family, unix.SOCK_RAW, protocol, message, to)
	forged := errors.New("only IPv4 has headers made by hand")
	if v4, ok := to.(*unix.SockaddrInet4); ok {
		header := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, byte(protocol), 0, 0, 203, 0, 113, 9}
		header = append(header, v4.Addr[:]...)
		forged = send(family, unix.SOCK_RAW, unix.IPPROTO_RAW, append(header, message...), to)
	}
	if own != nil && raw != nil && forged != nil {
		return errors.Join(own, raw, forged)
	}
	return nil
}

// packet TOKEN: a forged ARP answer on every interface, below IP.
func packet(args []string) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	var all error
	for _, i := range interfaces {
		frame := []byte{
			0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6,
			0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 192, 0, 2, 2, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1,
		}
		frame = append(frame, args[0]...)
		to := &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ARP), Ifindex: i.Index, Halen: 6}
		all = errors.Join(all, send(unix.AF_PACKET, unix.SOCK_RAW, int(htons(unix.ETH_P_ALL)), frame, to))
	}
	return all
}

// advertise TOKEN: a forged IPv6 router advertisement to all nodes on every
// interface.
func advertise(args []string) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	var all error
	for _, i := range interfaces {
		message := append([]byte{134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, args[0]...)
		to := &unix.SockaddrInet6{Addr: netip.MustParseAddr("ff02::1").As16(), ZoneId: uint32(i.Index)}
		all = errors.Join(all, send(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6, message, to))
	}
	return all
}

func htons(n uint16) uint16 { return n<<8 | n>>8 }

// sniff MILLISECONDS: print what passes by on any interface.
func sniff(args []string) error {
	millis, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(htons(unix.ETH_P_ALL)))
	if err != nil {
		return err
	}
	defer unix.Close(fd) // nothing to lose
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}); err != nil {
		return err
	}
	frame := make([]byte, 65536)
	printed := 0
	for end := time.Now().Add(time.Duration(millis) * time.Millisecond); time.Now().Before(end) && printed < noise; {
		n, _, err := unix.Recvfrom(fd, frame, 0)
		if err == nil {
			printed += n
			fmt.Printf("passed %q\n", frame[:n])
		}
	}
	return nil
}
