package containment

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestContainment is all cases on one stage.
func TestContainment(t *testing.T) {
	s := newStage(t)
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) { g.test(t, s) })
	}
}

// group is cases that are tried together; its name begins with their numbers.
type group struct {
	name string
	test func(*testing.T, *stage)
}

func groups() []group {
	return []group{
		{"C-NE-01 C-NE-19 transport", testTransport},
		{"C-NE-01 a weak machine", testWeakMachine},
		{"C-NE-02 metadata", testMetadata},
		{"C-NE-02 C-NE-05 the gateway as a proxy", testGatewayAsProxy},
		{"C-NE-05 C-NE-11 names", testNames},
		{"C-NE-11 a rewritten resolver", testRewrittenResolver},
		{"C-NE-06 names of a policy", testListedNames},
		{"C-NE-07 C-NE-08 C-NE-09 raw", testRaw},
		{"C-NE-10 names that carry data", testNamesThatCarryData},
		{"C-NE-14 the host's own addresses", testHostAddresses},
		{"C-NE-15 neighbours", testNeighbours},
		{"C-CR-01 C-CR-02 information", testInformation},
		{"C-HO-01 sockets", testSockets},
		{"C-HO-03 devices", testDevices},
		{"C-FS-01 kernel files", testKernelFiles},
		{"C-FS-03 control groups", testControlGroups},
		{"C-FS-04 mounts", testMounts},
		{"C-FS-05 descriptors", testDescriptors},
		{"C-FS-06 what is shown read-only", testReadOnly},
		{"C-KE-04 posture of commands", testCommandPosture},
		{"C-KE-05 posture of the sandbox's host processes", testHostProcesses},
		{"G-SS-05 posture of the gateway", testGatewayPosture},
		{"C-EX-04 arguments", testArguments},
		{"C-RE-05 a flood of output", testFlood},
		{"C-LI-01 C-LI-02 C-LI-03 stubborn processes", testStubborn},
	}
}

// testTransport: the probe is a static program of its own and asks no proxy and
// no library; by address, there is no route, whatever the port. The kernel of
// the sandbox knows no interface but the loopback.
func testTransport(t *testing.T, s *stage) {
	t.Helper()
	var all []attempt
	for _, port := range []int{22, 80, 443, 853, 8080} {
		all = append(all, attempt{name: fmt.Sprintf("TCP %d", port), args: []string{"tcp", fmt.Sprintf("%s:%d", publicIPv4, port), "TOKEN"}})
	}
	for _, port := range []int{53, 123, 443} {
		all = append(all, attempt{name: fmt.Sprintf("UDP %d", port), args: []string{"udp", fmt.Sprintf("%s:%d", publicIPv4, port), "TOKEN"}})
	}
	all = append(
		all,
		attempt{name: "TCP over IPv6", args: []string{"tcp", net.JoinHostPort(publicIPv6, "443"), "TOKEN"}},
		attempt{name: "UDP over IPv6", args: []string{"udp", net.JoinHostPort(publicIPv6, "443"), "TOKEN"}},
		attempt{name: "an IPv4 address in IPv6", args: []string{"tcp", net.JoinHostPort("::ffff:"+publicIPv4, "443"), "TOKEN"}},
		attempt{name: "ICMP", control: outside, args: []string{"icmp", publicIPv4, "TOKEN"}},
		attempt{name: "ICMP over IPv6", control: outside, args: []string{"icmp", publicIPv6, "TOKEN"}},
	)
	b := s.try(t, all)
	links, exit := b.command(t, api.StartCommand{Argv: []string{"cat", "/proc/net/dev"}})
	for line := range strings.Lines(links) {
		name, _, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) != "lo" {
			t.Errorf("there is an interface %s", name)
		}
	}
	if exit.Code != 0 || !strings.Contains(links, "lo:") {
		t.Errorf("the interfaces could not be listed: %+v %s", exit, links)
	}
}

func testMetadata(t *testing.T, s *stage) {
	t.Helper()
	var all []attempt
	for _, address := range []string{
		"169.254.169.254", "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "169.254.43518", "169.16689662", "0xa9.0xfe.0xa9.0xfe",
		"169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192",
	} {
		all = append(all, attempt{name: address, args: []string{"tcp", address + ":80", "TOKEN"}})
	}
	all = append(
		all,
		attempt{name: metadata6, args: []string{"tcp", net.JoinHostPort(metadata6, "80"), "TOKEN"}},
		attempt{name: "::ffff:" + metadata4, args: []string{"tcp", net.JoinHostPort("::ffff:"+metadata4, "80"), "TOKEN"}},
		attempt{name: "a name", control: outside, args: []string{"connect", "metadata.internal", "80", "TOKEN"}},
		attempt{name: "its name server", args: []string{"dns", metadata4 + ":53", "TOKEN.test", "A", "udp"}},
	)
	s.try(t, all)
}

