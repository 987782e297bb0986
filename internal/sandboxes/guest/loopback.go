package guest

import (
	"encoding/binary"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// bringUpLoopback does what most engines have done already.
func bringUpLoopback() error {
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	if request.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// nameLoopback gives the loopback interface a second address. The C library
// takes a machine whose only address is 127.0.0.1 for one without IPv4, and
// then finds no name for a program that asks for "IPv4, if there is any".
func nameLoopback() error {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(fd, addressMessage(uint32(loopback.Index), lastAddress()), 0, kernel); err != nil {
		return err
	}
	answer := make([]byte, unix.NLMSG_HDRLEN+unix.SizeofNlMsgerr)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 {
		return fmt.Errorf("an answer of %d bytes", n)
	}
	code := -int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:]))
	if code != 0 && unix.Errno(code) != unix.EEXIST {
		return unix.Errno(code)
	}
	return nil
}

// lastAddress is the end of the range from which names have theirs; no name
// gets that far.
func lastAddress() [4]byte { return [4]byte{127, 127, 255, 254} }

// addressMessage makes a netlink message: a header, the interface, the address twice.
func addressMessage(index uint32, address [4]byte) []byte {
	const length = unix.NLMSG_HDRLEN + unix.SizeofIfAddrmsg + 2*(unix.SizeofRtAttr+4)
	m := make([]byte, 0, length)
	m = binary.NativeEndian.AppendUint32(m, length)
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWADDR)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	m = binary.NativeEndian.AppendUint32(m, 1) // sequence
	m = binary.NativeEndian.AppendUint32(m, 0) // port
	m = append(m, unix.AF_INET, 32, unix.IFA_F_PERMANENT, unix.RT_SCOPE_HOST)
	m = binary.NativeEndian.AppendUint32(m, index)
	for _, kind := range []uint16{unix.IFA_LOCAL, unix.IFA_ADDRESS} {
		m = binary.NativeEndian.AppendUint16(m, unix.SizeofRtAttr+4)
		m = binary.NativeEndian.AppendUint16(m, kind)
		m = append(m, address[:]...)
	}
	return m
}
