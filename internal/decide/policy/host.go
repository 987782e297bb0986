package policy

import (
	"slices"
	"strconv"
	"strings"
)

// The rules of names. One that is allowed has ruleNetworkEntry with its entry behind it.
const (
	ruleNetworkEntry   = "network_allowlist"
	ruleNetworkDefault = "network_default"
)

// maxHostPorts is on how many ports a name can be listed: as many as a sandbox listens on
// for one.
const maxHostPorts = 8

// Host judges whether a canonical name may be connected to on a port; port 0 is a DNS
// question, which a name on any port answers. Addresses are not looked at: who dials does.
func (p *Policy) Host(name string, port int) Decision {
	return p.hostBy(name, port, hostEntry.matchesAny)
}

// HostTCP judges whether anything may be spoken on a connection to a canonical name on a port, so
// that nothing but its addresses tells who is at its other end. Host allows, too, what it allows.
// It holds nothing and lets nothing through that is only observed: a person opens a name to who
// says that he means it.
func (p *Policy) HostTCP(name string, port int) Decision {
	switch d := p.Host(name, port); {
	case d.Effect == Allow && d.Would == "":
		if p.Requests().Judged(name, port) {
			d.Effect, d.Rule = Deny, ruleRequest
			d.Reason = reason("the policy judges each request to %s on port %d, so that nothing but HTTP passes there", plainASCII(name, 253), port)
			return d
		}
	case d.Effect == Hold, d.Would != "":
		d.Effect, d.Would, d.Rule = Deny, "", ruleNetworkDefault
		d.Reason = reason("%s is not on the policy's network_allowlist; other protocols than TLS and HTTP need an entry with tcp: true", plainASCII(name, 253))
		return d
	default:
		return d
	}
	return p.hostBy(name, port, func(entry hostEntry) bool { return entry.tcp })
}

// hostBy judges by those entries that are enough for what is asked.
func (p *Policy) hostBy(name string, port int, enough func(hostEntry) bool) Decision {
	d := p.judgeHost(name, port, enough)
	for _, by := range p.narrowed {
		d = theStricter(d, by.judgeHost(name, port, enough))
	}
	return d
}

// ListsHost reports whether a policy's list has a canonical name letter by letter, and not only
// by a pattern.
func ListsHost(p *Policy, name string) bool {
	return slices.ContainsFunc(p.network, func(entry hostEntry) bool { return !entry.Wildcard && entry.Host == name })
}

// HostPorts are the ports on which a name may be connected to, or asked about, in
// ascending order.
func (p *Policy) HostPorts(name string) []int {
	ports := withAsked(p, name, p.network.portsOf(name))
	for _, by := range p.narrowed {
		both := withAsked(by, name, by.network.portsOf(name))
		ports = slices.DeleteFunc(ports, func(port int) bool { return !slices.Contains(both, port) })
	}
	return ports
}

func (p *Policy) judgeHost(name string, port int, enough func(hostEntry) bool) Decision {
	for _, entry := range p.network.entriesFor(name) {
		if (port == 0 || slices.Contains(entry.portsOf(), port)) && enough(entry) {
			return Decision{
				Effect: Allow, Rule: entry.ruleID(), ResolvedBy: ByNetwork,
				Reason: reason("%s is %s", plainASCII(name, 253), entry.listName()),
			}
		}
	}
	d := Decision{Effect: Deny, Rule: ruleNetworkDefault, ResolvedBy: ByNetwork, Suggest: suggestHost(name, port)}
	switch listed := p.network.portsOf(name); {
	case slices.Contains(listed, port):
		d.Suggest = ""
		d.Reason = reason("the policy's network_allowlist has %s on port %d for TLS and HTTP alone; other protocols need an entry with tcp: true", plainASCII(name, 253), port)
		return d
	case len(listed) > 0:
		d.Reason = reason("the policy's network_allowlist has %s on port %s, and not on %d", plainASCII(name, 253), portsText(listed), port)
	case len(p.network) > 0:
		d.Reason = reason("%s is not on the policy's network_allowlist", plainASCII(name, 253))
	default:
		d.Reason = "a sandbox reaches package registries and nothing else"
	}
	if d = holdDecision(p, d, name, port); mayOpen(p, name, port) {
		return observe(p, d)
	}
	return d
}

func (l hostList) portsOf(name string) []int {
	var ports []int
	for _, entry := range l.entriesFor(name) {
		ports = append(ports, entry.portsOf()...)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// hostEntry is an entry of a list of names, with what it says beside the name.
type hostEntry struct {
	NetworkPattern
	tcp      bool          // protocols pass that do not tell which host is meant
	requests *requestRules // nil: what is said on a connection is not looked at
	line     int
	preset   string // that has it; "": the document's own list
}

// hostList is a policy's list of names.
type hostList []hostEntry

// matchesAny is enough for what says which host is meant.
func (hostEntry) matchesAny() bool { return true }

func (n NetworkPattern) portsOf() []int {
	if n.Port == 0 {
		return []int{80, 443}
	}
	return []int{n.Port}
}

func portsText(ports []int) string {
	var texts []string
	for _, port := range ports {
		texts = append(texts, strconv.Itoa(port))
	}
	return strings.Join(texts, ", ")
}

// suggestHost is the lines that would allow a name; "" for what no list can have.
func suggestHost(name string, port int) string {
	entry, wrong := parseNetworkPattern(name)
	if wrong != "" {
		return ""
	}
	if port != 0 && !slices.Contains(entry.portsOf(), port) {
		entry.Port = port
	}
	return ruleNetworkEntry + ":\n  - " + strconv.Quote(entry.String()) + "\n"
}

// crowded is a name that is listed on more ports than a sandbox could listen on; "" if
// there is none.
func (l hostList) crowded() (host string, ports int) {
	for _, entry := range l {
		name := entry.Host
		if entry.Wildcard {
			name = "a." + name
		}
		if n := len(l.portsOf(name)); n > maxHostPorts {
			return entry.Host, n
		}
	}
	return "", 0
}