// testGatewayAsProxy: the one thing that a sandbox can talk to fetches nothing
// that it is asked for in another's words. The control is a proxy that does.
func testGatewayAsProxy(t *testing.T, s *stage) {
	t.Helper()
	var all []attempt
	for _, form := range []string{"connect", "absolute", "host", "forwarded", "query", "socks"} {
		for _, to := range []string{metadata4 + ":80", publicIPv4 + ":443", "[" + metadata6 + "]:80", "127.0.0.1:2375"} {
			all = append(all, attempt{
				name: form + " to " + to,
				args: []string{"proxy", "tls:" + registryHost, form, to, "TOKEN"}, weakly: []string{"proxy", "127.0.0.1:8118", form, to, "TOKEN"},
			})
		}
	}
	s.try(t, all)
}

// testNames: what looks like the one allowed name is not it, a resolver of
// one's own choosing is out of reach, and no file of the sandbox changes that.
func testNames(t *testing.T, s *stage) {
	t.Helper()
	all := []attempt{
		{name: "the offered resolver", control: outside, args: []string{"dns", "", "TOKEN.test", "A", "udp"}},
		{name: "the offered resolver over TCP", control: outside, args: []string{"dns", "", "TOKEN.test", "TXT", "tcp"}},
		{name: "a suffix", control: outside, args: []string{"connect", registryHost + ".TOKEN.test", "443", "TOKEN"}},
		{name: "a prefix", control: outside, args: []string{"connect", "TOKEN" + registryHost, "443", "TOKEN"}},
		{name: "a subdomain", control: outside, args: []string{"connect", "TOKEN." + registryHost, "443", "TOKEN"}},
		{name: "a homograph", control: outside, args: []string{"connect", "xn--ndex-TOKEN.example", "443", "TOKEN"}},
		{name: "an at sign", control: outside, args: []string{"dns", "", registryHost + `\@TOKEN.test`, "A", "udp"}},
		{name: "a zero byte", control: outside, args: []string{"dns", "", `TOKEN\000.` + registryHost, "A", "udp"}},
		{name: "a dot at the end", control: outside, args: []string{"connect", registryHost + ".TOKEN.test.", "443", "TOKEN"}},
		{name: "another case", control: outside, args: []string{"connect", "TOKEN." + strings.ToUpper(registryHost), "443", "TOKEN"}},
		{name: "another server over UDP", args: []string{"dns", otherServer + ":53", "TOKEN.test", "A", "udp"}},
		{name: "another server over TCP", args: []string{"dns", otherServer + ":53", "TOKEN.test", "TXT", "tcp"}},
		{name: "DNS over TLS", args: []string{"tcp", otherServer + ":853", "TOKEN"}},
		{
			name: "DNS over HTTPS at the allowed name", control: outside,
			args:   []string{"https", registryHost, "POST", "/dns-query?name=TOKEN.test", "TOKEN"},
			weakly: []string{"dns", "", "TOKEN.test", "A", "udp"},
		},
	}
	b := s.try(t, all)
	names := blocked(b.records(t))
	for _, want := range []string{".test", registryHost + ".cfd", "xn--ndex-"} {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no record of a refused name with %q: %q", want, names)
		}
	}
	// The allowed name in other letters is that name, and leads to the gateway.
	before := len(s.registry.Requests())
	if got := b.probe(t, manner{}, "connect", strings.ToUpper(registryHost), "443", s.newToken()); strings.Contains(got.text, "no such host") {
		t.Errorf("the allowed name in capitals does not resolve: %s", got.text)
	}
	if n := len(s.registry.Requests()); n != before {
		t.Errorf("a request in the clear reached the registry: %v", s.registry.Requests()[before:])
	}
}

// testRewrittenResolver: root inside may point the sandbox's resolver and hosts
// file where it likes; there is no way to go there. The weak sandbox has one.
func testRewrittenResolver(t *testing.T, s *stage) {
	t.Helper()
	all := []attempt{{name: "a rewritten resolver and hosts file", args: []string{"rewrite", otherServer, "rewritten.test", publicIPv4, "TOKEN"}}}
	s.attack(t, s.open(t, nil), all, manners())
	s.goldenPath(t, s.open(t, nil))
	s.controls(t, all)
}

