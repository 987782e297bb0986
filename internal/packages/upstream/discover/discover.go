// Package discover finds the registries that this machine's own clients are
// set up to use, so that a company's mirror, its credentials, proxy and CA are
// honoured without being told twice, and no source file names a registry.
//
// The installer of a client (internal/packages/installer) says how it is asked. An upstream is configured
// (the configuration file names it), discovered (the host's client was asked), learnt from the
// template (a host without the client: the template's was asked) or read (a client's own source
// says what it would use). The settings that were found are kept in a folder with mode 0600, since
// they may hold credentials.
//
// One use: Clients.Current, and for what that says is missing FromTemplate and Save.
// Only Redacted may be printed.
package discover

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Client is what discovery knows of one ecosystem's client, a program that installs packages.
type Client struct {
	Ecosystem pkgref.Ecosystem
	Name      string // of the program
	Registry  string // what it calls its registry
	// Programs are the names of those that Ask may run, and Places where it looks for them after PATH.
	Programs, Places []string
	// Ask asks the host's client; fault.ErrUnavailable if there is none, or if it is set up
	// to use no registry.
	Ask func(ctx context.Context, env []string) (Said, error)
	// Question is what a template's client is asked, and Answer reads its answer.
	Question []string
	Answer   func(out []byte) (Said, error)
	// Definitions reads the default registry from the client's own source; nil: it is not
	// told there.
	Definitions func(source []byte) (Said, error)
	// Source is where that source is found in a template's tools.
	Source ToolFile
	// Variables tells whether the client or its transport looks at a variable
	// (in upper case); Files are those that it reads.
	Variables func(name string) bool
	Files     func(env []string) []string
}

// ToolFile is a file of one of a template's tools, by its path in what the tool came in.
type ToolFile struct{ Tool, Path string }

// Clients are all that discovery can ask, one for each ecosystem, in the order of its
// answers.
type Clients []Client

// Of is an ecosystem's client; fault.ErrInvalid if none can be asked.
func (all Clients) Of(ecosystem pkgref.Ecosystem) (Client, error) {
	for _, c := range all {
		if c.Ecosystem == ecosystem {
			return c, nil
		}
	}
	return Client{}, fault.Invalid("no client of %q can be asked for its registry; name one under upstreams in the configuration file", ecosystem)
}

// Ecosystems are those whose upstreams can be discovered.
func (all Clients) Ecosystems() []pkgref.Ecosystem {
	var ecosystems []pkgref.Ecosystem
	for _, c := range all {
		ecosystems = append(ecosystems, c.Ecosystem)
	}
	return ecosystems
}

// IsDefault tells whether an upstream is the one that its client asks by itself,
// without any configuration: the host's client has none, or a client was asked
// that nobody has configured.
func (all Clients) IsDefault(c upstream.Config) bool {
	client, err := all.Of(c.Ecosystem)
	return err == nil && slices.Contains([]string{client.ByDefault(), client.inTemplate(), client.bySource()}, c.Source)
}

// inTemplate is the Source of an upstream that the template's client asks.
func (c Client) inTemplate() string { return "the template's " + c.Name }

// bySource is the Source of one that a pinned client's own source names.
func (c Client) bySource() string { return "the pinned " + c.Name }

// ByDefault is the Source of an upstream that the client asks by itself.
func (c Client) ByDefault() string { return c.Name + "'s default" }

// ByConfiguration is the Source of one that it is set up to ask.
func (c Client) ByConfiguration() string { return c.Name + "'s configuration" }

// Host asks this host's client of an ecosystem. env ("K=V") is the environment
// that it is asked with. fault.ErrUnavailable if there is no such client, or if
// it is set up to use no registry.
func (all Clients) Host(ctx context.Context, ecosystem pkgref.Ecosystem, env []string) (upstream.Config, error) {
	c, err := all.Of(ecosystem)
	if err != nil {
		return upstream.Config{}, err
	}
	return c.askHost(ctx, env)
}

// askHost asks the host's client, and adds what belongs to its registry.
func (c Client) askHost(ctx context.Context, env []string) (upstream.Config, error) {
	s, err := c.Ask(ctx, env)
	if err != nil {
		return upstream.Config{}, err
	}
	s.Ecosystem, s.Bundles = c.Ecosystem, append(s.Bundles, sharedBundles(env)...)
	return completeConfig(s, env)
}

// Named is an upstream as the configuration file names it.
type Named struct {
	Ecosystem pkgref.Ecosystem
	Index     string // a URL that may hold credentials
	Token     string // or a bearer token
	Proxy     string // or ""
	CAFile    string // extra roots, or ""
	Address   string // see upstream.Config
	Log       string // "name+hash+key", or ""
	LogURL    string
}

// Configured makes an upstream of what the configuration file says. Credentials
// and proxy that it leaves out come from netrc and env.
func Configured(n Named, env []string) (upstream.Config, error) {
	c, err := completeConfig(Said{
		Ecosystem: n.Ecosystem, Index: n.Index, Proxy: n.Proxy, Source: "the configuration file",
		Token: n.Token, Log: n.Log, LogURL: n.LogURL, Bundles: append([]Bundle{{"ca_file", n.CAFile}}, sharedBundles(env)...),
	}, env)
	c.Address = n.Address
	return c, err
}

// FromTemplate asks a template's client, by way of run, which runs a command in
// a fresh sandbox and returns what it wrote to stdout. Only the registry comes
// from it; credentials, proxy and roots are the host's.
func (all Clients) FromTemplate(ctx context.Context, ecosystem pkgref.Ecosystem, env []string, run func(ctx context.Context, argv []string) ([]byte, error)) (upstream.Config, error) {
	c, err := all.Of(ecosystem)
	if err != nil {
		return upstream.Config{}, err
	}
	out, err := run(ctx, c.Question)
	if err != nil {
		return upstream.Config{}, fault.Wrap(fault.ErrUnavailable, err, "the template's %s does not say which %s it uses; name one under upstreams in the configuration file", c.Name, c.Registry)
	}
	if len(out) > MaxAnswer {
		return upstream.Config{}, fault.New(fault.ErrUnavailable, "the template's %s says too much where a URL was asked for", c.Name)
	}
	return c.unconfigured(out, c.Answer, c.inTemplate(), env)
}

// FromSource reads a client's default registry from its own source. Nothing is run.
// fault.ErrInvalid: it is not told there.
func (all Clients) FromSource(ecosystem pkgref.Ecosystem, source []byte, env []string) (upstream.Config, error) {
	c, err := all.Of(ecosystem)
	if err == nil && c.Definitions == nil {
		err = fault.Invalid("%s does not tell its %s in its source", c.Name, c.Registry)
	}
	if err != nil {
		return upstream.Config{}, err
	}
	return c.unconfigured(source, c.Definitions, c.bySource(), env)
}

// unconfigured makes an upstream of what a client without configuration says.
// It must be https and without credentials.
func (c Client) unconfigured(text []byte, read func([]byte) (Said, error), source string, env []string) (upstream.Config, error) {
	s, err := read(text)
	if err == nil && !plainHTTPS(s.Index) {
		err = fault.New(fault.ErrUnavailable, "no https URL")
	}
	if err != nil {
		return upstream.Config{}, fault.Wrap(fault.ErrUnavailable, err, "%s answers with no https URL for its %s; name one under upstreams in the configuration file", source, c.Registry)
	}
	s.Ecosystem, s.Source, s.Bundles = c.Ecosystem, source, sharedBundles(env)
	return completeConfig(s, env)
}
