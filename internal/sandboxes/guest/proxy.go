package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// ProxyAddress is where the sandbox's proxy is, if its policy wants one.
const ProxyAddress = "127.0.0.1:3128"

const (
	proxyPatience = 10 * time.Second
	maxProxyHead  = 16 << 10 // bytes in which a client says what it wants
)

// proxy is for tools that want one: HTTP with CONNECT and URLs as targets, and SOCKS 5, on
// one port. It decides nothing. A client's request becomes the stream that a direct
// connection to that name would be, and the host judges both alike; so it is no matter
// who inside asks, or what a client makes it believe.
type proxy struct {
	address   string
	patience  time.Duration // for a client to say what it wants, and to take the answer
	names     *names
	forwarder *forwarder
	log       *slog.Logger

	mu        sync.Mutex   // guards the rest
	listener  net.Listener // nil: it is off
	accepting sync.WaitGroup
}

// target is what a client wants to be connected to, and how it is told.
type target struct {
	name    string
	port    int
	first   []byte // sent to the target before all else
	granted []byte
	refused func(reason string) []byte
}

// setProxy turns the proxy on or off.
func (p *proxy) setProxy(ctx context.Context, on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on == (p.listener != nil):
		return nil
	case !on:
		err := p.listener.Close()
		p.listener = nil
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", p.address)
	if err != nil {
		return fmt.Errorf("the proxy can't listen in the sandbox, where a program may have its port: %w", err)
	}
	p.listener = listener
	p.accepting.Go(func() { p.forwarder.accept(listener, p.serveClient) })
	return nil
}

// hasPort tells whether a port of the loopback interface is the proxy's.
func (p *proxy) hasPort(port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener != nil && isPortOf(p.address, port)
}

// closeProxy ends it; connections are the forwarder's to end.
func (p *proxy) closeProxy() {
	if err := p.setProxy(context.Background(), false); err != nil && !errors.Is(err, net.ErrClosed) {
		p.log.Warn("the proxy did not close", "error", err)
	}
	p.accepting.Wait()
}

// serveClient asks the host for what a client wants, and carries it.
func (p *proxy) serveClient(conn net.Conn) {
	hurried, cancel := p.forwarder.session.clock.withTimeout(context.Background(), p.patience)
	defer cancel()
	lift := limitIO(hurried, conn)
	in := bufio.NewReaderSize(conn, maxProxyHead)
	to, err := p.readTarget(conn, in)
	if !lift() || err != nil {
		resetConn(conn)
		return
	}
	if to == nil { // the client was told why
		_ = conn.Close()
		return
	}
	stream, answer, err := openStream(context.Background(), p.forwarder.session, channel.Open{Kind: channel.OpenTCP, Name: to.name, Port: to.port}, dialDeadline)
	switch {
	case err != nil:
		p.tellClient(conn, to.refused("the host did not answer"))
		_ = conn.Close()
	case !answer.OK:
		_ = stream.Close()
		p.tellClient(conn, to.refused(answer.Error))
		_ = conn.Close()
	default:
		p.tellClient(conn, to.granted)
		early := make([]byte, in.Buffered()) // that a client said before it was answered
		_, _ = in.Read(early)
		_, _ = stream.Raw().Write(append(to.first, early...)) // what fails here fails again below
		p.forwarder.splice(conn, stream, answer.Text)
	}
}

// readTarget reads what a client wants, in whichever way it asks; nil: it was refused.
func (p *proxy) readTarget(conn net.Conn, in *bufio.Reader) (*target, error) {
	first, err := in.Peek(1)
	if err != nil {
		return nil, err
	}
	ask := readHTTPTarget
	if first[0] == socksVersion {
		ask = readSOCKSTarget
	}
	to, err := ask(in, conn)
	if to != nil {
		to.name = p.canonical(to.name)
	}
	return to, err
}

// canonical is a name as the host wants it: an address that the resolver gave out stands
// for its name. Any other address is left for the host to refuse, which records it.
func (p *proxy) canonical(name string) string {
	if address, err := netip.ParseAddr(name); err == nil {
		if named, ok := p.names.nameOf(address.Unmap()); ok {
			return named
		}
		return name
	}
	return lowerASCII(name)
}

// lowerASCII returns s with its ASCII letters in lower case, and no other ones.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// tellClient writes an answer, for which a client has some time.
func (p *proxy) tellClient(conn net.Conn, answer []byte) {
	hurried, cancel := p.forwarder.session.clock.withTimeout(context.Background(), p.patience)
	defer cancel()
	defer limitIO(hurried, conn)()
	_, _ = conn.Write(answer) // a client that has gone needs none
}

// proxyEnv points tools at the proxy, but for the names that they reach by themselves: this
// sandbox's own and the registries', with which package managers shall do what they do
// without a proxy. It is HTTP for all: tools that know SOCKS know this, and some that find
// SOCKS in their environment do not start without a part that they lack.
func proxyEnv(registries []string) map[string]string {
	const url = "http://" + ProxyAddress
	none := strings.Join(append([]string{"localhost", "127.0.0.1", "::1"}, registries...), ",")
	return map[string]string{
		"HTTP_PROXY": url, "HTTPS_PROXY": url, "ALL_PROXY": url, "NO_PROXY": none,
		"http_proxy": url, "https_proxy": url, "all_proxy": url, "no_proxy": none,
	}
}

// withProxy is a sandbox's environment, which comes over the proxy's.
func withProxy(env map[string]string, registries []string) map[string]string {
	all := proxyEnv(registries)
	maps.Copy(all, env)
	return all
}