// testRaw: no way below TCP and UDP, and nothing of the neighbours' traffic.
func testRaw(t *testing.T, s *stage) {
	t.Helper()
	all := []attempt{
		{name: "frames", control: outside, args: []string{"packet", "TOKEN"}},
		{name: "a forged router advertisement", control: outside, args: []string{"advertise", "TOKEN"}},
		{name: "mDNS", args: []string{"udp", "224.0.0.251:5353", "TOKEN"}},
		{name: "mDNS over IPv6", control: outside, args: []string{"udp", "[ff02::fb%stage0]:5353", "TOKEN"}},
		{name: "LLMNR", args: []string{"udp", "224.0.0.252:5355", "TOKEN"}},
		{name: "broadcast", control: outside, args: []string{"udp", "255.255.255.255:67", "TOKEN"}},
		{name: "the subnet's broadcast", control: outside, args: []string{"udp", "192.0.2.255:67", "TOKEN"}},
	}
	for name, protocol := range map[string]string{"GRE": "47", "SCTP": "132", "IPIP": "4", "ESP": "50", "UDP-Lite": "136", "ICMP by hand": "1"} {
		all = append(all, attempt{name: name, control: outside, args: []string{"rawip", protocol, publicIPv4, "TOKEN"}})
	}
	b := s.try(t, all)
	for _, m := range manners() {
		if text := s.listened(t, func() string { return b.probe(t, m, "sniff", "300").text }); strings.Contains(text, s.world.token) {
			t.Errorf("ESCAPED as %s: it heard what the host sent to others", m.name)
		}
	}
	if text := s.listened(t, func() string { return s.outside(t, nil, "sniff", "300").text }); !strings.Contains(text, s.world.token) {
		t.Errorf("INCONCLUSIVE: a sniffer outside hears nothing either: %.200s", text)
	}
}

// listened runs a sniffer while the stage talks to the world.
func (s *stage) listened(t *testing.T, sniff func() string) string {
	t.Helper()
	heard := make(chan string, 1)
	go func() { heard <- sniff() }()
	conn, err := net.Dial("udp", worldIPv4+":123")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for {
		if _, err := conn.Write([]byte(s.newToken())); err != nil {
			t.Fatal(err)
		}
		select {
		case text := <-heard:
			return text
		case <-pause():
		}
	}
}

// testNamesThatCarryData: hundreds of random labels are no way to send data,
// whoever asks: not one reaches any name server, and the log has the first of
// them and that there were too many.
func testNamesThatCarryData(t *testing.T, s *stage) {
	t.Helper()
	b := s.try(t, []attempt{
		{name: "200 labels", control: outside, args: []string{"names", "200", "test", "TOKEN"}},
		{name: "50 labels of the registry's zone", control: outside, args: []string{"names", "50", registryHost, "TOKEN"}},
	})
	records := b.records(t)
	if n := len(blocked(records)); n == 0 || n > 60 {
		t.Errorf("%d refused names are on record; the first some are to be, and no flood", n)
	}
	for _, r := range records {
		if r.Kind == audit.KindNetwork && (r.Run != b.run || r.Sandbox != b.id || r.Rule == "") {
			t.Errorf("a record lacks its run, sandbox or rule: %+v", r)
		}
	}
}

