package containment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// Addresses of the stage and of the world behind its wire.
const (
	stageMAC    = "02:00:00:00:aa:01"
	worldMAC    = "02:00:00:00:aa:02"
	stageIPv4   = "192.0.2.1"
	stageIPv6   = "2001:db8::1"
	worldIPv4   = "192.0.2.2"
	worldIPv6   = "2001:db8::2"
	nameServer  = "192.0.2.53" // the stage's resolver
	publicIPv4  = "198.51.100.7"
	publicIPv6  = "2001:db8:1::7"
	otherServer = "203.0.113.8" // a name server that anybody may ask
	lanIPv4     = "192.0.2.77"
	metadata4   = "169.254.169.254"
	metadata6   = "fd00:ec2::254"
)

// worldAddresses are all that the world answers at.
func worldAddresses() []string {
	return []string{
		worldIPv4 + "/24", nameServer + "/32", publicIPv4 + "/32", otherServer + "/32", lanIPv4 + "/32",
		metadata4 + "/32", "169.254.170.2/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
	}
}

func worldAddresses6() []string {
	return []string{worldIPv6 + "/64", publicIPv6 + "/128", metadata6 + "/128"}
}

// worldPorts are those on which canaries listen at every address of the world.
func worldPorts() []int { return []int{22, 25, 80, 123, 443, 853, 1080, 3128, 8080, 8443} }

// sighting is a trace on the host of something that should not be there.
type sighting struct {
	oracle string
	text   string
}

func (s sighting) String() string { return s.oracle + ": " + s.text }

// sightings collects them from all oracles.
type sightings struct {
	mu  sync.Mutex
	all []sighting
}

func (s *sightings) add(oracle, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, sighting{oracle, fmt.Sprintf(format, args...)})
}

func (s *sightings) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func (s *sightings) since(mark int) []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sighting(nil), s.all[mark:]...)
}

// world is the other end of the stage's wire.
type world struct {
	seen    *sightings
	network *os.File // its namespace
	token   string   // every token begins with it
	flushed chan string
}

// onThread calls f on a thread that may change its network, and takes the
// thread back to the stage.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		stage, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- err
			return
		}
		defer stage.Close()
		err = f()
		if back := unix.Setns(int(stage.Fd()), unix.CLONE_NEWNET); back != nil {
			done <- errors.Join(err, back)
			return // the thread ends, for it is in the wrong place
		}
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

// inside calls f on a thread that is in the world. Files that f opens stay there.
func (w *world) inside(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(w.network.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// newWorld makes the world and the wire, and opens every canary.
func newWorld(t *testing.T, seen *sightings) *world {
	t.Helper()
	w := &world{seen: seen, token: "cfdtok", flushed: make(chan string, 64)}
	if err := w.makeNamespace(); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		"link set lo up",
		"link add stage0 address " + stageMAC + " type veth peer name world0 address " + worldMAC,
		fmt.Sprintf("link set world0 netns /proc/%d/fd/%d", os.Getpid(), w.network.Fd()),
		"address add " + stageIPv4 + "/24 dev stage0", "address add " + stageIPv6 + "/64 dev stage0 nodad",
		"link set stage0 up", "route add default via " + worldIPv4, "route add ::/0 via " + worldIPv6,
	}
	// Neighbours are given, so that the stage's kernel has nothing to ask of
	// itself long after a control has used one.
	for _, a := range []string{worldIPv4, nameServer, lanIPv4} {
		lines = append(lines, "neigh add "+a+" lladdr "+worldMAC+" dev stage0 nud permanent")
	}
	if err := ip(t.Context(), lines...); err != nil {
		t.Fatal(err)
	}
	lines = []string{"link set lo up", "link set world0 up", "neigh add " + stageIPv4 + " lladdr " + stageMAC + " dev world0 nud permanent"}
	for _, a := range worldAddresses() {
		lines = append(lines, "address add "+a+" dev world0")
	}
	for _, a := range worldAddresses6() {
		lines = append(lines, "address add "+a+" dev world0 nodad")
	}
	if err := w.inside(func() error { return ip(t.Context(), lines...) }); err != nil {
		t.Fatal(err)
	}
	if err := w.inside(w.open); err != nil {
		t.Fatal(err)
	}
	if err := w.watch("world0", true); err != nil {
		t.Fatal(err)
	}
	if err := w.watch("lo", false); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) makeNamespace() error {
	return onThread(func() error {
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			w.network, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
}

// open starts the canaries of the world: TCP on some ports of all addresses,
// UDP on the same, and a name server.
func (w *world) open() error {
	config := net.ListenConfig{}
	ctx := context.Background()
	for _, port := range worldPorts() {
		l, err := config.Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		go w.answer("the world's TCP", l)
		p, err := config.ListenPacket(ctx, "udp", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		go w.take("the world's UDP", p)
	}
	handler := dns.HandlerFunc(w.resolve)
	for _, address := range []string{nameServer, otherServer, metadata4} {
		p, err := config.ListenPacket(ctx, "udp", address+":53")
		if err != nil {
			return err
		}
		l, err := config.Listen(ctx, "tcp", address+":53")
		if err != nil {
			return err
		}
		go func() { _ = (&dns.Server{PacketConn: p, Handler: handler}).ActivateAndServe() }() // ends with the process
		go func() { _ = (&dns.Server{Listener: l, Handler: handler}).ActivateAndServe() }()   // as above
	}
	return nil
}

// answer is a canary: whoever connects has got out.
func (w *world) answer(oracle string, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			words := make([]byte, 1024)
			_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
			n, _ := conn.Read(words)
			w.seen.add(oracle, "%s from %s said %q", conn.LocalAddr(), conn.RemoteAddr(), words[:n])
			_, _ = conn.Write([]byte("HTTP/1.0 200 OK\r\n\r\nout\n"))
		}()
	}
}

func (w *world) take(oracle string, p net.PacketConn) {
	words := make([]byte, 2048)
	for {
		n, from, err := p.ReadFrom(words)
		if err != nil {
			return
		}
		w.seen.add(oracle, "%s from %s said %q", p.LocalAddr(), from, words[:n])
	}
}

// resolve answers every question with the public canary.
func (w *world) resolve(out dns.ResponseWriter, m *dns.Msg) {
	reply := new(dns.Msg)
	reply.SetReply(m)
	for _, q := range m.Question {
		w.seen.add("the world's name server", "%s was asked for %s %s", out.LocalAddr(), q.Name, dns.TypeToString[q.Qtype])
		if q.Qtype == dns.TypeA {
			reply.Answer = append(reply.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(publicIPv4),
			})
		}
	}
	_ = out.WriteMsg(reply)
}

// watch looks at every frame that arrives at an interface: of the world, at
// all; of the stage's loopback, at those with a token.
func (w *world) watch(name string, ofTheWorld bool) error {
	var fd int
	open := func() error {
		link, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
			return err
		}
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}),
		)
	}
	err := open
	if ofTheWorld {
		err = func() error { return w.inside(open) }
	}
	if e := err(); e != nil {
		return e
	}
	go w.frames(fd, name, ofTheWorld)
	return nil
}

