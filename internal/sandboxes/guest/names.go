package guest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Bounds of what the host can make exist here.
const (
	maxNames     = 256
	maxPorts     = 8   // per name
	maxListeners = 384 // in all
	registryPort = 443
)

// firstAddress is the address of the first name; each further name has the
// next one, and keeps it.
func firstAddress() netip.Addr { return netip.AddrFrom4([4]byte{127, 64, 0, 1}) }

var errTooManyNames = fmt.Errorf("the sandbox has %d names already", maxNames)

// names are the host names that exist in the sandbox. Each has an address of
// its own and listeners there, whose connections go to the host.
type names struct {
	forwarder *forwarder
	log       *slog.Logger

	mu        sync.Mutex // guards the rest
	byName    map[string]*name
	byAddress map[netip.Addr]*name
	next      netip.Addr
	listeners int
	closed    bool
	accepting sync.WaitGroup
}

// name is one host name. Its fields are guarded by names.mu.
type name struct {
	name    string
	address netip.Addr
	known   bool // a registry name: exists without asking the host
	ports   map[int]net.Listener
}

func newNames(forwarder *forwarder, log *slog.Logger) *names {
	return &names{
		forwarder: forwarder, log: log, next: firstAddress(),
		byName: map[string]*name{}, byAddress: map[netip.Addr]*name{},
	}
}

// knowNames makes the registry names exist: the given ones, and no others.
func (n *names) knowNames(ctx context.Context, registry []string) error {
	n.mu.Lock()
	for _, entry := range n.byName {
		entry.known = false
	}
	n.mu.Unlock()
	for _, s := range registry {
		if !isHostname(s) {
			return fmt.Errorf("the registry name %.80q is not a host name in lower case", s)
		}
		if _, err := n.addName(ctx, s, []int{registryPort}); err != nil {
			return fmt.Errorf("the registry name %s: %w", s, err)
		}
		n.mu.Lock()
		n.byName[s].known = true
		n.mu.Unlock()
	}
	return nil
}

// addName makes a name exist with listeners on ports, and returns its address. A
// name that exists keeps its address and gains the ports.
func (n *names) addName(ctx context.Context, s string, ports []int) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return netip.Addr{}, net.ErrClosed
	}
	entry, ok := n.byName[s]
	if !ok {
		if len(n.byName) >= maxNames {
			return netip.Addr{}, errTooManyNames
		}
		entry = &name{name: s, address: n.next, ports: map[int]net.Listener{}}
		n.next = n.next.Next()
		n.byName[s] = entry
		n.byAddress[entry.address] = entry
	}
	for _, port := range ports {
		if err := n.listen(ctx, entry, port); err != nil {
			return netip.Addr{}, err
		}
	}
	return entry.address, nil
}

// listen opens one port of a name. mu is held.
func (n *names) listen(ctx context.Context, entry *name, port int) error {
	if entry.ports[port] != nil {
		return nil
	}
	if port < 1 || port > 65535 || len(entry.ports) >= maxPorts || n.listeners >= maxListeners {
		return fmt.Errorf("port %d of %s is one too many, or no port", port, entry.name)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", netip.AddrPortFrom(entry.address, uint16(port)).String())
	if err != nil {
		return err
	}
	entry.ports[port] = listener
	n.listeners++
	open := channel.Open{Kind: channel.OpenTCP, Name: entry.name, Port: port}
	n.accepting.Go(func() {
		n.forwarder.accept(listener, func(conn net.Conn) { n.forwarder.carryConn(conn, open) })
	})
	return nil
}

// registry tells whether a name is a registry's, and its address.
func (n *names) registry(s string) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	entry, ok := n.byName[s]
	if !ok || !entry.known {
		return netip.Addr{}, false
	}
	return entry.address, true
}

// nameOf gives the name that has an address.
func (n *names) nameOf(address netip.Addr) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	entry, ok := n.byAddress[address]
	if !ok {
		return "", false
	}
	return entry.name, true
}

// closeListeners ends all listeners and their connections.
func (n *names) closeListeners() {
	n.mu.Lock()
	n.closed = true
	var all []net.Listener
	for _, entry := range n.byName {
		for _, listener := range entry.ports {
			all = append(all, listener)
		}
	}
	n.mu.Unlock()
	for _, listener := range all {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			n.log.Warn("a listener did not close", "address", listener.Addr().String(), "error", err)
		}
	}
	n.accepting.Wait()
	n.forwarder.closeAll()
}

// isHostname tells whether s is a DNS name in canonical form: lower case,
// no trailing dot, nothing but letters, digits, hyphens and underscores.
func isHostname(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	return true
}

// reverseAddress reads the address out of a name like 1.0.64.127.in-addr.arpa.
func reverseAddress(s string) (netip.Addr, bool) {
	digits, ok := strings.CutSuffix(s, ".in-addr.arpa")
	parts := strings.Split(digits, ".")
	if !ok || len(parts) != 4 {
		return netip.Addr{}, false
	}
	slices.Reverse(parts)
	for _, part := range parts {
		if n, err := strconv.Atoi(part); err != nil || strconv.Itoa(n) != part {
			return netip.Addr{}, false
		}
	}
	address, err := netip.ParseAddr(strings.Join(parts, "."))
	return address, err == nil
}
