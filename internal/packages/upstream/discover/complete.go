package discover

import (
	"cmp"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Said is what a client or a file says of an upstream, before what belongs to
// it (credentials, proxy, roots) is added.
type Said struct {
	Ecosystem pkgref.Ecosystem
	Index     string // URL
	Source    string // who said it, and what of it is left out
	Proxy     string // URL, or ""
	NoProxy   string // as the variable NO_PROXY has it; "": the environment's
	Username  string
	Password  string
	Token     string
	Log       string
	LogURL    string
	Bundles   []Bundle // files of extra roots, beside those that the environment names to all
	Roots     []byte   // PEM
}

// completeConfig normalises an index URL and adds what belongs to it.
func completeConfig(s Said, env []string) (upstream.Config, error) {
	u, err := url.Parse(strings.TrimSpace(s.Index))
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" {
		// The URL itself is not shown: it may hold a password.
		return upstream.Config{}, fault.Invalid("the upstream for %s of %s is not an http or https URL", s.Ecosystem, s.Source)
	}
	c := upstream.Config{
		Ecosystem: s.Ecosystem, Source: s.Source, Log: s.Log, LogURL: s.LogURL,
		Username: s.Username, Password: s.Password, Token: s.Token,
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
	c.CAPEM, err = extraRoots(s.Bundles, s.Roots)
	return c, err
}

// plainHTTPS tells whether text is an https URL without credentials.
func plainHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.User == nil && u.Hostname() != ""
}

// proxyFor returns the proxy that a client would use for u; a configured one
// goes before the environment's, and an empty answer is a direct connection.
func proxyFor(u *url.URL, s Said, env []string) (string, error) {
	either := func(name string) string {
		return cmp.Or(Value(env, strings.ToLower(name)), Value(env, name))
	}
	all := either("ALL_PROXY")
	config := httpproxy.Config{
		HTTPProxy: cmp.Or(either("HTTP_PROXY"), all), HTTPSProxy: cmp.Or(either("HTTPS_PROXY"), all), NoProxy: either("NO_PROXY"),
	}
	if s.Proxy != "" {
		if !strings.Contains(s.Proxy, "://") {
			s.Proxy = "http://" + s.Proxy
		}
		config = httpproxy.Config{HTTPProxy: s.Proxy, HTTPSProxy: s.Proxy, NoProxy: s.NoProxy}
	}
	found, err := config.ProxyFunc()(u)
	if err != nil {
		return "", fault.Invalid("the proxy that is set up for the upstream for %s is not a URL", s.Ecosystem)
	}
	if found == nil {
		return "", nil
	}
	return found.String(), nil
}

// Value looks a variable up in an environment; the last one counts.
func Value(env []string, name string) string {
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

// Unquote undoes the quoting of a Python string literal, as far as URLs and
// paths need it.
func Unquote(s string) string {
	if len(s) < 2 || (s[0] != '\'' && s[0] != '"') || s[len(s)-1] != s[0] {
		return s
	}
	s = s[1 : len(s)-1]
	return strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`, `\n`, "\n").Replace(s)
}
