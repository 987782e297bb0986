package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// opened are the connections that the host was asked for.
type opened struct {
	mu  sync.Mutex
	all []string
}

func (o *opened) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.all
	o.all = nil
	return all
}

// startProxy runs an agent whose policy wants a proxy. Its host takes connections to
// names that begin with "api", and echoes.
func startProxy(t *testing.T, patience time.Duration) (*agentHere, *opened) {
	t.Helper()
	var asked atomic.Int64
	world, got := worldOf(map[string][]int{"api.example": {443}}, &asked), &opened{}
	a := startBare(t, func(open channel.Open, stream *channel.Conn) channel.Reply {
		if open.Kind != channel.OpenTCP {
			return world(open, stream)
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		got.all = append(got.all, fmt.Sprintf("%s:%d", open.Name, open.Port))
		if strings.HasPrefix(open.Name, "api") {
			return channel.Reply{OK: true}
		}
		return channel.Reply{Error: open.Name + " is not on the policy's list"}
	})
	a.agent.proxy.patience = patience // nobody reads it yet
	configure := testConfigure(t)
	configure.Proxy, configure.Names = true, []string{"api.registry.example"}
	a.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: configure})
	return a, got
}

// says is what comes back of what a client sends to the proxy and ends.
func (a *agentHere) says(sent string) string {
	a.t.Helper()
	conn, err := a.dialProxy()
	if errors.Is(err, syscall.ECONNRESET) {
		return ""
	}
	if err != nil {
		a.t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, sent)
	if err == nil {
		err = conn.CloseWrite()
	}
	answer, failure := io.ReadAll(conn)
	for _, err := range []error{err, failure} { // it may have been cut meanwhile
		if err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ENOTCONN) {
			a.t.Fatal(err)
		}
	}
	return string(answer)
}

func (a *agentHere) toProxy() *net.TCPConn {
	a.t.Helper()
	conn, err := a.dialProxy()
	if err != nil {
		a.t.Fatal(err)
	}
	return conn
}

