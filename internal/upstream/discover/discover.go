// Package discover finds the registries that this machine's own clients are
// set up to use, so that a company's mirror, its credentials, proxy and CA are
// honoured without being told twice, and no source file names a registry.
//
// Vocabulary: a *client* is a program that installs packages (pip, npm, go); an
// upstream is *configured* (the configuration file names it), *discovered* (the
// host's client was asked), *learnt from the template* (a host without the
// client: the template's was asked) or *read* (a client's own source says what
// it would use). What was found is *kept* in a folder with mode 0600, since it
// may hold credentials.
//
// One use: Current, and for what that says is missing FromTemplate and Save.
// Only Redacted may be printed.
package discover

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// client is what discovery knows of one ecosystem's client.
type client struct {
	ecosystem pkgref.Ecosystem
	name      string // of the program
	registry  string // what it calls its registry
	// ask asks the host's client; fault.ErrUnavailable if there is none.
	ask func(ctx context.Context, env []string) (upstream.Config, error)
	// question is what a template's client is asked, and answer reads its answer.
	question []string
	answer   func(out []byte) (said, error)
	// variables tells whether the client or its transport looks at a variable
	// (in upper case); files are those that it reads.
	variables func(name string) bool
	files     func(env []string) []string
}

// clients are all that discovery can ask, in the order of its answers.
func clients() []client {
	return []client{pipClient(), npmClient(), goClient()}
}

func clientOf(ecosystem pkgref.Ecosystem) (client, error) {
	for _, c := range clients() {
		if c.ecosystem == ecosystem {
			return c, nil
		}
	}
	return client{}, fault.Invalid("no client of %q can be asked for its registry; name one under upstreams in the configuration file", ecosystem)
}

// Ecosystems are those whose upstreams can be discovered.
func Ecosystems() []pkgref.Ecosystem {
	var all []pkgref.Ecosystem
	for _, c := range clients() {
		all = append(all, c.ecosystem)
	}
	return all
}

// IsDefault tells whether an upstream is the one that its client asks by itself,
// without any configuration: the host's client has none, or a client was asked
// that nobody has configured.
func IsDefault(c upstream.Config) bool {
	client, err := clientOf(c.Ecosystem)
	return err == nil && slices.Contains([]string{client.byDefault(), client.inTemplate(), client.bySource()}, c.Source)
}

// inTemplate is the Source of an upstream that the template's client asks.
func (c client) inTemplate() string { return "the template's " + c.name }

// bySource is the Source of one that a pinned client's own source names.
func (c client) bySource() string { return "the pinned " + c.name }

// byDefault is the Source of an upstream that the client asks by itself.
func (c client) byDefault() string { return c.name + "'s default" }

// byConfiguration is the Source of one that it is set up to ask.
func (c client) byConfiguration() string { return c.name + "'s configuration" }

// Host asks this host's client of an ecosystem. env ("K=V") is the environment
// that it is asked with. fault.ErrUnavailable if there is no such client, or if
// it is set up to use no registry.
func Host(ctx context.Context, ecosystem pkgref.Ecosystem, env []string) (upstream.Config, error) {
	c, err := clientOf(ecosystem)
	if err != nil {
		return upstream.Config{}, err
	}
	return c.ask(ctx, env)
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
	c, err := complete(said{
		ecosystem: n.Ecosystem, index: n.Index, proxy: n.Proxy, source: "the configuration file",
		token: n.Token, log: n.Log, logURL: n.LogURL, bundles: append([]bundle{{"ca_file", n.CAFile}}, sharedBundles(env)...),
	}, env)
	c.Address = n.Address
	return c, err
}

// FromTemplate asks a template's client, by way of run, which runs a command in
// a fresh sandbox and returns what it wrote to stdout. Only the registry comes
// from it; credentials, proxy and roots are the host's.
func FromTemplate(ctx context.Context, ecosystem pkgref.Ecosystem, env []string, run func(ctx context.Context, argv []string) ([]byte, error)) (upstream.Config, error) {
	c, err := clientOf(ecosystem)
	if err != nil {
		return upstream.Config{}, err
	}
	out, err := run(ctx, c.question)
	if err != nil {
		return upstream.Config{}, fault.Wrap(fault.ErrUnavailable, err, "the template's %s does not say which %s it uses; name one under upstreams in the configuration file", c.name, c.registry)
	}
	if len(out) > maxAnswer {
		return upstream.Config{}, fault.New(fault.ErrUnavailable, "the template's %s says too much where a URL was asked for", c.name)
	}
	return c.unconfigured(out, c.answer, c.inTemplate(), env)
}

// unconfigured makes an upstream of what a client without configuration says.
// It must be https and without credentials.
func (c client) unconfigured(text []byte, read func([]byte) (said, error), source string, env []string) (upstream.Config, error) {
	s, err := read(text)
	if err == nil && !plainHTTPS(s.index) {
		err = fault.New(fault.ErrUnavailable, "no https URL")
	}
	if err != nil {
		return upstream.Config{}, fault.Wrap(fault.ErrUnavailable, err, "%s answers with no https URL for its %s; name one under upstreams in the configuration file", source, c.registry)
	}
	s.ecosystem, s.source, s.bundles = c.ecosystem, source, sharedBundles(env)
	return complete(s, env)
}
