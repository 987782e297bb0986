package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/api"
)

// The hosts of the part network are one server under three names.
const (
	farHost    = "far.example"    // listed: TLS is read as far as its server's name
	endedHost  = "ended.example"  // has rules for requests: TLS is ended, each request judged
	directHost = "direct.example" // is reached by a plain relay of the bench's own, past the gateway

	farPolicy = "name: bench-network\npackages: { default: deny }\nnetwork_allowlist:\n" +
		"  - " + farHost + "\n  - { host: " + endedHost + ", methods: [GET] }\n  - { host: " + directHost + ", port: 8443, tcp: true }\n"

	eventsPath = "/events"
)

// way is one to the same server, and what is wanted of it, as ratios to the direct way.
// Zero is no target.
type way struct {
	host       string
	port       int
	what       string
	speed      float64 // at least
	one, fifty float64 // of a small request's median, at most
	event      float64 // ms that a stream's first event may come later
}

// address is the way's host with its port.
func (w way) address() string { return net.JoinHostPort(w.host, strconv.Itoa(w.port)) }

func passed() way {
	return way{host: farHost, port: 443, what: "TLS passed through", speed: 0.8, one: 1.5, fifty: 2, event: 1}
}

func ended() way {
	return way{host: endedHost, port: 443, what: "TLS ended, requests judged", speed: 0.4, one: 2.5, fifty: 3.5, event: 1}
}

// direct is what the others are measured against.
func direct() way { return way{host: directHost, port: 8443} }

func ways() []way { return []way{passed(), ended(), direct()} }

// configureHosts writes the part of a configuration that says where the hosts are.
func configureHosts(w io.Writer, address, bundle string) {
	fmt.Fprintf(w, "network:\n  hosts:\n")
	for _, to := range ways() {
		fmt.Fprintf(w, "    - { name: %s, address: %q, ca_file: %q }\n", to.host, address, bundle)
	}
}

// Rounds of the part network.
const (
	farRounds    = 20
	askRounds    = 500
	fiftyRounds  = 40
	eventRounds  = 200
	besideRounds = 200
	busyRounds   = 20
	floodRounds  = 30
)

// Crowds of connections.
const (
	fifty      = 50
	fiftyEach  = 4 // requests of each of them in a round
	idleBoxes  = 8
	idleInEach = 125
	busyInEach = 25
)

// network is the part at work: a sandbox with both drivers, and the relay.
type network struct {
	*bench
	relay *relay
	box   *farBox
}

// farBox is a sandbox under farPolicy.
type farBox struct {
	python *driver // starts clients; nil: there is none
	asker  *driver // makes requests
	done   func() error
}

// measureNetwork measures connections to a host that the policy lists, with the gateway's
// ways beside a plain relay of the same channel.
func measureNetwork(ctx context.Context, b *bench) (err error) {
	n := &network{bench: b}
	if n.relay, err = b.startRelay(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.relay.close()) }()
	if n.box, err = n.make(ctx, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.box.done()) }()
	for _, measure := range []func(context.Context) error{n.speeds, n.small, n.events, n.crowds, n.flood} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// make makes a sandbox, with the driver that starts clients if that is wanted.
func (n *network) make(ctx context.Context, python bool) (*farBox, error) {
	server, err := n.serverDir()
	if err != nil {
		return nil, err
	}
	box, err := n.sandbox(ctx, farPolicy, api.Mount{Source: server, Destination: serverMount})
	if err != nil {
		return nil, err
	}
	f := &farBox{done: func() error { return n.daemon.client.DestroySandbox(context.WithoutCancel(ctx), box.ID) }}
	f.asker, err = n.startProgram(ctx, box.ID, serverMount+"/"+serverBinary, askVerb)
	if err == nil && python {
		f.python, err = n.startDriver(ctx, box.ID)
	}
	if err != nil {
		return nil, errors.Join(err, f.done())
	}
	return f, nil
}

// by does something that connects a way, which for the direct one is the relay's time.
func (n *network) by(to way, do func() error) error {
	if to.host == directHost {
		return n.relay.during(do)
	}
	return do()
}