func (a *agentHere) dialProxy() (*net.TCPConn, error) {
	conn, err := (&net.Dialer{}).DialContext(a.t.Context(), "tcp", a.agent.proxy.address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

func socksTo(kind byte, address string, port int) string {
	return "\x05\x02\x02\x00\x05\x01\x00" + string([]byte{kind}) + address + string([]byte{byte(port >> 8), byte(port)})
}

func httpSays(status, sentence string) string { return string(httpAnswer(status, sentence)) }

// TestProxy: what a client asks for is what the host is asked for, and what the host says
// is what the client is told. The host echoes.
func TestProxy(t *testing.T) {
	a, got := startProxy(t, time.Minute)
	const (
		granted  = "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
		refused  = "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"
		connect  = "HTTP/1.1 200 Connected\r\n\r\n"
		notHTTP1 = "this is a proxy for HTTP/1 and SOCKS 5"
	)
	no := func(name string) string { return httpSays("403 Forbidden", name+" is not on the policy's list") }
	for name, c := range map[string]struct{ sent, asked, answer string }{
		"CONNECT":            {"CONNECT API.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\nhello", "api.example:443", connect + "hello"},
		"HTTP/1.0":           {"CONNECT api.example:22 HTTP/1.0\r\n\r\n", "api.example:22", "HTTP/1.0 200 Connected\r\n\r\n"},
		"refused":            {"CONNECT evil.example:443 HTTP/1.1\r\n\r\nhello", "evil.example:443", no("evil.example")},
		"an address":         {"CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n", "10.0.0.1:443", no("10.0.0.1")},
		"loopback":           {"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "::1:443", no("::1")},
		"a name's address":   {"CONNECT 127.64.0.1:443 HTTP/1.1\r\n\r\n", "api.registry.example:443", connect},
		"the same in IPv6":   {"CONNECT [::ffff:127.64.0.1]:443 HTTP/1.1\r\n\r\n", "api.registry.example:443", connect},
		"an address of none": {"CONNECT 127.64.0.9:443 HTTP/1.1\r\n\r\n", "127.64.0.9:443", no("127.64.0.9")},
		"no port":            {"CONNECT api.example HTTP/1.1\r\n\r\n", "", httpSays("400 Bad Request", "CONNECT needs a host and a port")},
		"an odd port":        {"CONNECT api.example:0443 HTTP/1.1\r\n\r\n", "", httpSays("400 Bad Request", "CONNECT needs a host and a port")},
		"a URL": {
			"POST http://api.example/x?y HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic eA==\r\nConnection: keep-alive\r\nproxy-connection: keep-alive\r\nA: b\r\nContent-Length: 2\r\n\r\nhi", "api.example:80",
			"POST http://api.example/x?y HTTP/1.1\r\nHost: evil.example\r\nA: b\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
		},
		"a URL with a port": {"GET http://api.example:8080 HTTP/1.1\r\n\r\n", "api.example:8080", "GET http://api.example:8080 HTTP/1.1\r\nConnection: close\r\n\r\n"},
		"a URL refused":     {"GET http://evil.example/ HTTP/1.1\r\n\r\n", "evil.example:80", no("evil.example")},
		"a URL of metadata": {"GET http://169.254.169.254/ HTTP/1.1\r\nHost: api.example\r\n\r\n", "169.254.169.254:80", no("169.254.169.254")},
		"who the URL is by": {"GET http://api.example@evil.example/ HTTP/1.1\r\n\r\n", "evil.example:80", no("evil.example")},
		"another scheme":    {"GET https://api.example/ HTTP/1.1\r\n\r\n", "", httpSays("400 Bad Request", "only URLs that begin with http:// are fetched; for others ask with CONNECT")},
		"no URL":            {"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n", "", httpSays("400 Bad Request", "this is a proxy: a request's target is a whole URL here")},
		"a port of none":    {"GET http://api.example:99999/ HTTP/1.1\r\n\r\n", "", httpSays("400 Bad Request", "the URL's port is none")},
		"folded":            {"GET http://api.example/ HTTP/1.1\r\nA: b\r\nConnection: x\r\n y\r\n\r\n", "", httpSays("400 Bad Request", "the request has a header that is read in two ways")},
		"HTTP/2":            {"PRI * HTTP/2.0\r\n\r\n", "", httpSays("400 Bad Request", notHTTP1)},
		"words":             {"hello\r\n\r\n", "", httpSays("400 Bad Request", notHTTP1)},
		"TLS":               {"\x16\x03\x01\x00\x05hello\n", "", ""},
		"a bare line feed":  {"CONNECT api.example:443 HTTP/1.1\n\n", "", ""},
		"half a head":       {"CONNECT api.example:443 HTTP/1.1\r\n", "", ""},
		"an endless line":   {"CONNECT " + strings.Repeat("a", 1<<16), "", ""},
		"an endless head":   {"CONNECT api.example:443 HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", 1<<13), "", ""},

		"SOCKS":                   {socksTo(3, "\x0bAPI.example", 443) + "hello", "api.example:443", granted + "hello"},
		"SOCKS refused":           {socksTo(3, "\x0cevil.example", 443), "evil.example:443", refused},
		"SOCKS to an address":     {socksTo(1, "\x0a\x00\x00\x01", 80), "10.0.0.1:80", refused},
		"SOCKS to a name's":       {socksTo(1, "\x7f\x40\x00\x01", 443), "api.registry.example:443", granted},
		"SOCKS to IPv6":           {socksTo(4, strings.Repeat("\x00", 15)+"\x01", 80), "::1:80", refused},
		"SOCKS, a name's by IPv6": {socksTo(4, strings.Repeat("\x00", 10)+"\xff\xff\x7f\x40\x00\x01", 443), "api.registry.example:443", granted},
		"SOCKS, no address":       {socksTo(2, "", 80), "", "\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00"},
		"SOCKS by password":       {"\x05\x01\x02", "", "\x05\xff"},
		"SOCKS to bind":           {"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", "", "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		"SOCKS over UDP":          {"\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", "", "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		"SOCKS 4":                 {"\x04\x01\x00\x50\x0a\x00\x00\x01\x00", "", ""},
		"half a SOCKS":            {"\x05\x01\x00\x05\x01\x00\x03\x0bapi", "", "\x05\x00"},
		"nothing":                 {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := a.says(c.sent)
			if asked := strings.Join(got.take(), " "); asked != c.asked {
				t.Errorf("the host was asked for %q, want %q", asked, c.asked)
			}
			// A client that goes on talking after it was refused may lose the answer.
			if answer != c.answer && (answer != "" || c.asked != "" || c.answer == "") {
				t.Errorf("answered %q, want %q", answer, c.answer)
			}
		})
	}
}

// TestProxyIsOffUnlessAskedFor: neither the port nor the variables are there.
func TestProxyIsOffUnlessAskedFor(t *testing.T) {
	a, _ := startProxy(t, time.Minute)
	variables := func() []string {
		e := a.run(channel.Exec{Argv: []string{"env"}})
		all := slices.DeleteFunc(strings.Split(e.stdout.String(), "\n"), func(s string) bool { return !strings.Contains(strings.ToLower(s), "_proxy=") })
		slices.Sort(all)
		return all
	}
	if got := variables(); len(got) != 8 || got[0] != "ALL_PROXY=http://127.0.0.1:3128" || got[3] != "NO_PROXY=localhost,127.0.0.1,::1,api.registry.example" {
		t.Errorf("on: %q", got)
	}
	off := testConfigure(t)
	a.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: off})
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", a.agent.proxy.address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("off: %v", err)
	}
	if got := variables(); len(got) != 0 {
		t.Errorf("off: %q", got)
	}
	on := testConfigure(t)
	on.Proxy, on.Env["HTTP_PROXY"] = true, "mine"
	for range 2 {
		a.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: on})
	}
	if got := a.says("CONNECT api.example:443 HTTP/1.1\r\n\r\nagain"); !strings.HasSuffix(got, "again") {
		t.Errorf("on again: %q", got)
	}
	if got := variables(); !slices.Contains(got, "HTTP_PROXY=mine") {
		t.Errorf("a variable of the run's own: %q", got)
	}
}

