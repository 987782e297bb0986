package guest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

const (
	answerTTL     = 30               // seconds, told to clients and kept here
	questionLimit = 10 * time.Second // for the host to answer
	maxQuestions  = 32               // to the host at once
	maxMessage    = 1232             // bytes of a UDP answer
	maxAnswers    = 256              // being worked on at once
	maxTCP        = 32               // connections at once
)

// errBusy is said when too many questions wait for the host.
var errBusy = errors.New("too many questions at once")

// resolver answers DNS for the sandbox. It knows the registry names, asks the
// host about others whether they exist, and sends a question nowhere else.
type resolver struct {
	names   *names
	session guestLine
	log     *slog.Logger
	servers []*dns.Server
	slots   chan struct{} // one for each answer being worked on

	mu      sync.Mutex // guards the rest
	known   map[string]known
	pending map[string]*dnsQuestion
}

// known is a positive answer that is still fresh.
type known struct {
	address netip.Addr
	until   time.Time
}

// dnsQuestion is one that the host is being asked; done is closed with the result.
type dnsQuestion struct {
	done    chan struct{}
	address netip.Addr
	exists  bool
	err     error
}

func newResolver(names *names, session guestLine, log *slog.Logger) *resolver {
	return &resolver{
		names: names, session: session, log: log, slots: make(chan struct{}, maxAnswers),
		known: map[string]known{}, pending: map[string]*dnsQuestion{},
	}
}

// listen binds address for UDP and TCP.
func (r *resolver) listen(ctx context.Context, address string) error {
	var config net.ListenConfig
	packets, err := config.ListenPacket(ctx, "udp4", address)
	if err != nil {
		return err
	}
	streams, err := config.Listen(ctx, "tcp4", packets.LocalAddr().String())
	if err != nil {
		_ = packets.Close()
		return err
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) { r.answerMessage(ctx, w, m) })
	r.servers = []*dns.Server{
		{PacketConn: packets, Handler: handler, UDPSize: maxMessage, ReadTimeout: questionLimit},
		{Listener: newFewConns(streams, maxTCP), Handler: handler, ReadTimeout: questionLimit, MaxTCPQueries: 64},
	}
	return nil
}

// address is where the resolver listens.
func (r *resolver) address() string { return r.servers[0].PacketConn.LocalAddr().String() }

// serveDNS answers until close.
func (r *resolver) serveDNS() {
	var all sync.WaitGroup
	for _, server := range r.servers {
		all.Go(func() {
			if err := server.ActivateAndServe(); err != nil && !errors.Is(err, net.ErrClosed) {
				r.log.Error("the resolver ended", "error", err)
			}
		})
	}
	all.Wait()
}

func (r *resolver) closeResolver() {
	for _, server := range r.servers {
		if err := server.Shutdown(); err != nil { // not started yet
			if server.PacketConn != nil {
				_ = server.PacketConn.Close()
			}
			if server.Listener != nil {
				_ = server.Listener.Close()
			}
		}
	}
}

// answerMessage answers one message.
func (r *resolver) answerMessage(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) {
	reply := new(dns.Msg)
	if m.Opcode != dns.OpcodeQuery || len(m.Question) != 1 || m.Question[0].Qclass != dns.ClassINET {
		_ = w.WriteMsg(reply.SetRcode(m, dns.RcodeRefused))
		return
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default: // a flood: its sender may ask again
		_ = w.WriteMsg(reply.SetRcode(m, dns.RcodeServerFailure))
		return
	}
	reply.SetReply(m)
	reply.Authoritative, reply.RecursionAvailable = true, true
	reply.Rcode = r.fillRecords(ctx, reply, m.Question[0])
	if err := w.WriteMsg(reply); err != nil {
		r.log.Debug("an answer was not taken", "error", err)
	}
}

// fillRecords puts the records for q into reply and returns the code.
func (r *resolver) fillRecords(ctx context.Context, reply *dns.Msg, q dns.Question) int {
	name := dns.CanonicalName(q.Name)
	name = name[:len(name)-1]
	header := dns.RR_Header{Name: q.Name, Class: dns.ClassINET, Ttl: answerTTL}
	if address, ok := reverseAddress(name); ok {
		target, ok := r.names.nameOf(address)
		if !ok {
			return dns.RcodeNameError
		}
		if q.Qtype == dns.TypePTR {
			header.Rrtype = dns.TypePTR
			reply.Answer = append(reply.Answer, &dns.PTR{Hdr: header, Ptr: dns.Fqdn(target)})
		}
		return dns.RcodeSuccess
	}
	if !isHostname(name) {
		return dns.RcodeNameError
	}
	address, exists, err := r.lookup(ctx, name)
	if err != nil {
		r.log.Warn("a name could not be looked up", "name", name, "error", err)
		return dns.RcodeServerFailure
	}
	if !exists {
		return dns.RcodeNameError
	}
	if q.Qtype == dns.TypeA {
		header.Rrtype = dns.TypeA
		reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: address.AsSlice()})
	}
	return dns.RcodeSuccess
}

// lookup finds the address of a name. Equal questions at the same time are one
// to the host; its yes is kept for answerTTL, its no not at all.
func (r *resolver) lookup(ctx context.Context, name string) (netip.Addr, bool, error) {
	if name == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true, nil
	}
	if address, ok := r.names.registry(name); ok {
		return address, true, nil
	}
	r.mu.Lock()
	if k, ok := r.known[name]; ok && time.Now().Before(k.until) {
		r.mu.Unlock()
		return k.address, true, nil
	}
	q, ok := r.pending[name]
	if !ok {
		if len(r.pending) >= maxQuestions {
			r.mu.Unlock()
			return netip.Addr{}, false, errBusy
		}
		q = &dnsQuestion{done: make(chan struct{})}
		r.pending[name] = q
	}
	r.mu.Unlock()
	if !ok {
		r.ask(ctx, name, q)
	}
	<-q.done // ask is bounded by its deadline
	return q.address, q.exists, q.err
}

// ask asks the host and completes q.
func (r *resolver) ask(ctx context.Context, name string, q *dnsQuestion) {
	q.address, q.exists, q.err = r.askHost(ctx, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, name)
	if q.exists {
		r.known[name] = known{q.address, time.Now().Add(answerTTL * time.Second)} // at most maxNames
	} else {
		delete(r.known, name)
	}
	close(q.done)
}

func (r *resolver) askHost(ctx context.Context, name string) (netip.Addr, bool, error) {
	open := channel.Open{Kind: channel.OpenDNS, Name: name}
	stream, answer, err := openStream(ctx, r.session, open, questionLimit)
	if err != nil {
		return netip.Addr{}, false, err
	}
	_ = stream.Close()
	if !answer.OK {
		return netip.Addr{}, false, errors.New(answer.Error)
	}
	if answer.DNS == nil || !answer.DNS.Exists {
		return netip.Addr{}, false, nil
	}
	address, err := r.names.addName(ctx, name, answer.DNS.Ports)
	return address, err == nil, err
}

// fewConns is a listener that closes connections past a number: descriptors of
// the agent are not for a command to use up.
type fewConns struct {
	net.Listener
	slots chan struct{}
}

func newFewConns(listener net.Listener, most int) *fewConns {
	return &fewConns{Listener: accept.Patient(listener, nil), slots: make(chan struct{}, most)}
}

// Accept returns the next connection for which there is room.
func (l *fewConns) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &countedConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			resetConn(conn)
		}
	}
}

// countedConn gives its slot back when it closes.
type countedConn struct {
	net.Conn
	free func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
