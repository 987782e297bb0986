package config

import (
	"fmt"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/environ"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/file"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/keyring"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/oauth"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/program"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/vault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// Origin is where the client's secret comes from: exactly one of environment, file, command,
// vault and keyring.
type Origin struct {
	// Environment is a variable of the daemon's own environment.
	Environment string `yaml:"environment"`
	// File is a path, of a file that others can't read.
	File string `yaml:"file"`
	// Command is a program's absolute path and its arguments. It prints the secret as one line.
	Command []string `yaml:"command"`
	// Vault is where it is on a server of that kind.
	Vault *Vault `yaml:"vault"`
	// Keyring has the attributes of an item in the keyring of the daemon's user.
	Keyring map[string]string `yaml:"keyring"`
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

// AWS is whose key the secret is.
type AWS struct {
	// AccessKeyID is the key's id, and the secret is then the secret access key alone. Without
	// it the secret is a line of JSON with AccessKeyId, SecretAccessKey and perhaps SessionToken,
	// as programs print it that AWS's own ask for keys (credential_process).
	AccessKeyID string `yaml:"access_key_id"`
}

// OAuth is a client of an OAuth 2.0 token endpoint that gets tokens for itself (the grant is
// client_credentials). They are fetched at a run's first use, used until shortly before they
// expire, and fetched anew; no sandbox sees the client's secret, and none the token.
type OAuth struct {
	// TokenURL is the endpoint; without TLS only on this machine, as http://127.0.0.1:8200.
	TokenURL string `yaml:"token_url"`
	// ClientID is as what the endpoint knows the client.
	ClientID string `yaml:"client_id"`
	// ClientSecret is where the client's secret comes from.
	ClientSecret Origin `yaml:"client_secret"`
	// Scopes are what the token is asked for.
	Scopes []string `yaml:"scopes"`
	// Parameters are further ones that the endpoint wants, such as audience.
	Parameters map[string]string `yaml:"parameters"`
	// InBody has id and secret sent in the form; else they are sent by basic authentication.
	InBody bool `yaml:"in_body"`
	// CAFile is a path, of a file with certificates in PEM that the endpoint's may come from, beside the system's.
	CAFile string `yaml:"ca_file"`
}

// countGiven counts the places that are given.
func (o Origin) countGiven() int {
	n := 0
	for _, is := range []bool{o.Environment != "", o.File != "", len(o.Command) > 0, o.Vault != nil, len(o.Keyring) > 0} {
		if is {
			n++
		}
	}
	return n
}

// openSource opens the one place that is given. words are those that there can be. Nothing is taken
// from where a sandbox may write; writable nil: nowhere.
func (o Origin) openSource(words string, writable func() []hostpath.Tree) (secret.Source, error) {
	switch {
	case o.countGiven() != 1:
		return nil, fmt.Errorf(" has %d of %s; it has one", o.countGiven(), words)
	case o.Environment != "":
		return environ.Variable(o.Environment), nil
	case o.File != "":
		if !filepath.IsAbs(o.File) {
			return nil, fmt.Errorf(".file is %q; it is an absolute path", o.File)
		}
		return file.Outside(o.File, writable), nil
	case len(o.Keyring) > 0:
		return keyring.Item{Attributes: o.Keyring}, nil
	case o.Vault != nil:
		v, err := o.Vault.openSource(writable)
		if err != nil {
			return nil, fmt.Errorf(".vault%w", err)
		}
		return v, nil
	}
	if !filepath.IsAbs(o.Command[0]) {
		return nil, fmt.Errorf(".command begins with %q; it is a program's absolute path", o.Command[0])
	}
	command := &program.Command{Argv: o.Command}
	command.Guard(writable)
	return command, nil
}

func (v Vault) openSource(writable func() []hostpath.Tree) (secret.Source, error) {
	if !filepath.IsAbs(v.TokenFile) {
		return nil, fmt.Errorf(".token_file is %q; it is an absolute path", v.TokenFile)
	}
	cfg := vault.Config{
		Address: v.Address, Namespace: v.Namespace, Mount: v.Mount, Path: v.Path, Field: v.Field, Token: file.Outside(v.TokenFile, writable),
	}
	if cfg.Mount == "" {
		cfg.Mount = "secret"
	}
	var err error
	if cfg.Roots, err = rootsIn(v.CAFile, writable); err != nil {
		return nil, err
	}
	return vault.New(cfg)
}

// openSource opens the endpoint. endless lets tokens be used that do not say when they expire.
func (o OAuth) openSource(endless bool, writable func() []hostpath.Tree) (secret.Source, error) {
	own, err := o.ClientSecret.openSource("environment, file, command, vault and keyring", writable)
	if err != nil {
		return nil, fmt.Errorf(".client_secret%w", err)
	}
	roots, err := rootsIn(o.CAFile, writable)
	if err != nil {
		return nil, err
	}
	return oauth.New(oauth.Config{
		TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: own, Scopes: o.Scopes, Parameters: o.Parameters, InBody: o.InBody, Roots: roots, Endless: endless,
	})
}

// mostRoots bounds a file of certificates, in bytes.
const mostRoots = 4 << 20

// rootsIn reads certificates from a file, each time anew; nil if there is none.
func rootsIn(path string, writable func() []hostpath.Tree) (func() ([]byte, error), error) {
	switch {
	case path == "":
		return nil, nil //nolint:nilnil // the system's are enough
	case !filepath.IsAbs(path):
		return nil, fmt.Errorf(".ca_file is %q; it is an absolute path", path)
	}
	return func() ([]byte, error) {
		var trees []hostpath.Tree
		if writable != nil {
			trees = writable()
		}
		file, err := privatefile.ReadTrusted("the CA file", path, mostRoots, trees)
		return file.Data, err
	}, nil
}
