package foreign

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/policy/conversion"
)

// domain is an entry of srt's lists.
type domain struct {
	at       *node
	host     string // lower case, without "*."; "" and wild: every host
	wild     bool   // every host below it
	port     int    // 0: any
	affected bool   // of one that is denied: it has taken something away
}

func domainOf(n *node) *domain {
	d := &domain{at: n, host: strings.ToLower(n.text)}
	if host, port, found := strings.Cut(d.host, ":"); found && !strings.Contains(port, ":") {
		if p, err := strconv.Atoi(port); err == nil && p > 0 && p < 1<<16 {
			d.host, d.port = host, p
		}
	}
	if d.host == "*" {
		d.host, d.wild = "", true
	} else {
		d.host, d.wild = strings.CutPrefix(d.host, "*.")
	}
	return d
}

// nameOf is the domain without its port.
func (d *domain) nameOf() string {
	if d.wild {
		return "*." + d.host
	}
	return d.host
}

// coversDomain tells whether every host of another is one of this.
func (d *domain) coversDomain(other *domain) bool {
	switch {
	case d.wild && d.host == "":
		return true
	case d.wild:
		return strings.HasSuffix(other.host, "."+d.host) || other.wild && other.host == d.host
	}
	return !other.wild && other.host == d.host
}

// srtNetwork keeps the hosts that may be reached.
func (c *converter) srtNetwork(n *node) {
	var denied []*domain
	for _, e := range c.textsOf(n.getValue("deniedDomains"), "network.deniedDomains") {
		denied = append(denied, domainOf(e))
	}
	wide := 0
	for _, e := range c.textsOf(n.getValue("allowedDomains"), "network.allowedDomains") {
		d := domainOf(e)
		if c.allowHost(d, denied) && d.port == 0 {
			wide++
		}
	}
	for key := range n.members() {
		switch key.text {
		case "allowedDomains":
			if wide > 0 {
				c.noteAt(key, "network.allowedDomains", "a host without a port is reached on 80 and 443; another port is named in the policy, as host:port")
			}
		case "deniedDomains":
			if slices.ContainsFunc(denied, func(d *domain) bool { return !d.affected }) {
				c.noteAt(key, "network.deniedDomains", "what the policy does not list is refused, and needs no entry")
			}
		default:
			c.leaveOut(key, "network."+key.text, "%s", srtNetworkReason(key.text))
		}
	}
}

// allowHost puts a host on the list, without what is denied of it.
func (c *converter) allowHost(d *domain, denied []*domain) bool {
	ports := []int{80, 443}
	if d.port != 0 {
		ports = []int{d.port}
	}
	all := len(ports)
	if d.host == "localhost" {
		c.leaveOut(d.at, d.at.text, "inside it is the sandbox itself, which needs no entry, and the host's is not reachable")
		return false
	}
	for _, no := range denied {
		meets := func(port int) bool { return no.port == 0 || no.port == port }
		switch {
		case !slices.ContainsFunc(ports, meets):
		case no.coversDomain(d):
			no.affected = true
			ports = slices.DeleteFunc(ports, meets)
		case d.coversDomain(no):
			no.affected = true
			c.leaveOut(d.at, d.at.text, "deniedDomains has %s, and an exception can't be said here; name the hosts that are meant", clipText(no.at.text))
			return false
		}
	}
	if len(ports) == 0 {
		c.leaveOut(d.at, d.at.text, "deniedDomains has it")
		return false
	}
	entries := []string{d.nameOf()}
	if d.port != 0 || len(ports) < all {
		entries = nil
		for _, port := range ports {
			entries = append(entries, d.nameOf()+":"+strconv.Itoa(port))
		}
	}
	for _, entry := range entries {
		if why := conversion.Refusal(rules{[]string{entry}}); why != "" {
			c.leaveOut(d.at, d.at.text, "%s", why)
			return false
		}
		if !slices.Contains(c.hosts, entry) {
			c.hosts = append(c.hosts, entry)
		}
	}
	return true
}

// srtNetworkReason is why a key is not kept.
func srtNetworkReason(key string) string {
	switch key {
	case "strictAllowlist":
		return "a list is always strict; network_unlisted: hold in the policy has a person asked"
	case "deniedDomainReasons":
		return "cofferdam why says why something was refused"
	case "deniedResolvedAddresses":
		return "private addresses are refused anyway, and others are not told apart"
	case "allowUnixSockets", "allowAllUnixSockets":
		return "no socket of the host is reachable; those of the sandbox need no entry"
	case "allowLocalBinding":
		return "a sandbox has a loopback interface of its own, on which anything may listen"
	case "allowMachLookup":
		return "it is for another system than Linux"
	case "httpProxyPort", "socksProxyPort", "mitmProxy", "filterRequest", "tlsTerminate":
		return "the gateway is no proxy of yours; rules for requests go into the policy: docs/network.md"
	case "parentProxy":
		return "the gateway's own way out is the daemon's: docs/upstreams.md"
	}
	return "srt does not read it"
}
