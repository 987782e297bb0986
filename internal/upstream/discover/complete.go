package discover

import (
	"cmp"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// said is what a client or a file says of an upstream, before what belongs to
// it (credentials, proxy, roots) is added.
type said struct {
	ecosystem pkgref.Ecosystem
	index     string // URL
	source    string // who said it, and what of it is left out
	proxy     string // URL, or ""
	noProxy   string // as the variable NO_PROXY has it; "": the environment's
	username  string
	password  string
	token     string
	log       string
	logURL    string
	bundles   []bundle // files of extra roots
	roots     []byte   // PEM
}

// complete normalises an index URL and adds what belongs to it.
func complete(s said, env []string) (upstream.Config, error) {
	u, err := url.Parse(strings.TrimSpace(s.index))
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" {
		// The URL itself is not shown: it may hold a password.
		return upstream.Config{}, fault.Invalid("the upstream for %s of %s is not an http or https URL", s.ecosystem, s.source)
	}
	c := upstream.Config{
		Ecosystem: s.ecosystem, Source: s.source, Log: s.log, LogURL: s.logURL,
		Username: s.username, Password: s.password, Token: s.token,
	}
	if u.User != nil {
		c.Username = u.User.Username()
		c.Password, _ = u.User.Password()
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	u = u.JoinPath("/")
	c.Index = u.String()
	if c.Username == "" && c.Token == "" {
		c.Username, c.Password = netrcFor(u.Hostname(), env)
	}
	if c.Proxy, err = proxyFor(u, s, env); err != nil {
		return upstream.Config{}, err
	}
	c.CAPEM, err = extraRoots(s.bundles, s.roots)
	return c, err
}

// plainHTTPS tells whether text is an https URL without credentials.
func plainHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.User == nil && u.Hostname() != ""
}

// proxyFor returns the proxy that a client would use for u; a configured one
// goes before the environment's, and an empty answer is a direct connection.
func proxyFor(u *url.URL, s said, env []string) (string, error) {
	either := func(name string) string {
		return cmp.Or(value(env, strings.ToLower(name)), value(env, name))
	}
	all := either("ALL_PROXY")
	config := httpproxy.Config{
		HTTPProxy: cmp.Or(either("HTTP_PROXY"), all), HTTPSProxy: cmp.Or(either("HTTPS_PROXY"), all), NoProxy: either("NO_PROXY"),
	}
	if s.proxy != "" {
		if !strings.Contains(s.proxy, "://") {
			s.proxy = "http://" + s.proxy
		}
		config = httpproxy.Config{HTTPProxy: s.proxy, HTTPSProxy: s.proxy, NoProxy: s.noProxy}
	}
	found, err := config.ProxyFunc()(u)
	if err != nil {
		return "", fault.Invalid("the proxy that is set up for the upstream for %s is not a URL", s.ecosystem)
	}
	if found == nil {
		return "", nil
	}
	return found.String(), nil
}

// value looks a variable up in an environment; the last one counts.
func value(env []string, name string) string {
	found := ""
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			found = v
		}
	}
	return found
}

// Redacted returns a copy that may be printed: no credentials, no roots.
func Redacted(c upstream.Config) upstream.Config {
	for _, secret := range []*string{&c.Username, &c.Password, &c.Token} {
		if *secret != "" {
			*secret = "***"
		}
	}
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil {
			c.Proxy = "***"
		} else if u.User != nil {
			u.User = url.User("***")
			c.Proxy = u.String()
		}
	}
	c.CAPEM = nil
	return c
}
