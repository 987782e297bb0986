package config

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/preset"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/placeholder"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Secret is one that policies can name in credentials.inject. It is fetched before a run's first
// request that is read, and no sandbox ever has it. Where it comes from and how it is put into requests
// only this file says: a policy can name no file, no program and no variable of the daemon's.
// It has exactly one of environment, file, command, vault, keyring and oauth. With none of header,
// format, user and where its placeholder is swapped in headers, also in basic authentication;
// a token by oauth is then set as the bearer's, in Authorization.
type Secret struct {
	// Preset is a service that "cofferdam policy presets" lists with a key, such as anthropic.
	// It says all of the secret but where it comes from: its name (the preset's, if no other is
	// given), its hosts, the header in which its placeholder is swapped, and what that looks like.
	Preset string `yaml:"preset"`
	// Name is what policies call it: letters, digits, - and _.
	Name string `yaml:"name"`
	// Hosts are the only ones that get it, whatever a policy says: a name, or "*." and one for all
	// below it. A client that brings a policy can have it sent to these, so they must be the
	// secret's own service.
	Hosts []string `yaml:"hosts"`
	// Header is the one that is set in each request, whatever the sandbox put there; with
	// where, the only one in which the placeholder is swapped.
	Header string `yaml:"header"`
	// Format is the value of the header that is set, with {secret} in it; "Bearer {secret}"
	// for Authorization, else "{secret}".
	Format string `yaml:"format"`
	// User is that of basic authentication: the header that is set has that for its value,
	// with the secret as the password.
	User string `yaml:"user"`
	// Where are the places in which the sandbox's placeholder is swapped: some of header,
	// basic, query, path and body (a form or JSON, of at most 1 MiB).
	Where []string `yaml:"where"`
	// Placeholder is what the sandbox's looks like: plain, hex, openai, anthropic, google,
	// github, slack-bot, slack-app, aws or e2b; plain.
	Placeholder string `yaml:"placeholder"`
	// Environment is a variable of the daemon's own environment.
	Environment string `yaml:"environment"`
	// File is a path, of a file that others can't read.
	File string `yaml:"file"`
	// Command is a program's absolute path and its arguments, such as a keyring's or a
	// password manager's. It prints the secret as one line, within ten seconds.
	Command []string `yaml:"command"`
	// Vault is where it is on a server of that kind, or on an OpenBao server.
	Vault *Vault `yaml:"vault"`
	// Keyring is where it is in the keyring of the user as whom the daemon runs: the attributes that
	// exactly one item has, such as service and username. It is asked over the session bus and has
	// to be unlocked; other keyrings have a command.
	Keyring map[string]string `yaml:"keyring"`
	// OAuth is the client for which an endpoint gives tokens: the daemon fetches them, and the
	// secret that is put into requests is the token.
	OAuth *OAuth `yaml:"oauth"`
	// AWS has requests signed with the secret (AWS Signature Version 4), which clients have
	// signed with the placeholder as the key's id. It goes to no host.
	AWS *AWS `yaml:"aws"`
	// Keep is how long a run uses what was fetched before it is fetched anew, at most: 5m, or as
	// long as a token by oauth or a lease of the vault says. A token that does not say it needs it.
	Keep Duration `yaml:"keep"`
}

// defaultKeep is how long a fetched secret is used.
const defaultKeep = 5 * time.Minute

// longestKeep is how long a token is used that says when it expires.
const longestKeep = 24 * time.Hour