// TestProxyWaitsForNobody: a client that does not say what it wants is cut, and others
// are served meanwhile.
func TestProxyWaitsForNobody(t *testing.T) {
	a, got := startProxy(t, 100*time.Millisecond)
	for _, said := range []string{"", "\x05", "\x05\x01\x00", "CONNECT api.example:443 HTTP/1.1\r\n"} {
		conn := a.toProxy()
		defer conn.Close()
		if _, err := io.WriteString(conn, said); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err == nil || strings.Contains(string(answer), "HTTP") {
			t.Errorf("%q: %q, %v", said, answer, err)
		}
	}
	if asked := got.take(); len(asked) > 0 {
		t.Errorf("the host was asked for %q", asked)
	}
	if answer := a.says("CONNECT api.example:443 HTTP/1.1\r\n\r\nhello"); !strings.HasSuffix(answer, "hello") {
		t.Errorf("%q", answer)
	}
}

// TestProxyIsForTheInside: who may connect to the sandbox's ports does not get its network
// with them.
func TestProxyIsForTheInside(t *testing.T) {
	a, _ := startProxy(t, time.Minute)
	dial := func(address string) channel.Reply {
		at := netip.MustParseAddrPort(address)
		stream, reply := a.call(channel.Call{Kind: channel.CallDial, Port: int(at.Port())})
		defer stream.Close()
		return reply
	}
	for _, own := range []string{a.agent.proxy.address, a.agent.config.DNS} {
		if r := dial(own); r.OK || r.Code != channel.CodeNotFound || !strings.Contains(r.Error, "for programs in the sandbox alone") {
			t.Errorf("%s: %+v", own, r)
		}
	}
	program, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if r := dial(program.Addr().String()); !r.OK { // the control
		t.Errorf("a program's port: %+v", r)
	}
}

// carried is how many connections the agent has in hand.
func (a *agentHere) carried() int {
	f := a.agent.proxy.forwarder
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns)
}

// TestProxyHasRoomForSome: a sandbox's connections are counted, however they come, and one
// too many is ended; when others have gone there is room again.
func TestProxyHasRoomForSome(t *testing.T) {
	a, got := startProxy(t, time.Minute)
	var held []net.Conn
	for range maxForwards {
		held = append(held, a.toProxy())
	}
	// They are accepted in their order, so this one is not before them.
	if answer := a.says("CONNECT api.example:443 HTTP/1.1\r\n\r\nhello"); answer != "" {
		t.Errorf("one too many: %q", answer)
	}
	if asked := got.take(); len(asked) > 0 {
		t.Errorf("the host was asked for %q", asked)
	}
	for _, conn := range held {
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for a.carried() > 0 {
		<-tick.C
	}
	if answer := a.says("CONNECT api.example:443 HTTP/1.1\r\n\r\nhello"); !strings.HasSuffix(answer, "hello") {
		t.Errorf("there is room: %q", answer)
	}
}

// TestProxyNeedsItsPort: a program that was there first is left alone, and the sandbox's
// maker told.
func TestProxyNeedsItsPort(t *testing.T) {
	a, _ := startProxy(t, time.Minute)
	a.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: testConfigure(t)}) // it is off
	program, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", a.agent.proxy.address)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	configure := testConfigure(t)
	configure.Proxy = true
	stream, r := a.call(channel.Call{Kind: channel.CallConfigure, Configure: configure})
	defer stream.Close()
	if r.OK || !strings.Contains(r.Error, "the proxy can't listen in the sandbox") {
		t.Errorf("%+v", r)
	}
}