// inTurn takes turns between the ways, so many rounds and one to warm up. once gives what
// a round on a way has measured.
func (n *network) inTurn(what string, rounds int, once func(way) (sample, error)) (map[way]sample, error) {
	got := map[way]sample{}
	for i := range rounds + 1 {
		n.progress.round(what, i, rounds)
		for _, to := range ways() {
			s, err := once(to)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", what, to.host, err)
			}
			if i > 0 {
				got[to] = append(got[to], s...)
			}
		}
	}
	return got, nil
}

// speeds has curl fetch 100 MB.
func (n *network) speeds(context.Context) error {
	path := "/files/" + n.registry.big.file
	got, err := n.inTurn("100 MB from a host", n.rounds(farRounds), func(to way) (s sample, err error) {
		err = n.by(to, func() error {
			fetched, err := n.box.python.do(curl("https://" + to.address() + path))
			s = sample{speed(fetched.took())}
			return err
		})
		return s, err
	})
	if err != nil {
		return err
	}
	plain := got[direct()]
	for _, to := range ways()[:2] {
		s := got[to]
		n.table.add(figure("100 MB of a listed host, "+to.what, unitSpeed, s).beside("TLS by a plain relay", plain).
			target(fmt.Sprintf(">= %.1f x", to.speed), s.median() >= to.speed*plain.median()))
	}
	return nil
}

// small makes small requests on connections that are kept: one, and fifty at once.
func (n *network) small(context.Context) error {
	if err := n.open(n.box, fifty); err != nil {
		return err
	}
	for _, c := range []struct {
		what                      string
		rounds, connections, each int
		most                      func(way) float64
	}{
		{"a small request, one connection", askRounds, 1, 1, func(w way) float64 { return w.one }},
		{"  on each of fifty connections at once", fiftyRounds, fifty, fiftyEach, func(w way) float64 { return w.fifty }},
	} {
		got, err := n.inTurn(c.what, n.rounds(c.rounds), func(to way) (sample, error) {
			return n.box.ask(to, c.connections, c.each)
		})
		if err != nil {
			return err
		}
		plain := got[direct()]
		for _, to := range ways()[:2] {
			s, most := got[to], c.most(to)
			n.table.add(figure(c.what+", "+to.what, unitTime, s).beside("TLS by a plain relay", plain).
				target(fmt.Sprintf("<= %.1f x", most), s.median() <= most*plain.median()))
		}
	}
	return nil
}

// open has a sandbox keep so many connections by each way.
func (n *network) open(box *farBox, count int) error {
	for _, to := range ways() {
		n.progress.say("%d connections to %s", count, to.host)
		err := n.by(to, func() error { return box.open(to, count) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *farBox) open(to way, count int) error {
	_, err := f.asker.do(ask{Verb: "open", Host: to.address(), Path: smallPath(), Connections: count})
	return err
}

// smallPath is of a file of few bytes.
func smallPath() string { return "/files/" + smallWheel().file }

// ask makes so many small requests on each of so many connections, all at once.
func (f *farBox) ask(to way, connections, each int) (sample, error) {
	got, err := f.asker.do(ask{Verb: "ask", Host: to.address(), Path: smallPath(), Connections: connections, Count: each})
	return got.Samples, err
}

// events waits for the first event of a stream.
func (n *network) events(context.Context) error {
	const what = "the first event of a stream"
	got, err := n.inTurn(what, n.rounds(eventRounds), func(to way) (sample, error) {
		a, err := n.box.asker.do(ask{Verb: "event", Host: to.address(), Path: eventsPath})
		return a.Samples, err
	})
	if err != nil {
		return err
	}
	plain := got[direct()]
	for _, to := range ways()[:2] {
		s := got[to]
		n.table.add(figure(what+", "+to.what, unitTime, s).beside("TLS by a plain relay", plain).
			target(fmt.Sprintf("<= %.0f ms more", to.event), s.median() <= plain.median()+to.event))
	}
	return nil
}