// DeclaredSecrets are the secrets as the broker takes them. No program is asked for one, and no file read,
// that lies where a sandbox may write, or could; writable nil: nowhere.
func (c Config) DeclaredSecrets(writable func() []hostpath.Tree) ([]secret.Declared, error) {
	var all []secret.Declared
	seen := map[string]bool{}
	for i, s := range c.Secrets {
		s, err := s.ofPreset()
		if err != nil {
			return nil, fmt.Errorf("secrets[%d]%w", i, err)
		}
		d, err := s.declared(writable)
		if err == nil && seen[s.Name] {
			err = fmt.Errorf(".name %q is declared before", s.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("secrets[%d]%w", i, err)
		}
		seen[s.Name] = true
		all = append(all, d)
	}
	return all, nil
}

// ofPreset is a secret with all that its preset says.
func (s Secret) ofPreset() (Secret, error) {
	if s.Preset == "" {
		return s, nil
	}
	shipped, err := preset.Read()
	if err != nil {
		return s, err
	}
	p := shipped.Presets[s.Preset]
	switch {
	case p.Key == nil:
		return s, fmt.Errorf(".preset is %q, which is no preset with a key; such are %s", s.Preset, strings.Join(shipped.WithKeys(), ", "))
	case len(s.Hosts) > 0 || s.Header != "" || s.Format != "" || s.User != "" || len(s.Where) > 0 || s.Placeholder != "":
		return s, fmt.Errorf(".preset %s says hosts, header, format, user, where and placeholder; leave them out, or the preset", s.Preset)
	}
	s.Name = cmp.Or(s.Name, s.Preset)
	s.Hosts, s.Header, s.Where, s.Placeholder = p.HostNames(), p.Key.Header, []string{string(exchange.Header)}, p.Key.Placeholder
	return s, nil
}

var secretName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

var secretHost = regexp.MustCompile(`^(\*\.[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9-]+(\.[a-z0-9-]+)*)$`)

func (s Secret) declared(writable func() []hostpath.Tree) (secret.Declared, error) {
	d := secret.Declared{Name: s.Name, Keep: time.Duration(s.Keep)}
	switch {
	case d.Keep != 0:
	case s.OAuth != nil:
		d.Keep = longestKeep
	default:
		d.Keep = defaultKeep
	}
	if !secretName.MatchString(s.Name) {
		return d, fmt.Errorf(".name is %q; it has letters, digits, - and _", s.Name)
	}
	if len(s.Hosts) == 0 {
		return d, fmt.Errorf(".hosts is missing: only the hosts that are named here can get the secret %s", s.Name)
	}
	for _, h := range s.Hosts {
		h = strings.ToLower(h)
		if !secretHost.MatchString(h) {
			return d, fmt.Errorf(`.hosts has %q; it is a host's name, or "*." and one, without a port`, h)
		}
		d.Hosts = append(d.Hosts, h)
	}
	form, found := placeholder.Find(s.placeholderForm())
	if !found {
		return d, fmt.Errorf(".placeholder is %q, which is no form of one", s.Placeholder)
	}
	d.Form = form
	if s.AWS != nil {
		d.KeyID = s.AWS.AccessKeyID
	}
	var err error
	if d.How, err = s.exchangeManner(); err != nil {
		return d, err
	}
	d.Source, err = s.openSource(writable)
	return d, err
}

// exchangeManner is how the secret is put into requests.
func (s Secret) exchangeManner() (exchange.Manner, error) {
	written := exchange.Manner{Header: s.Header, Format: s.Format, User: s.User}
	for _, p := range s.Where {
		written.Where = append(written.Where, exchange.Place(p))
	}
	switch {
	case s.AWS != nil && s.AWS.AccessKeyID != "" && !sigv4.ID(s.AWS.AccessKeyID):
		return written, fmt.Errorf(".aws.access_key_id is %q, which is none", s.AWS.AccessKeyID)
	case s.AWS != nil:
		written.Sign = exchange.SigV4
	case s.OAuth != nil && written.IsZero():
		written.Header = "Authorization"
	}
	return exchange.NewManner(written)
}

// placeholderForm is the name of the placeholder's.
func (s Secret) placeholderForm() string {
	if s.AWS != nil && s.Placeholder == "" {
		return placeholder.AWS
	}
	return s.Placeholder
}

// openSource opens where the secret comes from.
func (s Secret) openSource(writable func() []hostpath.Tree) (secret.Source, error) {
	origin := Origin{Environment: s.Environment, File: s.File, Command: s.Command, Vault: s.Vault, Keyring: s.Keyring}
	if s.OAuth == nil {
		return origin.openSource("environment, file, command, vault, keyring and oauth", writable)
	}
	if origin.countGiven() > 0 {
		return nil, fmt.Errorf(" has %d of environment, file, command, vault, keyring and oauth; it has one", origin.countGiven()+1)
	}
	source, err := s.OAuth.openSource(s.Keep != 0, writable)
	if err != nil {
		return nil, fmt.Errorf(".oauth%w", err)
	}
	return source, nil
}
