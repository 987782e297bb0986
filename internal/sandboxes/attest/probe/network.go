package probe

import (
	"context"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// Addresses at which nobody lives (documentation), for what has a network.
const (
	nowhere4 = "192.0.2.1"
	nowhere6 = "2001:db8::1"
)

// addresses connects to where the host listens, and to addresses behind a gateway.
func addresses(task Task, say teller) {
	var tried []string
	for _, at := range append(append([]string{}, task.Canaries...), net.JoinHostPort(nowhere4, "443"), net.JoinHostPort(nowhere6, "443")) {
		conn, err := dialTarget("tcp", at)
		if err == nil {
			_, _ = conn.Write([]byte(task.Token)) // the host sees whether it came
			_ = conn.Close()
			say.tellGot(Addresses, "a connection to %s was made", at)
			return
		}
		tried = append(tried, at+": "+reason(err))
		if err := datagram(at, task.Token); err == nil && !strings.HasPrefix(at, "127.") && !strings.HasPrefix(at, "[::1]") {
			say.tellGot(Addresses, "a datagram to %s was sent", at)
			return
		}
	}
	say.tellRefused(Addresses, "%s", strings.Join(tried, "; "))
}

func dialTarget(network, at string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return (&net.Dialer{}).DialContext(ctx, network, at)
}

func datagram(at, token string) error {
	conn, err := dialTarget("udp", at)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(token))
	return err
}

// reason is the kernel's own word for an error.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}

// rawSockets asks for sockets below TCP and UDP.
func rawSockets(say teller) {
	var refusals []string
	for what, kind := range map[string][3]int{
		"packet": {unix.AF_PACKET, unix.SOCK_RAW, 0}, "raw IPv4": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, "raw IPv6": {unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
	} {
		fd, err := unix.Socket(kind[0], kind[1]|unix.SOCK_CLOEXEC, kind[2])
		if err == nil {
			_ = unix.Close(fd)
			say.tellGot(RawSockets, "a %s socket was made", what)
			return
		}
		refusals = append(refusals, what+": "+err.Error())
	}
	say.tellRefused(RawSockets, "%s", strings.Join(sorted(refusals), "; "))
}

// interfaces lists them.
func interfaces(say teller) {
	all, err := net.Interfaces()
	if err != nil {
		say.tellGot(Interfaces, "they can't be listed: %v", err)
		return
	}
	var others []string
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 {
			others = append(others, i.Name)
		}
	}
	if len(others) > 0 {
		say.tellGot(Interfaces, "there are %s", strings.Join(others, ", "))
		return
	}
	say.tellRefused(Interfaces, "there is the loopback interface, and no other of %d", len(all))
}

// lookUpName looks up one that the policy denies.
func lookUpName(task Task, say teller) {
	if task.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := (&net.Resolver{PreferGo: true}).LookupNetIP(ctx, "ip", task.Name)
	if err == nil {
		say.tellGot(Name, "%s is at %v", task.Name, found)
		return
	}
	say.tellRefused(Name, "%s: %s", task.Name, reason(err))
}

// metadata connects to where clouds keep the credentials of machines.
func metadata(say teller) {
	var refusals []string
	for _, at := range []string{"169.254.169.254:80", "169.254.170.2:80", "100.100.100.200:80", "[fd00:ec2::254]:80"} {
		conn, err := dialTarget("tcp", at)
		if err == nil {
			_ = conn.Close()
			say.tellGot(Metadata, "a connection to %s was made", at)
			return
		}
		refusals = append(refusals, fmt.Sprintf("%s: %s", at, reason(err)))
	}
	say.tellRefused(Metadata, "%s", strings.Join(refusals, "; "))
}