func (w *world) frames(fd int, name string, ofTheWorld bool) {
	frame := make([]byte, 65536)
	for {
		n, from, err := unix.Recvfrom(fd, frame, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			w.seen.add("the watch on "+name, "it ended: %v", err)
			return
		}
		link, _ := from.(*unix.SockaddrLinklayer)
		if link == nil || link.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		got := frame[:n]
		if at := bytes.Index(got, []byte("flush-")); at >= 0 {
			w.flushed <- name + string(got[at:min(n, at+22)])
			continue
		}
		at := bytes.Index(got, []byte(w.token))
		switch {
		case at >= 0:
			w.seen.add("the wire "+name, "%d bytes with %s", n, got[at:min(n, at+22)])
		case ofTheWorld && !housekeeping(got) && !continued(got):
			w.seen.add("the wire "+name, "%d bytes: % x", n, got[:min(n, 64)])
		}
	}
}

// housekeeping tells frames that the stage's kernel sends of itself: neighbour
// discovery and multicast membership.
func housekeeping(frame []byte) bool {
	if len(frame) < 55 || frame[12] != 0x86 || frame[13] != 0xdd {
		return false
	}
	next, at := frame[20], 54
	if next == 0 { // hop-by-hop options, as membership reports have
		next, at = frame[54], 54+8+int(frame[55])*8
	}
	if next != unix.IPPROTO_ICMPV6 || len(frame) <= at {
		return false
	}
	switch frame[at] {
	case 131, 132, 133, 135, 136, 143:
		return true
	}
	return false
}

// continued tells segments of a TCP connection that is open already: its
// opening was judged when it was sent, and the control that opened it may have
// ended since.
func continued(frame []byte) bool {
	const flags, syn, ack = 13, 0x02, 0x10
	at := 0
	switch {
	case len(frame) > 34 && frame[12] == 8 && frame[13] == 0 && frame[23] == unix.IPPROTO_TCP:
		at = 14 + int(frame[14]&0x0f)*4
	case len(frame) > 54 && frame[12] == 0x86 && frame[13] == 0xdd && frame[20] == unix.IPPROTO_TCP:
		at = 54
	default:
		return false
	}
	return len(frame) > at+flags && frame[at+flags]&(syn|ack) != syn
}

// flush returns when every frame that was sent before is judged.
func (w *world) flush(t *testing.T) {
	t.Helper()
	word := "flush-" + randomWord()
	for name, address := range map[string]string{"world0": worldIPv4 + ":9", "lo": "127.0.0.1:9"} {
		conn, err := net.Dial("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Write([]byte(word))
		conn.Close()
		if err != nil {
			t.Fatal(err)
		}
		for got := range w.flushed {
			if strings.HasPrefix(got, name+word) {
				break
			}
		}
	}
}
