package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// worldOf answers DNS questions for the names given and echoes TCP.
func worldOf(ports map[string][]int, asked *atomic.Int64) func(channel.Open, *channel.Conn) channel.Reply {
	return func(open channel.Open, _ *channel.Conn) channel.Reply {
		switch open.Kind {
		case channel.OpenDNS:
			asked.Add(1)
			found, ok := ports[open.Name]
			return channel.Reply{OK: true, DNS: &channel.DNSAnswer{Exists: ok, Ports: found}}
		case channel.OpenTCP:
			return channel.Reply{OK: open.Name != "refused.example"}
		default:
			return channel.Reply{Error: "refused"}
		}
	}
}

func (a *agentHere) query(network string, m *dns.Msg) *dns.Msg {
	a.t.Helper()
	client := dns.Client{Net: network}
	reply, _, err := client.ExchangeContext(a.t.Context(), m, a.agent.resolver.address())
	if err != nil {
		a.t.Fatalf("%s query %v: %v", network, m.Question, err)
	}
	return reply
}

func message(name string, kind uint16) *dns.Msg {
	m := new(dns.Msg)
	return m.SetQuestion(dns.Fqdn(name), kind)
}

func TestResolver(t *testing.T) {
	var asked atomic.Int64
	a := startBare(t, worldOf(map[string][]int{"api.example": {8443}, "refused.example": {8443}}, &asked))
	if err := a.agent.names.knowNames(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		name  string
		kind  uint16
		code  int
		first string
	}{
		"a name":          {"api.example", dns.TypeA, dns.RcodeSuccess, "127.64.0.1"},
		"in capitals":     {"API.Example", dns.TypeA, dns.RcodeSuccess, "127.64.0.1"},
		"no IPv6":         {"api.example", dns.TypeAAAA, dns.RcodeSuccess, ""},
		"no text":         {"api.example", dns.TypeTXT, dns.RcodeSuccess, ""},
		"nobody":          {"evil.example", dns.TypeA, dns.RcodeNameError, ""},
		"nobody's text":   {"evil.example", dns.TypeTXT, dns.RcodeNameError, ""},
		"suffix":          {"api.example.evil.example", dns.TypeA, dns.RcodeNameError, ""},
		"localhost":       {"localhost", dns.TypeA, dns.RcodeSuccess, "127.0.0.1"},
		"reverse":         {"1.0.64.127.in-addr.arpa", dns.TypePTR, dns.RcodeSuccess, "api.example."},
		"reverse, nobody": {"9.9.64.127.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, ""},
		"reverse, odd":    {"01.0.64.127.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, ""},
		"not a host name": {"a b.example", dns.TypeA, dns.RcodeNameError, ""},
		"root":            {".", dns.TypeNS, dns.RcodeNameError, ""},
		"zero byte":       {"api.example\\000.evil.example", dns.TypeA, dns.RcodeNameError, ""},
	}
	a.query("udp", message("api.example", dns.TypeA)) // takes the first address
	for name, test := range tests {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(name+"/"+network, func(t *testing.T) {
				reply := a.query(network, message(test.name, test.kind))
				first := ""
				if len(reply.Answer) > 0 {
					switch record := reply.Answer[0].(type) {
					case *dns.A:
						first = record.A.String()
					case *dns.PTR:
						first = record.Ptr
					}
				}
				if reply.Rcode != test.code || first != test.first {
					t.Errorf("got %s %q, want %s %q", dns.RcodeToString[reply.Rcode], first, dns.RcodeToString[test.code], test.first)
				}
			})
		}
	}
}

func TestResolverRefuses(t *testing.T) {
	a := startBare(t, nil)
	chaos := message("version.bind", dns.TypeTXT)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	update := message("api.example", dns.TypeSOA)
	update.Opcode = dns.OpcodeUpdate
	none := message("api.example", dns.TypeA)
	none.Question = nil
	for name, m := range map[string]*dns.Msg{"class": chaos, "update": update, "no question": none} {
		t.Run(name, func(t *testing.T) {
			if reply := a.query("udp", m); reply.Rcode == dns.RcodeSuccess || len(reply.Answer) > 0 {
				t.Errorf("got %v", reply)
			}
		})
	}
	var asked atomic.Int64
	b := startBare(t, worldOf(nil, &asked))
	b.query("udp", message(strings.Repeat("a.", 60)+"example", dns.TypeNULL))
	b.query("udp", message(strings.Repeat("b", 64)[:63]+".example", dns.TypeANY))
	if asked.Load() != 2 {
		t.Errorf("the host was asked %d times", asked.Load())
	}
}

// A host that fails is a failure, not a "no".
func TestResolverWhenTheHostFails(t *testing.T) {
	a := startBare(t, nil)
	if reply := a.query("udp", message("api.example", dns.TypeA)); reply.Rcode != dns.RcodeServerFailure {
		t.Errorf("got %s", dns.RcodeToString[reply.Rcode])
	}
}

// Equal questions at the same time are one question to the host, and a yes is kept.
func TestQuestionsAreShared(t *testing.T) {
	var asked atomic.Int64
	release := make(chan struct{})
	world := worldOf(map[string][]int{"api.example": {8443}}, &asked)
	a := startBare(t, func(open channel.Open, stream *channel.Conn) channel.Reply {
		reply := world(open, stream)
		<-release
		return reply
	})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if address, exists, err := a.agent.resolver.lookup(context.WithoutCancel(t.Context()), "api.example"); err != nil || !exists || address.String() != "127.64.0.1" {
				t.Errorf("%v %v %v", address, exists, err)
			}
		})
	}
	for asked.Load() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the host is not asked")
		}
	}
	close(release)
	all.Wait()
	a.query("udp", message("api.example", dns.TypeA))
	if asked.Load() != 1 {
		t.Errorf("the host was asked %d times", asked.Load())
	}
}

