// Package discover finds the registries that this machine's own clients are
// set up to use, so that a company's mirror, its credentials, proxy and CA are
// honoured without being told twice, and no source file names a registry.
//
// Vocabulary: an upstream is *configured* (the configuration file names it),
// *discovered* (the host's client was asked), or *learnt from the template*
// (a host without the client: the template's was asked). What was found is
// *kept* in a folder with mode 0600, since it may hold credentials.
//
// One use: Current, or where that says fault.ErrUnavailable, FromTemplate and
// Save. Only Redacted may be printed.
package discover

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// SourceDefault is the Source of an upstream that the client asks by itself.
const SourceDefault = "pip's default"

// Python asks the host's pip which index it uses, and collects the credentials,
// proxy and CA bundle that belong to it. env ("K=V") is the environment that
// pip is asked with. fault.ErrUnavailable if there is no pip to ask.
func Python(ctx context.Context, env []string) (upstream.Config, error) {
	p, err := findPip(ctx, env)
	if err != nil {
		return upstream.Config{}, err
	}
	s, err := p.settings(ctx)
	if err != nil {
		return upstream.Config{}, err
	}
	if s.noIndex {
		return upstream.Config{}, fault.New(fault.ErrUnavailable, "this host's pip is set to use no index at all (no-index); name one under upstreams in the configuration file")
	}
	index, source := s.index, "pip's configuration"
	if index == "" {
		index, source = cmp.Or(value(env, "UV_DEFAULT_INDEX"), value(env, "UV_INDEX_URL")), "uv's environment"
	}
	if index == "" {
		source = SourceDefault
		if index, err = p.compiledIn(ctx); err != nil {
			return upstream.Config{}, err
		}
	}
	if s.extra {
		source += ", without its extra-index-url (one index keeps private names private)"
	}
	return complete(index, s.proxy, s.cert, source, env)
}

// Configured makes an upstream of what the configuration file says: a URL that
// may hold credentials, and a proxy and a file of extra roots that may be
// empty. Credentials and proxy that it leaves out come from netrc and env.
func Configured(ecosystem pkgref.Ecosystem, index, proxy, caFile string, env []string) (upstream.Config, error) {
	c, err := complete(index, proxy, caFile, "the configuration file", env)
	c.Ecosystem = ecosystem
	return c, err
}

// FromTemplate asks a template's pip, by way of run, which runs a command in a
// fresh sandbox and returns what it wrote to stdout. Only the index comes from
// it; credentials, proxy and roots are the host's.
func FromTemplate(ctx context.Context, env []string, run func(ctx context.Context, argv []string) ([]byte, error)) (upstream.Config, error) {
	out, err := run(ctx, []string{"python3", "-I", "-c", askDefault})
	if err != nil {
		return upstream.Config{}, fault.Wrap(fault.ErrUnavailable, err, "the template's pip does not say which index it uses; name one under upstreams in the configuration file")
	}
	if len(out) > maxAnswer {
		return upstream.Config{}, fault.New(fault.ErrUnavailable, "the template's pip says too much where an index was asked for")
	}
	index := strings.TrimSpace(string(out))
	if u, err := url.Parse(index); err != nil || u.Scheme != "https" || u.User != nil {
		return upstream.Config{}, fault.New(fault.ErrUnavailable, "the template's pip answers with no https URL; name an index under upstreams in the configuration file")
	}
	return complete(index, "", "", "the template's pip", env)
}

// complete normalises an index URL and adds what belongs to it.
func complete(index, proxy, certFile, source string, env []string) (upstream.Config, error) {
	u, err := url.Parse(strings.TrimSpace(index))
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" {
		// The URL itself is not shown: it may hold a password.
		return upstream.Config{}, fault.Invalid("the Python index of %s is not an http or https URL", source)
	}
	c := upstream.Config{Ecosystem: pkgref.Python, Source: source}
	if u.User != nil {
		c.Username = u.User.Username()
		c.Password, _ = u.User.Password()
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	u = u.JoinPath("/")
	c.Index = u.String()
	if c.Username == "" {
		c.Username, c.Password = netrcFor(u.Hostname(), env)
	}
	if c.Proxy, err = proxyFor(u, proxy, env); err != nil {
		return upstream.Config{}, err
	}
	c.CAPEM, err = extraRoots(certFile, env)
	return c, err
}

// proxyFor returns the proxy that a client would use for u; a configured one
// goes before the environment's, and an empty answer is a direct connection.
func proxyFor(u *url.URL, configured string, env []string) (string, error) {
	if configured != "" {
		if !strings.Contains(configured, "://") {
			configured = "http://" + configured
		}
		return configured, nil
	}
	either := func(name string) string {
		return cmp.Or(value(env, strings.ToLower(name)), value(env, name))
	}
	all := either("ALL_PROXY")
	found, err := (&httpproxy.Config{
		HTTPProxy: cmp.Or(either("HTTP_PROXY"), all), HTTPSProxy: cmp.Or(either("HTTPS_PROXY"), all), NoProxy: either("NO_PROXY"),
	}).ProxyFunc()(u)
	if err != nil {
		return "", fault.Invalid("the proxy that the environment names for the Python index is not a URL")
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
	if c.Username != "" {
		c.Username = "***"
	}
	if c.Password != "" {
		c.Password = "***"
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
