package containment

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// insideProxy is the proxy of sandboxes whose law has one.
const insideProxy = "127.0.0.1:3128"

// testListedNames: a name that the law has is reached, and is no way to anything else; under a law
// without names there is not even that, and under one that judges requests less. An attempt that
// comes to the host is refused on record. Sandboxes that were made anew, claimed from the pool and restored
// are alike: with COFFERDAM_LONG all of them are tried, else the first that has the most to try.
func testListedNames(t *testing.T, s *stage) {
	t.Helper()
	kinds := map[string]func(*testing.T, law) *sandbox{"fresh": func(t *testing.T, l law) *sandbox { t.Helper(); return s.open(t, l.apply) }}
	laws := []law{listing()}
	if os.Getenv("COFFERDAM_LONG") != "" {
		kinds["restored"] = s.restoredUnder
		if !shared() && !byMachine() {
			kinds["pooled"] = s.claimedUnder
		}
		laws = append(laws, denying(), ending())
	}
	attempts := pastAListedName(s, s.channelOutside(t))
	controls := attempts
	for _, law := range laws {
		tried := append(s.underAlone(law), attempts...)
		controls = append(controls, s.underAlone(law)...)
		for kind, made := range kinds {
			t.Run(kind+" "+law.name, func(t *testing.T) {
				b := made(t, law)
				if law != denying() {
					s.visit(t, b)
				}
				for _, work := range s.attack(t, b, tried, manners()[:2]) {
					work.onRecord(t, b.records(t), tried, law)
				}
				s.goldenPath(t, b)
			})
		}
	}
	t.Run("controls", func(t *testing.T) { s.controls(t, controls) })
}

// underAlone is what one law alone refuses, and another allows.
func (s *stage) underAlone(l law) []attempt {
	at := []string{"hello", s.house.secure.Listener.Addr().String(), listedHost, "TOKEN", "", listedHost}
	said := func(host string) []string {
		return []string{"hello", listedHost + ":443", listedHost, "TOKEN", "", host}
	}
	switch l {
	case denying():
		return []attempt{{name: "the listed name itself", control: outside, args: said(listedHost), weakly: at, denied: map[string]string{l.name: notListed}}}
	case ending():
		return []attempt{
			{name: "a path that no rule has", control: outside, args: said(listedHost), weakly: at, denied: map[string]string{l.name: "network.request " + listedHost + ":443"}},
			{name: "another authority inside of TLS", control: outside, args: said("TOKEN.example"), weakly: at, denied: map[string]string{l.name: "network.http " + listedHost + ":443"}},
		}
	}
	return nil
}

// onRecord: every refusal of the host's is in the log, and nothing that should not have
// come to it. Refusals by one rule at one name and port are one record, with the words of
// the first.
func (b batch) onRecord(t *testing.T, records []audit.Record, attempts []attempt, under law) {
	t.Helper()
	for token, name := range b.tokens {
		var about attempt
		for _, a := range attempts {
			if a.name == name {
				about = a
			}
		}
		rule, words, expected := strings.Cut(strings.ReplaceAll(about.denied[under.name], "TOKEN", token), " ")
		found, mentioned := false, ""
		for _, r := range records {
			text := r.Detail["name"] + ":" + r.Detail["port"] + " " + r.Reason
			refused := r.Outcome == audit.Blocked || r.Outcome == audit.Failed
			found = found || expected && refused && r.Rule == rule && strings.Contains(text, words)
			if strings.Contains(text, token) {
				mentioned = string(r.Outcome) + " " + r.Rule + " " + text
			}
		}
		switch {
		case expected && !found:
			t.Errorf("%s: no record of a refusal by %s with %q; of it there is %q", name, rule, words, mentioned)
		case !expected && mentioned != "":
			t.Errorf("ESCAPED: %s came to the host: %s", name, mentioned)
		}
	}
}

// channelOutside is a process with a channel of its own, which the control talks to.
func (s *stage) channelOutside(t *testing.T) (pid string) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "near"), os.NewFile(uintptr(pair[1]), "far")
	defer near.Close()
	defer far.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(probeDir(), "probe"), "hold")
	cmd.Stdin, cmd.Stdout = far, far
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		said := make([]byte, 4096)
		for {
			n, err := conn.Read(said)
			if err != nil {
				return
			}
			s.seen.add("the channel", "it was said %q", said[:n])
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close() // its input ends, and so it does
		<-heard
		_ = cmd.Wait() // it may have been ended
	})
	return strconv.Itoa(cmd.Process.Pid)
}

// pastAListedName are ways to somewhere else, each with what the log has of it.
func pastAListedName(s *stage, channel string) []attempt {
	all := append(byOtherNames(), byTheNamesPorts()...)
	all = append(all, byTheProxy()...)
	return append(
		all,
		attempt{name: "the resolver, by no question", args: []string{"udp", "127.0.0.1:53", "TOKEN"}, weakly: []string{"udp", "127.0.0.1:5432", "TOKEN"}},
		attempt{name: "the agent's socket", control: outside, args: []string{"forge", "/run/cofferdam/agent.sock", "TOKEN"}, weakly: []string{"forge", s.sockets[0], "TOKEN"}},
		attempt{name: "the channel", control: outside, args: []string{"channel", "1", "TOKEN"}, weakly: []string{"channel", channel, "TOKEN"}},
	)
}

// under says what the log has under each law, of those with the name and without; "" for
// nothing.
func under(listed, denied string) map[string]string {
	all := map[string]string{}
	for name, record := range map[string]string{listing().name: listed, ending().name: listed, denying().name: denied} {
		if record != "" {
			all[name] = record
		}
	}
	return all
}

