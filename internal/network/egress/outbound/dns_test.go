package outbound_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
)

// nameServer answers questions for addresses, and counts them. Each name has a list of
// records, which is given whole.
type nameServer struct {
	records map[string][]string
	second  map[string][]string // what a name has from the second question on
	asked   atomic.Int32
	times   map[string]int // of each name; only the server's goroutine has it
}

// ServeDNS implements dns.Handler.
func (s *nameServer) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	s.asked.Add(1)
	a := new(dns.Msg).SetReply(q)
	name := q.Question[0].Name
	if q.Question[0].Qtype == dns.TypeA {
		s.times[name]++
		records := s.records[name]
		if later, ok := s.second[name]; ok && s.times[name] > 1 {
			records = later
		}
		for _, text := range records {
			if rr, err := dns.NewRR(text); err == nil {
				a.Answer = append(a.Answer, rr)
			}
		}
	}
	_ = w.WriteMsg(a) // who asked may have gone
}

// resolver asks a server of the test's own on loopback.
func (s *nameServer) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	var config net.ListenConfig
	conn, err := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.times = map[string]int{}
	server := &dns.Server{PacketConn: conn, Handler: s}
	done := make(chan error, 1)
	go func() { done <- server.ActivateAndServe() }()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// TestOtherNamesOfAName: an alias leads where its last name does, and is refused for that.
func TestOtherNamesOfAName(t *testing.T) {
	s := &nameServer{records: map[string][]string{
		"good.example.":   {"good.example. 0 CNAME cdn.example.", "cdn.example. 0 A 93.184.215.14"},
		"inside.example.": {"inside.example. 0 CNAME a.evil.example.", "a.evil.example. 0 CNAME b.evil.example.", "b.evil.example. 0 A 10.0.0.1"},
		"self.example.":   {"self.example. 0 CNAME localhost.", "localhost. 0 A 127.0.0.1"},
		"clouds.example.": {"clouds.example. 0 CNAME metadata.example.", "metadata.example. 0 A 169.254.169.254"},
		"mixed.example.":  {"mixed.example. 0 CNAME cdn.example.", "cdn.example. 0 A 93.184.215.14", "cdn.example. 0 A 192.168.1.1"},
	}}
	d := outbound.NewDialer(nil, s.resolver(t))
	for name, want := range map[string]string{
		"good.example":   "",
		"inside.example": "inside.example resolves to a private address",
		"self.example":   "self.example resolves to a loopback address",
		"clouds.example": "clouds.example resolves to a metadata address",
		"mixed.example":  "mixed.example resolves to a private address",
	} {
		target, err := d.Resolve(t.Context(), name, 443, anybody)
		if want == "" && (err != nil || len(target.Addresses) != 1) || want != "" && (!errors.Is(err, fault.ErrForbidden) || !strings.HasPrefix(fault.Sentence(err, ""), want)) {
			t.Errorf("%s: %v %v", name, target.Addresses, err)
		}
	}
}

// TestAnswersThatChange: what was checked is dialled, however often, and nobody is asked
// again; who resolves it anew is refused.
func TestAnswersThatChange(t *testing.T) {
	s := &nameServer{
		records: map[string][]string{"rebound.example.": {"rebound.example. 0 A 93.184.215.14"}},
		second:  map[string][]string{"rebound.example.": {"rebound.example. 0 A 127.0.0.1"}},
	}
	var dialled []string
	d := outbound.NewDialer(nil, s.resolver(t)).Through(func(_ context.Context, _, at string) (net.Conn, error) {
		dialled = append(dialled, at)
		near, far := net.Pipe()
		t.Cleanup(func() { _ = errors.Join(near.Close(), far.Close()) })
		return near, nil
	})
	target, err := d.Resolve(t.Context(), "rebound.example", 443, anybody)
	if err != nil {
		t.Fatal(err)
	}
	asked := s.asked.Load()
	for range 3 {
		if _, err := d.Dial(t.Context(), target); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(dialled, " "); got != "93.184.215.14:443 93.184.215.14:443 93.184.215.14:443" || s.asked.Load() != asked {
		t.Errorf("dialled %s, asked %d times, then %d", got, asked, s.asked.Load())
	}
	if _, err := d.Resolve(t.Context(), "rebound.example", 443, anybody); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("the control: %v", err)
	}
}

// anybody may have a name looked up.
func anybody(context.Context) error { return nil }

// TestNobodyHearsOfANameUnasked: a name server hears of a name once it may, and of one that the
// operator has pinned nobody hears.
func TestNobodyHearsOfANameUnasked(t *testing.T) {
	s := &nameServer{records: map[string][]string{"good.example.": {"good.example. 0 A 93.184.215.14"}}}
	h, err := outbound.NewHost("pinned.example", "127.0.0.2", 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := outbound.NewDialer([]outbound.Host{h}, s.resolver(t))
	no, before := errors.New("not this one"), int32(-1)
	if _, err := d.Resolve(t.Context(), "good.example", 443, func(context.Context) error { return no }); !errors.Is(err, no) || s.asked.Load() != 0 {
		t.Errorf("%v, and %d questions", err, s.asked.Load())
	}
	if _, err := d.Resolve(t.Context(), "pinned.example", 443, func(context.Context) error { return no }); err != nil || s.asked.Load() != 0 {
		t.Errorf("pinned: %v, and %d questions", err, s.asked.Load())
	}
	_, err = d.Resolve(t.Context(), "good.example", 443, func(context.Context) error { before = s.asked.Load(); return nil })
	if err != nil || before != 0 || s.asked.Load() == 0 {
		t.Errorf("the control: %v, asked %d times before and %d in all", err, before, s.asked.Load())
	}
}
