package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxToken bounds the file that a token is read from.
const maxToken = 4 << 10

// maxCAs bounds the file that certificates are read from, in bytes: a system's have a tenth of it.
const maxCAs = 4 << 20

// remote is the daemon on the network that a command line or the environment
// names; the zero one is none: this user's own daemon is meant.
type remote struct {
	host, tokenFile, ca string
}

// remoteFlags are of every command.
func remoteFlags(root *cobra.Command) {
	set := root.PersistentFlags()
	set.String("host", "", "daemon to speak to: https://HOST:PORT or unix:///PATH (default: $"+client.EnvHost+", or this user's own)")
	set.String("token-file", "", "file with the token for --host (default: $"+client.EnvToken+")")
	set.String("ca", "", "file with the CA certificate of --host (default: $"+client.EnvCA+", or the system's)")
	registerCompletion(root, "host", cobra.NoFileCompletions)
}

// remoteOf reads the flags of a command, and the environment.
func remoteOf(cmd *cobra.Command) remote {
	flag := func(name, variable string) string {
		if value, err := cmd.Flags().GetString(name); err == nil && value != "" {
			return value
		}
		return os.Getenv(variable)
	}
	r := remote{host: flag("host", client.EnvHost), ca: flag("ca", client.EnvCA)}
	r.tokenFile, _ = cmd.Flags().GetString("token-file") // a command without it has none
	return r
}

// client makes the client; nil where no daemon on the network is named.
func (r remote) client() (*client.Client, error) {
	if r.host == "" {
		return nil, nil //nolint:nilnil // nothing is named, which is no error
	}
	token := os.Getenv(client.EnvToken)
	if r.tokenFile != "" {
		text, err := readDeciding("token file", r.tokenFile, maxToken)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(text))
	}
	c, err := r.openClient(token)
	if err != nil {
		return nil, fault.Invalid("%s", err)
	}
	return c, nil
}

// openClient opens the client. Its CA file is read here, through no link that an agent could have left.
func (r remote) openClient(token string) (*client.Client, error) {
	if r.ca == "" || strings.HasPrefix(r.host, "unix://") {
		return client.At(r.host, token, "")
	}
	cas, err := readDeciding("CA file", r.ca, maxCAs)
	if err != nil {
		return nil, err
	}
	return client.Open(client.Remote{URL: r.host, Token: token, CAs: cas})
}

// remoteKey carries the remote in a command's context.
type remoteKey struct{}

func withRemote(ctx context.Context, r remote) context.Context {
	return context.WithValue(ctx, remoteKey{}, r)
}

// elsewhere returns a client of the daemon on the network that ctx names; nil if it
// names none.
func elsewhere(ctx context.Context) (*client.Client, error) {
	r, _ := ctx.Value(remoteKey{}).(remote)
	return r.client()
}

// hostOf is the address of the daemon that a command is for; "": this user's own.
func hostOf(ctx context.Context) string {
	r, _ := ctx.Value(remoteKey{}).(remote)
	return r.host
}

// onThisHost refuses a command for a daemon elsewhere that is about this user's own.
func onThisHost(ctx context.Context, what string) error {
	if r, _ := ctx.Value(remoteKey{}).(remote); r.host != "" {
		return fault.Invalid("%s is about this user's own daemon; leave out --host and %s", what, client.EnvHost)
	}
	return nil
}