// testHostAddresses: the stage's canaries listen on the ports of every service
// that a host may have, and at both ends of the range. The daemon itself listens
// there, too.
func testHostAddresses(t *testing.T, s *stage) {
	t.Helper()
	var all []attempt
	for _, address := range []string{"127.0.0.1", "127.0.0.9", "::1", stageIPv4, stageIPv6, lanIPv4} {
		for _, port := range []string{"22", "80", "2375", "10250"} {
			if address == lanIPv4 && port != "80" && port != "22" {
				continue
			}
			all = append(all, attempt{name: "TCP " + net.JoinHostPort(address, port), args: []string{"tcp", net.JoinHostPort(address, port), "TOKEN"}})
		}
		if address != lanIPv4 {
			all = append(all, attempt{name: "UDP " + address, args: []string{"udp", net.JoinHostPort(address, "5432"), "TOKEN"}})
		}
	}
	all = append(all, attempt{name: "a proxy of the host", args: []string{"proxy", "127.0.0.1:8118", "connect", publicIPv4 + ":80", "TOKEN"}})
	all = append(all, attempt{name: "the daemon's API", args: []string{"proxy", apiAddress, "host", apiAddress, "TOKEN"}})
	for _, form := range []string{"connect", "absolute"} {
		all = append(all, attempt{
			name: "the daemon's API by the gateway, " + form,
			args: []string{"proxy", "tls:" + registryHost, form, apiAddress, "TOKEN"}, weakly: []string{"proxy", apiAddress, form, apiAddress, "TOKEN"},
		})
	}
	b := s.try(t, all)
	mark, requests := s.seen.mark(), len(s.registry.Requests())
	got := b.probe(t, manner{user: "root"}, "scan", "127.0.0.1", "1", "65535")
	for _, e := range s.escapes(t, mark, requests) {
		t.Errorf("ESCAPED: %s", e)
	}
	if got.text != "open 53\n" {
		t.Errorf("on the sandbox's loopback all ports but the resolver's must be closed: %s", got.text)
	}
	mark = s.seen.mark()
	s.weak.open(t).probe(t, "scan", "127.0.0.1", "2300", "2400")
	await(t, "the scan from the weak sandbox to be seen", func() bool { return len(s.seen.since(mark)) > 0 })
}

// testNeighbours: a sandbox listens, another one visits. The neighbour is ours,
// so its output is the oracle.
func testNeighbours(t *testing.T, s *stage) {
	t.Helper()
	neighbour := s.open(t, nil)
	name := "cfd-neighbour-" + randomWord()
	id := neighbour.start(t, api.StartCommand{Argv: []string{"/probe/probe", "listen", "0.0.0.0:7777", name}, Stdin: true})
	attached, err := s.client.Attach(t.Context(), neighbour.id, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := s.open(t, nil)
	visits := [][]string{
		{"tcp", "127.0.0.1:7777", "TOKEN"},
		{"tcp", "127.64.0.1:7777", "TOKEN"},
		{"tcp", "0.0.0.0:7777", "TOKEN"},
		{"tcp", "[::1]:7777", "TOKEN"},
		{"udp", "127.0.0.1:7777", "TOKEN"},
		{"udp", "255.255.255.255:7777", "TOKEN"},
		{"unix", "@" + name, "TOKEN"},
		{"proxy", "tls:" + registryHost, "connect", "127.0.0.1:7777", "TOKEN"},
	}
	var all []attempt
	for _, v := range visits {
		all = append(all, attempt{name: strings.Join(v, " "), args: v})
	}
	s.attack(t, b, all, manners())
	// Its own visits arrive, so the neighbour was listening all the time.
	own := s.newToken()
	for _, v := range visits[:1] {
		neighbour.probe(t, manner{}, with(v, own)...)
	}
	neighbour.probe(t, manner{}, "unix", "@"+name, own)
	seen := 0
	for event, err := range attached.Events() {
		if err != nil {
			t.Fatal(err)
		}
		text := string(event.Stdout)
		seen += strings.Count(text, own+" HTTP")
		if rest := strings.ReplaceAll(text, own, ""); strings.Contains(rest, s.world.token) {
			t.Errorf("ESCAPED: a neighbour was visited: %s", rest)
		}
		if event.Exit != nil {
			t.Fatalf("the neighbour ended: %+v", event.Exit)
		}
		if seen >= 2 {
			break
		}
	}
	s.visitOutside(t, name, visits)
}

// visitOutside serves as the control: a neighbour in the stage's own network is
// visited from the weak sandbox.
func (s *stage) visitOutside(t *testing.T, name string, visits [][]string) {
	t.Helper()
	config := net.ListenConfig{}
	l, err := config.Listen(t.Context(), "tcp", "0.0.0.0:7777")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := config.ListenPacket(t.Context(), "udp", "0.0.0.0:7777")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	u, err := config.Listen(t.Context(), "unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	go s.world.answer("a neighbour", l)
	go s.world.answer("a neighbour", u)
	go s.world.take("a neighbour", p)
	mark := s.seen.mark()
	token := s.newToken()
	s.weak.open(t).probe(t, with(visits[0], token)...)
	s.outside(t, nil, with([]string{"unix", "@" + name, "TOKEN"}, token)...)
	await(t, "the neighbour to be visited twice from the controls", func() bool {
		n := 0
		for _, e := range s.seen.since(mark) {
			if e.oracle == "a neighbour" && strings.Contains(e.text, token) {
				n++
			}
		}
		return n >= 2
	})
}
