package boot

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The addresses that a monitor gives a machine whose network it passes on by itself: one host on a small
// network, and the monitor as the gateway.
const networkDevice = "eth0"

func networkAddress() [4]byte { return [4]byte{10, 0, 2, 15} }
func networkMask() [4]byte    { return [4]byte{255, 255, 255, 0} }
func networkGateway() [4]byte { return [4]byte{10, 0, 2, 2} }

// joinNetwork gives the network device of a weak machine its address and a way out.
func joinNetwork() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	for _, set := range []struct {
		request uint
		address [4]byte
	}{{unix.SIOCSIFADDR, networkAddress()}, {unix.SIOCSIFNETMASK, networkMask()}} {
		r, err := unix.NewIfreq(networkDevice)
		if err == nil {
			err = r.SetInet4Addr(set.address[:])
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, set.request, r)
		}
		if err != nil {
			return fmt.Errorf("give %s its address: %w", networkDevice, err)
		}
	}
	r, err := unix.NewIfreq(networkDevice)
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("switch %s on: %w", networkDevice, err)
	}
	return addRoute(fd)
}

// addRoute sends everything by the gateway.
func addRoute(fd int) error {
	route := struct {
		_           uint64
		Destination [16]byte // struct sockaddr
		Gateway     [16]byte
		Mask        [16]byte
		Flags       uint16
		_           [62]byte
	}{Flags: unix.RTF_UP | unix.RTF_GATEWAY}
	for _, a := range []*[16]byte{&route.Destination, &route.Gateway, &route.Mask} {
		binary.NativeEndian.PutUint16(a[:], unix.AF_INET)
	}
	gateway := networkGateway()
	copy(route.Gateway[4:], gateway[:])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(unsafe.Pointer(&route))) //nolint:gosec // the call takes a pointer
	if errno != 0 {
		return fmt.Errorf("add a route: %w", errno)
	}
	return nil
}
