package guest

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Inside, a registry name resolves and is reached over the channel; another
// name is nowhere, and rewriting the resolver's configuration opens no way
// (C-NE-10, C-NE-11).
func TestNamesInside(t *testing.T) {
	var asked atomic.Int64
	world := worldOf(map[string][]int{"api.example": {80, 8443}}, &asked)
	s := configured(t, []string{"index.example", "files.example"}, world)
	tests := []struct{ name, script, want string }{
		{"registry names", "getent ahostsv4 index.example files.example | awk '{print $1}' | sort -u", "127.64.0.1\n127.64.0.2\n"},
		{"another name", "getent hosts api.example", "127.64.0.3      api.example\n"},
		{"its reverse", "getent hosts 127.64.0.3", "127.64.0.3      api.example\n"},
		{"no name", "getent hosts evil.example || echo none", "none\n"},
		{"own host name", "getent ahostsv4 box | head -1 | awk '{print $1}'", "127.0.0.1\n"},
		{"resolv.conf", "echo nameserver 192.0.2.1 > /etc/resolv.conf; rm -f /etc/resolv.conf; cat /etc/resolv.conf | head -1", "nameserver 127.0.0.1\n"},
		{"no other way", "ls /sys/class/net 2>/dev/null | grep -v '^lo$' >/dev/null; cat /proc/net/route | wc -l", "1\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := s.run(channel.Exec{Argv: []string{"sh", "-c", test.script}})
			if got := e.stdout.String(); got != test.want {
				t.Errorf("got %q, want %q; %s", got, test.want, e.stderr.String())
			}
		})
	}
	if asked.Load() == 0 {
		t.Error("the host was never asked")
	}
	// Root inside can rewrite it, and breaks only its own names.
	e := s.run(channel.Exec{User: "root", Argv: []string{"sh", "-c", "echo nameserver 192.0.2.1 > /etc/resolv.conf; getent hosts index.example || echo none"}})
	if got := e.stdout.String(); got != "none\n" {
		t.Errorf("with another resolver: %q", got)
	}
}

// An HTTP client inside talks to the host's end of its connection.
func TestHTTPThroughTheChannel(t *testing.T) {
	var asked atomic.Int64
	a := startBare(t, func(open channel.Open, stream *channel.Conn) channel.Reply {
		if open.Kind == channel.OpenTCP && open.Name == "web.example" && open.Port == 8480 {
			serveOne(stream, "from "+open.Name)
			return channel.Reply{}
		}
		return worldOf(map[string][]int{"web.example": {8480}}, &asked)(open, stream)
	})
	if _, exists, err := a.agent.resolver.lookup(t.Context(), "web.example"); err != nil || !exists {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.64.0.1:8480/", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "from web.example" {
		t.Errorf("%q, %v", body, err)
	}
}

