// Package upstream is the one polite, suspicious HTTP client to registries: it
// dials only configured upstreams and the file hosts learnt from their indexes,
// re-checks each hop of a redirect, limits everything, and believes nothing
// that it has not verified.
//
// What an upstream was shown to let this installation in, a password or a token, is in nothing of what it
// gives back: answers are looked through for it by the reader that looks through those of hosts that get
// a secret. What may be changed has it masked, and all else is refused. What is not found is what that
// reader does not find (see package exchange), what is compressed inside of a file, and a credential of
// fewer than 8 bytes, which is found in what is something else.
//
// An upstream was found by discovery, or configured. Its index may link to file hosts, which are
// learnt. An address class is loopback, link-local, private or public.
package upstream

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Config is one upstream. It is made on the host (package discover, or the
// configuration file), handed to the gateway, and never shown to a sandbox;
// credentials are stripped from everything that is recorded or printed.
type Config struct {
	Ecosystem pkgref.Ecosystem `json:"ecosystem"`
	// Index is the base URL, with a trailing slash and without credentials
	// (for Python the simple index).
	Index    string `json:"index"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// Token is sent as a bearer token where there is no user name.
	Token string `json:"token,omitempty"`
	Proxy string `json:"proxy,omitempty"`  // HTTP proxy URL
	CAPEM []byte `json:"ca_pem,omitempty"` // extra roots
	// Address ("ip:port") is dialled for the index's host instead of what its name
	// resolves to; only the operator's configuration sets it.
	Address string `json:"address,omitempty"`
	// Log is the verifier (name+hash+key) of the transparency log that knows the
	// upstream's digests, and LogURL its base; "" if the upstream has none (or
	// LogURL: the upstream relays it, as Go's proxies do below sumdb/).
	Log    string `json:"log,omitempty"`
	LogURL string `json:"log_url,omitempty"`
	// FileHosts are the learnt hosts ("host" or "host:port"), kept between starts.
	FileHosts []string `json:"file_hosts,omitempty"`
	Source    string   `json:"source,omitempty"` // where it was found, for `doctor`
}

// CheckDialled finds an address or a proxy that no client can dial, as New does.
func (c Config) CheckDialled() error {
	_, address := c.pinned()
	_, proxy := c.proxy()
	return errors.Join(address, proxy)
}

// pinned is Address; the zero value: there is none. Its error does not show it: somebody may have written a URL, with a password.
func (c Config) pinned() (netip.AddrPort, error) {
	if c.Address == "" {
		return netip.AddrPort{}, nil
	}
	at, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		return at, fault.Invalid("the upstream's address is not an IP address and a port")
	}
	return at, nil
}

// proxy is Proxy; nil: there is none. Its error does not show it: it may hold a password.
func (c Config) proxy() (*url.URL, error) {
	if c.Proxy == "" {
		return nil, nil //nolint:nilnil // no proxy is none
	}
	u, err := url.Parse(c.Proxy)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, fault.Invalid("the upstream's proxy is not an http or https URL")
	}
	return u, nil
}

// authorize adds the credentials to a request to the index's own host.
func (c Config) authorize(req *http.Request) {
	switch {
	case c.Username+c.Password != "":
		req.SetBasicAuth(c.Username, c.Password)
	case c.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
}
