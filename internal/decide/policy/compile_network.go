package policy

import (
	"net/netip"
	"strconv"
	"strings"
)

// maxNetworkNames bounds a list of names.
const maxNetworkNames = 500

// NetworkPattern is a name, or with Wildcard every name below it (not itself),
// on one port; Port 0 is 80 and 443.
type NetworkPattern struct {
	Host     string // lower case, without "*."
	Wildcard bool
	Port     int
}

// String is the pattern as a document writes it.
func (n NetworkPattern) String() string {
	s := n.Host
	if n.Wildcard {
		s = "*." + s
	}
	if n.Port != 0 {
		s += ":" + strconv.Itoa(n.Port)
	}
	return s
}

// parseNetworkPattern says in a few words what is wrong, "" if nothing is.
func parseNetworkPattern(s string) (n NetworkPattern, wrong string) {
	if strings.Contains(s, "/") {
		return n, "is a URL or a range; write a name, like api.example.com or *.example.com:8443"
	}
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return n, "is an address; addresses have no route in a sandbox, so write a name"
	}
	host := s
	if h, port, found := strings.Cut(s, ":"); found {
		p, err := strconv.Atoi(port)
		if err != nil || p < 1 || p > 65535 || strconv.Itoa(p) != port {
			return n, "has no port from 1 to 65535 after its colon"
		}
		host, n.Port = h, p
	}
	n.Host, n.Wildcard = strings.CutPrefix(strings.ToLower(host), "*.")
	switch {
	case strings.Contains(n.Host, "*"):
		return n, "has a * that is not its first label alone"
	case !isHostName(n.Host):
		return n, "is not a host name; international names are written in their xn-- form"
	case n.Wildcard && !strings.Contains(n.Host, "."):
		return n, "is a wildcard over a whole top-level domain"
	case strings.Trim(n.Host[strings.LastIndexByte(n.Host, '.')+1:], "0123456789") == "":
		return n, "is an address; addresses have no route in a sandbox, so write a name"
	}
	return n, ""
}

// isHostName reports whether s is dot-separated labels of lower-case letters,
// digits and inner hyphens.
func isHostName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}

func (c *compiler) networkAllowlist(v value) {
	if !c.claimThing("network_allowlist", v) {
		return
	}
	elements, ok := c.readList(v)
	if !ok {
		return
	}
	if len(elements) > maxNetworkNames {
		c.failAt(v.node, "%s has %d entries, and at most %d are read", v.path, len(elements), maxNetworkNames)
		return
	}
	for _, e := range elements {
		if entry, ok := (hostReader{c}).readEntry(e); ok {
			c.policy.network = append(c.policy.network, entry)
		}
	}
	if len(elements) == 0 {
		c.explainEnforced(v, "an empty list: no name is reachable but the registries'")
		return
	}
	requestReader{c}.oneWay(v)
	if host, n := c.policy.network.crowded(); host != "" {
		c.failAt(v.node, "%s: %s is listed on %d ports, and a name can have %d", v.path, host, n, maxHostPorts)
	}
	c.explainEnforced(v, "the sandbox can connect to these, by TLS that names them or by plain HTTP, where they have public addresses")
}

func (c *compiler) networkDefault(v value) {
	switch s, _ := c.readWord(v, "deny", "allow"); s {
	case "deny":
		c.explainEnforced(v, "no name is reachable that the policy does not list")
	case "allow":
		c.explainOpen(v, "an open network is not offered: only the names of registries and of network_allowlist resolve")
	}
}

// network reads a sandbox configuration's form.
func (c *compiler) network(v value) {
	o := c.object(v, keysOf[networkKeys]()...)
	if o == nil {
		return
	}
	if f, given := o.fields["mode"]; given && c.claimThing("network_default", f) {
		if _, ok := c.readWord(f, "restricted"); ok {
			c.explainEnforced(f, "no name is reachable that the policy does not list")
		}
	}
	if f, given := o.fields["egress_allowlist"]; given {
		c.networkAllowlist(f)
	}
	if f, given := o.fields["ingress"]; given && c.claimThing("ingress", f) {
		c.policy.ingress = true
		if _, ok := c.readWord(f, "deny_all"); ok {
			c.explainEnforced(f, "no port of the sandbox is published")
		}
	}
}
