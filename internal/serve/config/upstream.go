package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/all"
)

// ecosystems are those that upstreams can be configured for.
func ecosystems() []string { return speakers(func(ecosystem.Protocol) bool { return true }) }

// witnessed are those of them whose registries can have a transparency log.
func witnessed() []string {
	return speakers(func(p ecosystem.Protocol) bool {
		_, can := p.(ecosystem.Witness)
		return can
	})
}

func speakers(which func(ecosystem.Protocol) bool) []string {
	var names []string
	for _, p := range all.Protocols() {
		if which(p) {
			names = append(names, string(p.Ecosystem()))
		}
	}
	return names
}

// checkKeys finds what no upstream can be. Its errors go on after the entry's place.
func (u Upstream) checkKeys() error {
	switch {
	case !slices.Contains(ecosystems(), u.Ecosystem):
		return fmt.Errorf(".ecosystem is %q; this version knows %s", u.Ecosystem, strings.Join(ecosystems(), ", "))
	case u.Index == "":
		return fmt.Errorf(".index is missing: the URL of the registry, or %s", Auto)
	case u.Index == Auto && (u.Token+u.CAFile+u.Proxy+u.Address+u.Log+u.LogURL) != "":
		return fmt.Errorf(".index is %s, so all of it comes from this machine's own client; leave the other keys out, or name the URL", Auto)
	case (u.Log != "" || u.LogURL != "") && !slices.Contains(witnessed(), u.Ecosystem):
		return fmt.Errorf(".log is for the checksum database of %s; %s has none", strings.Join(witnessed(), " and "), u.Ecosystem)
	case u.LogURL != "" && u.Log == "":
		return fmt.Errorf(".log is missing: the verifier of the checksum database at log_url")
	}
	return u.checkAddresses()
}

// checkAddresses finds a URL or an address that nobody can be asked at, also where one such as the proxy is used only for
// some hosts. Its errors show none: there may be a password in it.
func (u Upstream) checkAddresses() error {
	_, pinned := netip.ParseAddrPort(u.Address)
	switch {
	case u.Index != Auto && !isWebURL(strings.TrimSpace(u.Index)):
		return fmt.Errorf(".index is no http or https URL of a registry; write it as https://registry.corp.example/, or %s", Auto)
	case u.Proxy != "" && !isProxy(u.Proxy):
		return fmt.Errorf(".proxy is no http or https URL of a proxy; write it as http://proxy.corp.example:3128, with the proxy's port")
	case u.LogURL != "" && !isWebURL(u.LogURL):
		return fmt.Errorf(".log_url is no http or https URL of a checksum database; write it as https://sums.corp.example")
	case u.Address != "" && pinned != nil:
		return fmt.Errorf(".address is no IP address with a port; write it as 192.0.2.1:443")
	}
	return nil
}

// isWebURL tells whether text is an http or https URL with a host, and with a port that there can be if it has one.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return false
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && port > 0
}

// isProxy tells whether text is such a URL, or a host with its port, as the variables of clients have it.
func isProxy(text string) bool {
	if strings.Contains(text, "://") {
		return isWebURL(text)
	}
	u, err := url.Parse("http://" + text)
	return err == nil && u.Port() != "" && isWebURL(u.String())
}

// checkNamespace finds what no namespace can be, as checkKeys does.
func (c Config) checkNamespace(n Namespace) error {
	if !slices.Contains(ecosystems(), n.Ecosystem) {
		return fmt.Errorf(".ecosystem is %q; this version knows %s", n.Ecosystem, strings.Join(ecosystems(), ", "))
	}
	prefix, _ := strings.CutSuffix(n.Pattern, "*")
	if prefix == "" || strings.ContainsAny(prefix, "* \t") {
		return fmt.Errorf(".pattern is %q; it is a name, or the beginning of one followed by *", n.Pattern)
	}
	var known []string
	for _, u := range c.Upstreams {
		if u.Ecosystem != n.Ecosystem {
			continue
		}
		if SameIndex(u.Index, n.Upstream) {
			return nil
		}
		known = append(known, NormalIndex(u.Index))
	}
	if n.Upstream != Auto && !isWebURL(NormalIndex(n.Upstream)) { // nobody could take a password out of it
		return fmt.Errorf(".upstream is no http or https URL; write it as the index of one of the upstreams for %s, or %s", n.Ecosystem, Auto)
	}
	if known == nil {
		return fmt.Errorf(".upstream is %q, and upstreams has none for %s", NormalIndex(n.Upstream), n.Ecosystem)
	}
	return fmt.Errorf(".upstream is %q; it must be the index of one of the upstreams for %s: %s", NormalIndex(n.Upstream), n.Ecosystem, strings.Join(known, ", "))
}

// SameIndex tells whether two texts name one index.
func SameIndex(a, b string) bool { return NormalIndex(a) == NormalIndex(b) }

// NormalIndex is an index's URL in the one spelling that upstreams have:
// without credentials, and with a slash at its end.
func NormalIndex(index string) string {
	u, err := url.Parse(strings.TrimSpace(index))
	if err != nil || u.Host == "" {
		return index
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	return u.JoinPath("/").String()
}