// serveOne accepts the stream and answers one HTTP request on it.
func serveOne(stream *channel.Conn, body string) {
	_ = stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
	buf := make([]byte, 4096)
	for got := ""; !strings.Contains(got, "\r\n\r\n"); {
		n, err := stream.Raw().Read(buf)
		if err != nil {
			return
		}
		got += string(buf[:n])
	}
	_, _ = io.WriteString(stream.Raw(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+body)
	_ = stream.CloseWrite()
}

// The list of what the host says exists is bounded too.
func TestBadPortsAreNotListenedOn(t *testing.T) {
	var asked atomic.Int64
	a := startBare(t, worldOf(map[string][]int{"zero.example": {0}, "many.example": {9001, 9002, 9003, 9004, 9005, 9006, 9007, 9008, 9009}}, &asked))
	for _, name := range []string{"zero.example", "many.example"} {
		if address, exists, err := a.agent.resolver.lookup(t.Context(), name); err == nil || exists {
			t.Errorf("%s is at %v", name, address)
		}
	}
}

// Garbage instead of a call ends its stream, not the agent (C-CH-01).
func TestGarbageCalls(t *testing.T) {
	a := startBare(t, nil)
	for _, garbage := range []string{"\x01\xff\xff\xff\xff", "\x00", "\x01\x00\x00\x00\x02{}\x07", "\x01\x00\x00\x00\x00", "\x03\x00\x00\x00\x00", strings.Repeat("\x01\x00\x00\x01\x00[", 100)} {
		stream, err := a.session.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(stream.Raw(), garbage); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseWrite()
		if _, err := io.Copy(io.Discard, stream.Raw()); err != nil {
			t.Errorf("%q: %v", garbage, err)
		}
	}
	a.mustCall(channel.Call{Kind: channel.CallPing})
}

// The socket for questions knows two lines, and is not to be flooded.
func TestWhySocket(t *testing.T) {
	a := startBare(t, func(channel.Open, *channel.Conn) channel.Reply { return channel.Reply{OK: true, Text: "because\n"} })
	ask := func(line string) string {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "unix", filepath.Join(a.root, "s"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, line); err != nil {
			return err.Error()
		}
		answer, _ := io.ReadAll(conn)
		return string(answer)
	}
	if info, err := os.Stat(filepath.Join(a.root, "s")); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if got := ask("why\n"); got != "because\n" {
		t.Errorf("why: %q", got)
	}
	for _, line := range []string{"approve 1\n", "why --all\n", "\n"} {
		if got := ask(line); !strings.Contains(got, "answers only") {
			t.Errorf("%q: %q", line, got)
		}
	}
	if got := ask(strings.Repeat("x", 1000)); strings.Contains(got, "because") {
		t.Errorf("a long line: %q", got)
	}
	limited := false
	for range 4 * whyBurst {
		limited = limited || strings.Contains(ask("why\n"), "Too many")
	}
	if !limited {
		t.Error("a flood of questions was answered")
	}
}

func TestCommandEnv(t *testing.T) {
	user := channel.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"}
	env, err := commandEnv(user, map[string]string{"PIP_RETRIES": "5", "A": "host", "PATH": "/x"}, &channel.Exec{ID: "i", Env: map[string]string{"A": "command", "SSL_CERT_FILE": "/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	got := "\n" + strings.Join(env, "\n") + "\n"
	for _, want := range []string{"PIP_RETRIES=5", "A=command", "SSL_CERT_FILE=/mine", "PATH=/x:/.cofferdam/bin", "HOME=/home/agent", "COFFERDAM_COMMAND=i", "CARGO_HTTP_CAINFO=/run/cofferdam/tls/bundle.pem", "CODEX_CA_CERTIFICATE=/run/cofferdam/tls/bundle.pem", "IS_SANDBOX=1"} {
		if strings.Count(got, "\n"+want+"\n") != 1 {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	env, err = commandEnv(user, nil, &channel.Exec{ID: "i", Env: map[string]string{"PATH": "/only"}})
	if err != nil || !strings.Contains(strings.Join(env, "\n")+"\n", "\nPATH=/only\n") {
		t.Errorf("a command's own PATH is changed: %q %v", env, err)
	}
}

// TestUsers: by name, or by the one spelling of their number.
func TestUsers(t *testing.T) {
	id := &identity{user: channel.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"}}
	root := channel.User{Name: "root", Home: "/root"}
	for name, want := range map[string]channel.User{
		"": id.user, "agent": id.user, "1000": id.user, "root": root, "0": root,
		"65534": {Name: "65534", UID: 65534, GID: 65534, Home: "/"},
	} {
		if got, err := id.resolveUser(name); err != nil || got != want {
			t.Errorf("%q is %+v (%v)", name, got, err)
		}
	}
	for _, name := range []string{"00", "+0", "-1", "01000", "0x0", "4294967295", "4294967296", "1 ", "nobody", "1.0"} {
		if got, err := id.resolveUser(name); err == nil {
			t.Errorf("%q is %+v", name, got)
		}
	}
}

func TestIsHostname(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "index.example": true, "xn--bcher-kva.example": true, "_x.example": true, strings.Repeat("a", 63): true,
		"": false, ".": false, "a.": false, ".a": false, "a..b": false, "A": false, "a b": false, "-a": false, "a-": false,
		"a\x00b": false, "a/b": false, "ä": false, strings.Repeat("a", 64): false, strings.Repeat("a.", 127) + "a": false,
	} {
		if isHostname(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}