const notListed = "network_default " + listedHost

func byOtherNames() []attempt {
	var all []attempt
	for name, host := range map[string]string{
		"a name that is not listed": "TOKEN.example", "a name below the listed one": "TOKEN." + listedHost, "a name that begins with it": listedHost + ".TOKEN.test",
		"a name that ends in it": "TOKEN-" + listedHost,
	} {
		record := "network_default " + host
		all = append(all, attempt{name: name, control: outside, args: []string{"connect", host, "443", "TOKEN"}, denied: under(record, record)})
	}
	record := "network_default TOKEN." + listedHost
	return append(
		all,
		attempt{name: "another type over TCP", control: outside, args: []string{"dns", "", "TOKEN." + listedHost, "TXT", "tcp"}, denied: under(record, record)},
		attempt{name: "a zero byte", control: outside, args: []string{"dns", "", listedHost + `\000.TOKEN.test`, "A", "udp"}},
		attempt{name: "a dot in a label", control: outside, args: []string{"dns", "", `listed\.example.TOKEN.test`, "A", "udp"}},
		attempt{name: "a hand-made packet", control: outside, args: []string{"rawip", "6", publicIPv4, "TOKEN"}},
		attempt{
			name: "another server name at a registry", control: outside, args: []string{"hello", registryHost + ":443", "TOKEN.example", "TOKEN", "", "TOKEN.example"},
			denied: under("network.tls TOKEN.example", "network.tls TOKEN.example"),
		},
		attempt{name: "a frame", control: outside, args: []string{"packet", "TOKEN"}},
	)
}

// byTheNamesPorts talk to the addresses that the agent gives the name.
func byTheNamesPorts() []attempt {
	const other = "network.http a request is to another authority than " + listedHost
	return []attempt{
		{name: "another server name", control: outside, args: []string{"hello", listedHost + ":443", "TOKEN.example", "TOKEN", "", "TOKEN.example"}, denied: under("network.tls the ClientHello names", notListed)},
		{name: "another authority", control: outside, args: []string{"proxy", listedHost + ":80", "host", "TOKEN.example", "TOKEN"}, denied: under(other, notListed)},
		{name: "another authority behind it", control: outside, args: []string{"smuggle", listedHost + ":80", listedHost, "TOKEN", "next"}, denied: under(other, notListed)},
		{name: "another authority in its body", control: outside, args: []string{"smuggle", listedHost + ":80", listedHost, "TOKEN", "body"}, denied: under(other, notListed)},
		{
			name: "the name's port as a proxy", args: []string{"proxy", listedHost + ":443", "connect", "TOKEN.example:443", "TOKEN"}, weakly: []string{"proxy", "127.0.0.1:8118", "connect", "TOKEN.example:443", "TOKEN"},
			control: outside, denied: under("network.http "+listedHost+":443", notListed),
		},
		{name: "another port", control: outside, args: []string{"connect", listedHost, "22", "TOKEN"}, denied: under("", notListed)},
		{name: "UDP", control: outside, args: []string{"udp", listedHost + ":443", "TOKEN"}, denied: under("", notListed)},
	}
}

// byTheProxy have the proxy inside ask for it. Without one, none comes to the host.
func byTheProxy() []attempt {
	var all []attempt
	for _, to := range []struct{ form, target, record string }{
		{"connect", "TOKEN.example:443", "network_default TOKEN.example"},
		{"socks", "TOKEN.example:443", "network_default TOKEN.example"},
		{"absolute", "TOKEN.example:80", "network_default TOKEN.example"},
		{"connect", publicIPv4 + ":443", "network_default " + publicIPv4},
		{"socks", publicIPv4 + ":443", "network_default " + publicIPv4},
		{"absolute", metadata4 + ":80", "network_default " + metadata4},
		{"connect", net.JoinHostPort(metadata6, "80"), "canonical a name asked for"},
		{"connect", "127.0.0.1:2375", "network_default 127.0.0.1"},
		{"absolute", stageIPv4 + ":22", "network_default " + stageIPv4},
		{"connect", apiAddress, "network_default 127.0.0.1"},
		{"connect", listedHost + ":22", notListed},
	} {
		a := attempt{
			name: "the proxy: " + to.form + " to " + to.target, control: outside, denied: under(to.record, ""),
			args: []string{"proxy", insideProxy, to.form, to.target, "TOKEN"}, weakly: []string{"proxy", "127.0.0.1:8118", to.form, to.target, "TOKEN"},
		}
		all = append(all, a)
	}
	for _, via := range []string{"connect", "socks"} {
		all = append(
			all,
			attempt{
				name: "another server name by " + via, control: outside, denied: under("network.tls the ClientHello names", ""),
				args: []string{"hello", listedHost + ":443", "TOKEN.example", "TOKEN", via, "TOKEN.example"}, weakly: []string{"hello", listedHost + ":443", "TOKEN.example", "TOKEN", "", "TOKEN.example"},
			},
			attempt{
				name: "another server name at a registry by " + via, control: outside, denied: under("network.tls TOKEN.example", ""),
				args: []string{"hello", registryHost + ":443", "TOKEN.example", "TOKEN", via, "TOKEN.example"}, weakly: []string{"hello", registryHost + ":443", "TOKEN.example", "TOKEN", "", "TOKEN.example"},
			},
		)
	}
	for _, form := range []string{"next", "body"} {
		all = append(all, attempt{
			name: "a second request by the proxy, " + form, control: outside,
			args: []string{"smuggle", insideProxy, listedHost, "TOKEN", form}, weakly: []string{"smuggle", listedHost + ":80", listedHost, "TOKEN", form},
		})
	}
	return all
}
