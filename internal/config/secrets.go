package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/secret"
	"github.com/cofferdam-dev/cofferdam/internal/secret/environ"
	"github.com/cofferdam-dev/cofferdam/internal/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/secret/file"
	"github.com/cofferdam-dev/cofferdam/internal/secret/placeholder"
	"github.com/cofferdam-dev/cofferdam/internal/secret/program"
	"github.com/cofferdam-dev/cofferdam/internal/secret/vault"
)

// Secret is one that policies can name in credentials.inject. It is fetched when a run first
// uses it, and no sandbox ever has it. Where it comes from and how it is put into requests
// only this file says: a policy can name no file, no program and no variable of the daemon's.
// It has exactly one of environment, file, command and vault. With none of header, format,
// user and where its placeholder is swapped in headers, also in basic authentication.
type Secret struct {
	// Name is what policies call it: letters, digits, - and _.
	Name string `yaml:"name"`
	// Hosts are the only ones that get it, whatever a policy says: a name, or "*." and one
	// for all below it. Whoever brings a policy can have it sent to these, so they must be the
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
	// Placeholder is what the sandbox's looks like: plain, hex, openai, anthropic, github,
	// slack-bot, slack-app or e2b; plain.
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
	// Keep is how long a run uses what was fetched before it is fetched anew; 5m.
	Keep Duration `yaml:"keep"`
}

// Vault is a field of a secret in the key-value engine, version 2, of a Vault or OpenBao server.
type Vault struct {
	// Address is the server's URL; without TLS only on this machine, as http://127.0.0.1:8200.
	Address string `yaml:"address"`
	// Namespace is one of the server's, if it has them.
	Namespace string `yaml:"namespace"`
	// Mount is where the engine is mounted; secret.
	Mount string `yaml:"mount"`
	// Path is the secret's, below the mount.
	Path string `yaml:"path"`
	// Field is which of the secret's fields it is.
	Field string `yaml:"field"`
	// TokenFile is a path, of a file with the token; others can't read it.
	TokenFile string `yaml:"token_file"`
	// CAFile is a path, of a file with certificates in PEM that the server's may come from, beside the system's.
	CAFile string `yaml:"ca_file"`
}

// defaultKeep is how long a fetched secret is used.
const defaultKeep = 5 * time.Minute

// DeclaredSecrets are the secrets as the broker takes them.
func (c Config) DeclaredSecrets() ([]secret.Declared, error) {
	var all []secret.Declared
	seen := map[string]bool{}
	for i, s := range c.Secrets {
		d, err := s.declared()
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

func (s Secret) declared() (secret.Declared, error) {
	d := secret.Declared{Name: s.Name, Keep: time.Duration(s.Keep)}
	if d.Keep == 0 {
		d.Keep = defaultKeep
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`).MatchString(s.Name) {
		return d, fmt.Errorf(".name is %q; it has letters, digits, - and _", s.Name)
	}
	if len(s.Hosts) == 0 {
		return d, fmt.Errorf(".hosts is missing: only the hosts that are named here can get the secret %s", s.Name)
	}
	for _, h := range s.Hosts {
		h = strings.ToLower(h)
		if !regexp.MustCompile(`^(\*\.[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9-]+(\.[a-z0-9-]+)*)$`).MatchString(h) {
			return d, fmt.Errorf(`.hosts has %q; it is a host's name, or "*." and one, without a port`, h)
		}
		d.Hosts = append(d.Hosts, h)
	}
	form, found := placeholder.Find(s.Placeholder)
	if !found {
		return d, fmt.Errorf(".placeholder is %q, which is no form of one", s.Placeholder)
	}
	d.Form = form
	written := exchange.Manner{Header: s.Header, Format: s.Format, User: s.User}
	for _, p := range s.Where {
		written.Where = append(written.Where, exchange.Place(p))
	}
	var err error
	if d.How, err = exchange.NewManner(written); err != nil {
		return d, err
	}
	d.Source, err = s.source()
	return d, err
}

func (s Secret) source() (secret.Source, error) {
	var sources []secret.Source
	if s.Environment != "" {
		sources = append(sources, environ.Variable(s.Environment))
	}
	if s.File != "" {
		if !filepath.IsAbs(s.File) {
			return nil, fmt.Errorf(".file is %q; it is an absolute path", s.File)
		}
		sources = append(sources, file.Path(s.File))
	}
	if len(s.Command) > 0 {
		if !filepath.IsAbs(s.Command[0]) {
			return nil, fmt.Errorf(".command begins with %q; it is a program's absolute path", s.Command[0])
		}
		sources = append(sources, program.Command(s.Command))
	}
	if s.Vault != nil {
		v, err := s.Vault.source()
		if err != nil {
			return nil, fmt.Errorf(".vault%w", err)
		}
		sources = append(sources, v)
	}
	if len(sources) != 1 {
		return nil, fmt.Errorf(" has %d of environment, file, command and vault; it has one", len(sources))
	}
	return sources[0], nil
}

func (v Vault) source() (secret.Source, error) {
	if !filepath.IsAbs(v.TokenFile) {
		return nil, fmt.Errorf(".token_file is %q; it is an absolute path", v.TokenFile)
	}
	cfg := vault.Config{
		Address: v.Address, Namespace: v.Namespace, Mount: v.Mount, Path: v.Path, Field: v.Field, Token: file.Path(v.TokenFile),
	}
	if cfg.Mount == "" {
		cfg.Mount = "secret"
	}
	if v.CAFile != "" {
		if !filepath.IsAbs(v.CAFile) {
			return nil, fmt.Errorf(".ca_file is %q; it is an absolute path", v.CAFile)
		}
		cfg.Roots = func() ([]byte, error) { return os.ReadFile(v.CAFile) }
	}
	return vault.New(cfg)
}
