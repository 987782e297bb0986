package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newEnv() *cobra.Command {
	var policy string
	var renew, asJSON, urls bool
	cmd := &cobra.Command{
		Use:     "env",
		Short:   "Print the variables with which the E2B SDKs use this daemon",
		GroupID: groupHost,
		Long: `Prints the variables with which programs that use the E2B SDKs run on your own
daemon. The daemon must listen on the network ("cofferdam serve --domain", or "listen"
in its configuration). The first time, this makes a token with your name. The token is
kept in the state directory, where only you can read it, and used again until it is
revoked.

With a domain these are E2B_DOMAIN, a key, and the CAs to trust: SSL_CERT_FILE has the
system's and this installation's. If names below the domain do not resolve here, it says
so on the standard error, and what to do. Without a domain, or with --urls, the SDKs get
the daemon's address by two variables that they have marked as going with their next
major version.`,
		Example: `  eval "$(cofferdam env)"
  eval "$(cofferdam env --urls)"
  eval "$(cofferdam env --policy data --renew)"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := withQuickTimeout(cmd.Context())
			defer cancel()
			if err := onThisHost(ctx, "env"); err != nil {
				return err
			}
			vars, err := listEnvironment(ctx, policy, renew, urls)
			if err != nil {
				return err
			}
			return writeAnswer(vars, asJSON, writeVariables)
		},
	}
	cmd.Flags().StringVar(&policy, "policy", "", "policy of a token that is made now, by name (default: the one named default)")
	refuseRepeated(cmd.Flags(), "policy")
	registerCompletion(cmd, "policy", completePolicies)
	cmd.Flags().BoolVar(&renew, "renew", false, "make a new token, and revoke the one that was kept")
	cmd.Flags().BoolVar(&urls, "urls", false, "the daemon's address in place of its domain")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// variable is one of the environment.
type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// The variables by which the SDKs find a daemon: the one, or both of the others. An address that was set
// before would win over a domain.
const (
	varDomain  = "E2B_DOMAIN"
	varAPI     = "E2B_API_URL"
	varSandbox = "E2B_SANDBOX_URL"
)

// writeVariables writes them for a shell to read.
func writeVariables(w io.Writer, vars []variable) error {
	set := func(name string) bool {
		return slices.ContainsFunc(vars, func(v variable) bool { return v.Name == name })
	}
	others := varAPI + " " + varSandbox
	if !set(varDomain) {
		others = varDomain
	}
	if _, err := fmt.Fprintf(w, "unset %s\n", others); err != nil {
		return err
	}
	for _, v := range vars {
		if _, err := fmt.Fprintf(w, "export %s=%s\n", v.Name, ui.Quoted(v.Value)); err != nil {
			return err
		}
	}
	return nil
}

// listEnvironment lists the variables that the SDKs read.
func listEnvironment(ctx context.Context, policy string, renew, urls bool) ([]variable, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return nil, err
	}
	c, err := connectAt(ctx, paths)
	if err != nil {
		return nil, err
	}
	daemon, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	if daemon.URL == "" {
		return nil, fault.New(fault.ErrUnavailable, "the daemon does not listen on the network; end it with cofferdam stop and start it with cofferdam serve --domain sandbox.localhost:7433 (or --listen 127.0.0.1:7433), or say listen in %s", paths.File())
	}
	secret, err := keptToken(ctx, c, paths, policy, renew)
	if err != nil {
		return nil, err
	}
	if daemon.Domain != "" && !urls {
		if problem := namesProblem(ctx, resolveSystem, daemon); problem != "" {
			ui.NewStderr(os.Stderr).Say("note: %s. Until then: eval \"$(cofferdam env --urls)\"", problem)
		}
	}
	if trustsNobodyElse(daemon) {
		ui.NewStderr(os.Stderr).Say("note: no file with the CAs of this system was found when the daemon started, so that SSL_CERT_FILE has the daemon's alone: a program that reads it reaches nobody else over TLS. Install ca-certificates, or start the daemon with SSL_CERT_FILE set to a file of CAs")
	}
	return variablesOf(daemon, secret, urls), nil
}

// namesProblem is wildcardProblem of a daemon that runs. Its URL is one of the addresses where it listens, and
// other machines may have the names lead to another.
func namesProblem(ctx context.Context, lookUp resolver, daemon api.Version) string {
	return wildcardProblem(ctx, lookUp, daemon.Domain, daemon.Listens)
}

// trustsNobodyElse tells whether the file for SSL_CERT_FILE has the daemon's CA and no other.
func trustsNobodyElse(daemon api.Version) bool {
	if daemon.CABundle == "" {
		return daemon.CAFile != ""
	}
	bundle, err := os.ReadFile(daemon.CABundle)
	if err != nil {
		return false // whoever reads it is told so
	}
	own, err := os.ReadFile(daemon.CAFile)
	return err == nil && bytes.Equal(bundle, own)
}

// variablesOf are how clients reach a daemon: by its domain if it has one, unless urls asks for its address.
func variablesOf(daemon api.Version, secret string, urls bool) []variable {
	vars := []variable{{varDomain, daemon.Domain}}
	if daemon.Domain == "" || urls {
		vars = []variable{{varAPI, daemon.URL}, {varSandbox, daemon.URL}}
	}
	vars = append(vars, variable{"E2B_API_KEY", secret})
	if daemon.CAFile == "" {
		return vars
	}
	// The one replaces what a program trusts, and needs all; the other adds to it.
	return append(vars, variable{"SSL_CERT_FILE", cmp.Or(daemon.CABundle, daemon.CAFile)}, variable{"NODE_EXTRA_CA_CERTS", daemon.CAFile})
}

// kept is the token of env, in a file of the state directory.
type kept struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

// keptToken is the secret that was kept, if its token lives, else a new one.
func keptToken(ctx context.Context, c *client.Client, paths config.Paths, policy string, renew bool) (string, error) {
	file := filepath.Join(paths.State, "env-token.json")
	var k kept
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the token that was kept in %s (remove the file to make a new one): %w", file, err)
	}
	token, lives, err := usableToken(ctx, c, k.ID)
	if err != nil {
		return "", err
	}
	switch {
	case lives && !renew && (policy == "" || policy == token.Policy):
		return k.Secret, nil
	case lives && !renew:
		return "", fault.Invalid("a token with the policy %s is kept already, in %s; with --renew it is revoked, and one with the policy %s is made", token.Policy, file, policy)
	case lives:
		if _, err := c.RevokeToken(ctx, k.ID); err != nil {
			return "", err
		}
	}
	return makeKeptToken(ctx, c, file, policy)
}

func usableToken(ctx context.Context, c *client.Client, id string) (token api.Token, lives bool, err error) {
	if id == "" {
		return token, false, nil
	}
	tokens, err := c.Tokens(ctx)
	for _, t := range tokens {
		if t.ID == id {
			return t, isAlive(t, time.Now()), nil
		}
	}
	return token, false, err
}

// makeKeptToken makes a token and keeps it. If another one has its name, nobody has the
// secret of that any more, or somebody else does: this one gets a name of its own.
func makeKeptToken(ctx context.Context, c *client.Client, file, policy string) (string, error) {
	who := "user"
	if u, err := user.Current(); err == nil {
		who = strings.Map(plainInName, u.Username)
	}
	name := "env-" + who
	made, err := c.MakeToken(ctx, api.MakeToken{Name: name, Policy: policy})
	if client.StatusOf(err) == http.StatusConflict { // the name is taken
		made, err = c.MakeToken(ctx, api.MakeToken{Name: name + "-" + time.Now().UTC().Format("20060102-150405"), Policy: policy})
	}
	if err != nil {
		return "", err
	}
	//nolint:gosec // it is written to a file that only this user can read
	text, err := json.Marshal(kept{ID: made.ID, Secret: made.Secret})
	if err != nil {
		return "", fmt.Errorf("keep the token: %w", err)
	}
	if err := atomicfile.Replace(file, text, 0o600); err != nil {
		return "", fmt.Errorf("keep the token: %w", err)
	}
	return made.Secret, nil
}

func plainInName(r rune) rune {
	if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') || r == '-' {
		return r
	}
	return '-'
}