func TestTooManyNames(t *testing.T) {
	var asked atomic.Int64
	ports := map[string][]int{}
	for i := range maxNames + 1 {
		ports[fmt.Sprintf("n%d.example", i)] = []int{9443}
	}
	a := startBare(t, worldOf(ports, &asked))
	seen := map[string]bool{}
	for i := range maxNames {
		reply := a.query("udp", message(fmt.Sprintf("n%d.example", i), dns.TypeA))
		if len(reply.Answer) != 1 {
			t.Fatalf("name %d: %v", i, reply)
		}
		seen[reply.Answer[0].(*dns.A).A.String()] = true
	}
	if len(seen) != maxNames {
		t.Errorf("%d addresses for %d names", len(seen), maxNames)
	}
	if reply := a.query("udp", message(fmt.Sprintf("n%d.example", maxNames), dns.TypeA)); reply.Rcode != dns.RcodeServerFailure {
		t.Errorf("one name too many: %s", dns.RcodeToString[reply.Rcode])
	}
}

func TestForwarding(t *testing.T) {
	var asked atomic.Int64
	a := startBare(t, worldOf(map[string][]int{"api.example": {8443}, "refused.example": {8443}}, &asked))
	dial := func(name string) (*net.TCPConn, error) {
		reply := a.query("udp", message(name, dns.TypeA))
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", reply.Answer[0].(*dns.A).A.String()+":8443")
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*net.TCPConn), nil
	}
	conn, err := dial("api.example")
	if err != nil {
		t.Fatal(err)
	}
	sent := strings.Repeat("0123456789", 1<<18)
	go func() {
		_, _ = conn.Write([]byte(sent))
		_ = conn.CloseWrite()
	}()
	var got strings.Builder
	if _, err := conn.WriteTo(&got); err != nil || got.String() != sent {
		t.Errorf("%d bytes of %d came back: %v", got.Len(), len(sent), err)
	}
	refused, err := dial("refused.example")
	if err == nil { // the reset may come with the connection or after it
		_, err = refused.Read(make([]byte, 1))
	}
	if !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a refused connection: %v", err)
	}
	// More connections than may be carried: the rest are refused, and the channel lives.
	var dialer net.Dialer
	var kept int
	for range maxForwards + 20 {
		if conn, err := dialer.DialContext(t.Context(), "tcp", "127.64.0.1:8443"); err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			kept++
		}
	}
	if kept < maxForwards/2 {
		t.Errorf("only %d connections were carried", kept)
	}
	a.mustCall(channel.Call{Kind: channel.CallPing})
}

func FuzzReverseAddress(f *testing.F) {
	f.Add("1.0.64.127.in-addr.arpa")
	f.Fuzz(func(t *testing.T, s string) {
		address, ok := reverseAddress(s)
		if ok && !address.Is4() {
			t.Errorf("%q is %v", s, address)
		}
	})
}
